/** JSON Patches (RFC 6902) of the fields that a form has changed. Pure. */
import { isObject, type JsonObject } from '../../model/json';

export interface Operation {
  readonly op: 'add' | 'remove';
  readonly path: string;
  readonly value?: unknown;
}
const isSame = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);
const escaped = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1');

function changeOf(path: string, before: unknown, after: unknown): readonly Operation[] {
  if (isSame(before ?? null, after ?? null)) return [];
  return [after === null || after === undefined ? { op: 'remove', path } : { op: 'add', path, value: after }];
}
/**
 * The changes of fields. Fields that are objects are compared member by member: the API shows `******` for secrets, and the page must not
 * send that back when another member changes.
 */
export const patchOf = (before: JsonObject, after: JsonObject): readonly Operation[] =>
  Object.entries(after).flatMap(([name, value]) => {
    const old = before[name];
    if (!isObject(old) || !isObject(value)) return changeOf(`/${escaped(name)}`, old === '' ? null : old, value);
    const members = [...new Set([...Object.keys(old), ...Object.keys(value)])];
    return members.flatMap((member) => changeOf(`/${escaped(name)}/${escaped(member)}`, old[member], value[member]));
  });
