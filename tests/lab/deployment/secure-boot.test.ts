/**
 * The life of a node whose instance requests Secure Boot, on a machine of our simulator whose firmware enforces it: a deployment switches it
 * on, a rebuild boots the agent under it, and the undeployment switches it off. The ISO images and the instance have Debian's signed boot
 * loaders and kernel.
 */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { JsonObject } from '../../../model/records';
import { consoleEnd, openLab, until, type Lab } from '../../../demo/lab/machines';
import { bootingSections, startServerProcess, type RunningServer } from '../../../demo/lab/server';
import { call } from '../inspection/inspect-machine';
import { needs } from '../support/needs';
import { buildRamdisk } from '../support/ramdisk';
import { root } from '../support/venv';

const run = promisify(execFile);
const REPORT_PORT = 8099;
/** Seconds; each wait takes at most 90 alone. */
const PATIENCE = 900;
const NODE = 'secure';
const BOOTLOADERS = {
  bootloader: 'file:///usr/lib/shim/shimx64.efi.signed',
  bootloader_files: 'grubx64.efi:/usr/lib/grub/x86_64-efi-signed/gcdx64.efi.signed',
};
jest.setTimeout(4 * PATIENCE * 1000);
let lab: Lab;
let server: RunningServer | undefined;
let machine: { readonly redfish: Readonly<Record<'address' | 'systemId' | 'username' | 'password', string>>; readonly mac: string };
const reportFile = (): string => join(lab.folder, 'report');
const consoleFile = (): string => join(lab.folder, 'fleet/sim-0/console.log');

async function simulate(): Promise<typeof machine> {
  const qemu = ['--qemu', '1', '--qemu-bridge', lab.bridge, '--qemu-firmware', 'uefi', '--qemu-memory', '1024', '--qemu-disk', '5'];
  const places = [
    '--bmcs',
    'redfish',
    '--redfish',
    `${lab.address}:8001`,
    '--control',
    'no',
    '--state',
    join(lab.folder, 'fleet'),
    '--json',
  ];
  const fleet = lab.start(process.execPath, join(root, 'bin/bloomery'), 'simulate', ...qemu, ...places);
  let said = '';
  fleet.stdout!.on('data', (data: Buffer) => (said += data.toString()));
  await until(
    PATIENCE,
    () => `bloomery simulate to be ready: ${said}`,
    () => said.includes('\n'),
  );
  const { macs, redfish } = JSON.parse(said.split('\n', 1)[0]!) as { readonly macs: readonly string[] } & Pick<typeof machine, 'redfish'>;
  return { mac: macs[0]!, redfish };
}

beforeAll(async () => {
  needs({ 'qemu-system-x86_64': 'qemu-system-x86', 'qemu-img': 'qemu-utils', ip: 'iproute2', curl: 'curl', mcopy: 'mtools' });
  await buildRamdisk();
  lab = await openLab('bloomery-sb');
  const images = join(lab.folder, 'server/state/httpboot');
  mkdirSync(images, { recursive: true });
  const image = [join(root, 'demo/lab/image.sh'), join(images, 'lab.raw'), `http://${lab.address}:${REPORT_PORT}/`, 'signed'];
  await run('bash', image, { env: { ...process.env, SIGNED: '1' }, timeout: 300_000 });
  lab.start(process.execPath, join(root, 'demo/lab/report-server.mjs'), lab.address, String(REPORT_PORT), reportFile());
  const sections = bootingSections(lab);
  const conductor = { ...sections['conductor'], ...BOOTLOADERS, automated_clean: 'false' };
  server = await startServerProcess(join(lab.folder, 'server'), { ...sections, conductor }, lab.namespace);
  machine = await simulate();
}, 2_000_000);
afterAll(async () => {
  await server?.stop();
  await lab?.close();
});

let node: JsonObject = {};
const describeNode = (): string =>
  `${JSON.stringify(node)}\n--- console\n${consoleEnd({ consoleFile: consoleFile() })}\n--- server\n${server!.logEnd()}`;
