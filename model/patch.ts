/**
 * JSON Patch (RFC 6902) as in Ironic: add, replace and remove only. No package is used, because the error messages are Ironic's and name
 * the path component that failed.
 */
import { Fault } from './errors';
import { withoutSecrets } from './masks';
import { repr, typeName } from './python';

export interface PatchOperation {
  readonly op: 'add' | 'replace' | 'remove';
  readonly path: string;
  readonly value?: unknown;
}
type Container = Record<string, unknown> | unknown[];

/** The reason why an operation cannot be applied. */
class Unfit extends Error {}

/** The names in a JSON Pointer, decoded (RFC 6901 §4). */
function partsOf(pointer: string): readonly string[] {
  const [invalid] = /~(?:[^01]|$)/.exec(pointer) ?? [];
  if (invalid !== undefined) throw new Unfit(`Found invalid escape ${invalid}`);
  return pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
}

const INDEX = /^(0|[1-9][0-9]*)$/;

/** Converts a path component to a list index or a member name. */
function step(container: unknown, part: string): string | number {
  if (Array.isArray(container)) {
    if (part === '-') return part;
    if (!INDEX.test(part)) throw new Unfit(`'${part}' is not a valid sequence index`);
    return Number(part);
  }
  if (typeof container === 'string') throw new Unfit(`Cannot apply token '${part}' to non-container type <class 'str'>`);
  if (container === null || typeof container !== 'object')
    throw new Unfit(
      `Document '<class '${typeName(container)}'>' does not support indexing, must be mapping/sequence or support __getitem__`,
    );
  return part;
}
/** Own members only: `__proto__` is an ordinary name. */
const has = (container: Container, key: string | number): boolean => key !== '-' && Object.hasOwn(container, key);
const set = (container: Container, key: string | number, value: unknown): void =>
  void Object.defineProperty(container, key, { value, enumerable: true, writable: true, configurable: true });

/** Limits: names in a message, and characters of each name. */
const [MAX_NAMES, MAX_NAME] = [20, 100];
/** The names of an object's members. Ironic's message shows the values too, which may be passwords (`driver_info`) or a config drive. */
function names(container: object): string {
  const all = Object.keys(container);
  const shown = all.slice(0, MAX_NAMES).map((name) => repr(name.slice(0, MAX_NAME)));
  return `{${[...shown, ...(all.length > MAX_NAMES ? ['...'] : [])].join(', ')}}`;
}

function walk(container: unknown, part: string): unknown {
  const key = step(container, part);
  if (!has(container as Container, key))
    throw new Unfit(
      Array.isArray(container) ? `index '${key}' is out of bounds` : `member '${part}' not found in ${names(container as object)}`,
    );
  return (container as Record<string | number, unknown>)[key];
}

const OPERATIONS: Readonly<Record<PatchOperation['op'], (target: Container, key: string | number, value: unknown) => void>> = {
  add: (target, key, value) => {
    if (!Array.isArray(target)) set(target, key, value);
    else if (key !== '-' && Number(key) > target.length) throw new Unfit("can't insert outside of list");
    else target.splice(key === '-' ? target.length : Number(key), 0, value);
  },
  replace: (target, key, value) => {
    if (Array.isArray(target) && key === '-') throw new Unfit("'path' with '-' can't be applied to 'replace' operation");
    if (!has(target, key))
      throw new Unfit(Array.isArray(target) ? "can't replace outside of list" : `can't replace a non-existent object '${key}'`);
    set(target, key, value);
  },
  remove: (target, key) => {
    if (Array.isArray(target) && key === '-') throw new Unfit(`invalid array index '-'`);
    if (!has(target, key)) throw new Unfit(`can't remove a non-existent object '${key}'`);
    if (Array.isArray(target)) target.splice(Number(key), 1);
    else delete target[key];
  },
};

/** An operation as a message quotes it: without secrets, and with its keys in the caller's order. */
const quoted = (operation: PatchOperation): string => repr(withoutSecrets(operation));

/**
 * @param document not modified
 * @returns the patched copy
 * @throws Fault Invalid, PatchError
 */
export function applyPatch(document: Readonly<Record<string, unknown>>, patch: readonly PatchOperation[]): Record<string, unknown> {
  for (const { op, path } of patch)
    if (op === 'add' && path.lastIndexOf('/') === 0 && !Object.hasOwn(document, path.slice(1)))
      throw new Fault('Invalid', { message: `Adding a new attribute (${path}) to the root of the resource is not allowed` });
  const patched = structuredClone(document) as Record<string, unknown>;
  for (const operation of patch) {
    try {
      const parts = partsOf(operation.path);
      if (operation.op !== 'remove' && !('value' in operation)) throw new Unfit("The operation does not contain a 'value' member");
      const target = parts.slice(0, -1).reduce<unknown>(walk, patched);
      const key = step(target, parts.at(-1)!);
      OPERATIONS[operation.op](target as Container, key, structuredClone(operation.value));
    } catch (error) {
      if (!(error instanceof Unfit)) throw error;
      throw new Fault('PatchError', { patch: quoted(operation), reason: error.message });
    }
  }
  return patched;
}

/** The values that a patch sets at exactly this path. */
export const valuesAt = (patch: readonly PatchOperation[], path: string): readonly unknown[] =>
  patch.filter((operation) => operation.path === path && operation.op !== 'remove').map(({ value }) => value);

/** Whether two JSON values are equal. */
export function equalJson(left: unknown, right: unknown): boolean {
  if (left === right) return true;
  if (typeof left !== 'object' || typeof right !== 'object' || left === null || right === null) return false;
  if (Array.isArray(left) !== Array.isArray(right)) return false;
  const keys = Object.keys(left);
  return (
    keys.length === Object.keys(right).length &&
    keys.every(
      (key) => Object.hasOwn(right, key) && equalJson((left as Record<string, unknown>)[key], (right as Record<string, unknown>)[key]),
    )
  );
}
