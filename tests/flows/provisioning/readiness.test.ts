import { execFile } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { buildSync } from 'esbuild';
import type { Readiness } from '../../../model/readiness';
import { useDatabase } from '../../support/database';
import { freePort } from '../../support/free-port';
import { startWholeServer, type WholeServer } from '../../support/whole-server';

const database = useDatabase();
let whole: WholeServer;
beforeAll(async () => {
  whole = await startWholeServer(database.connection(), { machines: 2 });
});
afterAll(() => whole.close());

const ask = async (uuid: string): Promise<Readiness> => {
  const { status, body } = await whole.call('GET', `/v1/nodes/${uuid}/readiness`);
  expect(status).toBe(200);
  return body as unknown as Readiness;
};
const messageOf = ({ checks }: Readiness, code: string): string | null => checks.find((check) => check.code === code)!.message;
const patch = (uuid: string, path: string, value: unknown) => whole.call('PATCH', `/v1/nodes/${uuid}`, [{ op: 'add', path, value }]);

it('reports what prevents a deployment until the node can be deployed', async () => {
  const uuid = await whole.enrol(whole.fleet.machines[0]!);
  const first = await ask(uuid);
  expect(first).toMatchObject({ ready: false, provision_state: 'enroll' });
  expect(first.blockers).toEqual(['provision-state', 'validate-deploy']);
  expect(messageOf(first, 'validate-deploy')).toMatch(/image_source/);

  await patch(uuid, '/instance_info', whole.deployable({ image_source: `${whole.server.bootUrl!}/none.raw` }));
  await whole.call('PATCH', `/v1/nodes/${uuid}`, [{ op: 'add', path: '/automated_clean', value: false }]);
  await whole.provide(uuid);
  const second = await ask(uuid);
  expect(second.blockers).toEqual(['images']);
  expect(messageOf(second, 'images')).toMatch(/^image_source \(http.*none\.raw\): .*404/);

  await patch(uuid, '/instance_info', whole.deployable({ traits: ['CUSTOM_A'] }));
  expect((await ask(uuid)).blockers).toEqual(['traits']);
  await patch(uuid, '/instance_info', whole.deployable());
  expect(await ask(uuid)).toMatchObject({ ready: true, blockers: [], warnings: [] });
  await whole.order(uuid, 'active');
  await whole.reach(uuid, 'active');
  expect((await ask(uuid)).blockers).toContain('provision-state');
});

it('answers when the BMC does not answer, and at version 1.1', async () => {
  const machine = whole.fleet.machines[1]!;
  const uuid = await whole.enrol(machine, { instance_info: whole.deployable() });
  await patch(uuid, '/driver_info/redfish_address', 'http://127.0.0.1:1');
  const dead = await ask(uuid);
  expect(dead.blockers).toContain('power');
  expect(messageOf(dead, 'power')).toMatch(/cannot be read: .*(REFUSED|127\.0\.0\.1:1)/);
  const old = await fetch(`${whole.server.apiUrl!}/v1/nodes/${uuid}/readiness`, { headers: { 'x-openstack-ironic-api-version': '1.1' } });
  expect([old.status, ((await old.json()) as Readiness).node]).toEqual([200, uuid]);
  const none = await whole.call('GET', '/v1/nodes/no-such-node/readiness');
  expect(none.status).toBe(404);
});

describe('bloomery why', () => {
  const script = join(__dirname, '../../../.cache/why-under-test.cjs');
  beforeAll(() =>
    buildSync({
      stdin: {
        contents:
          "import { Command } from 'commander'; import { addWhyCommand } from './why'; const p = new Command(); addWhyCommand(p); void p.parseAsync();",
        resolveDir: join(__dirname, '../../../commands'),
      },
      bundle: true,
      platform: 'node',
      format: 'cjs',
      outfile: script,
      logLevel: 'error',
    }),
  );
  afterAll(() => rmSync(script));
  const run = (words: readonly string[], env: Record<string, string> = {}): Promise<{ code: number; out: string; error: string }> =>
    new Promise((done) => {
      const child = execFile(process.execPath, [script, 'why', ...words], { env: { PATH: process.env['PATH'], ...env } }, (_, out, error) =>
        done({ code: child.exitCode!, out, error }),
      );
    });

  it('prints a page or JSON, and exits with a status', async () => {
    const machine = whole.fleet.machines[1]!;
    const url = { OS_ENDPOINT: `${whole.server.apiUrl!}/v1/` };
    const page = await run([machine.name], url);
    expect(page).toMatchObject({ code: 1, error: '' });
    expect(page.out).toMatch(new RegExp(`^${machine.name} cannot be deployed now: \\d things are in the way\\.\\n  state: enroll\\n`));
    expect(page.out).toMatch(/\n✗ power: its power state cannot be read.*\n {4}→ look at the BMC/);
    expect(page.out).toMatch(/\n✓ passed: .*maintenance/);
    expect(page.out).not.toContain('\u001b');
    const json = await run([machine.name, '--json', '--url', whole.server.apiUrl!]);
    expect((JSON.parse(json.out) as Readiness).ready).toBe(false);
  });
  it.each<[string, readonly string[], RegExp]>([
    ['an unknown node', ['none'], /^bloomery: http.* answers 404: Node none could not be found\.\n$/],
    [
      'a server that does not answer',
      ['none', '--url', 'http://127.0.0.1:PORT'],
      /^bloomery: http:\/\/127\.0\.0\.1:\d+ does not answer: .*REFUSED.*\n$/,
    ],
    ['an invalid URL', ['none', '--url', 'nonsense'], /^bloomery: nonsense is not a URL\n$/],
  ])('fails with one line: %s', async (_what, words, error) => {
    const port = String(await freePort());
    expect(
      await run(
        words.map((word) => word.replace('PORT', port)),
        { OS_ENDPOINT_OVERRIDE: whole.server.apiUrl! },
      ),
    ).toMatchObject({
      code: 2,
      out: '',
      error: expect.stringMatching(error) as string,
    });
  });
});