/** @returns whether the kernel of the agent's ramdisk said meanwhile that it is locked down; the instance's kernel is quiet */
async function provision(target: string, state: string): Promise<boolean> {
  let isLocked = false;
  await call(lab, 'PUT', `/nodes/${NODE}/states/provision`, { target });
  await until(PATIENCE, describeNode, async () => {
    node = await call(lab, 'GET', `/nodes/${NODE}`);
    // Each start of the machine begins a new file.
    isLocked ||= existsSync(consoleFile()) && readFileSync(consoleFile(), 'latin1').includes('Kernel is locked down from EFI Secure Boot');
    if (/failed$|^error$|^enroll$/.test(String(node['provision_state'])) && node['last_error'] !== null) throw new Error(describeNode());
    return node['provision_state'] === state && node['target_provision_state'] === null && node['reservation'] === null;
  });
  return isLocked;
}
/** What the deployed system reports: key → value. */
async function report(): Promise<Readonly<Record<string, string>>> {
  await until(
    PATIENCE,
    () => `a report\n${describeNode()}`,
    () => existsSync(reportFile()),
  );
  const lines = readFileSync(reportFile(), 'utf8').split('\n');
  rmSync(reportFile());
  return Object.fromEntries(lines.map((line) => [line.split('=', 1)[0]!, line.slice(line.indexOf('=') + 1).trim()]));
}
/** The BMC's resource SecureBoot. */
async function secureBoot(): Promise<JsonObject> {
  const { address, systemId, username, password } = machine.redfish;
  const said = await lab.exec('curl', '-sS', '-u', `${username}:${password}`, `${address}${systemId}/SecureBoot`);
  return JSON.parse(said) as JsonObject;
}

it('a deployment switches Secure Boot on, a rebuild writes under it, and the undeployment switches it off', async () => {
  const { address, systemId, username, password } = machine.redfish;
  const { uuid } = await call(lab, 'POST', '/nodes', {
    name: NODE,
    driver: 'redfish',
    boot_interface: 'redfish-virtual-media',
    driver_info: { redfish_address: address, redfish_system_id: systemId, redfish_username: username, redfish_password: password },
    properties: { capabilities: 'boot_mode:uefi', cpu_arch: 'x86_64' },
  });
  await call(lab, 'POST', '/ports', { node_uuid: uuid, address: machine.mac });
  await provision('manage', 'manageable');
  await provision('provide', 'available');
  const checksum = readFileSync(join(lab.folder, 'server/state/httpboot/lab.raw.sha256'), 'utf8').trim();
  const image = { image_source: `http://${lab.address}:8080/lab.raw`, image_os_hash_algo: 'sha256', image_os_hash_value: checksum };
  await call(lab, 'PATCH', `/nodes/${NODE}`, [
    { op: 'add', path: '/instance_info', value: { ...image, image_disk_format: 'raw', capabilities: { secure_boot: 'true' } } },
  ]);
  expect(await secureBoot()).toMatchObject({ SecureBootEnable: false, SecureBootCurrentBoot: 'Disabled' });

  expect(await provision('active', 'active')).toBe(false);
  expect(node).toMatchObject({ secure_boot: true, last_error: null });
  expect(await report()).toMatchObject({ image: 'signed', firmware: 'uefi', lockdown: expect.stringContaining('[integrity]') as string });
  expect(await secureBoot()).toMatchObject({ SecureBootEnable: true, SecureBootCurrentBoot: 'Enabled' });

  // The agent's ramdisk boots under Secure Boot now.
  expect(await provision('rebuild', 'active')).toBe(true);
  expect(await report()).toMatchObject({ image: 'signed', lockdown: expect.stringContaining('[integrity]') as string });

  await provision('deleted', 'available');
  expect(node).toMatchObject({ secure_boot: false, last_error: null });
  expect(await secureBoot()).toMatchObject({ SecureBootEnable: false });
});
