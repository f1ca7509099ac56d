/** Nodes out of service over HTTP: the API, its bad input, lists, Ironic's view, the command, and a restart. */
import { runCommand } from '../../support/command';
import { useDatabase } from '../../support/database';
import { startWholeServer, type WholeServer } from '../../support/whole-server';

const database = useDatabase();
let whole: WholeServer;
beforeAll(async () => {
  whole = await startWholeServer(database.connection(), { machines: 3 });
});
afterAll(() => whole.close(), 30_000);

let next = 0;
/** A node in the state available. */
async function availableNode(): Promise<string> {
  const uuid = await whole.enrol(whole.fleet.machines[next]!, { automated_clean: false, name: `node-${next++}` });
  await whole.provide(uuid);
  return uuid;
}
const DAY_MS = 86_400_000;
const inDays = (days: number): string => new Date(Date.now() + days * DAY_MS).toISOString();
const good = () => ({ reason: 'a fan is replaced', ticket: 'https://tickets.example/4711', until: inDays(3) });

it('says what it is, and keeps it over a restart', async () => {
  const uuid = await availableNode();
  const path = `/v1/nodes/${uuid}/out_of_service`;
  expect(await whole.call('GET', path)).toMatchObject({ status: 404 });
  expect(await whole.call('DELETE', path)).toMatchObject({ status: 404 });
  const request = good();
  expect(await whole.call('PUT', path, request)).toMatchObject({ status: 200, body: { reason: request.reason, ticket: request.ticket } });
  await whole.restart();
  expect(await whole.call('GET', path)).toMatchObject({
    status: 200,
    body: {
      until: request.until.replace('Z', '000+00:00'),
      reminded_at: null,
      before: { maintenance: false, maintenance_reason: null },
    },
  });

  // Clients of Ironic see maintenance, and no new field.
  const { body: shown } = await whole.call('GET', `/v1/nodes/${uuid}`);
  expect(shown).toMatchObject({ maintenance: true, maintenance_reason: expect.stringContaining(request.ticket) as unknown });
  expect(shown).not.toHaveProperty('out_of_service');
  const detailed = (await whole.call('GET', '/v1/nodes/detail')).body['nodes'] as readonly object[];
  expect(detailed.filter((node) => 'out_of_service' in node)).toEqual([]);
  expect(await whole.call('PUT', `/v1/nodes/${uuid}/states/provision`, { target: 'active' })).toMatchObject({ status: 400 });
  expect(await whole.call('PUT', `/v1/nodes/${uuid}/states/provision`, { target: 'manage' })).toMatchObject({ status: 202 });
  await whole.reach(uuid, 'manageable');
  expect(await whole.call('PUT', `/v1/nodes/${uuid}/states/provision`, { target: 'provide' })).toMatchObject({ status: 400 });
  const patch = [{ op: 'replace', path: '/maintenance', value: false }];
  expect(await whole.call('PATCH', `/v1/nodes/${uuid}`, patch)).toMatchObject({ status: 409 });
  expect(await whole.call('DELETE', `/v1/nodes/${uuid}/maintenance`)).toMatchObject({ status: 409 });
  for (const value of [{}, 'x'])
    expect(await whole.call('PATCH', `/v1/nodes/${uuid}`, [{ op: 'add', path: '/out_of_service', value }])).toMatchObject({ status: 400 });

  const named = async (query: string): Promise<unknown> =>
    ((await whole.call('GET', `/v1/nodes?${query}`)).body['nodes'] as readonly { readonly uuid: string }[]).map((node) => node.uuid);
  const other = await availableNode();
  expect(await named('out_of_service=true')).toEqual([uuid]);
  expect(await named('out_of_service=false')).toEqual([other]);
  expect(await whole.call('GET', '/v1/nodes?fields=uuid,out_of_service')).toMatchObject({
    body: {
      nodes: [
        { uuid, out_of_service: { reason: request.reason } },
        { uuid: other, out_of_service: {} },
      ],
    },
  });
  expect(await whole.call('GET', '/v1/nodes?out_of_service=perhaps')).toMatchObject({ status: 400 });
  expect(await whole.call('GET', '/v1/nodes?sort_key=out_of_service')).toMatchObject({ status: 400 });
  const { body: readiness } = await whole.call('GET', `/v1/nodes/${uuid}/readiness`);
  expect(JSON.stringify(readiness)).toContain('bloomery out-of-service node-0 --end');

  expect(await whole.call('DELETE', path)).toMatchObject({ status: 204 });
  expect(await whole.call('GET', `/v1/nodes/${uuid}`)).toMatchObject({ body: { maintenance: false, maintenance_reason: null } });
  await database.eventsReadable();
  const { body } = await whole.call('GET', `/v1/events?node=${uuid}&kind=out_of_service`);
  expect(body['events']).toMatchObject([
    { payload: { out_of_service: true, reason: request.reason, ticket: request.ticket } },
    { payload: { out_of_service: false } },
  ]);
});

