/**
 * JSON Patch (RFC 6902) as Ironic takes it: add, replace and remove only. Written here and not taken from a package because each
 * refusal has a sentence that clients read, and it names the step of the walk that failed.
 */
import { Fault } from './errors';
import { repr, typeName } from './python';

export interface PatchOperation {
  readonly op: 'add' | 'replace' | 'remove';
  readonly path: string;
  readonly value?: unknown;
}
type Container = Record<string, unknown> | unknown[];

/** Why an operation cannot be applied; `apply` tells which. */
class Unfit extends Error {}

const INDEX = /^(0|[1-9][0-9]*)$/;

/** The step as the container takes it: an index of a list, a member's name of an object. */
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
/** Members are the object's own: `__proto__` is a name like any other. */
const has = (container: Container, key: string | number): boolean => key !== '-' && Object.hasOwn(container, key);
const set = (container: Container, key: string | number, value: unknown): void =>
  void Object.defineProperty(container, key, { value, enumerable: true, writable: true, configurable: true });

function walk(container: unknown, part: string): unknown {
  const key = step(container, part);
  if (!has(container as Container, key))
    throw new Unfit(Array.isArray(container) ? `index '${key}' is out of bounds` : `member '${part}' not found in ${repr(container)}`);
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

/** Operations as messages quote them: in the caller's order of keys. */
const quoted = (operation: PatchOperation): string => repr(operation);

/**
 * @param document left as it is
 * @returns the patched copy
 * @throws Fault Invalid, PatchError
 */
export function applyPatch(document: Readonly<Record<string, unknown>>, patch: readonly PatchOperation[]): Record<string, unknown> {
  for (const { op, path } of patch)
    if (op === 'add' && path.lastIndexOf('/') === 0 && !Object.hasOwn(document, path.slice(1)))
      throw new Fault('Invalid', { message: `Adding a new attribute (${path}) to the root of the resource is not allowed` });
  const patched = structuredClone(document) as Record<string, unknown>;
  for (const operation of patch) {
    const parts = operation.path.split('/').slice(1);
    try {
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

/** The values that a patch gives to exactly this path. */
export const valuesAt = (patch: readonly PatchOperation[], path: string): readonly unknown[] =>
  patch.filter((operation) => operation.path === path && operation.op !== 'remove').map(({ value }) => value);

/** Whether two JSON values are the same. */
export function same(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false;
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  const keys = Object.keys(one);
  return (
    keys.length === Object.keys(other).length &&
    keys.every((key) => Object.hasOwn(other, key) && same((one as Record<string, unknown>)[key], (other as Record<string, unknown>)[key]))
  );
}
