/** What smartctl says of a disk, and disks that hang. */
import { createSmartReader, parseSmart } from '../../ramdisk-agent/inventory/smart';
import { tree } from '../../ramdisk-agent/system/tree';
import type { Run } from '../../ramdisk-agent/system/run';
import { fakeClock, fileTree } from './support';

const none = {
  passed: null,
  critical_warning: null,
  life_used: null,
  reallocated_sectors: null,
  pending_sectors: null,
  temperature: null,
  power_on_hours: null,
};
const attribute = (id: number, string: string) => ({ id, value: 100, raw: { value: 1, string } });
it.each<[string, unknown, object]>([
  [
    'an ATA disk',
    {
      smart_status: { passed: false },
      ata_smart_attributes: { table: [attribute(5, '12'), attribute(197, '8 (0 3)'), attribute(194, '36 (Min/Max 20/45)')] },
      temperature: { current: 36 },
      power_on_time: { hours: 20_123 },
    },
    { ...none, passed: false, reallocated_sectors: 12, pending_sectors: 8, temperature: 36, power_on_hours: 20_123 },
  ],
  [
    'an ATA SSD',
    {
      smart_status: { passed: true },
      ata_device_statistics: {
        pages: [
          { number: 1, table: [{ offset: 8, value: 3 }] },
          { number: 7, table: [{ offset: 8, value: 91 }] },
        ],
      },
    },
    { ...none, passed: true, life_used: 91 },
  ],
  [
    'an NVMe disk',
    {
      smart_status: { passed: false, nvme: { value: 4 } },
      nvme_smart_health_information_log: { critical_warning: 4, percentage_used: 7, temperature: 50 },
      temperature: { current: 50 },
      power_on_time: { hours: 5 },
    },
    { ...none, passed: false, critical_warning: 4, life_used: 7, temperature: 50, power_on_hours: 5 },
  ],
  [
    'a SAS disk',
    {
      smart_status: { passed: true },
      scsi_grown_defect_list: 3,
      scsi_percentage_used_endurance_indicator: 2,
      temperature: { current: 31 },
    },
    { ...none, passed: true, reallocated_sectors: 3, life_used: 2, temperature: 31 },
  ],
  [
    'a disk in standby',
    { smartctl: { exit_status: 2, messages: [{ string: 'Device is in STANDBY mode, exit(2)', severity: 'information' }] } },
    { unread: 'Device is in STANDBY mode, exit(2)' },
  ],
  ['a disk without SMART', { smartctl: { exit_status: 4 } }, { unread: 'the disk has no SMART' }],
  [
    'values of other types',
    { smart_status: 'ok', temperature: { current: 'hot' }, ata_smart_attributes: { table: 7 } },
    { unread: 'the disk has no SMART' },
  ],
])('reads what smartctl says of %s', (_, said, expected) => expect(parseSmart(JSON.stringify(said))).toEqual(expected));
it.each(['', 'no JSON', '[', 'x'.repeat(1_000_001)])('refuses other answers', (said) => {
  expect(parseSmart(said)).toEqual({ unread: expect.stringMatching(/^smartctl /) as string });
});

const FILES = { 'sys/block/dm-0/slaves/sdb/x': '', 'sys/block/dm-0/slaves/sdc/x': '' };
const disk = (name: string) => ({ name: `/dev/${name}`, serial: name.toUpperCase(), model: null });
const WELL = JSON.stringify({ smart_status: { passed: true } });
function host(run: Run) {
  return { tree: tree(fileTree(FILES)), run, dev: '/host/dev' };
}
it('asks the disks that can have SMART, each by its kind, and a disk with several paths by one of them', async () => {
  const asked: string[] = [];
  const run: Run = async (program, args) => {
    asked.push([program, ...args.slice(-3)].join(' '));
    return WELL;
  };
  const read = await createSmartReader(fakeClock()).read(host(run), ['sda', 'vda', 'dm-0', 'nvme0n1'].map(disk));
  expect(read).toEqual(['sda', 'dm-0', 'nvme0n1'].map((name) => ({ ...none, ...disk(name), passed: true })));
  expect(asked).toEqual([
    'smartctl --device sat,auto /host/dev/sda',
    'smartctl --device sat,auto /host/dev/sdb',
    'smartctl --device nvme /host/dev/nvme0n1',
  ]);
});
it('knows nothing without smartctl', async () => {
  const missing = new Error('spawn smartctl ENOENT', { cause: Object.assign(new Error('x'), { code: 'ENOENT' }) });
  expect(
    await createSmartReader(fakeClock()).read(
      host(() => Promise.reject(missing)),
      [disk('sda'), disk('sdb')],
    ),
  ).toBeUndefined();
});
it('a disk that hangs costs a limited time, and is not asked again before its program has ended', async () => {
  const clock = fakeClock();
  let release: (said: string) => void = () => {};
  let count = 0;
  const run: Run = (_, args) => {
    if (!args.at(-1)!.endsWith('sda')) return Promise.resolve(WELL);
    count++;
    return new Promise((resolve) => (release = resolve));
  };
  const reader = createSmartReader(clock);
  const disks = ['sda', 'sdb'].map(disk);
  const silent = { ...disk('sda'), unread: 'the disk does not answer' };
  const well = { ...none, ...disk('sdb'), passed: true };
  const first = reader.read(host(run), disks);
  await clock.advance(30_000);
  expect(await first).toEqual([silent, well]);
  expect(await reader.read(host(run), disks)).toEqual([silent, well]);
  expect(count).toBe(1);
  release(WELL);
  await new Promise((done) => setImmediate(done));
  const again = reader.read(host(run), disks);
  release(WELL);
  expect(await again).toEqual([{ ...none, ...disk('sda'), passed: true }, well]);
  expect(count).toBe(2);
});
