/** Two hundred machines that are powered on at once boot from one server: none gives up within the timeouts of PXE firmware and iPXE. Root. */
import { execFile } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { buildSync } from 'esbuild';
import type { ServedBoot } from '../../../model/records';
import { openLab, type Lab } from '../../../demo/lab/machines';
import { addNamespace, removeNamespace } from '../../../demo/lab/namespace';
import { needs } from '../support/needs';
import { root } from '../support/venv';
import { startBootServer } from './booted';
import type { ManyClients, ManyResult } from './many-clients';

const run = promisify(execFile);
const MACHINES = 200;
const FIRST = 20;
const KERNEL = 1_000_000;
const RAMDISK = 4_000_000;
let lab: Lab;
let clients: string;

beforeAll(async () => {
  needs({ ip: 'iproute2' });
  lab = await openLab('bloomery-many');
  clients = await addNamespace('bloomery-many-c');
  for (const command of [
    `-n ${lab.namespace} link add near0 type veth peer name eth0 netns ${clients}`,
    `-n ${lab.namespace} link set near0 master ${lab.bridge} up`,
    `-n ${clients} link set eth0 up`,
    `-n ${clients} link set lo up`,
  ])
    await run('ip', command.split(' '));
  // Each machine uses the address that it gets.
  const addresses = Array.from({ length: MACHINES }, (_, index) => `addr add 10.77.0.${FIRST + index}/24 dev eth0`);
  await run('bash', ['-c', 'ip -n "$0" -batch <(printf "%s\\n" "$@")', clients, ...addresses, 'route add default dev eth0']);
});
afterAll(async () => {
  await removeNamespace(clients);
  await lab.close();
});

it('200 machines boot at once, and none gives up', async () => {
  const [kernel, ramdisk] = [join(lab.folder, 'kernel'), join(lab.folder, 'ramdisk')];
  const content = randomBytes(RAMDISK);
  writeFileSync(kernel, randomBytes(KERNEL));
  writeFileSync(ramdisk, content);
  const macs = Array.from({ length: MACHINES }, (_, index) => `52:54:00:bb:00:${(index + 1).toString(16).padStart(2, '0')}`);
  const boots = macs.map((mac, index): ServedBoot => ({
    node_uuid: `00000000-0000-4000-a000-${String(index).padStart(12, '0')}`,
    token: index.toString(16).padStart(32, '0'),
    macs: [mac],
    method: 'ipxe',
    purpose: 'ramdisk',
    kernel_args: 'console=ttyS0',
    files: { kernel, ramdisk },
  }));
  const folder = join(lab.folder, 'served');
  mkdirSync(folder);
  const subnets = [`10.77.0.0/24 range=10.77.0.${FIRST}-10.77.0.${FIRST + MACHINES - 1}`];
  await startBootServer(lab, { address: lab.address, interface: lab.bridge, folder, boots, subnets }, () => {});
  const program = join(root, '.cache/lab/many-clients.js');
  buildSync({ entryPoints: [join(__dirname, 'many-clients.ts')], outfile: program, bundle: true, platform: 'node', logLevel: 'error' });
  const asked: ManyClients = { server: lab.address, macs };
  const words = ['netns', 'exec', clients, process.execPath, program, JSON.stringify(asked)];
  const { stdout } = await run('ip', words, { timeout: 300_000 });
  const result = JSON.parse(stdout) as ManyResult;
  // The figures are for the reader: they depend on the host.
  process.stderr.write(`200 machines: ${stdout}\n`);
  expect(result.gaveUp).toEqual([]);
  expect(result.booted).toBe(MACHINES);
  expect(result.ramdisks).toEqual([createHash('sha256').update(content).digest('hex')]);
  expect(result.bytes).toBeGreaterThan(MACHINES * (KERNEL + RAMDISK));
}, 400_000);
