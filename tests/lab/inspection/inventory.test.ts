/**
 * A machine of known hardware is inspected: each field of its inventory is as the machine was configured, and later changes of the hardware
 * are seen.
 */
import { join } from 'node:path';
import type { Inventory, JsonObject } from '../../../model/records';
import { expectKnown } from './known-inventory';
import { KNOWN, startKnownMachine, type KnownMachine } from './known-machine';
import { openLab, type Lab } from '../../../demo/lab/machines';
import { buildRamdisk } from '../support/ramdisk';
import { root } from '../support/venv';

const PATIENCE = 900;
const COLLECTORS = 'default,logs,pci-devices,numa-topology,dmi-decode,usb-devices,lldp,extra-hardware';
let lab: Lab;
let machine: KnownMachine;

beforeAll(async () => {
  await buildRamdisk();
  lab = await openLab('lab-inventory');
  machine = await startKnownMachine(lab, 'ours', join(root, '.cache/ramdisk'), [
    `ipa-inspection-collectors=${COLLECTORS}`,
    'ipa-collect-lldp=1',
    'ipa-lldp-timeout=30',
  ]);
}, 1_000_000);
afterAll(async () => {
  await machine?.stop();
  await lab?.close();
});

it(
  'our agent reports the hardware with which the machine was configured',
  async () => {
    const data = await machine.inspection(PATIENCE);
    expect(data['error']).toBeNull();
    expectKnown(data);
    // `data` has the measurements of hardware-detect, which this ramdisk lacks.
    expect(data).not.toHaveProperty('data');
  },
  (PATIENCE + 10) * 1000,
);

it(
  'our agent reports a disk and memory that are plugged in later',
  async () => {
    const read = async (): Promise<Inventory> => (await machine.command('poll.get_hardware_info', PATIENCE))['command_result'] as Inventory;
    const before = await read();
    await machine.plug();
    const total = (inventory: Inventory): number => (inventory.memory as JsonObject)['total'] as number;
    let after = await read();
    for (let tries = 0; tries < 100 && (after.disks?.length === before.disks?.length || total(after) === total(before)); tries++)
      after = await read();
    expect(after.disks?.map(({ serial }) => serial)).toEqual([...before.disks!.map(({ serial }) => serial), 'PLUGGED1']);
    expect(after.disks?.find(({ serial }) => serial === 'PLUGGED1')).toMatchObject({ size: 2 ** 30, tran: 'virtio' });
    expect(total(after) - total(before)).toBe(512 * 2 ** 20);
    expect(after.interfaces.map((item) => item.mac_address)).toEqual([...KNOWN.macs]);
  },
  (2 * PATIENCE + 10) * 1000,
);
