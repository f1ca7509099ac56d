/** Python's regular expressions, as clients write them in rules, in JavaScript's syntax. */

export interface Regex {
  readonly source: string;
  readonly flags: string;
}

/** An escaped character, or syntax of Python. */
const PIECE = /\\[\s\S]|\(\?P<|\(\?P=(\w+)\)/g;
type Anchors = Readonly<Record<string, string>>;
const ANCHORS: Anchors = { '\\A': '^', '\\Z': '$' };
/** With the flag `m`, `^` and `$` match at lines. */
const ANCHORS_OF_LINES: Anchors = { '\\A': '(?<![\\s\\S])', '\\Z': '(?![\\s\\S])' };
/** Flags at the start: `i`, `m` and `s` are those of JavaScript; `a` and `u` select what letters are, and change nothing here. */
const FLAGS = /^\(\?([aimsu]+)\)([\s\S]*)$/;

/** Nobody can interrupt the compilation of an expression, and the time for it grows with the cube of its depth. */
const MAX_CHARACTERS = 10_000;
const MAX_NESTED = 100;
/** Groups within each other. A parenthesis in a class counts too. */
function depthOf(source: string): number {
  let [depth, most] = [0, 0];
  for (let at = 0; at < source.length; at++) {
    if (source[at] === '\\') at++;
    else if (source[at] === '(') most = Math.max(most, ++depth);
    else if (source[at] === ')') depth = Math.max(0, depth - 1);
  }
  return most;
}

/** @throws Error if it is too large, or if JavaScript has no such expression, as for Python's conditional groups and atomic groups */
export function fromPython(text: string): Regex {
  if (text.length > MAX_CHARACTERS) throw new Error(`it has more than ${MAX_CHARACTERS} characters`);
  if (depthOf(text) > MAX_NESTED) throw new Error(`it has more than ${MAX_NESTED} groups within each other`);
  const [, flags = '', rest = text] = FLAGS.exec(text) ?? [];
  const known = [...new Set(flags.replace(/[au]/g, ''))].join('');
  const anchors = known.includes('m') ? ANCHORS_OF_LINES : ANCHORS;
  const source = rest.replace(PIECE, (piece, name?: string) =>
    name !== undefined ? `\\k<${name}>` : piece === '(?P<' ? '(?<' : (anchors[piece] ?? piece),
  );
  // Parses the expression, and compiles nothing yet.
  new RegExp(source, known);
  return { source, flags: known };
}
