/** Screens and serial consoles that a process with the API alone shows: the machines belong to a conductor in another process. */
import { randomBytes } from 'node:crypto';
import { WebSocket } from 'ws';
import { systemClock } from '../../../model/clock';
import { silentLog } from '../../../model/log';
import { startFleet } from '../../../simulator/fleet/fleet';
import { useDatabase } from '../../support/database';
import { fakeSettings, openProcesses } from '../../support/processes';
import { endOfScreen, openScreenClient, shakeHands, type ScreenClient } from '../../support/screen-client';
import { freePort } from '../../support/free-port';
import { until } from '../../support/until';
import { timeoutSignal } from '../../../wire/timeout-signal';

const database = useDatabase();
const processes = openProcesses(() => database.connection());
afterAll(() => processes.close(), 60_000);

const HEADERS = { 'content-type': 'application/json', 'x-openstack-ironic-api-version': 'latest' };
const settings = (host: string, port: number, sections: string): string =>
  fakeSettings(
    `host = ${host}\nmy_ip = 127.0.0.1\nenabled_console_interfaces = fake-graphical,no-console\nenabled_vendor_interfaces = no-vendor\n` +
      ['bios', 'firmware', 'inspect', 'raid', 'rescue'].map((kind) => `enabled_${kind}_interfaces = no-${kind}`).join('\n'),
    `[conductor]\nheartbeat_interval = 1\nheartbeat_timeout = 5\n[json_rpc]\nhost_ip = 127.0.0.1\nport = ${port}\n${sections}`,
  );
const VNC = '[vnc]\nenabled = true\nhost_ip = 127.0.0.1\nport = 0\nmax_users_per_screen = 2\n';
let url = '';
async function call(method: string, path: string, body?: unknown): Promise<Readonly<Record<string, unknown>>> {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: HEADERS,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: timeoutSignal(60_000),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return text === '' ? {} : (JSON.parse(text) as Readonly<Record<string, unknown>>);
}
async function turn(uuid: string, enabled: boolean): Promise<void> {
  await call('PUT', `/v1/nodes/${uuid}/states/console`, { enabled });
  await until(`the console is ${enabled ? 'on' : 'off'}`, async () => {
    const { console_enabled: now } = await call('GET', `/v1/nodes/${uuid}/states/console`);
    return now === enabled;
  });
}
const clients: ScreenClient[] = [];
const open = (uuid: string, more = ''): ScreenClient => {
  const made = openScreenClient(`${url.replace('http', 'ws')}/ui/screen/${uuid}${more}`, { origin: url });
  clients.push(made);
  return made;
};
afterEach(() => {
  for (const { socket } of clients.splice(0)) socket.close();
});
const addressOf = async (): Promise<string> => {
  const rows = await database.store().conductors.list(5);
  return rows.find(({ hostname }) => hostname === 'c1')!.address!;
};

it('a process without conductor shows screens, by the rules of the conductor, until the conductor dies', async () => {
  const [front, conductor] = await Promise.all([
    processes.start('front', 'api', settings('front', 0, '')),
    processes.start('c1', 'conductor', settings('c1', 0, VNC)),
  ]);
  expect([typeof front, conductor]).toEqual(['string', expect.anything()]);
  url = front as string;
  const { uuid } = (await call('POST', '/v1/nodes', { driver: 'fake-hardware', console_interface: 'fake-graphical' })) as { uuid: string };
  expect(await endOfScreen(open(uuid))).toEqual({ code: 4000, reason: 'The console is off.' });
  await turn(uuid, true);

  const first = open(uuid);
  expect(await shakeHands(first)).toEqual([640, 400]);
  expect(first.socket.protocol).toBe('bloomery.screen');
  first.socket.send(Buffer.from([3, 0, 0, 0, 0, 0, 2, 128, 1, 144]));
  await until('a picture', () => first.bytes.length >= 18 + 36 + 16 + 640 * 400 * 4);
  const second = open(uuid);
  await shakeHands(second);
  expect(second.socket.protocol).toBe('bloomery.screen.view');
  expect(await endOfScreen(open(uuid))).toEqual({ code: 4003, reason: 'Too many users look at this screen.' });

  // The place of a user who has left is free again.
  first.socket.close();
  let third: ScreenClient;
  await until('a place', async () => {
    third = open(uuid);
    await until('an answer', () => third.end !== undefined || third.bytes.length >= 12);
    return third.end === undefined;
  });
  await shakeHands(third!);
  expect(third!.socket.protocol).toBe('bloomery.screen');

  await turn(uuid, false);
  expect(await endOfScreen(second)).toEqual({ code: 4003, reason: 'The console was turned off.' });
  expect(await endOfScreen(third!)).toEqual({ code: 4003, reason: 'The console was turned off.' });

  // Who does not know the secret of the processes gets nothing.
  const address = await addressOf();
  for (const authorization of [undefined, 'BLOOMERY1 1 n d m', `BLOOMERY1 ${Date.now()} nonce digest ${'a'.repeat(43)}`]) {
    const status = await new Promise((done) => {
      const socket = new WebSocket(`${address.replace('http', 'ws')}/screens/${uuid}`, {
        headers: authorization === undefined ? {} : { authorization },
      });
      socket.on('error', () => {});
      socket.once('open', () => done('open'));
      socket.once('unexpected-response', (_, { statusCode }) => done(statusCode));
    });
    expect(status).toBe(401);
  }

  await turn(uuid, true);
  const last = open(uuid);
  await shakeHands(last);
  await processes.end('c1', 'SIGKILL');
  expect(await endOfScreen(last)).toEqual({ code: 4000, reason: 'The connection to the conductor of the node was lost.' });
  const refusal = { code: 4003, reason: 'The conductor of the node does not answer, or shows no screens.' };
  expect(await endOfScreen(open(uuid))).toEqual(refusal);
}, 120_000);

