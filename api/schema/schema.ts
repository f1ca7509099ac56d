/** Validates bodies by the document's schemas. Ajv compiles on first use; errors are worded as by Ironic's validator. */
import Ajv, { type ErrorObject, type ValidateFunction } from 'ajv';
import { Fault } from '../../model/errors';
import { isMac, isUuid } from '../../model/idents';
import { pformat, repr } from '../../model/python';
import { isTrait } from '../../model/traits';
import { isIP, isIPv4, isIPv6 } from 'node:net';
import type { Schema } from './document';

/** Names of formats in messages. */
const STRICT_FORMATS: Readonly<Record<string, string>> = { uuid: 'uuid', mac: 'mac-address' };
/** OpenAPI 3.0 as JSON schema: `nullable` and `x-spelled` become lists of types, `x-json-schema` joins, our own keys go. */
export function toJsonSchema(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(toJsonSchema);
  if (schema === null || typeof schema !== 'object') return schema;
  const source = schema as Record<string, unknown>;
  const typesOf = (type: unknown): unknown => {
    if (Array.isArray(type)) return type;
    const listed = [...(source['x-spelled'] === true ? ['string'] : []), type, ...(source['nullable'] === true ? ['null'] : [])];
    const types = source['x-null-first'] === true ? listed.reverse() : listed;
    return types.length > 1 ? types : types[0];
  };
  const members = Object.entries({ ...source, ...(source['x-json-schema'] as object | undefined) }).filter(
    // What may be anything says nothing: OpenAPI wants it said of lists.
    ([key, value]) => !key.startsWith('x-') && key !== 'nullable' && !(key === 'items' && Object.keys(value as object).length === 0),
  );
  return Object.fromEntries(
    members.map(([key, value]) => [
      key,
      key === 'type'
        ? typesOf(value)
        : key === 'properties'
          ? Object.fromEntries(Object.entries(value as object).map(([name, one]) => [name, toJsonSchema(one)]))
          : // Formats are looked at here only where the schema says so: elsewhere the value itself is told of in other words.
            key === 'format' && source['x-strict'] === true
            ? `strict ${STRICT_FORMATS[value as string]!}`
            : key === 'enum' || key === 'dependencies'
              ? value
              : toJsonSchema(value),
    ]),
  );
}

