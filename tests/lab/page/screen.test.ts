/** The screens of machines in Chromium: a VNC server of QEMU with a password, the same behind OpenBMC's WebSocket, and the address with a token. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { createWebSocketStream, WebSocket } from 'ws';
import type { Browser, Page } from 'puppeteer-core' with { 'resolution-mode': 'import' };
import type { RunningServer } from '../../../demo/lab/server';
import { cpuSecondsOf } from '../../support/cpu-time';
import { freePort } from '../../support/free-port';
import { startBmcweb, type Bmcweb } from '../../support/fakes/bmcweb';
import { until } from '../../support/until';
import { openScreen } from '../../../wire/rfb/handshake';
import { timeoutSignal } from '../../../wire/timeout-signal';
import { needs } from '../support/needs';
import { picturesOf, startFastMachine } from '../support/picture-rate';
import { startVncMachine } from '../support/vnc-machine';
import { axeViolations, clickText, openPage, picture, startBrowser, waitForText } from './browser';
import { createNode, PASSWORD, startServerWithUsers } from './users';

const VNC_PASSWORD = 'geheim12';
let folder: string;
let browser: Browser;
let server: RunningServer;
let bmc: Bmcweb;
let url: string;
let screens: string;
let stop: (() => Promise<void>)[];
beforeAll(async () => {
  needs({ chromium: 'chromium', 'qemu-system-x86_64': 'qemu-system-x86' });
  stop = [];
  folder = mkdtempSync(join(tmpdir(), 'screens-'));
  const machine = await startVncMachine(folder, VNC_PASSWORD);
  stop.push(machine.stop);
  const [port, screenPort] = [await freePort(), await freePort()];
  [url, screens] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${screenPort}`];
  server = await startServerWithUsers(
    folder,
    port,
    { ann: 'roles = admin\nsystem = all' },
    {
      DEFAULT: { enabled_hardware_types: 'redfish,manual-management', enabled_console_interfaces: 'redfish-graphical,vnc,no-console' },
      vnc: { enabled: 'true', host_ip: '127.0.0.1', port: screenPort, socket_folder: folder },
      audit: { enabled: 'true', log_file: join(folder, 'audit.log') },
    },
  );
  await createNode(url, 'ann', {
    name: 'seen',
    driver: 'manual-management',
    console_interface: 'vnc',
    driver_info: { vnc_socket: machine.socket, vnc_password: VNC_PASSWORD },
  });
  browser = await startBrowser();
});
afterAll(async () => {
  await browser?.close();
  await server?.stop();
  await bmc?.close();
  for (const end of stop) await end();
  if (folder) rmSync(folder, { recursive: true, force: true });
});

async function logIn(page: Page): Promise<void> {
  await page.waitForSelector('[name=user]');
  await page.type('[name=user]', 'ann');
  await page.type('[name=password]', PASSWORD);
  await clickText(page, 'Log in', 'button');
  await waitForText(page, 'td a', 'seen');
}
/** Width and height of the machine's screen, and how many colours its first row has. */
const seen = (page: Page): Promise<readonly [number, number, number]> =>
  page.evaluate(() => {
    const canvas = document.querySelector<HTMLCanvasElement>('.screen canvas');
    if (!canvas?.width) return [0, 0, 0] as const;
    const { data } = canvas.getContext('2d')!.getImageData(0, 0, canvas.width, 1);
    return [canvas.width, canvas.height, new Set(new Uint32Array(data.buffer)).size] as const;
  });
const untilSeen = async (page: Page, what: string, isSo: (now: readonly [number, number, number]) => boolean): Promise<void> => {
  await until(what, async () => isSo(await seen(page)));
};
/** noVNC draws each picture on a hidden canvas, and then all that changed on the visible one. */
const COUNT_PICTURES = `
  window.pictures = 0;
  const { drawImage } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.drawImage = function (...given) {
    if (this.canvas.isConnected) window.pictures++;
    drawImage.apply(this, given);
  };`;
