/**
 * Two servers on one database, the second in its own process; writers and readers race at both. No answer may be older than what was
 * written before its request. Runs the built program (npm test builds it).
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { INTERFACE_KINDS } from '../../../model/records';
import { useApi } from '../../support/api';

const NODES = 12;
const WRITES = 30;
const SETTINGS = `[DEFAULT]
host = there
enabled_hardware_types = fake-hardware
${INTERFACE_KINDS.map((kind) => `enabled_${kind}_interfaces = ${kind === 'network' ? 'noop' : 'fake'}`).join('\n')}
[api]
host_ip = 127.0.0.1
port = 0
`;

const api = useApi();
const folder = mkdtempSync(join(tmpdir(), 'bloomery-stale-'));
let other: ChildProcess;
let otherUrl = '';
beforeAll(async () => {
  const file = join(folder, 'bloomery.conf');
  writeFileSync(file, SETTINGS);
  const words = ['serve', '--config-file', file, '--state-dir', folder, '--roles', 'api,conductor'];
  other = spawn(process.execPath, [join(__dirname, '../../../bin/bloomery'), ...words], {
    stdio: ['ignore', 'pipe', 'ignore'],
    env: { ...process.env, DATABASE_URL: api.database.connection() },
  });
  let said = '';
  otherUrl = await new Promise<string>((resolve, reject) => {
    other.once('exit', (code) => reject(new Error(`the second server ended (${code})`)));
    other.stdout!.on('data', (data: Buffer) => {
      said += data.toString();
      const ready = /API (http:\S+),/.exec(said);
      if (ready) resolve(ready[1]!);
    });
  });
});
const end = async (): Promise<void> => {
  if (other.exitCode !== null || other.signalCode !== null) return;
  const ended = new Promise((done) => other.once('exit', done));
  other.kill('SIGTERM');
  await ended;
};
afterAll(async () => {
  await end();
  rmSync(folder, { recursive: true, force: true });
});

interface ResponseBody {
  readonly uuid: string;
  readonly extra: { readonly n?: number };
  readonly conductor: string;
  readonly nodes?: readonly ResponseBody[];
  readonly ports?: readonly ResponseBody[];
  readonly next?: string;
}
async function ask(
  base: string,
  method: string,
  path: string,
  body?: unknown,
): Promise<{ readonly status: number; readonly body: ResponseBody }> {
  const headers = { 'X-OpenStack-Ironic-API-Version': '1.109', 'Content-Type': 'application/json' };
  const response = await fetch(`${base}${path}`, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
  return { status: response.status, body: (await response.json()) as ResponseBody };
}

it('lists, pages, nodes and ports are never stale while two servers write', async () => {
  const bases = [api.url(), otherUrl];
  const made = async (path: string, body: object): Promise<string> => {
    const answer = await ask(api.url(), 'POST', path, body);
    expect(answer.status).toBe(201);
    return answer.body.uuid;
  };
  const nodes: string[] = [];
  const ports: string[] = [];
  for (let index = 0; index < NODES; index++) {
    const node = await made('/v1/nodes', { driver: 'fake-hardware', network_interface: 'noop', extra: { n: 0 } });
    nodes.push(node);
    const address = `52:54:00:00:01:${index.toString(16).padStart(2, '0')}`;
    ports.push(await made('/v1/ports', { node_uuid: node, address, extra: { n: 0 } }));
  }
  // Row → the last acknowledged value: from then on, no reader may see an older one.
  const written = new Map([...nodes, ...ports].map((uuid) => [uuid, 0]));
  let writing = true;
  // A row has one writer, so its value only grows.
  const write = async (base: string, writer: number): Promise<void> => {
    for (let turn = 1; turn <= WRITES; turn++) {
      const index = ((turn * 2) % NODES) + writer;
      const [kind, uuid] = turn % 3 === 2 ? ['ports', ports[index]!] : ['nodes', nodes[index]!];
      const patch = [{ op: 'add', path: '/extra/n', value: turn }];
      expect(await ask(base, 'PATCH', `/v1/${kind}/${uuid}`, patch)).toMatchObject({ status: 200, body: { uuid } });
      written.set(uuid, turn);
    }
  };
  let reads = 0;
  const check = (seen: readonly ResponseBody[], floor: ReadonlyMap<string, number>): void => {
    for (const { uuid, extra } of seen) expect({ uuid, late: extra.n! < floor.get(uuid)! }).toEqual({ uuid, late: false });
    reads += seen.length;
  };
  const read = async (base: string, path: string): Promise<void> => {
    while (writing) {
      const floor = new Map(written);
      let next: string | undefined = path;
      const all: ResponseBody[] = [];
      while (next !== undefined) {
        const { status, body }: { status: number; body: ResponseBody } = await ask(base, 'GET', next);
        expect({ status, body }).toMatchObject({ status: 200 });
        // A node has `ports` too: their links.
        all.push(...(body.uuid ? [body] : (body.nodes ?? body.ports!)));
        next = body.next?.replace(/^http:\/\/[^/]+/, '');
      }
      check(all, floor);
    }
  };
  const reading = bases.flatMap((base) =>
    [
      '/v1/nodes/detail',
      '/v1/nodes?fields=uuid,extra&limit=7',
      '/v1/ports/detail?limit=6',
      `/v1/nodes/${nodes[0]}`,
      `/v1/ports/${ports[2]}`,
    ].map((path) => read(base, path)),
  );
  const wrote = Promise.all(bases.map(write)).finally(() => (writing = false));
  await Promise.all([wrote, ...reading]);
  expect(reads).toBeGreaterThan(NODES * 10);
});

it('the conductor of a node is never stale when another process starts and stops', async () => {
  const conductors = async (): Promise<readonly string[]> => [
    ...new Set((await ask(api.url(), 'GET', '/v1/nodes/detail')).body.nodes!.map(({ conductor }) => conductor)),
  ];
  await api.database.store().conductors.touch('here', 'i');
  expect((await conductors()).toSorted()).toEqual(['here', 'there']);
  await end();
  expect(await conductors()).toEqual(['here']);
});
