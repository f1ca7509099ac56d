import { applyWrite, EMPTY_WRITE, isEmptyWrite, mergeWrites, withQuotesBounded, type NodeWrite } from '../../model/node-write';
import type { NodeRecord } from '../../model/records';
import { foreign } from '../support/task';

it('withQuotesBounded removes credentials in URLs from last_error and history only', () => {
  const error = 'Failed to download http://u:p@images/x';
  const entry = { uuid: 'u', node_uuid: 'n', event: error } as never;
  const internal = { agent_url: 'http://u:p@h/' };
  expect(withQuotesBounded({ changes: { last_error: error, name: 'http://u:p@h/' }, internal, history: [entry] })).toEqual({
    changes: { last_error: 'Failed to download http://images/x', name: 'http://u:p@h/' },
    internal,
    history: [{ uuid: 'u', node_uuid: 'n', event: 'Failed to download http://images/x' }],
  });
  const changes = { last_error: null };
  expect(withQuotesBounded({ ...EMPTY_WRITE, changes }).changes).toBe(changes);
});

const ENTRY = { uuid: 'u', event: 'e' } as never;
it.each<[Partial<NodeWrite>, boolean]>([
  [{}, true],
  [{ changes: { name: null } }, false],
  [{ internal: { agent_url: undefined } }, false],
  [{ history: [ENTRY] }, false],
])('isEmptyWrite(%p) is %p', (write, empty) => expect(isEmptyWrite({ ...EMPTY_WRITE, ...write })).toBe(empty));

it('mergeWrites gives precedence to the later write', () => {
  const first = { changes: { name: 'one', owner: 'me' }, internal: foreign({ a: 1, b: 1 }), history: [ENTRY] };
  const later = { changes: { name: 'two' }, internal: foreign({ b: undefined }), history: [{ uuid: 'v' } as never] };
  expect(mergeWrites(first, later)).toStrictEqual({
    changes: { name: 'two', owner: 'me' },
    internal: { a: 1, b: undefined },
    history: [ENTRY, { uuid: 'v' }],
  });
});

describe('applyWrite', () => {
  const node = { name: 'one', owner: 'me', extra: { old: true }, driver_internal_info: { a: 1, b: 2 } } as unknown as NodeRecord;
  it.each<[Partial<NodeWrite>, object]>([
    [{}, {}],
    [{ changes: { name: null, owner: undefined } as never }, { name: null }],
    // As the database returns it.
    [{ changes: { extra: { at: new Date(0), none: undefined } } }, { extra: { at: '1970-01-01T00:00:00.000Z' } }],
    [
      { internal: foreign({ a: undefined, c: { none: undefined, list: [1] }, d: null }) },
      { driver_internal_info: { b: 2, c: { list: [1] }, d: null } },
    ],
    [{ changes: { driver_internal_info: foreign({ e: 5 }) }, internal: foreign({ f: 6 }) }, { driver_internal_info: { e: 5, f: 6 } }],
  ])('applies %j', (write, changed) => expect(applyWrite(node, { ...EMPTY_WRITE, ...write })).toStrictEqual({ ...node, ...changed }));
});
