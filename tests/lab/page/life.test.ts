/** What the page shows of the life of a machine: steps that wait for a word, out of service, default configs and snapshots. */
import { execFileSync } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'puppeteer-core' with { 'resolution-mode': 'import' };
import type { RunningServer } from '../../../demo/lab/server';
import { nodeOf } from '../../../simulator/fleet/describe-node';
import type { Fleet } from '../../../simulator/fleet/fleet';
import { until } from '../../support/until';
import { needs } from '../support/needs';
import { axeViolations, clickText, openPage, picture, startBrowser, waitForText } from './browser';
import { act, startSite } from './site';

let folder: string;
let browser: Browser;
let server: RunningServer;
let fleet: Fleet;
let url: string;
beforeAll(async () => {
  needs({ chromium: 'chromium' });
  ({ folder, url, server, fleet } = await startSite(1));
  browser = await startBrowser();
});
afterAll(async () => {
  await browser?.close();
  await fleet?.close();
  await server?.stop();
  if (folder) rmSync(folder, { recursive: true, force: true });
});

type Body = Readonly<Record<string, unknown>>;
async function send(method: string, path: string, body?: object): Promise<Body> {
  const headers = { 'content-type': 'application/json', 'x-openstack-ironic-api-version': 'latest' };
  const answer = await fetch(`${url}/v1/${path}`, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
  return text === '' ? {} : (JSON.parse(text) as Body);
}
async function order(name: string, state: string, target: string, more: object = {}): Promise<void> {
  await send('PUT', `nodes/${name}/states/provision`, { target, ...more });
  await until(`${name} is ${state}`, async () => {
    const { provision_state: now, reservation, last_error: error } = await send('GET', `nodes/${name}`);
    if (typeof error === 'string') throw new Error(error);
    return now === state && reservation === null;
  });
}
const isAccessible = async (page: Page): Promise<void> => expect(await axeViolations(page)).toEqual([]);

it('the page shows a step that waits for a word, out of service, default configs and snapshots', async () => {
  const [machine] = fleet.machines;
  const { node, ports } = nodeOf(machine!, 'redfish');
  const { name } = machine!;
  await send('POST', 'nodes', { ...node, name, resource_class: 'gold' });
  const { uuid } = await send('GET', `nodes/${name}`);
  for (const port of ports) await send('POST', 'ports', { ...port, node_uuid: uuid });
  await order(name, 'manageable', 'manage');
  const { page, problems } = await openPage(browser, url);
  page.on('dialog', (dialog) => void dialog.accept());

  await clickText(page, 'Default configs');
  await waitForText(page, 'h1', 'Default configs');
  await clickText(page, 'New');
  const scope = (await page.waitForSelector('#field-resource_class'))!;
  await scope.click({ count: 3 });
  await scope.type('gold');
  await page.select('[aria-label="Steps 1: interface"]', 'bios');
  const type = async (label: string, text: string): Promise<void> => {
    const field = (await page.waitForSelector(`[aria-label="${label}"]`))!;
    await field.click({ count: 3 });
    await field.type(text);
  };
  await type('Steps 1: step', 'apply_configuration');
  await type('Steps 1: arguments (JSON)', '{"settings": [{"name": "Hyperthreading", "value": "Disabled"}]}');
  await isAccessible(page);
  await clickText(page, 'Save');
  await waitForText(page, 'td', 'gold');

  await page.evaluate((hash) => void (location.hash = hash), `/node/${String(uuid)}`);
  await clickText(page, 'Default config');
  await waitForText(page, 'td', 'Hyperthreading');
  await waitForText(page, 'td', 'resource class gold');
  await isAccessible(page);

  // The operator reads the question and gives the word.
  const steps = [
    { interface: 'power', step: 'power_off' },
    { interface: 'power', step: 'power_on', confirm: 'Is the cable in port 2?' },
  ];
  await order(name, 'clean hold', 'clean', { clean_steps: steps });
  await clickText(page, 'Steps');
  await waitForText(page, 'td', 'Is the cable in port 2?');
  await isAccessible(page);
  await act(page, 'Continue');
  await waitForText(page, 'dl.now .state', 'manageable');

  await order(name, 'available', 'provide');
  await send('PATCH', `nodes/${name}`, [{ op: 'add', path: '/instance_info/image_source', value: `file://${folder}/images/image.img` }]);
  await order(name, 'active', 'active');
  await clickText(page, 'Events');
  await act(page, 'Snapshot', { description: 'before the upgrade' });
  await waitForText(page, '[aria-label=Events] td', 'servicing');
  await until('the snapshot is there', async () => {
    const { snapshots } = (await send('GET', 'snapshots')) as { readonly snapshots: readonly Body[] };
    return snapshots.some(({ state }) => state === 'available');
  });
  await waitForText(page, 'dl.now .state', 'active');
  await clickText(page, 'Snapshots', '.tabs a');
  await waitForText(page, 'td', 'before the upgrade');
  await waitForText(page, 'td', 'available');
  await isAccessible(page);

  await clickText(page, 'Events');
  const until4 = new Date(Date.now() + 4 * 3_600_000).toISOString();
  await act(page, 'Out of service', { reason: 'a fan is replaced', ticket: 'https://tickets.example/4711', until: until4 });
  await waitForText(page, 'dl.now dd', 'a fan is replaced');
  await waitForText(page, '.state', 'out of service');
  await isAccessible(page);
  await act(page, 'In service again');
  await page.waitForFunction(() => !document.querySelector('dl.now')!.textContent.includes('a fan is replaced'));
  expect(problems).toEqual([]);
  await page.close();
}, 600_000);

it('the page releases a machine with a choice for its disks, and its certificate is saved, which openssl verifies', async () => {
  const { name } = fleet.machines[0]!;
  const { uuid } = await send('GET', `nodes/${name}`);
  const { page, problems } = await openPage(browser, url);
  const saved = join(folder, 'saved');
  const session = await page.createCDPSession();
  await session.send('Browser.setDownloadBehavior', { behavior: 'allow', downloadPath: saved });
  await page.evaluate((hash) => void (location.hash = hash), `/node/${String(uuid)}`);
  await clickText(page, 'Undeploy');
  await page.waitForSelector('dialog[open]');
  await page.select('dialog[open] [name=erase]', 'express');
  await page.type('dialog[open] [name=keep]', '[{"name": "/dev/sdb"}]');
  await isAccessible(page);
  await act(page, 'Undeploy', {}, true);
  await waitForText(page, 'dl.now .state', 'available');
  await clickText(page, 'Erasures', '.tabs a');
  await waitForText(page, 'td', 'left: The request names it among the disks to keep.');
  await isAccessible(page);

  await clickText(page, 'Certificates of erasure', 'nav a');
  await waitForText(page, 'td', 'deploy.erase_devices_express');
  await isAccessible(page);
  await clickText(page, 'Show');
  await waitForText(page, '[aria-label="Disks of the certificate"] td', '/dev/sdb');
  await waitForText(page, 'pre', 'openssl dgst -sha256 -verify site.pem');
  await isAccessible(page);
  await picture(page, 'certificate');
  const [certificate] = (await send('GET', 'erasures'))['erasures'] as readonly Body[];
  const file = (ending: string): string => join(saved, `${String(certificate!['uuid'])}.${ending}`);
  for (const [title, ending] of [
    ['Save certificate', 'json'],
    ['Save signature', 'sig'],
    ['Save public key', 'pem'],
  ] as const) {
    await clickText(page, title);
    await until(`${ending} is saved`, async () => existsSync(file(ending)));
  }
  expect(
    execFileSync('openssl', ['dgst', '-sha256', '-verify', file('pem'), '-signature', file('sig'), file('json')], { encoding: 'utf8' }),
  ).toBe('Verified OK\n');
  await clickText(page, 'Close');
  await page.waitForFunction(() => !document.querySelector('[aria-label="Disks of the certificate"]'));
  expect(problems).toEqual([]);
  await page.close();
}, 600_000);
