/** Validates bodies with the document's schemas. Ajv compiles a schema at its first use. The messages are those of Ironic's validator. */
import Ajv, { type ErrorObject, type ValidateFunction } from 'ajv';
import { invalidParameter } from '../../model/errors';
import { isMac, isUuid } from '../../model/idents';
import { isObject } from '../../model/json';
import { withoutSecrets } from '../../model/masks';
import { pformat, repr } from '../../model/python';
import { isTrait } from '../../model/traits';
import { isIP, isIPv4, isIPv6 } from 'node:net';
import type { Schema } from './document';

/** Keywords of OpenAPI that JSON schema does not have. */
const OF_OPENAPI = ['nullable', 'writeOnly'];
/** Members that Ironic does not have. Its messages, which print schemas, do not show them. */
const OURS = 'x-ours';
/** Names of formats in messages. */
const STRICT_FORMATS: Readonly<Record<string, string>> = { uuid: 'uuid', mac: 'mac-address' };
/**
 * OpenAPI 3.0 as JSON schema: `nullable` and `x-spelled` become lists of types, `x-json-schema` is merged, other `x-` keys are removed.
 * @internal
 */
export function toJsonSchema(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(toJsonSchema);
  if (!isObject(schema)) return schema;
  const source: Schema = { ...schema };
  const typesOf = (type: unknown): unknown => {
    if (Array.isArray(type)) return type;
    const listed = [...(source['x-spelled'] === true ? ['string'] : []), type, ...(source['nullable'] === true ? ['null'] : [])];
    return listed.length > 1 ? listed : listed[0];
  };
  const members = Object.entries({ ...source, ...source['x-json-schema'] }).filter(
    // OpenAPI requires `items`; an empty one has no meaning in JSON schema.
    ([key, value]) =>
      (!key.startsWith('x-') || key === OURS) &&
      !OF_OPENAPI.includes(key) &&
      !(key === 'items' && isObject(value) && Object.keys(value).length === 0),
  );
  return Object.fromEntries(
    members.map(([key, value]) => [
      key,
      key === 'type'
        ? typesOf(value)
        : key === 'properties' && isObject(value)
          ? Object.fromEntries(Object.entries(value).map(([name, entry]) => [name, toJsonSchema(entry)]))
          : // Only x-strict formats are checked here. Others have error messages of their own (arguments.ts).
            key === 'format' && source['x-strict'] === true
            ? `strict ${STRICT_FORMATS[String(value)]!}`
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

/** The position of a keyword in the schema, in reading order. Items of an array follow one another. */
function positionOf(root: unknown, { schemaPath, instancePath }: ErrorObject): number[] {
  const places = parts(instancePath);
  let at: unknown = root;
  let isName = false;
  return parts(schemaPath).flatMap((part) => {
    const index = Object.keys(at ?? {}).indexOf(part);
    at = typeof at === 'object' && at !== null ? Reflect.get(at, part) : undefined;
    const isItem = !isName && part === 'items';
    const place = isName || isItem ? places.shift() : undefined;
    isName = !isName && part === 'properties';
    return isItem ? [index, Number(place)] : [index];
  });
}
/** Compares lists by their first difference. */
function compare(left: readonly (string | number | boolean)[], right: readonly (string | number | boolean)[]): number {
  for (let index = 0; index < Math.min(left.length, right.length); index++)
    if (left[index] !== right[index]) return left[index]! < right[index]! ? -1 : 1;
  return left.length - right.length;
}

const isOfType = (data: unknown, type: string): boolean =>
  type === 'null'
    ? data === null
    : type === 'array'
      ? Array.isArray(data)
      : type === 'object'
        ? isObject(data)
        : type === 'integer'
          ? Number.isInteger(data)
          : typeof data === type;
/** The relevance of an error: higher near the root, among later siblings, and for keywords other than `anyOf` and `oneOf`. */
function relevance(problem: Problem, parent = ''): (string | number | boolean)[][] {
  const path = parts(problem.instancePath.slice(parent.length)).map((part) => (/^\d+$/.test(part) ? Number(part) : part));
  const types = [(problem.parentSchema as { type?: string | string[] } | undefined)?.type ?? []].flat();
  return [
    [-path.length],
    path,
    [problem.keyword !== 'anyOf' && problem.keyword !== 'oneOf', !types.some((type) => isOfType(problem.data, type))],
  ];
}
function moreRelevant(left: Problem, right: Problem, parent?: string): number {
  const [a, b] = [relevance(left, parent), relevance(right, parent)];
  for (let index = 0; index < a.length; index++) {
    const order = compare(a[index]!, b[index]!);
    if (order !== 0) return order;
  }
  return 0;
}
/**
 * The first of the most relevant errors. In a choice (anyOf, oneOf) it is the least relevant one, which is the deepest.
 * `owner`: the error of the choice.
 */
function bestOf(problems: readonly Problem[], parent?: string): { readonly found: Problem; readonly owner: Problem | undefined } {
  let found = problems.reduce((most, problem) => (moreRelevant(problem, most, parent) > 0 ? problem : most));
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

/** The beginnings of a path, each a part longer than the one before; the whole path is the last one. */
function beginningsOf(path: string): string[] {
  const beginnings: string[] = [];
  for (let at = path.indexOf('/'); at >= 0; at = path.indexOf('/', at + 1)) beginnings.push(path.slice(0, at));
  return [...beginnings, path];
}
/** Moves the errors of a choice's branches below the error of the choice. */
function asTree(errors: readonly ErrorObject[], root: unknown): Problem[] {
  const problems: Problem[] = errors.map((error) => ({ ...error, context: [], position: positionOf(root, error) }));
  problems.sort((a, b) => compare(a.position, b.position));
  // By schema path, and by instance path in it: a body may have thousands of errors and of choices.
  const choices = new Map<string, Map<string, Problem>>();
  for (const problem of problems) {
    if (problem.keyword !== 'anyOf' && problem.keyword !== 'oneOf') continue;
    const { schemaPath, instancePath } = problem;
    const ofSchema = choices.get(schemaPath) ?? new Map<string, Problem>();
    if (!ofSchema.has(instancePath)) choices.set(schemaPath, ofSchema.set(instancePath, problem));
  }
  return problems.filter(({ schemaPath, instancePath }, index) => {
    const instances = beginningsOf(instancePath);
    const owner = beginningsOf(schemaPath)
      .slice(0, -1)
      .reverse()
      .flatMap((path) => instances.flatMap((instance) => choices.get(path)?.get(instance) ?? []))[0];
    const problem = problems[index]!;
    owner?.context.push(problem);
    return !owner;
  });
}

const bounded = (limit: number, otherwise: string): string => (limit === 1 ? 'should be non-empty' : otherwise);
/** What the caller sent, without secrets: clients log errors. */
const quoted = (data: unknown): string => repr(withoutSecrets(data));
type Wording = (problem: Problem, siblings: readonly Problem[]) => string;
const WORDING: Readonly<Record<string, Wording>> = {
  type: ({ data, parentSchema }) =>
    `${quoted(data)} is not of type ${[(parentSchema as { type: string | string[] }).type].flat().map(repr).join(', ')}`,
  required: ({ params }) => `${repr(params['missingProperty'])} is a required property`,
  additionalProperties: (problem, siblings) => {
    const same = siblings.filter((sibling) => sibling.schemaPath === problem.schemaPath && sibling.instancePath === problem.instancePath);
    const names = same.map(({ params }) => params['additionalProperty'] as string).sort();
    return `Additional properties are not allowed (${names.map(repr).join(', ')} ${names.length === 1 ? 'was' : 'were'} unexpected)`;
  },
  enum: ({ data, schema }) => `${quoted(data)} is not one of ${repr(schema)}`,
  pattern: ({ data, schema }) => `${quoted(data)} does not match ${repr(schema)}`,
  format: ({ data, schema }) => `${quoted(data)} is not a ${repr((schema as string).replace('strict ', ''))}`,
  minLength: ({ data, schema }) => `${quoted(data)} ${bounded(schema as number, 'is too short')}`,
  maxLength: ({ data }) => `${quoted(data)} is too long`,
  minItems: ({ data, schema }) => `${quoted(data)} ${bounded(schema as number, 'is too short')}`,
  minimum: ({ data, schema }) => `${quoted(data)} is less than the minimum of ${repr(schema)}`,
  exclusiveMinimum: ({ data, schema }) => `${quoted(data)} is less than or equal to the minimum of ${repr(schema)}`,
  dependencies: ({ params }) => `${repr(params['deps'])} is a dependency of ${repr(params['property'])}`,
  maximum: ({ data, schema }) => `${quoted(data)} is greater than the maximum of ${repr(schema)}`,
  anyOf: ({ data }) => `${quoted(data)} is not valid under any of the given schemas`,
  oneOf: ({ data, params, schema }) => {
    const [first, ...more] = (params['passingSchemas'] as number[] | null) ?? [];
    if (first === undefined) return `${quoted(data)} is not valid under any of the given schemas`;
    return `${quoted(data)} is valid under each of ${[...more, first].map((index) => repr((schema as unknown[])[index])).join(', ')}`;
  },
};

const wordsOf = (problem: Problem, siblings: readonly Problem[]): string =>
  (WORDING[problem.keyword] ?? (({ message }) => message ?? ''))(problem, siblings);
const everyProblem = (problems: readonly Problem[]): readonly Problem[] => problems.flatMap((problem) => [problem, ...problem.context]);

/** What this server adds: members, the largest safe integer, and its digits. Ironic's messages do not contain them. */
const isOurs = (key: string, value: unknown): boolean =>
  (isObject(value) && value[OURS] === true) ||
  (key === 'maximum' && value === Number.MAX_SAFE_INTEGER) ||
  (key === 'maxLength' && value === 15);
/** An error as Python's jsonschema prints it: the message, the violated part of the schema, and the instance. */
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
    JSON.stringify(found.parentSchema, (key, value: unknown) => (isOurs(key, value) ? undefined : value)),
  ) as unknown;
  return (
    `${wordsOf(found, everyProblem(problems))}\n\nFailed validating ${repr(found.keyword)} in schema${schemaPath}:\n` +
    `${shown(known)}\n\nOn instance${below(found.instancePath, owner?.instancePath)}:\n${shown(withoutSecrets(found.data))}`
  );
}
const WIDTH = 72;

function messageOf(problems: readonly Problem[], found: Problem): string {
  let [siblings, current] = [problems, found];
  while (current.context.length > 0) {
    siblings = current.context;
    current = best(siblings, current.instancePath);
  }
  const sentence = wordsOf(found, everyProblem(problems));
  return current === found ? sentence : `${sentence}. Possible root cause: ${wordsOf(current, siblings)}`;
}
/** The message of the most relevant error, and its likely cause if there is one. */
export function describe(errors: readonly ErrorObject[], root: unknown): string {
  const problems = asTree(errors, root);
  return messageOf(problems, best(problems));
}
/** The same for the first error in the order of the schema. */
export function describeFirst(errors: readonly ErrorObject[], root: unknown): string {
  const problems = asTree(errors, root);
  return messageOf(problems, problems[0]!);
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
/** Above this number of values only the first error is collected. Collecting all errors of a huge body would allow denial of service. */
const MAX_VALUES = 2500;
function isHuge(value: unknown): boolean {
  let count = 0;
  const visit = (item: unknown): boolean =>
    ++count > MAX_VALUES || (item !== null && typeof item === 'object' && Object.values(item).some(visit));
  return visit(value);
}

type Validator = (value: unknown) => string | undefined;
/** Compiles a schema at its first use. The validator returns the error message, or undefined. */
export type Validators = (key: string, schema: () => Schema, words?: typeof describe) => Validator;
export function createValidators(): Validators {
  const compiled = new Map<string, Validator>();
  let ajv: { readonly first: Ajv; readonly all: Ajv } | undefined;
  return (key, schema, words = describe) => {
    const known = compiled.get(key);
    if (known) return known;
    // The first request waits while its schema is compiled. Checking the schema and optimizing the code would double that time.
    const options = { verbose: true, strict: false, formats: FORMATS, validateSchema: false, meta: false, code: { optimize: false } };
    ajv ??= { first: new Ajv(options), all: new Ajv({ ...options, allErrors: true }) };
    const { first, all } = ajv;
    const root = toJsonSchema(schema()) as object;
    const check = first.compile(root);
    let explain: ValidateFunction | undefined;
    const validator: Validator = (value) => {
      if (check(value)) return undefined;
      if (isHuge(value)) return words(check.errors!, root);
      explain ??= all.compile(root);
      explain(value);
      return words(explain.errors!, root);
    };
    compiled.set(key, validator);
    return validator;
  };
}

/**
 * @param name of the value in messages; may be empty
 * @throws Fault InvalidParameterValue
 */
export function throwIfInvalid(name: string, problem: string | undefined): void {
  if (problem !== undefined) throw invalidParameter(`Schema error${name && ` for ${name}`}: ${problem}`);
}
