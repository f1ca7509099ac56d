/**
 * The ramdisk by itself, on a machine with every kind of disk that QEMU has: what it reports of them, how it erases and writes them, how much
 * memory and time it needs.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, openSync, readFileSync, readSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { Inventory, JsonObject } from '../../../model/records';
import { openDevice } from '../../../ramdisk-agent/disk/device';
import { withEntry, writeGpt } from '../../../ramdisk-agent/disk/gpt';
import { fatImage } from '../../../wire/images/fat';
import { freePort } from '../../support/free-port';
import { BMC_MAC, startIpmiSim, type IpmiSim } from '../../../demo/lab/ipmi-sim';
import { buildRamdisk } from '../support/ramdisk';
import { root } from '../support/venv';
import { diskFile, DISKS, type DiskMachine, GiB, MAC, PATIENCE, startDiskMachine, startImageApi } from '../disks/disk-machine';

const MiB = 2 ** 20;
const BMC_ADDRESS = '127.0.0.9';
const NO_BOOT = { device: 'none', persistent: false, mode: null } as const;
const GUID = '99999999-8888-4777-a666-555555555555';
let folder: string;
let bmc: IpmiSim;
let machine: DiskMachine;
let startedAt: number;
/** Bytes of a sector → the image. */
let images: Readonly<Record<string, Buffer>>;

/** A whole-disk image for sectors of that size: a GPT with one partition from 1 to 4 MiB. */
async function imageFor(sectorSize: number): Promise<Buffer> {
  const [path, size] = [join(folder, `image-${sectorSize}`), 8 * MiB];
  writeFileSync(path, Buffer.alloc(size));
  const device = await openDevice({ path, size, sectorSize, mode: 'write' });
  const mbr = Buffer.alloc(512);
  mbr[450] = 0xee;
  mbr.writeUInt32LE(1, 454);
  mbr.writeUInt32LE(size / sectorSize - 1, 458);
  mbr.writeUInt16LE(0xaa55, 510);
  await device.write(mbr, 0);
  const empty = { diskGuid: GUID, firstUsable: 2 + 16384 / sectorSize, arrayLba: 2, entrySize: 128, array: Buffer.alloc(128 * 128) };
  const linux = {
    type: '0fc63daf-8483-4772-8e79-3d69d8477de4',
    guid: GUID,
    first: MiB / sectorSize,
    last: (4 * MiB) / sectorSize - 1,
    name: 'root',
  };
  await writeGpt(device, withEntry(empty, linux).gpt);
  await device.write(Buffer.from('the system'), MiB);
  await device.close();
  return readFileSync(path);
}
function configDrive(): Buffer {
  const content = join(folder, 'drive');
  mkdirSync(join(content, 'openstack/latest'), { recursive: true });
  writeFileSync(join(content, 'openstack/latest/meta_data.json'), '{"uuid":"of the instance"}');
  execFileSync('genisoimage', ['-quiet', '-R', '-V', 'config-2', '-o', `${content}.iso`, content]);
  return readFileSync(`${content}.iso`);
}

beforeAll(async () => {
  await buildRamdisk();
  folder = mkdtempSync(join(tmpdir(), 'ramdisk-'));
  images = { 512: await imageFor(512), 4096: await imageFor(4096) };
  const api = await startImageApi(images);
  const machinePort = await freePort();
  const control = { name: 'ramdisk', macs: [MAC], isOn: () => true, act: async () => {}, boot: () => NO_BOOT, setBoot: () => {} };
  bmc = await startIpmiSim(control, { address: BMC_ADDRESS, port: 16230, folder, machinePort });
  startedAt = Date.now();
  machine = await startDiskMachine(api, {
    folder,
    initrd: join(root, '.cache/ramdisk/initrd'),
    memoryMiB: 512,
    words: ['boot_method=vmedia'],
    more: [
      '-chardev',
      `socket,id=bmc,host=127.0.0.1,port=${machinePort},reconnect=1`,
      '-device',
      'ipmi-bmc-extern,id=b0,chardev=bmc',
      '-device',
      'isa-ipmi-kcs,bmc=b0',
    ],
    prepare: (name, file) => {
      if (name === 'stick')
        writeSync(file, fatImage({ label: 'ir-vfd-dev', files: { 'parameters.txt': Buffer.from('secret') }, now: 0 }), 0);
      else for (const place of [0, GiB]) writeSync(file, 'secret', place);
      if (name === 'vmfs') writeSync(file, Buffer.from('0dd001c0', 'hex'), 0, 4, MiB);
    },
  });
}, 1_000_000);