it('a process without conductor shows a serial console that listens on loopback only', async () => {
  const consolePort = await freePort();
  const serial = (host: string): string => `[DEFAULT]
host = ${host}
my_ip = 127.0.0.1
enabled_hardware_types = ipmi
enabled_console_interfaces = ipmitool-socat,no-console
[api]
host_ip = 127.0.0.1
port = 0
[dhcp]
dhcp_provider = none
[console]
port_range = ${consolePort}:${consolePort + 1}
[conductor]
heartbeat_interval = 1
[json_rpc]
host_ip = 127.0.0.1
`;
  const [front] = await Promise.all([processes.start('front2', 'api', serial('front2')), processes.start('c2', 'conductor', serial('c2'))]);
  url = front as string;
  const fleet = await startFleet({ count: 1, host: '127.0.0.1', log: silentLog, clock: systemClock, random: randomBytes });
  try {
    const { address, port, username, password } = fleet.machines[0]!.ipmi;
    const info = { ipmi_address: address, ipmi_port: port, ipmi_username: username, ipmi_password: password };
    const node = { name: 'serial', driver: 'ipmi', console_interface: 'ipmitool-socat', driver_info: info };
    const { uuid } = (await call('POST', '/v1/nodes', node)) as { uuid: string };
    const consoleOf = (): ScreenClient =>
      openScreenClient(`${url.replace('http', 'ws')}/ui/console/${uuid}`, { origin: url }, ['bloomery.console']);
    expect(await endOfScreen(consoleOf())).toEqual({ code: 4000, reason: 'The console is off.' });
    await turn(uuid, true);
    const client = consoleOf();
    clients.push(client);
    await until('the console is open', () => client.socket.readyState === 1);
    await until('the echo', () => {
      client.socket.send(Buffer.from('hello\r'));
      return client.bytes.includes('hello');
    });
    await turn(uuid, false);
    expect(await endOfScreen(client)).toMatchObject({ code: 1000 });
  } finally {
    await fleet.close();
  }
}, 120_000);

it('any conductor shows the screen of a node to the holder of its token, and one of them all controls the machine', async () => {
  const ports = [await freePort(), await freePort()];
  const started = await Promise.all(
    ports.map((port, at) => processes.start(`s${at}`, 'api,conductor', settings(`s${at}`, 0, VNC.replace('port = 0', `port = ${port}`)))),
  );
  url = started[0] as string;
  const { uuid } = (await call('POST', '/v1/nodes', { driver: 'fake-hardware', console_interface: 'fake-graphical' })) as { uuid: string };
  await turn(uuid, true);
  const { console_info: info } = (await call('GET', `/v1/nodes/${uuid}/states/console`)) as { console_info: { url: string } };
  const path = new URL(info.url).searchParams.get('path')!;
  const protocols: string[] = [];
  for (const port of ports) {
    const viewer = openScreenClient(`ws://127.0.0.1:${port}/${path}`, {});
    clients.push(viewer);
    expect(await shakeHands(viewer)).toEqual([640, 400]);
    protocols.push(viewer.socket.protocol);
  }
  expect(protocols).toEqual(['bloomery.screen', 'bloomery.screen.view']);
  for (const port of ports)
    expect(await endOfScreen(openScreenClient(`ws://127.0.0.1:${port}/${path}x`, {}))).toMatchObject({ code: 1006 });
}, 120_000);
