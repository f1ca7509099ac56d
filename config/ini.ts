/**
 * ironic.conf's format as oslo.config reads it: `[section]`, `key = value` or `key: value`, continuation lines that begin with a space or a
 * tab, comments at the start of a line only. A `;` or `#` within a value belongs to the value. Every occurrence of a repeated key is
 * returned. Not as oslo.config: a byte order mark at the start is skipped.
 */
interface IniValue {
  readonly section: string;
  readonly key: string;
  readonly value: string;
  readonly line: number;
}

/** What Python's `str.strip()` removes: JavaScript's white space without the byte order mark, and four separators and NEL. */
const isSpace = (code: number): boolean =>
  (code >= 0x1c && code <= 0x1f) || code === 0x85 || (code !== 0xfeff && String.fromCharCode(code).trim() === '');
function trimStart(text: string): string {
  let from = 0;
  while (from < text.length && isSpace(text.charCodeAt(from))) from++;
  return text.slice(from);
}
function trimEnd(text: string): string {
  let to = text.length;
  while (to > 0 && isSpace(text.charCodeAt(to - 1))) to--;
  return text.slice(0, to);
}
/** As Python's `str.strip()`. */
export const strip = (text: string): string => trimStart(trimEnd(text));

/** Throws an Error with the line number for text that is none of these. */
export function parseIni(text: string): readonly IniValue[] {
  const found: { section: string; key: string; lines: string[]; line: number }[] = [];
  let section: string | undefined;
  let open = false;
  for (const [index, raw] of text
    .replace(/^\uFEFF/, '')
    .split(/\r\n?|\n/)
    .entries()) {
    const line = index + 1;
    const content = trimEnd(raw);
    if (content !== '' && /^[ \t]/.test(content)) {
      const last = found.at(-1);
      if (!open || !last) throw new Error(`line ${line}: a continuation line without an option before it`);
      last.lines.push(trimStart(content));
      continue;
    }
    // A comment ends the value too.
    open = false;
    if (content === '' || /^[#;]/.test(content)) continue;
    if (content.startsWith('[')) {
      if (!content.endsWith(']') || content.length < 3) throw new Error(`line ${line}: not a section: ${content.slice(0, 60)}`);
      section = content.slice(1, -1);
      continue;
    }
    const at = content.search(/[=:]/);
    const key = strip(content.slice(0, Math.max(at, 0)));
    if (at < 0 || key === '') throw new Error(`line ${line}: neither "name = value" nor a section: ${content.slice(0, 60)}`);
    if (section === undefined) throw new Error(`line ${line}: an option before the first section`);
    found.push({ section, key, lines: [unquote(strip(content.slice(at + 1)))], line });
    open = true;
  }
  return found.map(({ section: of, key, lines, line }) => ({ section: of, key, value: lines.join('\n'), line }));
}

/** Only the first line of a value may be in quotes. A lone quote is empty, as in oslo.config. */
const unquote = (value: string): string => (/^["']/.test(value) && value.endsWith(value[0]!) ? value.slice(1, -1) : value);
