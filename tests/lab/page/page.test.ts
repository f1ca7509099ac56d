/** The page in Chromium, with the built server and simulated machines: driven by clicks, as a user does. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'puppeteer-core' with { 'resolution-mode': 'import' };
import { nodeOf } from '../../../simulator/fleet/describe-node';
import type { Fleet } from '../../../simulator/fleet/fleet';
import { until } from '../../support/until';
import { needs } from '../support/needs';
import { startServerProcess, type RunningServer, type Sections } from '../../../demo/lab/server';
import { act, fill, startSite } from './site';
import { axeViolations, clickText, openPage, picture, startBrowser, waitForText } from './browser';
import type { ServerCounts } from '../../../ui/lib/fleet-history';

let folder: string;
let browser: Browser;
let server: RunningServer;
let fleet: Fleet;
let url: string;
let sections: Sections;
beforeAll(async () => {
  needs({ chromium: 'chromium' });
  ({ folder, url, sections, server, fleet } = await startSite(2));
  browser = await startBrowser();
});
afterAll(async () => {
  await browser?.close();
  await fleet?.close();
  await server?.stop();
  if (folder) rmSync(folder, { recursive: true, force: true });
});

/** Changes a BIOS setting by a clean step, and adds a trait. */
async function changeBios(page: Page): Promise<void> {
  await clickText(page, 'BIOS');
  const choice = (await page.waitForSelector('[aria-label="New value of Hyperthreading"]'))!;
  await choice.select('Disabled');
  await picture(page, 'bios');
  expect(await axeViolations(page)).toEqual([]);
  await clickText(page, 'Change 1 setting');
  await page.waitForSelector('dialog[open] textarea');
  expect(await page.$eval('dialog textarea', (field) => field.value)).toContain('"Hyperthreading"');
  await clickText(page, 'Change 1 setting');
  await waitForText(page, '[aria-label=Outcomes] td', 'accepted');
  await clickText(page, 'Close');
  await waitForText(page, 'dl.now .state', 'clean');
  await waitForText(page, 'dl.now .state', 'manageable');
  await waitForText(page, '[aria-label=BIOS] td', 'Disabled');
  await clickText(page, 'Traits');
  await (await page.waitForSelector('[name=trait]'))!.type('CUSTOM_GOLD');
  await clickText(page, 'Add');
  await waitForText(page, '.chips li', 'CUSTOM_GOLD');
  expect(await axeViolations(page)).toEqual([]);
  await clickText(page, 'Events');
}

/** Adds an alert, masks it, and clears it. */
async function useAlerts(page: Page): Promise<void> {
  await act(page, 'Add alert', { text: 'it hums', subject: 'fan 3' });
  await waitForText(page, 'dl.now dd', 'warning');
  await clickText(page, 'Health', '[aria-label=Sections] a');
  await waitForText(page, '[aria-label="Open alerts"] td', 'it hums');
  expect(await axeViolations(page)).toEqual([]);
  await clickText(page, 'Mask');
  await act(page, 'Mask alert', { reason: 'it is known', until: new Date(Date.now() + 86_400_000).toISOString() }, true);
  await waitForText(page, '[aria-label="Open alerts"] td', ': it is known');
  await clickText(page, 'Clear');
  await waitForText(page, 'main p', 'No open alerts.');
  await clickText(page, 'Cleared lately');
  await waitForText(page, '[aria-label="Cleared alerts"] td', 'it hums');
  expect(await axeViolations(page)).toEqual([]);
  await clickText(page, 'Events');
}

