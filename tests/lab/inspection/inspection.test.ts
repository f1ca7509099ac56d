/** Our ramdisk inspects a machine, and how long that takes beyond the boot. */
import { join } from 'node:path';
import { expectInspected, inspectMachine } from './inspect-machine';
import { openLab, type Lab } from '../../../demo/lab/machines';
import { buildRamdisk } from '../support/ramdisk';
import { bootingSections, startServerProcess, type RunningServer } from '../../../demo/lab/server';

const PATIENCE = 900;
let lab: Lab;
let server: RunningServer;

beforeAll(async () => {
  await buildRamdisk();
  lab = await openLab('lab-inspection');
  server = await startServerProcess(join(lab.folder, 'server'), bootingSections(lab), lab.namespace);
}, 1_000_000);
afterAll(async () => {
  await server?.stop();
  await lab?.close();
});

it(
  'our ramdisk inspects a machine, and the node becomes manageable again',
  async () => {
    const inspected = await inspectMachine(lab, { name: 'inspected', bmcPort: 6230, memoryMiB: 768, patience: PATIENCE, driverInfo: {} });
    expectInspected(inspected);
    const { boot, inspection } = inspected.took;
    // The second figure is at most 10 s if no other work uses the processor.
    process.stderr.write(`inspection: agent started ${boot.toFixed(1)} s after power on, manageable ${inspection.toFixed(1)} s later\n`);
  },
  (4 * PATIENCE + 10) * 1000,
);
