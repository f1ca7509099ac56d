/** sushy, OpenStack's client, uses each resource of the simulator's Redfish service. */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { needs } from '../support/needs';
import { simulatedBmc, type SimulatedBmc } from './simulated-bmc';
import { programs } from '../support/venv';

const run = promisify(execFile);
jest.setTimeout(600_000);

let bmc: SimulatedBmc;
let files: Server;
let folder: string;
beforeAll(async () => {
  needs({ python3: 'python3-venv' });
  folder = mkdtempSync(join(tmpdir(), 'redfish-sushy-'));
  files = createServer((request, response) => response.end(request.url === '/bmc' ? 'firmware bmc 3.1\n' : 'an image'));
  files.listen(0, '127.0.0.1');
  await once(files, 'listening');
  bmc = await simulatedBmc();
});
afterAll(async () => {
  await bmc?.close();
  files?.closeAllConnections();
  await new Promise((closed) => files?.close(closed));
  rmSync(folder, { recursive: true });
});

it("sushy uses every resource of the simulator's Redfish service", async () => {
  const bin = await programs('sushy-client', ['sushy==5.14.0']);
  const certificate = join(folder, 'cert.pem');
  writeFileSync(certificate, bmc.certificate);
  const url = `http://127.0.0.1:${(files.address() as AddressInfo).port}`;
  const words = [bmc.url, certificate, '/redfish/v1/Systems/sim-0', `${url}/boot.iso`, `${url}/bmc`];
  const { stdout } = await run(join(bin, 'python'), [join(__dirname, 'sushy-drives.py'), ...words], { timeout: 120_000 });
  expect(JSON.parse(stdout)).toEqual({
    boot: ['Pxe', 'Continuous'],
    power: ['On', 'Off'],
    'bios attributes': 14,
    bios: ['Enabled', 'Disabled', 'Disabled'],
    'secure boot': [true, 'SetupMode'],
    drives: ['Drive sda', 'Drive sdb'],
    volume: ['data', 'RAID0', 2 ** 30],
    'volumes left': 0,
    led: 'Blinking',
    media: [
      [true, 'boot.iso'],
      [true, 'boot.iso'],
    ],
    update: 'Completed',
    bmc: '3.1',
    inventory: 3,
    thermal: [
      ['Inlet Temp', 24],
      ['CPU1 Temp', 48],
      ['Fan1', 6100],
      ['Fan2', 6000],
    ],
    supplies: [['PSU1', 182]],
    adapters: ['1.0'],
    macs: 2,
    processors: 8,
    'simple storage': 2,
    subscription: 'mine',
  });
});