it("the page enrols, inspects, deploys, undeploys and deletes a machine, without violations of axe's rules", async () => {
  const { page, problems } = await openPage(browser, url);
  const { name, macs, redfish } = fleet.machines[0]!;
  await waitForText(page, 'h1', 'There are no nodes yet');
  expect(await axeViolations(page)).toEqual([]);
  await picture(page, 'first-run');
  await page.click('a.first');
  await page.waitForSelector('[name=redfish_address]');
  await fill(page, {
    name,
    redfish_address: redfish.address,
    redfish_username: redfish.username,
    redfish_password: redfish.password,
    redfish_system_id: redfish.systemId,
    macs: macs.join(' '),
  });
  expect(await axeViolations(page)).toEqual([]);
  await picture(page, 'add-machine');
  await clickText(page, 'Add');
  await waitForText(page, '[aria-label=Events] td', 'inspecting → manageable');
  await waitForText(page, 'dl.now .state', 'manageable');
  expect(await axeViolations(page)).toEqual([]);
  await changeBios(page);
  await useAlerts(page);
  await act(page, 'Provide');
  await waitForText(page, 'dl.now .state', 'available');
  // The dialogue offers an image with a name.
  await clickText(page, 'Images');
  await waitForText(page, 'h1', 'Images');
  await clickText(page, 'New');
  await page.waitForSelector('#field-name');
  await page.type('#field-name', 'debian-13');
  await page.type('#field-image_source', 'a b');
  await clickText(page, 'Save');
  await waitForText(page, 'form [role=alert]', 'image_source: it is not a valid URL');
  await page.$eval('#field-image_source', (field) => (field as HTMLInputElement).select());
  await page.type('#field-image_source', `file://${folder}/images/image.img`);
  await page.type('#field-description', 'Debian 13 for servers');
  expect(await axeViolations(page)).toEqual([]);
  await clickText(page, 'Save');
  await waitForText(page, 'td', 'debian-13');
  await picture(page, 'images');
  await page.goBack();
  await clickText(page, 'Deploy');
  await page.waitForSelector('dialog [name=image] option:nth-child(2)');
  await page.select('dialog [name=image]', await page.$eval('dialog [name=image] option:nth-child(2)', (item) => item.value));
  await waitForText(page, 'dialog td', 'available → active');
  await picture(page, 'deploy');
  expect(await axeViolations(page)).toEqual([]);
  await clickText(page, 'Deploy');
  await waitForText(page, '[aria-label=Outcomes] td', 'accepted');
  await clickText(page, 'Close');
  await waitForText(page, '[aria-label=Events] td', 'deploy.write_image');
  await waitForText(page, 'dl.now .state', 'active');
  await picture(page, 'node');
  const tabs = ['Why', 'History', 'Ports', 'Inventory', 'LLDP', 'Hardware changes', 'Sensors', 'BIOS', 'RAID', 'Firmware'];
  for (const tab of [...tabs, 'Traits', 'Fields', 'Validation']) {
    await clickText(page, tab, '[aria-label=Sections] a');
    await page.waitForFunction(() => !document.querySelector('main')!.textContent.includes('Loading …'));
    if (tab === 'Sensors') {
      await page.waitForSelector('button:has(svg.spark polyline)');
      await page.click('button:has(svg.spark polyline)');
      await page.waitForSelector('.chart polyline');
      // For pictures, a line with several readings.
      if (process.env['PICTURES'] !== undefined)
        await page.waitForFunction(() => document.querySelector('.chart polyline')!.getAttribute('points')!.split(' ').length > 3);
    }
    if (tab === 'Inventory' || tab === 'Sensors') await picture(page, tab.toLowerCase());
    expect({ tab, violations: await axeViolations(page) }).toEqual({ tab, violations: [] });
  }
  await act(page, 'Undeploy');
  await waitForText(page, 'dl.now .state', 'available');
  await act(page, 'Delete');
  await waitForText(page, 'main', 'There is no such node');
  expect(problems).toEqual([]);
  await page.close();
});

it('the page accepts a node in the state enroll', async () => {
  const { redfish } = fleet.machines[1]!;
  await send('POST', 'nodes', { driver: 'redfish', driver_info: { redfish_system_id: redfish.systemId } });
  const { page, problems } = await openPage(browser, url);
  await clickText(page, 'To accept');
  await waitForText(page, 'td', 'unknown');
  expect(await axeViolations(page)).toEqual([]);
  await clickText(page, 'Accept');
  await page.waitForSelector('[name=redfish_address]');
  expect(await axeViolations(page)).toEqual([]);
  expect(await page.$eval('[name=redfish_system_id]', (field) => (field as HTMLInputElement).value)).toBe(redfish.systemId);
  await fill(page, {
    name: 'accepted',
    redfish_address: redfish.address,
    redfish_username: redfish.username,
    redfish_password: redfish.password,
  });
  await clickText(page, 'Accept', 'button');
  await waitForText(page, 'dl.now .state', 'manageable');
  await act(page, 'Delete');
  await waitForText(page, 'main', 'There is no such node');
  expect(problems).toEqual([]);
  await page.close();
});