type Problem = ErrorObject & { readonly context: Problem[]; readonly position: readonly number[] };
const parts = (path: string): string[] =>
  path
    .split('/')
    .slice(1)
    .map((part) => decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~'));

/** Where a keyword stands in the schema, as the order in which it is read; members of a list one after the other. */
function positionOf(root: unknown, { schemaPath, instancePath }: ErrorObject): number[] {
  const places = parts(instancePath);
  let at: unknown = root;
  let isName = false;
  return parts(schemaPath).flatMap((part) => {
    const index = Object.keys(at ?? {}).indexOf(part);
    at = (at as Record<string, unknown> | undefined)?.[part];
    const isItem = !isName && part === 'items';
    const place = isName || isItem ? places.shift() : undefined;
    isName = !isName && part === 'properties';
    return isItem ? [index, Number(place)] : [index];
  });
}
/** Lists by their first difference. */
function compare(one: readonly (string | number | boolean)[], other: readonly (string | number | boolean)[]): number {
  for (let index = 0; index < Math.min(one.length, other.length); index++)
    if (one[index] !== other[index]) return one[index]! < other[index]! ? -1 : 1;
  return one.length - other.length;
}

const isOfType = (data: unknown, type: string): boolean =>
  type === 'null'
    ? data === null
    : type === 'array'
      ? Array.isArray(data)
      : type === 'object'
        ? data !== null && typeof data === 'object' && !Array.isArray(data)
        : type === 'integer'
          ? Number.isInteger(data)
          : typeof data === type;
/** How relevant an error is: nearer to the top, later among siblings, and not just "none of these". */
function relevance(problem: Problem, parent = ''): (string | number | boolean)[][] {
  const path = parts(problem.instancePath.slice(parent.length)).map((part) => (/^\d+$/.test(part) ? Number(part) : part));
  const types = [(problem.parentSchema as { type?: string | string[] } | undefined)?.type ?? []].flat();
  return [
    [-path.length],
    path,
    [problem.keyword !== 'anyOf' && problem.keyword !== 'oneOf', !types.some((type) => isOfType(problem.data, type))],
  ];
}
function moreRelevant(one: Problem, other: Problem, parent?: string): number {
  const [a, b] = [relevance(one, parent), relevance(other, parent)];
  for (let index = 0; index < a.length; index++) {
    const order = compare(a[index]!, b[index]!);
    if (order !== 0) return order;
  }
  return 0;
}
/** The first of the most relevant; of a choice's errors the least relevant is the deepest, which tells more. `owner`: whose choice it is. */
function bestOf(problems: readonly Problem[], parent?: string): { readonly found: Problem; readonly owner: Problem | undefined } {
  let found = problems.reduce((most, one) => (moreRelevant(one, most, parent) > 0 ? one : most));
  let owner: Problem | undefined;
  while (found.context.length > 0) {
    const { context, instancePath } = found;
    const [least, second] = [...context].sort((a, b) => moreRelevant(a, b, instancePath));
    if (second && moreRelevant(least!, second, instancePath) === 0) break;
    owner = found;
    found = least!;
  }
  return { found, owner };
}
const best = (problems: readonly Problem[], parent?: string): Problem => bestOf(problems, parent).found;

/** Errors of a choice's branches belong below the choice. */
function asTree(errors: readonly ErrorObject[], root: unknown): Problem[] {
  const problems: Problem[] = errors.map((error) => ({ ...error, context: [], position: positionOf(root, error) }));
  problems.sort((a, b) => compare(a.position, b.position));
  const choices = problems.filter(({ keyword }) => keyword === 'anyOf' || keyword === 'oneOf');
  return problems.filter((problem) => {
    const owners = choices.filter(
      (choice) =>
        problem !== choice &&
        problem.schemaPath.startsWith(`${choice.schemaPath}/`) &&
        `${problem.instancePath}/`.startsWith(`${choice.instancePath}/`),
    );
    const owner = owners.sort((a, b) => b.schemaPath.length - a.schemaPath.length)[0];
    owner?.context.push(problem);
    return !owner;
  });
}

const bounded = (limit: number, otherwise: string): string => (limit === 1 ? 'should be non-empty' : otherwise);
type Words = (problem: Problem, siblings: readonly Problem[]) => string;
const WORDS: Readonly<Record<string, Words>> = {
  type: ({ data, parentSchema }) =>
    `${repr(data)} is not of type ${[(parentSchema as { type: string | string[] }).type].flat().map(repr).join(', ')}`,
  required: ({ params }) => `${repr(params['missingProperty'])} is a required property`,
  additionalProperties: (problem, siblings) => {
    const same = siblings.filter((one) => one.schemaPath === problem.schemaPath && one.instancePath === problem.instancePath);
    const names = same.map(({ params }) => params['additionalProperty'] as string).sort();
    return `Additional properties are not allowed (${names.map(repr).join(', ')} ${names.length === 1 ? 'was' : 'were'} unexpected)`;
  },
  enum: ({ data, schema }) => `${repr(data)} is not one of ${repr(schema)}`,
  pattern: ({ data, schema }) => `${repr(data)} does not match ${repr(schema)}`,
  format: ({ data, schema }) => `${repr(data)} is not a ${repr((schema as string).replace('strict ', ''))}`,
  minLength: ({ data, schema }) => `${repr(data)} ${bounded(schema as number, 'is too short')}`,
  maxLength: ({ data }) => `${repr(data)} is too long`,
  minItems: ({ data, schema }) => `${repr(data)} ${bounded(schema as number, 'is too short')}`,
  minimum: ({ data, schema }) => `${repr(data)} is less than the minimum of ${repr(schema)}`,
  exclusiveMinimum: ({ data, schema }) => `${repr(data)} is less than or equal to the minimum of ${repr(schema)}`,
  dependencies: ({ params }) => `${repr(params['deps'])} is a dependency of ${repr(params['property'])}`,
  maximum: ({ data, schema }) => `${repr(data)} is greater than the maximum of ${repr(schema)}`,
  anyOf: ({ data }) => `${repr(data)} is not valid under any of the given schemas`,
  oneOf: ({ data, params, schema }) => {
    const [first, ...more] = (params['passingSchemas'] as number[] | null) ?? [];
    if (first === undefined) return `${repr(data)} is not valid under any of the given schemas`;
    return `${repr(data)} is valid under each of ${[...more, first].map((index) => repr((schema as unknown[])[index])).join(', ')}`;
  },
};

const wordsOf = (problem: Problem, siblings: readonly Problem[]): string =>
  (WORDS[problem.keyword] ?? (({ message }) => message ?? ''))(problem, siblings);
const everyProblem = (problems: readonly Problem[]): readonly Problem[] => problems.flatMap((problem) => [problem, ...problem.context]);

/** Where numbers end that JSON can hold, and how many digits of text fit below: bounds of ours, which clients of Ironic do not know. */
const isOurBound = (key: string, value: unknown): boolean =>
  (key === 'maximum' && value === Number.MAX_SAFE_INTEGER) || (key === 'maxLength' && value === 15);
/** How Python's validator prints an error: the sentence, the part of the schema that was broken, and what broke it. */
export function describeAtLength(errors: readonly ErrorObject[], root: unknown): string {
  const problems = asTree(errors, root);
  const { found, owner } = bestOf(problems);
  const below = (path: string, above: string | undefined): string =>
    parts(path.slice(above === undefined ? 0 : above.length))
      .map((part) => `[${/^\d+$/.test(part) ? part : repr(part)}]`)
      .join('');
  const schemaPath = below(found.schemaPath.slice(0, found.schemaPath.lastIndexOf('/')), owner?.schemaPath);
  const shown = (value: unknown): string => pformat(value, WIDTH).replace(/^/gm, '    ');
  const known = JSON.parse(
    JSON.stringify(found.parentSchema, (key, value: unknown) => (isOurBound(key, value) ? undefined : value)),
  ) as unknown;
  return (
    `${wordsOf(found, everyProblem(problems))}\n\nFailed validating ${repr(found.keyword)} in schema${schemaPath}:\n` +
    `${shown(known)}\n\nOn instance${below(found.instancePath, owner?.instancePath)}:\n${shown(found.data)}`
  );
}
const WIDTH = 72;

function tell(problems: readonly Problem[], found: Problem): string {
  let [siblings, current] = [problems, found];
  while (current.context.length > 0) {
    siblings = current.context;
    current = best(siblings, current.instancePath);
  }
  const sentence = wordsOf(found, everyProblem(problems));
  return current === found ? sentence : `${sentence}. Possible root cause: ${wordsOf(current, siblings)}`;
}
/** What is wrong, in one sentence, and perhaps its likely cause. */
export function describe(errors: readonly ErrorObject[], root: unknown): string {
  const problems = asTree(errors, root);
  return tell(problems, best(problems));
}
/** The same of the first mistake in the order of the schema, not of the most telling one. */
export function describeFirst(errors: readonly ErrorObject[], root: unknown): string {
  const problems = asTree(errors, root);
  return tell(problems, problems[0]!);
}

const FORMATS = {
  uuid: true,
  mac: true,
  'strict uuid': isUuid,
  'strict mac-address': isMac,
  'date-time': true,
  'standard-trait': isTrait,
  ipv4: isIPv4,
  ipv6: isIPv6,
  'ipv6-prefix': (text: string) => isIP(text.replace(/\/\d{1,2}$/, '')) === 6,
} as const;
/** More members than this, and only the first error is told: collecting all errors of a huge body would allow denial of service. */
const MANY = 5000;
function isMany(value: unknown): boolean {
  let count = 0;
  const visit = (one: unknown): boolean => ++count > MANY || (one !== null && typeof one === 'object' && Object.values(one).some(visit));
  return visit(value);
}

type Validator = (value: unknown) => string | undefined;
/** Compiles a schema when it is first needed; the validator says what is wrong, or nothing. */
export type Validators = (key: string, schema: () => Schema, words?: typeof describe) => Validator;
export function createValidators(): Validators {
  const compiled = new Map<string, Validator>();
  let ajv: { readonly first: Ajv; readonly all: Ajv } | undefined;
  return (key, schema, words = describe) => {
    const known = compiled.get(key);
    if (known) return known;
    const options = { verbose: true, strict: false, formats: FORMATS };
    ajv ??= { first: new Ajv(options), all: new Ajv({ ...options, allErrors: true }) };
    const { first, all } = ajv;
    const root = toJsonSchema(schema()) as object;
    const check = first.compile(root);
    let explain: ValidateFunction | undefined;
    const validator: Validator = (value) => {
      if (check(value)) return undefined;
      if (isMany(value)) return words(check.errors!, root);
      explain ??= all.compile(root);
      explain(value);
      return words(explain.errors!, root);
    };
    compiled.set(key, validator);
    return validator;
  };
}

/**
 * @param name what messages call the value; empty: nothing
 * @throws Fault InvalidParameterValue
 */
export function demand(name: string, problem: string | undefined): void {
  if (problem !== undefined) throw new Fault('InvalidParameterValue', { message: `Schema error${name && ` for ${name}`}: ${problem}` });
}
