/** The screens of Redfish machines: OpenBMC's over a WebSocket, and the pages of other makers. */
import { createServer, type AddressInfo, type Server } from 'node:net';
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
const stop = new AbortController();
beforeEach(async () => {
  pool = createRedfishPool();
  vnc = createServer((socket) => {
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
  ['another BMC', { Model: 'X', Oem: { Supermicro: {} } }, '/'],
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

it('checks driver_info as Ironic does', async () => {
  await expect(redfishGraphicalConsole.validate!(task())).resolves.toBeUndefined();
  await expect(redfishGraphicalConsole.validate!(task({ redfish_address: undefined }))).rejects.toThrow(
    `Missing the following Redfish properties in node ${NODE_UUID} driver_info: ['redfish_address']`,
  );
});