it('the page adds all simulated machines by one click', async () => {
  const described = fleet.machines.map((machine) => nodeOf(machine, 'redfish'));
  writeFileSync(join(folder, 'machines.json'), JSON.stringify({ nodes: described.map(({ node, ports }) => ({ ...node, ports })) }));
  const { page, problems } = await openPage(browser, url);
  await clickText(page, 'Add the simulated machines');
  const names = fleet.machines.map(({ name }) => name);
  for (const name of names) {
    await waitForText(page, 'td a', name);
    await until(`${name} is inspected`, async () => {
      const shown = (await (await send('GET', `nodes/${name}`)).json()) as Record<string, unknown>;
      return shown['provision_state'] === 'manageable' && shown['inspection_finished_at'] !== null;
    });
  }
  await clickText(page, 'Add a machine');
  await clickText(page, 'Add the simulated machines');
  await waitForText(page, '[role=status]', 'All of them have been added.');
  expect(await axeViolations(page)).toEqual([]);
  for (const name of names) await send('DELETE', `nodes/${name}`);
  expect(problems).toEqual([]);
  await page.close();
});

it('the page reconnects to a server that was killed and started again', async () => {
  const { page } = await openPage(browser, url);
  await waitForText(page, '.connection', 'live');
  await server.kill();
  await waitForText(page, '.connection', 'no connection');
  server = await startServerProcess(folder, sections);
  await waitForText(page, '.connection', 'live');
  await page.close();
});

/** A request of another client of the API. */
async function send(method: string, path: string, body?: object): Promise<Response> {
  const headers = { 'content-type': 'application/json', 'x-openstack-ironic-api-version': 'latest' };
  const answer = await fetch(`${url}/v1/${path}`, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return answer;
}
/** Runs the work for all names, a few at a time. */
async function forEach(names: readonly string[], work: (name: string) => Promise<unknown>): Promise<void> {
  const left = [...names];
  const next = async (): Promise<void> => {
    for (let name = left.shift(); name !== undefined; name = left.shift()) await work(name);
  };
  await Promise.all(Array.from({ length: 30 }, next));
}
const namesOf = (count: number): readonly string[] =>
  Array.from({ length: count }, (_, number) => `rack${Math.floor(number / 40)}-${number % 40}`);
/** Creates nodes of fake-hardware. */
const createNodes = (names: readonly string[]): Promise<void> =>
  forEach(names, async (name) => {
    const properties = { vendor: 'ACME', cpus: 32, memory_mb: 262144, cpu_arch: 'x86_64' };
    const interfaces = { boot_interface: 'fake', deploy_interface: 'fake' };
    const created = await send('POST', 'nodes', { name, driver: 'fake-hardware', resource_class: 'bench', properties, ...interfaces });
    await created.arrayBuffer();
  });

/** Saves a view with a name: filters and columns. Opens it again, and deletes it. */
async function savesViews(page: Page): Promise<void> {
  await page.type('input[type=search]', 'acme');
  await clickText(page, 'Columns');
  await clickText(page, 'Driver', '.menu label');
  await page.waitForSelector('td.driver');
  await clickText(page, 'Columns');
  await clickText(page, 'Views');
  await page.type('[name=view]', 'of acme');
  await clickText(page, 'Save this view');
  const search = await page.evaluate(() => location.hash);
  await page.evaluate(() => (location.hash = '/nodes'));
  await waitForText(page, '.bar span', '240 shown');
  await clickText(page, 'of acme');
  await page.waitForSelector('td.driver');
  expect(await page.evaluate(() => location.hash)).toBe(search);
  expect(await axeViolations(page)).toEqual([]);
  await page.click('[aria-label="Delete the view of acme"]');
  await page.waitForFunction(() => !document.body.textContent.includes('of acme'));
  await clickText(page, 'Views');
  await page.evaluate(() => (location.hash = '/nodes'));
  await page.waitForFunction(() => !document.querySelector('td.driver'));
}

it('the page shows how many nodes have each state, now and over time', async () => {
  const names = namesOf(240);
  await createNodes(names);
  await forEach(names.slice(0, 60), (name) => send('PATCH', `nodes/${name}`, [{ op: 'add', path: '/owner', value: 'web' }]));
  const { page, problems } = await openPage(browser, url);
  for (const [target, state, count] of [
    ['manage', 'manageable', 220],
    ['provide', 'available', 190],
    ['active', 'active', 130],
  ] as const) {
    await forEach(names.slice(0, count), (name) => send('PUT', `nodes/${name}/states/provision`, { target }));
    await waitForText(page, '[aria-label=States] button', `${state} ${count}`);
  }
  await forEach(names.slice(0, 130), (name) => send('PUT', `nodes/${name}/states/power`, { target: 'power on' }));
  await forEach(names.slice(100, 108), (name) => send('PUT', `nodes/${name}/maintenance`, { reason: 'a new power supply' }));
  await page.waitForSelector('figure.history path.active');
  await waitForText(page, 'figcaption', 'active 130');
  await waitForText(page, '[aria-label=States] button', 'available 60');
  expect(await axeViolations(page)).toEqual([]);
  await picture(page, 'fleet');
  await savesViews(page);
  await page.setViewport({ width: 420, height: 800 });
  expect(await axeViolations(page)).toEqual([]);
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: 'dark' }]);
  await picture(page, 'fleet-dark-narrow');
  // The page keeps one sample (the last) for each ten seconds. The deletion of the nodes must not fall into the same ten seconds.
  await until('the server counted the nodes ten seconds ago', async () => {
    const { now, state_counts: samples } = (await (await send('GET', 'state_counts')).json()) as ServerCounts;
    const last = samples.at(-1);
    return last?.counts['active'] === 130 && Date.parse(now) - Date.parse(last.at) >= 10_000;
  });
  const remove = async (name: string): Promise<void> => {
    await send('PUT', `nodes/${name}/maintenance`);
    await send('DELETE', `nodes/${name}`);
  };
  await forEach(names.slice(0, -1), remove);
  // A page that is opened later also shows the counts from before.
  const later = await openPage(browser, url);
  await waitForText(later.page, 'figcaption', 'idle 1');
  await later.page.waitForFunction(() => {
    const path = document.querySelector('figure.history path.active')?.getAttribute('d') ?? '';
    return path.split(/[MLZ]/).some((point) => Number(point.trim().split(' ')[1]) < 90);
  });
  expect(later.problems).toEqual([]);
  await later.page.close();
  await forEach(names.slice(-1), remove);
  await waitForText(page, 'h1', 'There are no nodes yet');
  expect(problems).toEqual([]);
  await page.close();
}, 600_000);

