import { applyPatch, equalJson, valuesAt, type PatchOperation } from '../../model/patch';

const document = { name: 'one', extra: { a: [1, 2], o: { deep: true } }, driver_info: {} };
const op = (name: PatchOperation['op'], path: string, ...value: unknown[]): PatchOperation => ({
  op: name,
  path,
  ...(value.length > 0 ? { value: value[0] } : {}),
});

it.each([
  [[op('replace', '/name', 'two')], { ...document, name: 'two' }],
  [[op('add', '/extra/b', 1)], { ...document, extra: { ...document.extra, b: 1 } }],
  [[op('add', '/extra/a/0', 0)], { ...document, extra: { ...document.extra, a: [0, 1, 2] } }],
  [[op('add', '/extra/a/-', 3)], { ...document, extra: { ...document.extra, a: [1, 2, 3] } }],
  [[op('add', '/extra/a/2', 3)], { ...document, extra: { ...document.extra, a: [1, 2, 3] } }],
  [[op('remove', '/extra/a/0')], { ...document, extra: { ...document.extra, a: [2] } }],
  [[op('remove', '/name')], { extra: document.extra, driver_info: {} }],
  [[op('add', '/driver_info/x', { y: 1 }), op('replace', '/driver_info/x/y', 2)], { ...document, driver_info: { x: { y: 2 } } }],
  [[op('add', '/extra/a~1b~0c~01', 1)], { ...document, extra: { ...document.extra, 'a/b~c~1': 1 } }],
  [[], document],
])('applyPatch applies %j', (patch, expected) => {
  const before = structuredClone(document);
  expect(applyPatch(document, patch)).toEqual(expected);
  expect(document).toEqual(before);
});

it.each([
  [op('add', '/nosuch', 1), 'Adding a new attribute (/nosuch) to the root of the resource is not allowed'],
  [
    op('replace', '/extra/b', 1),
    "Couldn't apply patch '{'op': 'replace', 'path': '/extra/b', 'value': 1}'. Reason: can't replace a non-existent object 'b'",
  ],
  [op('remove', '/extra/b'), "Couldn't apply patch '{'op': 'remove', 'path': '/extra/b'}'. Reason: can't remove a non-existent object 'b'"],
  [op('remove', '/extra/a/9'), "can't remove a non-existent object '9'"],
  [op('add', '/extra/a/9', 1), "can't insert outside of list"],
  [op('replace', '/extra/a/9', 1), "can't replace outside of list"],
  [op('replace', '/extra/a/x', 1), "'x' is not a valid sequence index"],
  [op('replace', '/extra/a/01', 1), "'01' is not a valid sequence index"],
  [op('add', '/driver_info/b/c', 1), "member 'b' not found in {}"],
  [op('add', '/extra/a/0/c', 1), "Document '<class 'int'>' does not support indexing"],
  [op('add', '/name/c', 1), "Cannot apply token 'c' to non-container type <class 'str'>"],
  [op('add', '/extra/a~2', 1), 'Reason: Found invalid escape ~2'],
  [op('add', '/extra/a~', 1), 'Reason: Found invalid escape ~'],
  [op('add', '/extra/b'), "The operation does not contain a 'value' member"],
  [op('add', '/extra/__proto__/x', 1), "member '__proto__' not found"],
  [op('replace', '/extra/constructor', 1), "can't replace a non-existent object 'constructor'"],
])('applyPatch rejects %j', (operation, sentence) => {
  expect(() => applyPatch(document, [operation])).toThrow(sentence);
});

it('applyPatch names the existing members in its error, but not their values', () => {
  const secret = { driver_info: { ipmi_password: 'hunter2', ['x'.repeat(500)]: 'hunter2' } };
  const refused = () => applyPatch(secret, [op('add', '/driver_info/b/c', 1)]);
  expect(refused).toThrow(`member 'b' not found in {'ipmi_password', '${'x'.repeat(100)}'}`);
  expect(refused).not.toThrow('hunter2');
  const many = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`n${index}`, 1]));
  expect(() => applyPatch({ extra: many }, [op('add', '/extra/b/c', 1)])).toThrow(/'n19', \.\.\.\}/);
});

it('applyPatch treats __proto__ as a normal member', () => {
  const patched = applyPatch(document, [op('add', '/extra/__proto__', { polluted: true })]);
  expect(JSON.stringify(patched['extra'])).toContain('"__proto__":{"polluted":true}');
  expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
});

it('valuesAt returns the values for a path, and equalJson compares deeply', () => {
  expect(valuesAt([op('add', '/a', 1), op('remove', '/a'), op('replace', '/a', 2), op('add', '/a/b', 3)], '/a')).toEqual([1, 2]);
  expect(equalJson({ a: [1, { b: null }] }, { a: [1, { b: null }] })).toBe(true);
  expect(equalJson({ a: 1 }, { a: 1, b: undefined })).toBe(false);
  expect(equalJson([], {})).toBe(false);
});
