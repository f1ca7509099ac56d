/** Graphical consoles: their tokens and addresses, the check of driver_info, and the connection to a VNC server. */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fakeGraphicalConsole } from '../../../drivers/graphical/fake';
import { vncConsole } from '../../../drivers/graphical/vnc';
import type { ConsoleInterface } from '../../../drivers/interfaces';
import { createScreens } from '../../../drivers/screens';
import type { JsonObject } from '../../../model/records';
import { hasToken, isTokenOf, tokenTime } from '../../../model/rules/screen-token';
import { NODE_UUID } from '../../support/task';
import { bmcTask } from '../bmc-task';
import { timeoutSignal } from '../../../wire/timeout-signal';

const signal = (): AbortSignal => timeoutSignal(5000);
function bench(console: ConsoleInterface, driver_info: JsonObject = {}, options: object = {}) {
  const screens = createScreens({ inAll: 3, ofNode: 2 });
  const made = bmcTask({
    node: { driver_info, console_enabled: true },
    driver: { console },
    options: { 'vnc.enabled': true, 'vnc.public_url': 'https://screens.example/vnc_auto.html', 'vnc.socket_folder': null, ...options },
    connections: { screens },
  });
  return { ...made, screens };
}

it('turning a graphical console on makes a token, and its address is that of Ironic', async () => {
  const { task, node } = bench(fakeGraphicalConsole);
  await fakeGraphicalConsole.start(task);
  const { novnc_secret_token: token, novnc_secret_token_created: created } = node().driver_internal_info;
  expect(token).toMatch(/^[\w-]{43}$/);
  expect(created).toBe('2026-02-03T04:05:06.000000');
  expect(await fakeGraphicalConsole.get(task)).toEqual({
    type: 'vnc',
    url: `https://screens.example/vnc_auto.html?path=websockify%3Fnode%3D${NODE_UUID}%26token%3D${token}`,
  });
  // A restart of the server does not make the address invalid.
  await fakeGraphicalConsole.start(task);
  expect(node().driver_internal_info.novnc_secret_token).toBe(token);
  await fakeGraphicalConsole.stop(task);
  expect(node().driver_internal_info).toEqual({});
});

it('a token counts until it ends, and only the right one', () => {
  const made = Date.parse('2026-02-03T04:05:06Z');
  const node = { driver_internal_info: { novnc_secret_token: 'a', novnc_secret_token_created: tokenTime(made) } };
  expect([made, made + 999, made + 1000].map((now) => hasToken(node, 1000, now))).toEqual([true, true, false]);
  expect(['a', 'b', ''].map((token) => isTokenOf(node, token, 1000, made))).toEqual([true, false, false]);
  expect(isTokenOf({ driver_internal_info: {} }, '', 1000, made)).toBe(false);
  expect(hasToken({ driver_internal_info: { ...node.driver_internal_info, novnc_secret_token_created: 'x' } }, 1000, made)).toBe(false);
});

it('a console whose token has ended is turned off when nobody looks', async () => {
  const [expire] = fakeGraphicalConsole.periodics!;
  const { task, node, screens } = bench(fakeGraphicalConsole, {}, { 'vnc.token_timeout': 10 });
  expect(expire!.every(task.options)).toBe(120);
  expect(expire!.only!(node())).toBe(false);
  await fakeGraphicalConsole.start(task);
  expect(expire!.only!(node())).toBe(true);
  await expire!.run!(task);
  expect(node().console_enabled).toBe(true);
  await task.clock.sleep(10_000);
  const seat = screens.enter(NODE_UUID, 'view', () => {});
  await expire!.run!(task);
  expect(node().console_enabled).toBe(true);
  if (!('refusal' in seat)) seat.leave();
  await expire!.run!(task);
  expect(node()).toMatchObject({ console_enabled: false, driver_internal_info: {} });
});

