/** The screens of Redfish machines: OpenBMC's over a WebSocket, and the pages of other makers. */
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { redfishGraphicalConsole } from '../../../drivers/graphical/redfish';
import { createRedfishPool, type RedfishPool } from '../../../wire/redfish';
import { openScreen } from '../../../wire/rfb/handshake';
import { openTestPicture } from '../../../wire/rfb/test-picture';
import { startBmcweb, type Bmcweb } from '../../support/fakes/bmcweb';
import { NODE_UUID } from '../../support/task';
import { timeoutSignal } from '../../../wire/timeout-signal';
import { until } from '../../support/until';
import { bmcTask } from '../bmc-task';

const MANAGER = '/redfish/v1/Managers/bmc';
let pool: RedfishPool;
let vnc: Server;
let bmc: Bmcweb;
const hosts = new Set<Socket>();
const stop = new AbortController();
beforeEach(async () => {
  pool = createRedfishPool();
  vnc = createServer((socket) => {
    hosts.add(socket);
    const picture = openTestPicture(stop.signal);
    socket
      .on('error', () => {})
      .pipe(picture)
      .pipe(socket);
  });
  await new Promise<void>((done) => vnc.listen(0, '127.0.0.1', done));
  bmc = await startBmcweb({ port: (vnc.address() as AddressInfo).port, host: '127.0.0.1' });
});
afterEach(async () => {
  await pool.close();
  await bmc.close();
  vnc.close();
});
afterAll(() => stop.abort());

const task = (info: object = {}, options: object = {}) =>
  bmcTask({
    node: {
      driver: 'redfish',
      console_enabled: true,
      driver_info: { redfish_address: bmc.url, redfish_username: 'root', redfish_password: '0penBmc', ...info },
    },
    driver: { console: redfishGraphicalConsole },
    options,
    connections: { redfish: pool },
  }).task;
const open = (info: object = {}) => redfishGraphicalConsole.screen!(task(info), timeoutSignal(5000));

it.each([
  ['session', 1],
  ['basic', 0],
])('shows the screen of an OpenBMC with the authentication %s', async (authentication, sessions) => {
  for (let times = 0; times < 2; times++) {
    const screen = await open({ redfish_auth_type: authentication });
    if (screen.kind !== 'rfb') throw new Error('no stream');
    const init = await openScreen(screen.stream, screen.password, timeoutSignal(5000));
    expect([init.readUInt16BE(0), init.readUInt16BE(2)]).toEqual([640, 400]);
    screen.stream.destroy();
    await until('the WebSocket is closed', () => bmc.sessions() === 0);
  }
  expect(bmc.tokens.size).toBe(sessions);
});

it('the screen of an OpenBMC ends when the BMC ends it', async () => {
  const screen = await open();
  if (screen.kind !== 'rfb') throw new Error('no stream');
  await openScreen(screen.stream, screen.password, timeoutSignal(5000));
  const closed = new Promise((done) => screen.stream.once('close', done));
  screen.stream.resume();
  for (const host of hosts) host.destroy();
  await closed;
  expect(screen.stream.destroyed).toBe(true);
});

it('logs in again when the session of the BMC has ended', async () => {
  const first = await open();
  if (first.kind === 'rfb') first.stream.destroy();
  bmc.tokens.clear();
  const screen = await open();
  expect(screen.kind).toBe('rfb');
  if (screen.kind === 'rfb') screen.stream.destroy();
  expect(bmc.tokens.size).toBe(1);
});

it.each<readonly [string, object, string]>([
  ['a wrong password', { redfish_password: 'wrong' }, 'code 401'],
  ['an address without a service', { redfish_address: 'http://127.0.0.1:1' }, `Redfish connection failed for node ${NODE_UUID}`],
])('says what is wrong with %s', async (_, info, error) => {
  await expect(open(info)).rejects.toThrow(error);
});

it('refuses a screen that the BMC has disabled', async () => {
  bmc.resources[MANAGER]!['GraphicalConsole'] = { ServiceEnabled: false };
  await expect(open()).rejects.toThrow('The graphical console of the BMC is disabled (GraphicalConsole.ServiceEnabled)');
});

it.each<readonly [string, object, string]>([
  ['an iLO 6', { Model: 'iLO 6', Oem: { Hpe: {} } }, '/irc.html'],
  ['another BMC', { Model: 'X', Oem: { Other: {} } }, '/'],
])('%s has a page of its own', async (_, manager, path) => {
  Object.assign(bmc.resources[MANAGER]!, { Name: 'Manager' }, manager);
  expect(await open()).toEqual({ kind: 'page', url: `${bmc.url}${path}` });
});