afterAll(async () => {
  await machine.stop();
  await bmc.stop();
  rmSync(folder, { recursive: true, force: true });
});
const { command, waitFor, bodyOf } = {
  command: (name: string, params: JsonObject) => machine.command(name, params),
  waitFor: (path: string) => machine.waitFor(path),
  bodyOf: (path: string) => machine.bodyOf(path),
};
const clean = (step: string, node: JsonObject): Promise<JsonObject> =>
  command('clean.execute_clean_step', { step: { step, interface: 'deploy' }, node, ports: [] });

/** Serial number → what the agent reports of the disk. */
function reportOf(answer: JsonObject): ReadonlyMap<unknown, JsonObject> {
  expect(answer).toMatchObject({ command_status: 'SUCCEEDED' });
  const { clean_result: result } = answer['command_result'] as { readonly clean_result: { readonly erased_disks: readonly JsonObject[] } };
  return new Map(result.erased_disks.map((disk) => [disk['serial'], disk]));
}
/** Of what the sparse file has: holes need no reading. */
const sumOf = (name: string): string =>
  execFileSync('sh', ['-c', 'tar -cf - --sparse --mtime=@0 "$1" 2> /dev/null | sha256sum', 'sh', diskFile(folder, name)], {
    encoding: 'utf8',
  }).slice(0, 64);

/** The six bytes of a disk from that offset, where beforeAll wrote `secret`. */
const textAt = (name: string, place: number): string => {
  const bytes = Buffer.alloc(6);
  readSync(openSync(diskFile(folder, name), 'r'), bytes, 0, 6, place);
  return bytes.toString('latin1');
};

it(
  'the ramdisk reports the hardware of the machine',
  async () => {
    await waitFor('/v1/continue_inspection');
    const { inventory, root_disk: rootDisk } = bodyOf('/v1/continue_inspection') as unknown as {
      inventory: Inventory;
      root_disk: JsonObject;
    };
    expect(inventory.memory?.physical_mb).toBe(512);
    expect(inventory.interfaces).toMatchObject([{ mac_address: MAC, ipv4_address: '10.0.2.15', driver: 'virtio_net', has_carrier: true }]);
    const bySerial = new Map(inventory.disks!.map((disk) => [disk.serial, disk]));
    const single = ['MEGA1', 'MPT1', 'NVME1', 'SATA1', 'SCSI1', 'USB1', 'V4K1', 'VIRTIO1', 'VMFS1'];
    expect(inventory.disks).toHaveLength(single.length + 1);
    expect([...bySerial.keys()]).toEqual(expect.arrayContaining(single));
    expect(bySerial.get('NVME1')).toMatchObject({ name: '/dev/nvme0n1', tran: 'nvme', rotational: false, size: 5 * GiB });
    const ata = { tran: 'sata', wwn: '0x5000c500a1b2c3d4', vendor: 'ATA', model: 'Disk With More Than 16 Letters' };
    expect(bySerial.get('SATA1')).toMatchObject({ ...ata, by_path: expect.stringMatching(/-ata-\d+\.0$/) as string });
    expect(bySerial.get('SCSI1')).toMatchObject({ tran: null, wwn: '0x5000c500a1b2c3d5', vendor: 'ACME', model: 'Disk' });
    expect(bySerial.get('USB1')).toMatchObject({ tran: 'usb' });
    expect(bySerial.get('MPT1')).toMatchObject({ tran: 'sas', by_path: expect.stringMatching(/-sas-phy\d+-lun-0$/) as string });
    expect(bySerial.get('V4K1')).toMatchObject({ logical_sectors: 4096, physical_sectors: 4096 });
    expect(bySerial.get('VIRTIO1')).toMatchObject({ name: '/dev/vda', tran: 'virtio', size: 4 * GiB });
    expect(inventory.disks!.find(({ name }) => name === '/dev/dm-0')).toMatchObject({ size: 5 * GiB, tran: null });
    expect(rootDisk).toMatchObject({ name: '/dev/vda' });
    expect(inventory).toMatchObject({ bmc_address: BMC_ADDRESS, bmc_mac: BMC_MAC });
    process.stderr.write(`ramdisk: ${((machine.firstCall()! - startedAt) / 1000).toFixed(1)} s from QEMU's start to the first call\n`);
  },
  (PATIENCE + 10) * 1000,
);

