/** The log-in of the page in Chromium: passwords and roles of http_basic, and a real OpenID provider of another site. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'puppeteer-core' with { 'resolution-mode': 'import' };
import { freePort } from '../../support/free-port';
import { needs } from '../support/needs';
import type { RunningServer } from '../../../demo/lab/server';
import { axeViolations, clickText, openPage, picture, startBrowser, waitForText } from './browser';
import { createNode, PASSWORD, startServerWithUsers } from './users';

let folder: string;
let browser: Browser;
let server: RunningServer;
let provider: ChildProcess;
/** For browsers, this is another site than that of the provider, which is at 127.0.0.1. */
let url: string;
beforeAll(async () => {
  needs({ chromium: 'chromium' });
  folder = mkdtempSync(join(tmpdir(), 'bloomery-log-in-'));
  const [port, providerPort] = [await freePort(), await freePort()];
  url = `http://localhost:${port}`;
  server = await startServerWithUsers(
    folder,
    port,
    { ann: 'roles = admin\nsystem = all', ben: 'roles = reader\nproject = p1' },
    {
      DEFAULT: { enabled_hardware_types: 'fake-hardware' },
      oidc: {
        issuer: `http://127.0.0.1:${providerPort}`,
        audience: 'urn:bloomery',
        roles_claim: 'scope',
        system_roles: 'bm-viewers:reader',
        client_id: 'page',
        client_secret: 'a secret+of the page',
        scopes: 'openid,bm-viewers',
        login_parameters: 'resource:urn:bloomery',
      },
    },
  );
  const program = join(__dirname, '../../support/fakes/openid-provider.mjs');
  const words = [program, String(providerPort), 'first', folder, `${url}/ui/login/oidc`];
  provider = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'ignore'] });
  const ended = once(provider, 'exit').then(() => Promise.reject(new Error('the provider ended')));
  await Promise.race([once(provider.stdout!, 'data'), ended]);
  for (const [name, owner] of Object.entries({ mine: 'p1', other: 'p2' }))
    await createNode(url, 'ann', { name, owner, driver: 'fake-hardware' });
  browser = await startBrowser();
});
afterAll(async () => {
  await browser?.close();
  provider?.kill();
  await server?.stop();
  if (folder) rmSync(folder, { recursive: true, force: true });
});

async function logIn(page: Page, user: string, password: string): Promise<void> {
  await page.waitForSelector('select');
  await page.select('select', 'password');
  await page.waitForSelector('[name=user]');
  for (const [name, value] of Object.entries({ user, password })) await page.$eval(`[name=${name}]`, fillIn, value);
  await clickText(page, 'Log in', 'button');
}
const fillIn = (field: Element, value: string): void => void ((field as HTMLInputElement).value = value);
const textsOf = (page: Page, selector: string): Promise<readonly string[]> =>
  page.$$eval(selector, (found) => found.map(({ textContent }) => textContent.trim()));
const actionsOf = async (page: Page, name: string): Promise<readonly string[]> => {
  await clickText(page, name, 'td a');
  await waitForText(page, 'h1', name);
  return textsOf(page, '[aria-label=Actions] button');
};

it('the page reports a wrong password, and logs an administrator in and out', async () => {
  const { page, problems } = await openPage(await browser.createBrowserContext(), url);
  await page.waitForSelector('select');
  expect(await axeViolations(page)).toEqual([]);
  await logIn(page, 'ann', 'another password');
  await waitForText(page, '[role=alert]', 'These credentials are not valid.');
  expect(await axeViolations(page)).toEqual([]);
  await picture(page, 'log-in');
  await logIn(page, 'ann', PASSWORD);
  await waitForText(page, 'td a', 'other');
  expect(await page.evaluate(() => document.cookie)).toBe('');
  expect(await actionsOf(page, 'mine')).toEqual(expect.arrayContaining(['Manage', 'Power on', 'Delete']));
  await clickText(page, 'Log out');
  await page.waitForSelector('select');
  await page.reload();
  await page.waitForSelector('select');
  expect(problems).toEqual([]);
  await page.close();
});

it('the page shows a tenant only the nodes of their project, and no actions that the policy forbids', async () => {
  const { page, problems } = await openPage(await browser.createBrowserContext(), url);
  await logIn(page, 'ben', PASSWORD);
  await waitForText(page, '.connection', 'live');
  expect(await textsOf(page, 'tbody td a')).toEqual(['mine']);
  expect(await textsOf(page, 'nav a')).toEqual([
    'Fleet',
    'To accept',
    'Images',
    'Snapshots',
    'Certificates of erasure',
    'Runbooks',
    'Allocations',
  ]);
  expect(await actionsOf(page, 'mine')).toEqual([]);
  const refused: string[] = [];
  page.on('response', (response) => {
    if (response.status() === 403) refused.push(response.url());
  });
  for (const tab of await textsOf(page, '[aria-label=Sections] a')) {
    await clickText(page, tab, '[aria-label=Sections] a');
    await page.waitForFunction(() => !document.querySelector('main')!.textContent.includes('Loading …'));
  }
  expect(await textsOf(page, 'form button')).toEqual([]);
  expect({ refused, problems }).toEqual({ refused: [], problems: [] });
  await clickText(page, 'Log out');
  await page.waitForSelector('select');
  await page.close();
});

it('the page logs a user in with an OpenID provider of another site', async () => {
  const { page } = await openPage(await browser.createBrowserContext(), url);
  await page.waitForSelector('select');
  await clickText(page, 'Log in', 'a');
  await waitForText(page, 'header', 'ann');
  await waitForText(page, 'td a', 'other');
  expect(await actionsOf(page, 'mine')).toEqual([]);
  await page.goto(`${url}/ui/login/oidc?code=x&state=y`);
  await page.waitForFunction(() => location.pathname === '/ui');
  await clickText(page, 'Log out');
  await waitForText(page, '[role=alert]', 'The log-in took more than ten minutes');
  await page.close();
});