it('an iDRAC gives temporary credentials for its page', async () => {
  const service = `${MANAGER}/Oem/Dell/DelliDRACCardService`;
  Object.assign(bmc.resources[MANAGER]!, { Name: 'Manager', Model: '16G Monolithic', Manufacturer: 'Dell Inc.' });
  await expect(open()).rejects.toThrow('code 404');
  const action = `${service}/Actions/DelliDRACCardService.GetKVMSession`;
  bmc.resources[action] = { TempUsername: 'u&1', TempPassword: 'p?2' };
  const { port } = new URL(bmc.url);
  const query = `ip=127.0.0.1&kvmport=${port}&title=127.0.0.1%3A${port}&VCSID=u%261&VCSID2=p%3F2`;
  expect(await open()).toEqual({ kind: 'page', url: `${bmc.url}/restgui/vconsole/index.html?${query}` });
  bmc.resources[action] = { TempUsername: 'u' };
  await expect(open()).rejects.toThrow('The iDRAC gave no temporary credentials for its console');
});

it('a Supermicro gives the address of its console', async () => {
  const IKVM = `${MANAGER}/Oem/Supermicro/IKVM`;
  Object.assign(bmc.resources[MANAGER]!, { Name: 'Manager', Model: 'X', Oem: { Supermicro: { IKVM: { '@odata.id': IKVM } } } });
  bmc.resources[IKVM] = { 'Current interface': 'HTML 5', URI: '/redfish/ohkei8Quei5odeem.IKVM' };
  expect(await open()).toEqual({ kind: 'page', url: `${bmc.url}/redfish/ohkei8Quei5odeem.IKVM` });
  for (const URI of ['https://evil.example/x', '//evil.example/x', 'javascript:alert(1)', `/${'x'.repeat(600)}`]) {
    bmc.resources[IKVM] = { URI };
    await expect(open()).rejects.toThrow('The BMC named a console that is not its own');
  }
  bmc.resources[IKVM] = { 'Current interface': 'JAVA plug-in' };
  expect(await open()).toEqual({ kind: 'page', url: `${bmc.url}/` });
});

it('an XClarity Controller gives a token that logs in once', async () => {
  Object.assign(bmc.resources[MANAGER]!, { Name: 'Manager', Model: 'Lenovo XClarity Controller', Manufacturer: 'Lenovo' });
  expect(await open()).toEqual({ kind: 'page', url: `${bmc.url}/` });
  const action = `${MANAGER}/Oem/Lenovo/RemoteControl/Actions/LenovoRemoteControlService.GetRemoteConsoleToken`;
  bmc.resources[action] = { Token: 'a1b2.c3-d4' };
  expect(await open()).toEqual({ kind: 'page', url: `${bmc.url}/#/login?a1b2.c3-d4&context=remote&mode=multi` });
  for (const Token of [undefined, '', 5, 'a&b', 'a b', 'x'.repeat(600)]) {
    bmc.resources[action] = { Token };
    await expect(open()).rejects.toThrow('The BMC gave no token for its console');
  }
});

it.each([
  [true, /^[0-9a-f]{72}$/],
  [false, /^[1-9]\d{0,5}$/],
])('an iBMC with EncryptionEnabled %p takes a key that opens its console', async (isEncrypted, key) => {
  const service = `${MANAGER}/KvmService`;
  Object.assign(bmc.resources[MANAGER]!, { Name: 'Manager', Model: 'X', Oem: { Huawei: { KvmService: { '@odata.id': service } } } });
  expect(await open()).toEqual({ kind: 'page', url: `${bmc.url}/` });
  const target = `${service}/Actions/KvmService.SetKvmKey`;
  bmc.resources[service] = { EncryptionEnabled: isEncrypted, Actions: { '#KvmService.SetKvmKey': { target } } };
  bmc.resources[target] = {};
  const screen = await open();
  if (screen.kind !== 'page') throw new Error('no page');
  const { pathname, searchParams } = new URL(screen.url);
  expect(pathname).toBe('/remote_access.asp');
  expect(searchParams.get('openway')).toBe('html5');
  expect(searchParams.get('authParam')).toMatch(key);
});

it('checks driver_info as Ironic does', async () => {
  await expect(redfishGraphicalConsole.validate!(task())).resolves.toBeUndefined();
  await expect(redfishGraphicalConsole.validate!(task({ redfish_address: undefined }))).rejects.toThrow(
    `Missing the following Redfish properties in node ${NODE_UUID} driver_info: ['redfish_address']`,
  );
});
