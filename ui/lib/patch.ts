/** JSON Patches of what a form changed (RFC 6902). Pure. */
export interface Operation {
  readonly op: 'add' | 'remove';
  readonly path: string;
  readonly value?: unknown;
}
type Fields = Readonly<Record<string, unknown>>;
const isObject = (value: unknown): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value);
const isSame = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);
const escaped = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1');

function changeOf(path: string, before: unknown, after: unknown): readonly Operation[] {
  if (isSame(before ?? null, after ?? null)) return [];
  return [after === null || after === undefined ? { op: 'remove', path } : { op: 'add', path, value: after }];
}
/**
 * The changes of fields, and of the members of fields that are objects: the API shows `******` for secrets, which must not be sent back
 * when another member changes.
 */
export const patchOf = (before: Fields, after: Fields): readonly Operation[] =>
  Object.entries(after).flatMap(([name, value]) => {
    const old = before[name];
    if (!isObject(old) || !isObject(value)) return changeOf(`/${escaped(name)}`, old === '' ? null : old, value);
    const members = [...new Set([...Object.keys(old), ...Object.keys(value)])];
    return members.flatMap((member) => changeOf(`/${escaped(name)}/${escaped(member)}`, old[member], value[member]));
  });
