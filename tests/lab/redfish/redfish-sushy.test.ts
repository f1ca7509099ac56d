/** sushy, OpenStack's client, uses each resource of the simulator's Redfish service. */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { systemClock } from '../../../model/clock';
import { silentLog } from '../../../model/log';
import { startFleet } from '../../../simulator/fleet/fleet';
import type { PersonalityName } from '../../../simulator/redfish/makers/personalities';
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

/** Personality → what sushy sees. It repeats no request, so that personalities that refuse some at times are not here. */
const SEEN: { readonly [name in PersonalityName]?: readonly [manufacturer: string, managers: number] } = {
  'dell-idrac8': ['Dell Inc.', 1],
  'dell-idrac10': ['Dell Inc.', 1],
  'lenovo-xcc3': ['Lenovo', 1],
  'fujitsu-irmc-s6': ['FUJITSU', 1],
  'cisco-ucsx': ['Cisco Systems Inc', 1],
  'nvidia-gb200': ['NVIDIA', 1],
};
const NAMES = Object.keys(SEEN) as readonly PersonalityName[];
it('sushy manages machines of makers, with the Oem services of Dell', async () => {
  const bin = await programs('sushy-client', ['sushy==5.14.0']);
  const fleet = await startFleet({
    count: NAMES.length,
    maker: (index) => ({ personality: NAMES[index] }),
    host: '127.0.0.1',
    protocols: () => ['redfish'],
    taskMs: 100,
    log: silentLog,
    clock: systemClock,
    random: randomBytes,
  });
  try {
    for (const [index, name] of NAMES.entries()) {
      const [manufacturer, managers] = SEEN[name]!;
      const isDell = name.startsWith('dell');
      const words = [join(__dirname, 'sushy-makers.py'), fleet.machines[index]!.redfish.address, isDell ? 'dell' : '-'];
      const { stdout } = await run(join(bin, 'python'), words, { timeout: 120_000 });
      const dell = {
        ready: true,
        jobs: [['Scheduled', 'BIOSConfiguration']],
        'jobs left': [],
        exported: ['iDRAC.Embedded.1', 'BIOS.Setup.1-1'],
      };
      expect(JSON.parse(stdout)).toEqual({ manufacturer, managers, nics: 2, boot: [isDell ? 'Cd' : 'Pxe', 'Once'], ...(isDell && dell) });
    }
  } finally {
    await fleet.close();
  }
});