/** How often the machine's screen was drawn. */
const pictures = (page: Page): Promise<number> => page.evaluate(() => (window as unknown as { pictures: number }).pictures);
const audits = (): readonly Readonly<Record<string, unknown>>[] =>
  readFileSync(join(folder, 'audit.log'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>)
    .filter(({ operation }) => operation === 'openScreen' || operation === 'closeScreen');

it('the page shows the moving screen of a machine in QEMU, and a key reaches the machine', async () => {
  const { page, problems } = await openPage(await browser.createBrowserContext(), url);
  const scripts: string[] = [];
  page.on('request', (request) => {
    if (request.resourceType() === 'script') scripts.push(request.url());
  });
  await page.evaluateOnNewDocument(() => {
    const violations: string[] = [];
    Object.assign(window, { violations });
    document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) =>
      violations.push(`${violatedDirective} ${blockedURI}`),
    );
  });
  await page.evaluateOnNewDocument(COUNT_PICTURES);
  await page.reload();
  await logIn(page);
  await clickText(page, 'seen', 'td a');
  await clickText(page, 'Console');
  await waitForText(page, 'span', 'The console is off.');
  expect(scripts).toHaveLength(1);
  await clickText(page, 'Turn on');
  await waitForText(page, '[role=status]', 'Connected');
  // QEMU shows its mode 13h with each pixel doubled.
  await untilSeen(page, 'the moving picture', ([width, height, colours]) => width === 640 && height === 400 && colours > 50);
  expect(await axeViolations(page)).toEqual([]);
  await picture(page, 'screen');

  const seconds = 5;
  const [before, drawn] = [cpuSecondsOf(server.pid), await pictures(page)];
  await new Promise((done) => setTimeout(done, seconds * 1000));
  const share = (cpuSecondsOf(server.pid) - before) / seconds;
  const rate = ((await pictures(page)) - drawn) / seconds;
  console.log(`the server takes ${(share * 100).toFixed(1)} % of a core for ${rate.toFixed(1)} pictures a second`);
  expect(rate).toBeGreaterThan(0);
  expect(share).toBeLessThan(0.5);

  await page.click('.screen canvas');
  await page.keyboard.press('k');
  await untilSeen(page, 'text mode', ([width, height]) => width === 720 && height === 400);
  await clickText(page, 'Disconnect');
  await waitForText(page, 'button', 'Connect again');
  const clicked = Date.now();
  await clickText(page, 'Connect again');
  await untilSeen(page, 'a picture again', ([width]) => width === 720);
  console.log(`the first picture took ${Date.now() - clicked} ms after the click`);
  expect(await page.evaluate(() => (window as unknown as { violations: string[] }).violations)).toEqual([]);
  expect(problems).toEqual([]);
  await clickText(page, 'Turn off');
  await waitForText(page, 'span', 'The console is off.');
  await page.close();
  await until('the audit log', () => audits().length >= 4);
  expect(audits().map(({ user, operation, view_only: isViewOnly }) => [user, operation, isViewOnly])).toEqual(
    [1, 2].flatMap(() => ['openScreen', 'closeScreen'].map((operation) => ['ann', operation, false])),
  );
});