it('the page shows 10,000 nodes: it draws only the visible rows, filters, and applies a verb to many nodes', async () => {
  await createNodes(namesOf(10_000));
  const opened = performance.now();
  const { page, problems } = await openPage(browser, url);
  await waitForText(page, 'td a', 'rack0-0');
  const drawn = performance.now() - opened;
  await waitForText(page, '.connection', 'live');
  await waitForText(page, '.bar span', '10000 shown');
  const loaded = performance.now() - opened;
  expect(await axeViolations(page)).toEqual([]);
  const frames = await page.evaluate(async () => {
    const scroller = document.querySelector('.scroller')!;
    const times: number[] = [];
    let most = 0;
    for (let step = 0; step < 120; step++) {
      const before = performance.now();
      scroller.scrollTop = (step / 119) * scroller.scrollHeight;
      await new Promise((done) => requestAnimationFrame(done));
      times.push(performance.now() - before);
      most = Math.max(most, scroller.querySelectorAll('tbody tr').length);
    }
    return { median: times.sort((a, b) => a - b)[60]!, slowest: times.at(-1)!, most };
  });
  expect(frames.most).toBeLessThan(100);
  await waitForText(page, 'td a', 'rack249-39');
  await page.waitForSelector('figure.history path');
  await page.type('input[type=search]', 'rack249-');
  await waitForText(page, '.bar span', '40 shown');
  expect(await page.evaluate(() => location.hash)).toContain('text=rack249-');
  await page.click('thead input');
  await clickText(page, 'Manage');
  await waitForText(page, 'dialog h2', 'Manage: 40 nodes');
  expect(await axeViolations(page)).toEqual([]);
  await waitForText(page, 'dialog td', 'enroll → manageable');
  await page.click('dialog .first');
  await waitForText(page, 'dialog [role=status]', '40 accepted, 0 refused, 0 to go');
  await waitForText(page, '[aria-label=Outcomes] td', 'manageable');
  await picture(page, 'outcomes');
  await clickText(page, 'Close');
  await waitForText(page, '[aria-label=States] button', 'manageable 40');
  // Another client makes a change.
  const changed = performance.now();
  const uuid = await page.$eval('td a', (link) => link.getAttribute('href')!.slice('#/node/'.length));
  await send('PUT', `nodes/${uuid}/maintenance`, { reason: 'a fan' });
  await waitForText(page, 'td', 'maintenance: a fan');
  const updated = performance.now() - changed;
  await page.evaluate(() => (location.hash = '/nodes'));
  await waitForText(page, '.bar span', '10000 shown');
  console.log(
    `10,000 nodes: first rows after ${drawn.toFixed(0)} ms, all after ${loaded.toFixed(0)} ms, changed after ${updated.toFixed(0)} ms, frames ${JSON.stringify(frames)}`,
  );
  expect(problems).toEqual([]);
  await page.close();
}, 1_200_000);

