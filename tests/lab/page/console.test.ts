/** The serial console in Chromium: serial-over-LAN of a simulated machine, keyboard input, and a session that ends meanwhile. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'puppeteer-core' with { 'resolution-mode': 'import' };
import { systemClock } from '../../../model/clock';
import { silentLog } from '../../../model/log';
import { startFleet } from '../../../simulator/fleet/fleet';
import { freePort } from '../../support/free-port';
import { until } from '../../support/until';
import { needs } from '../support/needs';
import type { RunningServer } from '../../../demo/lab/server';
import { axeViolations, clickText, openPage, picture, startBrowser, waitForText } from './browser';
import { createNode, PASSWORD, startServerWithUsers } from './users';

let folder: string;
let browser: Browser;
let server: RunningServer;
let fleet: Awaited<ReturnType<typeof startFleet>>;
/** A page of another origin, but of the same site: browsers send the cookie with its requests. */
let elsewhere: Server;
let url: string;
let uuid: string;
beforeAll(async () => {
  needs({ chromium: 'chromium' });
  folder = mkdtempSync(join(tmpdir(), 'bloomery-console-'));
  const [port, consolePort] = [await freePort(), await freePort()];
  url = `http://127.0.0.1:${port}`;
  server = await startServerWithUsers(
    folder,
    port,
    { ann: 'roles = admin\nsystem = all' },
    {
      DEFAULT: {
        enabled_hardware_types: 'ipmi',
        enabled_console_interfaces: 'ipmitool-socat,no-console',
        default_console_interface: 'ipmitool-socat',
      },
      console: { port_range: `${consolePort}:${consolePort + 1}`, saved_log_size: 64 },
    },
  );
  fleet = await startFleet({ count: 1, host: '127.0.0.1', log: silentLog, clock: systemClock, random: randomBytes });
  const { address, port: bmcPort, username, password } = fleet.machines[0]!.ipmi;
  uuid = await createNode(url, 'ann', {
    name: 'serial',
    driver: 'ipmi',
    description: '<img src=x onerror="document.title=1">',
    driver_info: { ipmi_address: address, ipmi_port: bmcPort, ipmi_username: username, ipmi_password: password },
  });
  elsewhere = createServer((_, response) => void response.setHeader('Content-Type', 'text/html').end('<title>elsewhere</title>'));
  elsewhere.listen(0, '127.0.0.1');
  await once(elsewhere, 'listening');
  browser = await startBrowser();
});
afterAll(async () => {
  await browser?.close();
  elsewhere?.close();
  await fleet?.close();
  await server?.stop();
  if (folder) rmSync(folder, { recursive: true, force: true });
});

async function logIn(page: Page): Promise<void> {
  await page.waitForSelector('[name=user]');
  await page.type('[name=user]', 'ann');
  await page.type('[name=password]', PASSWORD);
  await clickText(page, 'Log in', 'button');
  await waitForText(page, 'td a', 'serial');
}
/** Opens the console of a node, and turns it on if it is off. */
async function openConsole(page: Page): Promise<void> {
  await clickText(page, 'Console');
  await waitForText(page, 'button', 'Turn o');
  const isOff = await page.$$eval('button', (all) => all.some(({ textContent }) => textContent === 'Turn on'));
  if (isOff) await clickText(page, 'Turn on');
  await waitForText(page, '[role=status]', 'Connected');
}
const untilShown = async (page: Page, text: string): Promise<void> => {
  await page.waitForFunction(
    (wanted: string) => document.querySelector('.xterm-rows')?.textContent.replaceAll('\u00a0', ' ').includes(wanted),
    {},
    text,
  );
};
const closings = (): number => readFileSync(server.log, 'utf8').split('a console in the browser was closed').length - 1;

it('the page turns a console on and types into it, and the server refuses other origins and a second client', async () => {
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
  await page.reload();
  await logIn(page);
  await clickText(page, 'serial', 'td a');
  await clickText(page, 'Console');
  await waitForText(page, 'span', 'The console is off.');
  expect(scripts).toHaveLength(1);
  await clickText(page, 'Turn on');
  await waitForText(page, '[role=status]', 'Connected');
  expect(scripts).toHaveLength(2);
  await page.keyboard.type('show <img src=x onerror=alert(1)>\r');
  await untilShown(page, 'show <img src=x onerror=alert(1)>');
  expect(await page.$$('.console img')).toEqual([]);
  await page.keyboard.type('ready to boot\r');
  await untilShown(page, 'ready to boot');
  await clickText(page, 'Saved output', 'button');
  await waitForText(page, 'pre', 'ready to boot');
  await waitForText(page, '[role=status]', '1 KiB are saved.');
  await clickText(page, 'Download', 'button');
  await waitForText(page, '[role=status]', 'The file is in your downloads.');
  expect(await axeViolations(page)).toEqual([]);
  await picture(page, 'console');

  // A page of another origin: the browser sends the cookie, and the server refuses the connection.
  const other = await page.browserContext().newPage();
  await other.goto(`http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}/`);
  const outcome = await other.evaluate(
    (target) =>
      new Promise<string>((done) => {
        const socket = new WebSocket(target, ['bloomery.console']);
        socket.onopen = () => done('open');
        socket.onclose = ({ code }) => done(`closed ${code}`);
      }),
    `${url.replace('http', 'ws')}/ui/console/${uuid}`,
  );
  expect(outcome).toBe('closed 1006');
  await other.close();

  // A second client waits for the first.
  const { page: second } = await openPage(page.browserContext(), url);
  await clickText(second, 'serial', 'td a');
  await clickText(second, 'Console');
  await untilShown(second, 'the console is in use');
  await second.close();

  await page.bringToFront();
  await page.focus('.xterm-helper-textarea');
  for (const key of ['Control', 'Alt'] as const) await page.keyboard.down(key);
  await page.keyboard.press('KeyQ');
  for (const key of ['Alt', 'Control'] as const) await page.keyboard.up(key);
  expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('Disconnect');
  const before = closings();
  await page.keyboard.press('Enter');
  await waitForText(page, 'button', 'Connect again');
  await until('the console is closed', () => closings() > before);
  await untilShown(page, 'ready to boot');
  await clickText(page, 'Connect again');
  await waitForText(page, '[role=status]', 'Connected');
  await clickText(page, 'Turn off');
  await waitForText(page, 'span', 'The console is off.');
  expect(await page.evaluate(() => (window as unknown as { violations: string[] }).violations)).toEqual([]);
  expect(await page.title()).toBe('Bloomery');
  expect(problems).toEqual([]);
  await page.close();
}, 600_000);

it('the server closes a console when its user logs out in another tab', async () => {
  const { page } = await openPage(await browser.createBrowserContext(), url);
  await logIn(page);
  await clickText(page, 'serial', 'td a');
  await openConsole(page);
  const before = closings();
  const { page: second } = await openPage(page.browserContext(), url);
  await clickText(second, 'Log out');
  await second.waitForSelector('[name=user]');
  await second.close();
  await page.bringToFront();
  await until('the console is closed', () => closings() > before);
  // The page shows its form, and the browser no dialogue for a login.
  await page.waitForSelector('[name=user]');
  await page.close();
});

it('the page reports that the server stops while a console is open', async () => {
  const { page } = await openPage(await browser.createBrowserContext(), url);
  await logIn(page);
  await clickText(page, 'serial', 'td a');
  await openConsole(page);
  expect(await server.stop()).toBe(0);
  await waitForText(page, '[role=status]', 'The server stops.');
  await page.close();
});
