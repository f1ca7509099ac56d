/** The built server with simulated machines, and what a user does in its page. */
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'puppeteer-core' with { 'resolution-mode': 'import' };
import { startServerProcess, type RunningServer, type Sections } from '../../../demo/lab/server';
import { systemClock } from '../../../model/clock';
import { silentLog } from '../../../model/log';
import { startFleet, type Fleet } from '../../../simulator/fleet/fleet';
import { freePort } from '../../support/free-port';
import { clickText, waitForText } from './browser';

interface Site {
  readonly folder: string;
  readonly url: string;
  readonly sections: Sections;
  readonly server: RunningServer;
  readonly fleet: Fleet;
}
/** The caller stops the server and the fleet, and removes the folder. */
export async function startSite(machines: number): Promise<Site> {
  const folder = mkdtempSync(join(tmpdir(), 'bloomery-page-'));
  mkdirSync(join(folder, 'images'), { recursive: true });
  for (const name of ['kernel', 'ramdisk', 'image.img']) writeFileSync(join(folder, 'images', name), randomBytes(64 << 10));
  const port = await freePort();
  const sections = {
    DEFAULT: {
      my_ip: '127.0.0.1',
      enabled_hardware_types: 'ipmi,redfish,fake-hardware',
      enabled_boot_interfaces: 'ipxe,fake',
      enabled_deploy_interfaces: 'direct,fake',
      enabled_inspect_interfaces: 'agent,no-inspect',
      enabled_network_interfaces: 'noop',
      enabled_bios_interfaces: 'redfish,no-bios',
      enabled_firmware_interfaces: 'redfish,no-firmware',
    },
    api: { host_ip: '127.0.0.1', port, demo_machines: join(folder, 'machines.json') },
    conductor: {
      deploy_kernel: `file://${folder}/images/kernel`,
      deploy_ramdisk: `file://${folder}/images/ramdisk`,
      file_url_allowed_paths: `${folder}/images`,
    },
    boot: { http_host: '127.0.0.1', http_port: await freePort(), tftp: 'false' },
  };
  const server = await startServerProcess(folder, sections);
  const bootUrl = /boot (\S+?),/.exec(server.ready)![1]!;
  const random = randomBytes;
  const fleet = await startFleet({ count: machines, bootUrl, host: '127.0.0.1', log: silentLog, clock: systemClock, random });
  return { folder, url: `http://127.0.0.1:${port}`, sections, server, fleet };
}

export const fill = async (page: Page, values: Readonly<Record<string, string>>): Promise<void> => {
  for (const [name, value] of Object.entries(values)) await page.type(`[name="${name}"]`, value);
};
/** Runs an action of the node's view: fills its dialogue, and waits for the result. @param isOpen whether its dialogue is open already */
export async function act(page: Page, title: string, values: Readonly<Record<string, string>> = {}, isOpen = false): Promise<void> {
  if (!isOpen) await clickText(page, title);
  await page.waitForSelector('dialog[open]');
  await fill(page, values);
  await clickText(page, title);
  await waitForText(page, 'dialog[open] [role=status]', '1 accepted, 0 refused, 0 to go');
  await clickText(page, 'Close');
}
