import { EMPTY_WRITE, withoutQuotedCredentials } from '../../model/node-write';

it('takes credentials of URLs out of errors and history, and keeps the rest', () => {
  const error = 'Failed to download http://u:p@images/x';
  const entry = { uuid: 'u', node_uuid: 'n', event: error } as never;
  const internal = { url: 'http://u:p@h/' };
  expect(withoutQuotedCredentials({ changes: { last_error: error, name: 'http://u:p@h/' }, internal, history: [entry] })).toEqual({
    changes: { last_error: 'Failed to download http://images/x', name: 'http://u:p@h/' },
    internal,
    history: [{ uuid: 'u', node_uuid: 'n', event: 'Failed to download http://images/x' }],
  });
  const changes = { last_error: null };
  expect(withoutQuotedCredentials({ ...EMPTY_WRITE, changes }).changes).toBe(changes);
});
