/**
 * Recorders push to two APIs on one database, one of which is killed again and again. A client that follows the changes gets each of them
 * once, in order.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { INTERFACE_KINDS } from '../../../model/records';
import { digestOf, type HardwareRecord } from '../../../model/hardware-records';
import { useDatabase } from '../../support/database';
import { freePort } from '../../support/free-port';
import { openProcesses } from '../../support/processes';
import { timeoutSignal } from '../../../wire/timeout-signal';

const database = useDatabase();
const processes = openProcesses(() => database.connection());
afterAll(() => processes.close(), 60_000);

const NODES = 4;
const ROUNDS = 8;
const KILLS = 2;
const settings = (host: string, port: number): string => `
[DEFAULT]
host = ${host}
my_ip = 127.0.0.1
enabled_hardware_types = fake-hardware
${INTERFACE_KINDS.map((kind) => `enabled_${kind}_interfaces = ${kind === 'network' ? 'noop' : 'fake'}`).join('\n')}
[api]
host_ip = 127.0.0.1
port = ${port}
[recorder]
enabled = true
max_pushes_per_minute = 100000
`;
const hosts = ['one', 'two'] as const;
const ports: Record<string, number> = {};
const start = async (host: string): Promise<void> => {
  const began = await processes.start(host, 'api', settings(host, (ports[host] ??= await freePort())));
  if (typeof began !== 'string') throw new Error(began.errors);
};
const url = (host: string): string => `http://127.0.0.1:${ports[host]}`;

interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}
/** @returns undefined: no server answered */
async function ask(host: string, method: string, path: string, body?: object, token?: string): Promise<Answer | undefined> {
  try {
    const answer = await fetch(`${url(host)}${path}`, {
      method,
      headers: {
        'content-type': 'application/json',
        'x-openstack-ironic-api-version': 'latest',
        connection: 'close',
        ...(token === undefined ? {} : { 'x-recorder-token': token }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: timeoutSignal(60_000),
    });
    const text = await answer.text();
    return { status: answer.status, body: text === '' ? {} : (JSON.parse(text) as Answer['body']) };
  } catch {
    return undefined;
  }
}
interface Recorder {
  readonly uuid: string;
  readonly token: string;
}
const recordOf = (round: number): HardwareRecord => ({ disks: [{ name: '/dev/sda', serial: `D${round}`, size: 1000 }], interfaces: [] });
/** Pushes as the agent does, to whichever server answers, until one accepts the record. */
async function push({ uuid, token }: Recorder, round: number, first: number): Promise<void> {
  const hardware = recordOf(round);
  const path = `/v1/nodes/${uuid}/hardware`;
  for (let tried = first; ; tried++) {
    const host = hosts[tried % hosts.length]!;
    const known = await ask(host, 'PUT', path, { digest: digestOf(hardware) }, token);
    const taken = known?.status === 409 ? await ask(host, 'PUT', path, { hardware }, token) : known;
    if (taken?.status === 200) return;
    expect([undefined, 503]).toContain(taken?.status);
    await delay(50);
  }
}

interface Change {
  readonly id: number;
  readonly node_uuid: string;
  readonly kind: string;
  readonly key: string;
}
it('each hardware change is recorded and reported once while an API is killed repeatedly', async () => {
  await Promise.all(hosts.map(start));
  const store = database.store();
  const recorders = await Promise.all(
    Array.from({ length: NODES }, async (_, index): Promise<Recorder> => {
      const { uuid } = await store.nodes.create({ uuid: crypto.randomUUID(), driver: 'fake-hardware', name: `n${index}` });
      const { body } = (await ask('one', 'POST', `/v1/nodes/${uuid}/hardware/token`))!;
      return { uuid, token: body['token'] as string };
    }),
  );
  const { resume } = (await ask('two', 'GET', '/v1/events'))!.body;
  let done = false;
  /** Continues after the last change that it has, as the documentation says. */
  const followed: Change[] = [];
  const follow = async (): Promise<void> => {
    for (;;) {
      const last = done;
      const marker = followed.at(-1)?.id;
      const answer = await ask('two', 'GET', `/v1/hardware/changes${marker === undefined ? '' : `?marker=${marker}`}`);
      const changes = answer!.body['changes'] as readonly Change[];
      followed.push(...changes);
      if (last && changes.length === 0) return;
      await delay(20);
    }
  };
  const following = follow();
  const pushing = Promise.all(
    recorders.map(async (recorder) => {
      // Each record is pushed to both APIs at the same time.
      for (let round = 0; round <= ROUNDS; round++) await Promise.all(hosts.map((_, at) => push(recorder, round, at)));
    }),
  );
  const killing = (async () => {
    for (let kill = 0; kill < KILLS; kill++) {
      await delay(150);
      await processes.end('one', 'SIGKILL');
      await start('one');
    }
  })();
  await Promise.all([pushing, killing]);
  done = true;
  await following;

  const expected = Array.from({ length: ROUNDS }, (_, round) => [`vanished D${round}`, `appeared D${round + 1}`]).flat();
  const shortly = (changes: readonly Change[], node: string): readonly string[] =>
    changes.filter(({ node_uuid: uuid }) => uuid === node).map(({ kind, key }) => `${kind} ${key}`);
  for (const { uuid } of recorders) expect(shortly(followed, uuid)).toEqual(expected);
  const { changes } = (await ask('two', 'GET', '/v1/hardware/changes?limit=1000'))!.body as { changes: readonly Change[] };
  expect(followed).toEqual(changes);
  const { events } = (await ask('two', 'GET', `/v1/events?kind=hardware&since=${resume as string}&limit=1000`))!.body;
  expect(events).toHaveLength(NODES * ROUNDS);
  const history = await database.query<{ count: number }>(`SELECT count(*)::int AS count FROM node_history WHERE event_type = 'hardware'`);
  expect(history[0]!.count).toBe(NODES * ROUNDS);
});
