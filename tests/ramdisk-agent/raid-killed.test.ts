/**
 * An agent that is killed after any of its changes: a second one does the work again, or says why not. It never takes half for the whole.
 * tests/lab/disks/software-raid-flow.test.ts kills a real one.
 */
import { readdirSync } from 'node:fs';
import { reasonOf } from '../../model/errors';
import type { JsonObject } from '../../model/records';
import type { RaidHost } from '../../ramdisk-agent/raid/arrays';
import { createGpt, withEntry, writeGpt } from '../../ramdisk-agent/disk/gpt';
import { createPartitions, LINUX } from '../../ramdisk-agent/disk/partitions';
import { applyConfiguration, createConfiguration, deleteConfiguration } from '../../ramdisk-agent/raid/configuration';
import { installGrub, leadToConfiguration } from '../../ramdisk-agent/raid/bios';
import { installEspArray } from '../../ramdisk-agent/raid/esp';
import { afterEachKill, fakeMachine, type FakeMachine, killedAfter, stateOf } from './fake-md';
import { fakeMirror } from './fake-mirror';

const GiB = 1024;
const disk = (more: JsonObject): JsonObject => ({ controller: 'software', raid_level: '1', size_gb: 'MAX', ...more });
const CONFIG = { logical_disks: [disk({ size_gb: 1, volume_name: 'root' }), disk({ raid_level: '0', volume_name: 'data' })] };
const LAYOUTS: readonly [string, JsonObject][] = [
  ['UEFI', { boot_mode: 'uefi' }],
  ['BIOS with an MBR', { boot_mode: 'bios' }],
];
const nodeOf = (capabilities: JsonObject): JsonObject => ({ uuid: 'u', properties: { capabilities } });
const UNIQUE = '7a5ed1b4-8b6c-4b9a-9e0e-0d1c6d1c9f01';
const prepare = async (): Promise<FakeMachine> => fakeMachine({ sda: 2 * GiB, sdb: 2 * GiB });
const refused = 'Partitions detected on devices /dev/sda, /dev/sdb during RAID config';

describe.each(LAYOUTS)('%s', (_, capabilities) => {
  const node = nodeOf(capabilities);
  const create = (host: RaidHost): Promise<unknown> => createConfiguration(host, node, CONFIG);
  const created = async (): Promise<FakeMachine> => {
    const machine = await prepare();
    await create(machine.host);
    return machine;
  };

  it('the configuration is deleted and created again after each place of a kill', async () => {
    const apply = (host: RaidHost): Promise<unknown> => applyConfiguration(host, node, { raid_config: CONFIG });
    const { undisturbed, states } = await afterEachKill({ prepare, work: create, again: apply, state: stateOf });
    expect(states.length).toBeGreaterThan(20);
    expect(undisturbed).toMatchObject({
      arrays: [
        ['md0', { name: 'root' }],
        ['md1', { name: 'data' }],
      ],
    });
    for (const [changes, state] of states.entries()) expect([changes, state]).toEqual([changes, undisturbed]);
  });

  it('without deleting, it is created again until an array exists, and refused afterwards', async () => {
    const answers = new Set<unknown>();
    const again = async (host: RaidHost, machine: FakeMachine): Promise<void> => {
      const had = machine.arrays().size;
      const answer = await create(host).then(
        () => 'created',
        (error: unknown) => reasonOf(error),
      );
      answers.add(answer);
      expect([had, answer]).toEqual([had, had === 0 ? 'created' : (expect.stringContaining(refused) as string)]);
    };
    const { undisturbed, states } = await afterEachKill({ prepare, work: create, again, state: stateOf });
    expect(answers.size).toBe(2);
    // Those that were refused are not like one that was created.
    expect(states.filter((state) => JSON.stringify(state) === JSON.stringify(undisturbed)).length).toBeGreaterThan(10);
  });

  it('the configuration is deleted again after each place of a kill', async () => {
    const remove = (host: RaidHost): Promise<unknown> => deleteConfiguration(host, node);
    const { undisturbed, states } = await afterEachKill({ prepare: created, work: remove, state: stateOf });
    expect(states.length).toBeGreaterThan(10);
    expect(undisturbed).toMatchObject({ disks: [{ table: null }, { table: null }], arrays: [] });
    for (const [changes, state] of states.entries()) expect([changes, state]).toEqual([changes, undisturbed]);
  });
});

it('a table of the same layout with content in a partition is not taken for an unfinished one', async () => {
  const node = nodeOf({ boot_mode: 'uefi' });
  const machine = await prepare();
  for (let changes = 0; machine.ran.every((line) => !line.startsWith('udevadm')); changes++) {
    const agent = killedAfter(machine.host, changes);
    await Promise.race([agent.killed, createConfiguration(agent.host, node, CONFIG)]);
    await agent.closeAll();
  }
  const device = await machine.open('sdb');
  await device.write(Buffer.from('content'), 551 * 2 ** 20 + 1024);
  await device.close();
  await deleteConfiguration(machine.host, node);
  await expect(createConfiguration(machine.host, node, CONFIG)).rejects.toThrow(
    'Partitions detected on devices /dev/sdb during RAID config',
  );
});

it.each(['gpt', 'dos'] as const)('partitions for file systems that are still empty are none of ours: %s', async (label) => {
  const machine = await prepare();
  const device = await machine.open('sdb');
  const at = { first: 2048, last: 2 ** 20 };
  if (label === 'gpt') {
    const { gpt } = withEntry(await createGpt(device, UNIQUE), { type: LINUX.gpt, guid: UNIQUE, ...at, name: 'primary' });
    await writeGpt(device, gpt);
  } else {
    await createPartitions(device, 'msdos', [{ start: 2 ** 20, size: 2 ** 29 }], machine.host);
    await device.write(Buffer.from([LINUX.dos]), 446 + 4);
  }
  await device.close();
  await deleteConfiguration(machine.host, nodeOf({}));
  await expect(createConfiguration(machine.host, nodeOf({}), CONFIG)).rejects.toThrow(
    'Partitions detected on devices /dev/sdb during RAID config',
  );
});

describe('boot loaders', () => {
  type Mirror = Awaited<ReturnType<typeof fakeMirror>>;
  const loaders: readonly [string, JsonObject, Readonly<Record<string, string>>, (host: RaidHost, made: Mirror) => Promise<unknown>][] = [
    [
      'GRUB, MBR',
      { boot_mode: 'bios' },
      { 'grub/grub.cfg': 'menuentry x {}' },
      (host, { array, root }) => installGrub(host, array, root, leadToConfiguration(host, root, null)),
    ],
    [
      'GRUB, GPT',
      { boot_mode: 'bios', disk_label: 'gpt' },
      { 'grub/grub.cfg': 'menuentry x {}' },
      (host, { array, root }) => installGrub(host, array, root, leadToConfiguration(host, root, null)),
    ],
    ['UEFI', { boot_mode: 'uefi' }, { 'EFI/BOOT/BOOTX64.EFI': 'loader' }, (host, { array, root }) => installEspArray(host, array, root)],
  ];
  it.each(loaders)('are installed again after each place of a kill: %s', async (_, boot, files, work) => {
    const { undisturbed, states } = await afterEachKill({
      prepare: () => fakeMirror(boot, files),
      work,
      state: async ({ machine, volume }) => ({
        ...(await stateOf(machine)),
        files: ['/dev/md0p1', '/dev/md1'].map((name) => readdirSync(volume(name), { recursive: true })),
      }),
    });
    expect(states.length).toBeGreaterThan(5);
    for (const [changes, state] of states.entries()) expect([changes, state]).toEqual([changes, undisturbed]);
  });
});