/** Opens a screen as a viewer of the address with the token, after the handshakes. */
async function viewerOf(uuid: string): Promise<readonly [Duplex, Buffer]> {
  const path = `${url}/v1/nodes/${uuid}/states/console`;
  const headers = {
    authorization: `Basic ${Buffer.from(`ann:${PASSWORD}`).toString('base64')}`,
    'content-type': 'application/json',
    'x-openstack-ironic-api-version': 'latest',
  };
  await fetch(path, { method: 'PUT', headers, body: JSON.stringify({ enabled: true }) });
  let address = '';
  await until('the console is on', async () => {
    const { console_info: info } = (await (await fetch(path, { headers })).json()) as {
      readonly console_info: { readonly url: string } | null;
    };
    address = info?.url ?? '';
    return address !== '';
  });
  const socket = new WebSocket(`${screens.replace('http', 'ws')}/${new URL(address).searchParams.get('path')!}`, ['binary']);
  const stream = createWebSocketStream(socket);
  return [stream, await openScreen(stream, '', timeoutSignal(30_000))];
}
it('the server is not what limits the pictures of a second', async () => {
  const moving = await startVncMachine(mkdtempSync(join(folder, 'moving-')));
  stop.push(moving.stop);
  const uuid = await createNode(url, 'ann', {
    name: 'rate',
    driver: 'manual-management',
    console_interface: 'vnc',
    driver_info: { vnc_socket: moving.socket },
  });
  const signal = timeoutSignal(200_000);
  const direct = connect(moving.socket);
  const alone = await picturesOf(direct, await openScreen(direct, '', signal), 5, signal);
  direct.destroy();
  const measure = async (node: string): Promise<readonly [number, number]> => {
    const [screen, init] = await viewerOf(node);
    const before = cpuSecondsOf(server.pid);
    const rate = await picturesOf(screen, init, 5, signal);
    screen.destroy();
    return [rate, (cpuSecondsOf(server.pid) - before) / 5];
  };
  const [through, share] = await measure(uuid);
  console.log(
    `QEMU: ${alone.toFixed(1)} pictures a second without the server, ${through.toFixed(1)} by it, for ${(share * 100).toFixed(1)} % of a core`,
  );
  const bytes = 64 * 1024;
  const fast = await startFastMachine(bytes, signal);
  stop.push(async () => void fast.server.close());
  const other = await createNode(url, 'ann', {
    name: 'fast',
    driver: 'manual-management',
    console_interface: 'vnc',
    driver_info: { vnc_address: '127.0.0.1', vnc_port: fast.port },
  });
  const [most, cost] = await measure(other);
  console.log(`a machine with 60 pictures a second of ${bytes} bytes: ${most.toFixed(1)}, for ${(cost * 100).toFixed(1)} % of a core`);
  expect(through).toBeGreaterThan(alone / 3);
  expect(most).toBeGreaterThan(10);
  expect(cost).toBeLessThan(0.5);
});

it('the address with a token shows the screen of an OpenBMC, and a second user only looks', async () => {
  const machine = mkdtempSync(join(folder, 'bmc-'));
  const behind = await startVncMachine(machine);
  stop.push(behind.stop);
  bmc = await startBmcweb({ path: behind.socket });
  const uuid = await createNode(url, 'ann', {
    name: 'openbmc',
    driver: 'redfish',
    console_interface: 'redfish-graphical',
    driver_info: { redfish_address: bmc.url, redfish_username: 'root', redfish_password: '0penBmc' },
  });
  const console = `${url}/v1/nodes/${uuid}/states/console`;
  const headers = {
    authorization: `Basic ${Buffer.from(`ann:${PASSWORD}`).toString('base64')}`,
    'content-type': 'application/json',
    'x-openstack-ironic-api-version': 'latest',
  };
  expect((await fetch(console, { method: 'PUT', headers, body: JSON.stringify({ enabled: true }) })).status).toBe(202);
  let address = '';
  await until('the console is on', async () => {
    const { console_info: info } = (await (await fetch(console, { headers })).json()) as {
      readonly console_info: { readonly type: string; readonly url: string } | null;
    };
    address = info?.url ?? '';
    return info?.type === 'vnc';
  });
  expect(address.startsWith(`${screens}/vnc_auto.html?path=websockify%3Fnode%3D${uuid}%26token%3D`)).toBe(true);
  const context = await browser.createBrowserContext();
  const open = async (): Promise<Page> => {
    const page = await context.newPage();
    await page.goto(address);
    await waitForText(page, '[role=status]', 'Connected');
    await untilSeen(page, 'the moving picture', ([width, , colours]) => width === 640 && colours > 50);
    return page;
  };
  const first = await open();
  const second = await open();
  await waitForText(second, '[role=status]', 'you only look');
  await second.click('.screen canvas');
  await second.keyboard.press('x');
  await first.bringToFront();
  expect((await seen(first))[0]).toBe(640);
  await first.click('.screen canvas');
  await first.keyboard.press('y');
  await untilSeen(first, 'text mode', ([width]) => width === 720);
  await fetch(console, { method: 'PUT', headers, body: JSON.stringify({ enabled: false }) });
  await waitForText(first, '[role=status]', 'The console was turned off.');
  expect((await fetch(address)).status).toBe(200);
  await first.reload();
  await waitForText(first, '[role=status]', 'The server refused the screen.');
  await context.close();
});