/** Types into the field of a form that has this name. */
const typeInto = async (page: Page, label: string, text: string): Promise<void> => {
  const field = (await page.waitForSelector(`[aria-label="${label}"]`))!;
  await field.click({ count: 3 });
  await field.type(text);
};
it('the page creates, edits and deletes resources in forms, and names the invalid fields', async () => {
  const { page, problems } = await openPage(browser, url);
  page.on('dialog', (dialog) => void dialog.accept());
  await clickText(page, 'Deploy templates');
  await waitForText(page, 'h1', 'Deploy templates');
  await waitForText(page, 'p', 'None.');
  await clickText(page, 'New');
  await page.waitForSelector('#field-name');
  await page.$eval('#field-name', (field) => (field as HTMLInputElement).select());
  await page.type('#field-name', 'CUSTOM_X');
  await typeInto(page, 'Steps 1: arguments (JSON)', '{');
  await clickText(page, 'Save');
  await waitForText(page, 'form [role=alert]', 'steps 1 args is not valid JSON');
  expect(await page.$eval('[aria-label="Steps 1: arguments (JSON)"]', (field) => field.getAttribute('aria-invalid'))).toBe('true');
  expect(await axeViolations(page)).toEqual([]);
  await clickText(page, 'Remove');
  await clickText(page, 'Save');
  await waitForText(page, 'form [role=alert]', 'steps needs at least one row');
  await clickText(page, 'Add to steps');
  await typeInto(page, 'Steps 1: step', 'factory_reset');
  await page.select('[aria-label="Steps 1: interface"]', 'bios');
  await typeInto(page, 'Steps 1: priority', '10');
  await picture(page, 'form');
  await clickText(page, 'Save');
  await waitForText(page, 'td', 'CUSTOM_X');
  // The API's error message, and the field that it names.
  await clickText(page, 'New');
  await page.waitForSelector('#field-name');
  await page.$eval('#field-name', (field) => (field as HTMLInputElement).select());
  await page.type('#field-name', 'no trait');
  await clickText(page, 'Save');
  await waitForText(page, 'form [role=alert] p', 'no trait');
  await clickText(page, 'Edit as JSON');
  await page.waitForSelector('textarea[name=json]');
  await clickText(page, 'Cancel');
  await clickText(page, 'Edit');
  await typeInto(page, 'Steps 1: priority', '20');
  await clickText(page, 'Save');
  await waitForText(page, 'td', 'bios.factory_reset, priority 20');
  await clickText(page, 'Delete');
  await waitForText(page, 'p', 'None.');
  await clickText(page, 'Inspection rules');
  await waitForText(page, 'h1', 'Inspection rules');
  await clickText(page, 'New');
  await typeInto(page, 'Actions 1: arguments (JSON)', '{"path": "/owner"}');
  await clickText(page, 'Save');
  await waitForText(page, 'form [role=alert]', 'missing required argument(s): value');
  expect(await axeViolations(page)).toEqual([]);
  await typeInto(page, 'Actions 1: arguments (JSON)', '{"path": "/owner", "value": "acme"}');
  await clickText(page, 'Save');
  await waitForText(page, 'td', 'acme');
  await clickText(page, 'Delete');
  await waitForText(page, 'p', 'None.');
  expect(problems).toEqual([]);
  await page.close();
});
