/**
 * Templates in the language Jinja2 that users may have written. A thread evaluates them, which has a limit of time and of memory: loops of
 * loops, and texts that double, end there.
 */
import { createThread } from '../worker-thread';

type Values = Readonly<Record<string, Readonly<Record<string, string>>>>;
interface Question {
  readonly template: string;
  readonly values: Values;
  readonly mostBytes: number;
}
type Answer = { readonly text: string; readonly unknown: readonly string[] } | { readonly error: string };
interface Rendered {
  readonly text: string;
  /** Jinja's sentences about the names that the template prints and that the values do not have. */
  readonly unknown: readonly string[];
}

const CODE = `
  const { parentPort, workerData } = require('node:worker_threads');
  const { Environment, Interpreter, parse, tokenize } = require(workerData);
  const isNode = (value) => typeof value === 'object' && value !== null;
  /** The names that the template gives itself: variables, and those of loops. */
  function ownNames(node, names) {
    if (!isNode(node)) return names;
    for (const made of [node.type === 'Set' && node.assignee, node.type === 'For' && node.loopvar, node.type === 'Macro' && node.name])
      for (const one of made?.type === 'TupleLiteral' ? made.value : [made]) if (one?.type === 'Identifier') names.add(one.value);
    if (node.type === 'Macro') for (const one of node.args) names.add(one.value ?? one.key?.value);
    for (const child of Object.values(node)) ownNames(child, names);
    return names;
  }
  /** Undefined values that are tested, or that have a default, are no mistakes. */
  const isForgiven = (node) =>
    node.type === 'TestExpression' ||
    (node.type === 'FilterExpression' && (node.filter.value ?? node.filter.callee?.value) === 'default');
  function unknownIn(node, known, values, found) {
    if (!isNode(node) || isForgiven(node)) return;
    if (node.type === 'MemberExpression' && node.object?.type === 'Identifier' && Object.hasOwn(values, node.object.value)) {
      const name = node.computed && node.property?.type !== 'StringLiteral' ? undefined : node.property?.value;
      if (typeof name === 'string' && !Object.hasOwn(values[node.object.value], name))
        found.add("'dict object' has no attribute '" + name + "'");
      return;
    }
    if (node.type === 'Identifier' && !known.has(node.value)) found.add("'" + node.value + "' is undefined");
    for (const [member, child] of Object.entries(node)) {
      const isName =
        member === 'operator' || member === 'filter' || member === 'test' && node.type !== 'If' && node.type !== 'Ternary' ||
        (member === 'property' && !node.computed) || (member === 'key' && node.type === 'KeywordArgumentExpression');
      if (isName) continue;
      if (Array.isArray(child)) for (const one of child) unknownIn(one, known, values, found);
      else unknownIn(child, known, values, found);
    }
  }
  const LITERALS = { true: true, false: false, none: null, True: true, False: false, None: null };
  function render({ template, values, mostBytes }) {
    const program = parse(tokenize(template));
    const scope = new Environment();
    for (const [name, value] of Object.entries({ ...LITERALS, ...values })) scope.set(name, value);
    const known = ownNames(program, new Set([...Object.keys(LITERALS), ...Object.keys(values), 'loop']));
    const found = new Set();
    unknownIn(program, known, values, found);
    const text = String(new Interpreter(scope).run(program).value);
    if (Buffer.byteLength(text) > mostBytes) throw new Error('it gives more than ' + mostBytes + ' bytes');
    return { text, unknown: [...found].slice(0, 10) };
  }
  parentPort.on('message', (question) => {
    try {
      parentPort.postMessage(render(question));
    } catch (error) {
      parentPort.postMessage({ error: error.message });
    }
  });`;

const MAX_MS = 5_000;
/** MiB. */
const MAX_MEMORY = 256;
const IDLE_MS = 10_000;
let thread: ReturnType<typeof createThread<Question, Answer>> | undefined;

/**
 * @param mostBytes of what the template gives
 * @throws an Error with the reason: its syntax, the limits
 */
export async function renderUntrusted(template: string, values: Values, mostBytes: number): Promise<Rendered> {
  thread ??= createThread<Question, Answer>(CODE, {
    data: require.resolve('@huggingface/jinja'),
    mostMemory: MAX_MEMORY,
    idleMs: IDLE_MS,
  });
  const answer = await thread
    .use((ask) => ask({ template, values, mostBytes }, MAX_MS))
    .catch(() => ({ error: `it takes more than ${MAX_MS / 1000} s or ${MAX_MEMORY} MiB to evaluate` }));
  if ('error' in answer) throw new Error(answer.error);
  return answer;
}
