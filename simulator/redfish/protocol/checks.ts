/** Validates requests: a table of checks for each body, and functions that refuse a body by its table. */
import { isObject } from '../../../model/json';
import { refuse } from './messages';
import type { ServiceAnswer, ResourceBody } from './routes';

/** The message of the Base registry and its arguments; undefined: the value is valid. */
type Problem = readonly [message: string, ...args: string[]] | undefined;
export type Check = (value: unknown, name: string) => Problem;
export type Checks = Readonly<Record<string, Check>>;

const shown = (value: unknown): string => JSON.stringify(value)?.slice(0, 200) ?? '';
const typed =
  (isValid: (value: unknown) => boolean): Check =>
  (value, name) =>
    isValid(value) ? undefined : ['PropertyValueTypeError', shown(value), name];

const MAX_TEXT = 4096;
export const text: Check = typed((value) => typeof value === 'string' && value.length <= MAX_TEXT);
export const flag: Check = typed((value) => typeof value === 'boolean');
export const textOrNull: Check = (value, name) => (value === null ? undefined : text(value, name));
export const integer =
  (least: number, most: number): Check =>
  (value, name) =>
    !Number.isInteger(value)
      ? ['PropertyValueTypeError', shown(value), name]
      : (value as number) < least || (value as number) > most
        ? ['PropertyValueOutOfRange', shown(value), name]
        : undefined;
export const oneOf =
  (words: readonly string[]): Check =>
  (value, name) =>
    typeof value !== 'string'
      ? ['PropertyValueTypeError', shown(value), name]
      : words.includes(value)
        ? undefined
        : ['PropertyValueNotInList', shown(value), name];
export const list =
  (each: Check, most = 256): Check =>
  (value, name) =>
    Array.isArray(value) && value.length <= most
      ? value.map((item) => each(item, name)).find((problem) => problem !== undefined)
      : ['PropertyValueTypeError', shown(value), name];
export const members =
  (checks: Checks): Check =>
  (value, name) =>
    isObject(value) ? problemIn(value, checks) : ['PropertyValueTypeError', shown(value), name];
/** Accepts any value: the code that uses the value checks it, or ignores it. */
export const anything: Check = () => undefined;
/** A reference to another resource: {"@odata.id": …}. */
export const reference: Check = (value, name) =>
  isObject(value) && typeof value['@odata.id'] === 'string' ? undefined : ['PropertyValueTypeError', shown(value), name];

/** Annotations that a client sends back have no effect (DSP0266 §7.7). */
const isAnnotation = (name: string): boolean => name.startsWith('@odata.');

function problemIn(body: ResourceBody, checks: Checks): Problem {
  for (const [name, value] of Object.entries(body)) {
    if (isAnnotation(name)) continue;
    const check = Object.hasOwn(checks, name) ? checks[name]! : undefined;
    const problem: Problem = check ? check(value, name) : ['PropertyUnknown', name];
    if (problem) return problem;
  }
  return undefined;
}

/**
 * Refuses a whole PATCH for one invalid property.
 * @param readable the resource's body: a property in it without a check is read-only
 */
export function refusePatch(body: ResourceBody, checks: Checks, readable: ResourceBody = {}): ServiceAnswer | undefined {
  const names = Object.keys(body).filter((name) => !isAnnotation(name));
  if (names.length === 0) return refuse('NoOperation');
  const readOnly = names.find((name) => !Object.hasOwn(checks, name) && Object.hasOwn(readable, name));
  if (readOnly !== undefined) return refuse('PropertyNotWritable', readOnly);
  const problem = problemIn(body, checks);
  return problem && refuse(...problem);
}

/** Refuses the body of a POST to a collection. */
export function refuseNew(body: ResourceBody, checks: Checks, required: readonly string[]): ServiceAnswer | undefined {
  const missing = required.find((name) => body[name] === undefined);
  if (missing !== undefined) return refuse('CreateFailedMissingReqProperties', missing);
  const problem = problemIn(body, checks);
  return problem && refuse(...problem);
}

/** Message about a property → message about an action's parameter, which has the action as its last argument. */
const OF_PARAMETERS: Readonly<Record<string, string>> = {
  PropertyUnknown: 'ActionParameterNotSupported',
  PropertyValueTypeError: 'ActionParameterValueTypeError',
  PropertyValueNotInList: 'ActionParameterValueNotInList',
  PropertyValueOutOfRange: 'ActionParameterValueNotInList',
  PropertyValueFormatError: 'ActionParameterValueTypeError',
};
/** Refuses the body of an action. */
export function refuseAction(
  action: string,
  body: ResourceBody,
  checks: Checks,
  required: readonly string[] = [],
): ServiceAnswer | undefined {
  const missing = required.find((name) => body[name] === undefined);
  if (missing !== undefined) return refuse('ActionParameterMissing', action, missing);
  const problem = problemIn(body, checks);
  if (!problem) return undefined;
  const [message, ...args] = problem;
  return refuse(OF_PARAMETERS[message] ?? message, ...args, action);
}