it('refuses bad input with the name of the field', async () => {
  const uuid = await availableNode();
  const refused: readonly (readonly [change: object, text: string])[] = [
    [{ reason: undefined }, 'reason: it is needed'],
    [{ reason: null }, 'reason: it is needed'],
    [{ reason: ' ' }, 'reason: it is empty'],
    [{ reason: 7 }, 'Expected string for reason'],
    [{ reason: 'x'.repeat(256) }, 'reason: it has more than 255 characters'],
    [{ reason: 'a\u001b[31m' }, 'reason: it has control characters'],
    [{ reason: 'a\u202eb' }, 'reason: it has control characters'],
    [{ reason: 'a\0' }, 'reason has the character U+0000'],
    [{ ticket: 'javascript:alert(1)' }, 'ticket: it is not a URL of http or https'],
    [{ ticket: 'ftp://tickets.example/1' }, 'ticket: it is not a URL of http or https'],
    [{ ticket: '4711' }, 'ticket: it is not a URL of http or https'],
    [{ ticket: 'https://jo:secret@tickets.example/1' }, 'ticket: a URL with a login cannot be stored here'],
    [{ ticket: `https://tickets.example/${'x'.repeat(1024)}` }, 'ticket: it has more than 1024 characters'],
    [{ until: undefined }, 'until: it is needed'],
    [{ until: 'tomorrow' }, 'until: it is not a time'],
    [{ until: '2026-13-45' }, 'until: it is not a time'],
    [{ until: inDays(-1) }, 'until: it is not in the future'],
    [{ until: inDays(367) }, 'until: it is more than 366 days from now'],
    [{ colour: 'red' }, 'Unexpected arguments: colour'],
  ];
  for (const [change, text] of refused) {
    const answer = await whole.call('PUT', `/v1/nodes/${uuid}/out_of_service`, { ...good(), ...change });
    expect([change, answer.status, String(answer.body['error_message'])]).toEqual([change, 400, expect.stringContaining(text) as unknown]);
    expect(String(answer.body['error_message'])).not.toContain('secret');
  }
  expect(await whole.call('GET', `/v1/nodes/${uuid}`)).toMatchObject({ body: { maintenance: false } });
});

it('has a command', async () => {
  const command = (...words: readonly string[]) => runCommand(['out-of-service', ...words, '--url', whole.server.apiUrl!]);
  expect(await command()).toMatchObject({ code: 0, output: 'no node is out of service\n' });
  expect(await command('node-1', '--reason', 'a disk is replaced')).toMatchObject({ code: 2, output: '' });
  expect(await command('node-1', '--reason', 'x', '--until', '3d', '--end')).toMatchObject({ code: 2, output: '' });
  const declared = await command('node-1', '--reason', 'a disk is replaced', '--ticket', 'https://tickets.example/1', '--until', '3d');
  expect(declared).toMatchObject({ code: 0, output: expect.stringContaining('node-1: reason: a disk is replaced\n') as unknown });
  expect((await command()).output).toMatch(/^node-1 \(available\) \| until \S+Z \| a disk is replaced \| https:\/\/tickets\.example\/1\n$/);
  expect((await command('--overdue')).output).toBe('no node is out of service\n');
  const { output } = await command('--json');
  expect(JSON.parse(output)).toMatchObject([{ name: 'node-1', out_of_service: { reason: 'a disk is replaced' } }]);
  expect(await command('node-1', '--end')).toMatchObject({ code: 0, output: 'node-1: in service again\n' });
  expect(await command('node-1', '--end')).toMatchObject({ code: 2 });
});