it(
  'the ramdisk erases each disk by a command that the disk supports, except disks in skip_block_devices',
  async () => {
    await waitFor('/v1/heartbeat/u');
    const places = (name: string): readonly string[] => [textAt(name, 0), textAt(name, GiB)];
    const usb = { serial: 'USB1' };
    // One disk of shared storage: nothing is erased.
    const refused = await clean('erase_devices_metadata', { properties: { skip_block_devices: [usb] }, driver_internal_info: {} });
    expect(refused).toMatchObject({ command_status: 'FAILED', command_error: { type: 'ProtectedDeviceError' } });
    execFileSync('sync');
    for (const name of Object.keys(DISKS)) expect([name, places(name)[1]]).toEqual([name, name === 'stick' ? '\0'.repeat(6) : 'secret']);

    const skipped = [usb, { serial: 'VMFS1' }];
    const node = { properties: { skip_block_devices: skipped }, driver_internal_info: {} };
    expect(await clean('erase_devices_metadata', node)).toMatchObject({ command_status: 'SUCCEEDED' });
    execFileSync('sync');
    for (const name of Object.keys(DISKS).filter((key) => key !== 'stick'))
      expect([name, ...places(name)]).toEqual([name, ['usb', 'vmfs'].includes(name) ? 'secret' : '\0'.repeat(6), 'secret']);
    expect(readFileSync(diskFile(folder, 'stick')).includes('secret')).toBe(true);

    // The others have no erase command of their own, and overwriting takes long.
    const slow = ['SATA1', 'MEGA1', 'MPT1', 'V4K1'].map((serial) => ({ serial }));
    const all = { properties: { skip_block_devices: [...skipped, ...slow, { name: '/dev/dm-0' }] }, driver_internal_info: {} };
    const erased = reportOf(await clean('erase_devices', all));
    expect(erased.get('NVME1')).toMatchObject({ method: expect.stringMatching(/^nvme-format/) as string, sample: { same: 0 } });
    expect(erased.get('VIRTIO1')).toMatchObject({ method: 'write-zeroes', size: 4 * GiB, sample: { places: 64, zero: 64, same: 0 } });
    expect(erased.get('USB1')).toMatchObject({ method: null, skipped: 'skip_block_devices' });
    expect(erased.get('STICK1')).toMatchObject({ method: null, skipped: 'medium' });
    for (const name of ['vda', 'nvme', 'scsi']) expect([name, textAt(name, GiB)]).toEqual([name, '\0'.repeat(6)]);
    for (const name of ['usb', 'sata', 'vmfs', 'multipath']) expect([name, textAt(name, GiB)]).toEqual([name, 'secret']);
    const said = machine.console();
    expect(said).toContain('Erasing /dev/nvme0n1 by NVMe format');
    expect(said).toContain('Erasing /dev/vda by write zeroes');
    expect(said).toMatch(/Skipping erase of \/dev\/sd\w\. The ramdisk was booted from it/);
  },
  2 * PATIENCE * 1000,
);

it(
  'the ramdisk leaves a disk that is to be kept as it is, and erases nothing if it does not find that disk',
  async () => {
    const shared = { skip_block_devices: [{ serial: 'VMFS1' }] };
    const keeping = (keep: readonly JsonObject[]): JsonObject => ({ properties: shared, driver_internal_info: { erase_choice: { keep } } });
    const before = sumOf('sata');
    const missing = await clean('erase_devices_express', keeping([{ serial: 'SATA1' }, { serial: 'GONE1' }]));
    expect(missing).toMatchObject({ command_status: 'FAILED', command_error: { type: 'BlockDeviceEraseError' } });
    execFileSync('sync');
    expect(textAt('usb', 0)).toBe('secret');
    const erased = reportOf(await clean('erase_devices_express', keeping([{ serial: 'SATA1' }])));
    expect(erased.get('SATA1')).toMatchObject({ method: null, skipped: 'kept' });
    expect(erased.get('NVME1')).toMatchObject({ method: expect.stringMatching(/^nvme-format/) as string });
    expect(erased.get('USB1')).toMatchObject({ method: 'metadata' });
    execFileSync('sync');
    expect([textAt('usb', 0), textAt('usb', GiB)]).toEqual(['\0'.repeat(6), 'secret']);
    expect(sumOf('sata')).toBe(before);
  },
  2 * PATIENCE * 1000,
);