it('one user at a time controls a machine, within the limits of number', async () => {
  const { task, screens } = bench(fakeGraphicalConsole);
  const reasons: string[] = [];
  const enter = (node: string, wish: 'control' | 'view' = 'control') => screens.enter(node, wish, (reason) => reasons.push(reason));
  const first = enter(NODE_UUID);
  expect(first).toMatchObject({ controls: true });
  expect(enter(NODE_UUID)).toMatchObject({ controls: false });
  expect(enter(NODE_UUID)).toEqual({ refusal: 'Too many users look at this screen.' });
  expect(enter('other', 'view')).toMatchObject({ controls: false });
  expect(enter('third')).toEqual({ refusal: 'Too many screens are open.' });
  if (!('refusal' in first)) {
    first.leave();
    first.leave();
  }
  expect(enter(NODE_UUID)).toMatchObject({ controls: true });
  await fakeGraphicalConsole.stop(task);
  expect(reasons).toEqual(['The console was turned off.', 'The console was turned off.']);
});

const SOCKETS = { 'vnc.socket_folder': '/run/screens' };
it.each<readonly [JsonObject, object, string | null]>([
  [{ vnc_address: '10.0.0.1' }, {}, null],
  [{ vnc_address: 'host.example', vnc_port: '5901', vnc_password: 'x' }, {}, null],
  [{ vnc_address: 'fd00::1', vnc_port: 65_535 }, {}, null],
  [{ vnc_socket: '/run/screens/m1.sock' }, SOCKETS, null],
  [{}, {}, `Missing the following VNC properties in node ${NODE_UUID} driver_info: ['vnc_address'] or ['vnc_socket']`],
  [{ vnc_address: 'a', vnc_socket: '/run/screens/a' }, SOCKETS, 'Only one of vnc_address and vnc_socket may be set in driver_info.'],
  [{ vnc_address: 'http://a/' }, {}, 'Invalid value "http://a/" set in driver_info/vnc_address: it must be an address or a host name.'],
  [{ vnc_address: 'a' }, { 'vnc.enabled': false }, 'The console interface vnc needs [vnc]enabled = true in the configuration.'],
  [{ vnc_address: 'a', vnc_port: 0 }, {}, 'Invalid value "0" set in driver_info/vnc_port: it must be a port between 1 and 65535.'],
  [{ vnc_address: 'a', vnc_port: 'x' }, {}, 'Invalid value "x" set in driver_info/vnc_port: it must be a port between 1 and 65535.'],
  [{ vnc_address: {} }, {}, 'vnc_address is not a text.'],
  [{ vnc_address: 'a', vnc_password: [] }, {}, 'vnc_password is not a text.'],
  [{ vnc_socket: '/run/screens/a' }, {}, 'vnc_socket needs [vnc]socket_folder, which is not set.'],
  ...['/run/docker.sock', '/run/screens/../docker.sock', '/run/screens', 'a', `/run/screens/${'a'.repeat(100)}`].map(
    (path): readonly [JsonObject, object, string] => [
      { vnc_socket: path },
      SOCKETS,
      `Invalid value "${path}" set in driver_info/vnc_socket: it must be the path of a socket in [vnc]socket_folder.`,
    ],
  ),
])('driver_info %j with %j: %s', async (info, options, error) => {
  const { task } = bench(vncConsole, info, options);
  const checked = vncConsole.validate!(task);
  await (error === null ? expect(checked).resolves.toBeUndefined() : expect(checked).rejects.toThrow(error));
});

it('connects to a VNC server over TCP and over a Unix socket, and says when it cannot', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'screens-'));
  const path = join(folder, 'm1');
  const server = createServer((socket) => socket.end('RFB 003.008\n'));
  for (const place of [{ port: 0, host: '127.0.0.1' }, { path }]) {
    server.listen(place);
    await once(server, 'listening');
    const at = server.address();
    const info = typeof at === 'string' ? { vnc_socket: at } : { vnc_address: '127.0.0.1', vnc_port: (at as AddressInfo).port };
    const { task } = bench(vncConsole, { ...info, vnc_password: 'x' }, { 'vnc.socket_folder': folder });
    const screen = await vncConsole.screen!(task, signal());
    if (screen.kind !== 'rfb') throw new Error('no stream');
    expect(screen.password).toBe('x');
    const [greeting] = (await once(screen.stream, 'data')) as [Buffer];
    expect(greeting.toString()).toBe('RFB 003.008\n');
    screen.stream.destroy();
    await new Promise((done) => server.close(done));
    await expect(vncConsole.screen!(task, signal())).rejects.toThrow('The VNC server of the machine cannot be reached.');
  }
  rmSync(folder, { recursive: true });
});