it(
  'the ramdisk writes an image and its config drive on disks with sectors of 4096 bytes, and on a multipath device',
  async () => {
    const drive = gzipSync(configDrive()).toString('base64');
    const write = (hints: JsonObject, sectorSize: number): Promise<JsonObject> => {
      const sum = createHash('sha256').update(images[sectorSize]!).digest('hex');
      const urls = [`${machine.url}/images/${sectorSize}`];
      const info = { id: 'i', urls, disk_format: 'raw', os_hash_algo: 'sha256', os_hash_value: sum };
      return command('deploy.execute_deploy_step', {
        step: { step: 'write_image', interface: 'deploy', args: { image_info: info, configdrive: drive } },
        node: { properties: { root_device: hints } },
        ports: [],
      });
    };
    expect(await write({ serial: 'V4K1' }, 4096)).toMatchObject({ command_status: 'SUCCEEDED' });
    expect(await write({ name: '/dev/dm-0' }, 512)).toMatchObject({ command_error: null, command_status: 'SUCCEEDED' });
    expect(await write({ serial: 'VMFS1' }, 512)).toMatchObject({ command_error: { type: 'ProtectedDeviceError' } });
    execFileSync('sync');
    expect(textAt('multipath', MiB)).toBe('the sy');
  },
  PATIENCE * 1000,
);

it('the agent uses less than 120 MiB, and leaves more than 150 of 512 MiB available', async () => {
  const { command_result: result } = await command('log.collect_system_logs', {});
  const archive = Buffer.from((result as JsonObject)['system_logs'] as string, 'base64');
  const read = (name: string): string => execFileSync('tar', ['-xzOf', '-', name], { input: archive, encoding: 'utf8' });
  const resident = Math.max(...[...read('resident').matchAll(/VmRSS:\s+(\d+) kB/g)].map((match) => Number(match[1]))) / 1024;
  const available = Number(/MemAvailable:\s+(\d+) kB/.exec(read('meminfo'))![1]) / 1024;
  process.stderr.write(`ramdisk: agent ${resident.toFixed(0)} MiB resident, ${available.toFixed(0)} of 512 MiB available\n`);
  expect(resident).toBeLessThan(120);
  expect(available).toBeGreaterThan(150);
});

it(
  'the machine powers off at the command standby.power_off',
  async () => {
    const ended = once(machine.process, 'exit');
    // The machine may be off before the agent has answered.
    await command('standby.power_off', {}).catch(() => undefined);
    expect(await ended).toEqual([0, null]);
  },
  PATIENCE * 1000,
);

const LOOK = `#!/bin/sh
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /mnt
modprobe -a virtio_pci virtio_blk vfat nls_cp437 nls_ascii nls_utf8 isofs
sleep 2
for part in vda1 vda2; do echo "LOOK $part $(cat /sys/block/vda/$part/start) $(cat /sys/block/vda/$part/size)"; done
mount -o ro /dev/vda2 /mnt && echo "LOOK $(cat /mnt/openstack/latest/meta_data.json)" && umount /mnt
mount -t iso9660 -o ro /dev/vdb /mnt && echo "LOOK an ISO can be mounted" || echo "LOOK no ISO can be mounted"
poweroff -f
`;
it(
  'the kernel finds the partitions and mounts the config drive of a disk with sectors of 4096 bytes, but no ISO 9660 volume',
  async () => {
    // A second archive with another first process. The kernel looks for it at a multiple of four.
    const first = readFileSync(join(root, '.cache/ramdisk/initrd'));
    const overlay = join(folder, 'look');
    mkdirSync(overlay);
    writeFileSync(join(overlay, 'init'), LOOK, { mode: 0o755 });
    const cpio = execFileSync('cpio', ['--quiet', '-o', '-H', 'newc', '-R', '0:0'], { cwd: overlay, input: 'init\n' });
    const initrd = join(folder, 'look-initrd');
    writeFileSync(initrd, Buffer.concat([first, Buffer.alloc(-first.length & 3), cpio]));
    writeFileSync(diskFile(folder, 'iso'), Buffer.concat([configDrive(), Buffer.alloc(MiB)]));
    const sectors = 'logical_block_size=4096,physical_block_size=4096';
    const looking = await startDiskMachine(null, {
      folder,
      initrd,
      memoryMiB: 512,
      words: [],
      more: [],
      prepare: () => {},
      disks: {
        v4k: [`virtio-blk-pci,drive=v4k,${sectors}`],
        iso: [`virtio-blk-pci,drive=iso,${sectors}`],
      },
    });
    await once(looking.process, 'exit');
    const lines = looking
      .console()
      .split(/\r?\n/)
      .filter((line) => line.startsWith('LOOK'))
      .map((line) => line.slice(5));
    expect(lines[0]).toBe('vda1 2048 6144');
    expect(lines[1]).toMatch(/^vda2 \d+ 131072$/);
    expect(lines.slice(2)).toEqual(['{"uuid":"of the instance"}', 'no ISO can be mounted']);
  },
  PATIENCE * 1000,
);
