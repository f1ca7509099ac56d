import { randomBytes } from 'node:crypto';
import { silentLog } from '../../model/log';
import type { JsonObject } from '../../model/records';
import { type Erasing, eraseDisk, eraseMetadata } from '../../ramdisk-agent/disk/erase';
import { tree } from '../../ramdisk-agent/system/tree';
import { fileDevice, fileTree, isFull } from './support';

const MiB = 2 ** 20;
const SIZE = 5 * MiB + 512;
const identify = (...lines: readonly string[]): string =>
  `\n/dev/sda:\n\nCommands/features:\n\t...\nSecurity: \n${lines.map((line) => `\t${line}\n`).join('')}Logical Unit WWN: 5\n`;
const CLEAN = [
  'Master password revision code = 65534',
  '\tsupported',
  'not\tenabled',
  'not\tlocked',
  'not\tfrozen',
  'not\texpired: security count',
];

interface Erased {
  readonly error: unknown;
  /** The programs that ran, without those that only query. */
  readonly ran: readonly string[];
  /** Whether the disk's bytes were overwritten by us. */
  readonly zeroed: boolean;
  readonly percents: readonly number[];
}
async function erase(
  disk: Partial<Erasing['disk']>,
  answers: Readonly<Record<string, string | Error | ((ran: readonly string[]) => string | Error)>>,
  settings: JsonObject = {},
  attributes: Readonly<Record<string, string>> = {},
  work = eraseDisk,
): Promise<Erased> {
  const ran: string[] = [];
  const percents: number[] = [];
  const device = await fileDevice(SIZE);
  await device.write(randomBytes(SIZE), 0);
  const name = disk.name ?? '/dev/sda';
  const given = Object.fromEntries(
    Object.entries(attributes).map(([attribute, value]) => [`sys/block/${name.slice(5)}/${attribute}`, value]),
  );
  const run = async (program: string, args: readonly string[]): Promise<string> => {
    const command = [program, ...args].join(' ');
    if (!/^(hdparm -I|nvme id-ctrl)/.test(command)) ran.push(command);
    const given = answers[command] ?? answers[program];
    const answer = typeof given === 'function' ? given(ran) : given;
    if (answer === undefined) throw new Error(`${program}: not found`);
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const error: unknown = await work({
    disk: { name, size: SIZE, tran: null, logical_sectors: 512, ...disk },
    settings,
    open: async () => ({ ...device, close: async () => {}, command: (program, args) => run(program, [...args, name]) }),
    query: run,
    tree: tree(fileTree({ empty: '', ...given })),
    random: randomBytes,
    clock: { sleep: async () => {} },
    progress: (percent) => percents.push(percent),
    log: silentLog,
  }).then(
    () => undefined,
    (caught: unknown) => caught,
  );
  return { error, ran, zeroed: isFull(await device.read(0, SIZE), 0), percents };
}
const nvme = { name: '/dev/nvme0n1' };
const sata = { name: '/dev/sda', tran: 'sata' };
const OFFLOAD = { 'queue/write_zeroes_max_bytes': '1048576\n' };
const setPassword = 'hdparm --user-master u --security-set-pass NULL /dev/sda';

it.each<[string, Parameters<typeof erase>, readonly string[]]>([
  [
    'NVMe, cryptographic',
    [nvme, { 'nvme id-ctrl /dev/nvme0n1 --output-format=json': '{"oacs":2,"fna":4}', nvme: '' }],
    ['nvme format --ses 2 --force /dev/nvme0n1'],
  ],
  [
    'NVMe, user data',
    [nvme, { 'nvme id-ctrl /dev/nvme0n1 --output-format=json': '{"oacs":6,"fna":0}', nvme: '' }],
    ['nvme format --ses 1 --force /dev/nvme0n1'],
  ],
  [
    'NVMe without format, with write-zeroes support',
    [nvme, { 'nvme id-ctrl /dev/nvme0n1 --output-format=json': '{"oacs":0}', blkdiscard: '' }, {}, OFFLOAD],
    ['blkdiscard --zeroout --force /dev/nvme0n1'],
  ],
  [
    'NVMe with secure erase disabled',
    [nvme, { blkdiscard: '' }, { agent_enable_nvme_secure_erase: false }, OFFLOAD],
    ['blkdiscard --zeroout --force /dev/nvme0n1'],
  ],
  [
    'SATA',
    [sata, { 'hdparm -I /dev/sda': identify(...CLEAN), hdparm: '' }],
    [setPassword, 'hdparm --user-master u --security-erase NULL /dev/sda'],
  ],
  [
    'SATA, enhanced',
    [sata, { 'hdparm -I /dev/sda': identify(...CLEAN, 'supported: enhanced erase'), hdparm: '' }],
    [setPassword, 'hdparm --user-master u --security-erase-enhanced NULL /dev/sda'],
  ],
  ['virtio with write-zeroes support', [{ name: '/dev/vda' }, { blkdiscard: '' }, {}, OFFLOAD], ['blkdiscard --zeroout --force /dev/vda']],
])('eraseDisk uses the method of the device: %s', async (_, given, ran) => {
  expect(await erase(...given)).toMatchObject({ error: undefined, ran, zeroed: false });
});

it.each<[string, Parameters<typeof erase>]>([
  ['a disk without a method of its own', [{ name: '/dev/vda' }, {}]],
  ['SATA without the security feature', [sata, { 'hdparm -I /dev/sda': '\n/dev/sda:\n' }]],
  ['SATA whose hdparm fails', [sata, {}]],
  ['several random passes requested', [{ name: '/dev/vda' }, { blkdiscard: '' }, { agent_erase_devices_iterations: 2 }, OFFLOAD]],
  ['write-zeroes that fails', [{ name: '/dev/vda' }, { blkdiscard: new Error('no') }, {}, OFFLOAD]],
  [
    'a secure erase that fails, with agent_continue_if_secure_erase_failed',
    [
      nvme,
      { 'nvme id-ctrl /dev/nvme0n1 --output-format=json': '{"oacs":2}', nvme: new Error('no') },
      { agent_continue_if_secure_erase_failed: true },
    ],
  ],
])('eraseDisk overwrites the disk: %s', async (_, given) => {
  const { error, zeroed, percents } = await erase(...given);
  expect(error).toBeUndefined();
  expect(zeroed).toBe(true);
  expect(percents.every((percent, index) => percent <= 100 && percent >= (percents[index - 1] ?? 0))).toBe(true);
});

it('eraseDisk leaves random bytes with agent_erase_devices_zeroize = false', async () => {
  expect(await erase({}, {}, { agent_erase_devices_zeroize: false })).toMatchObject({ error: undefined, zeroed: false });
});

it.each<[string, Parameters<typeof erase>, RegExp]>([
  [
    'a format that fails',
    [nvme, { 'nvme id-ctrl /dev/nvme0n1 --output-format=json': '{"oacs":2}', nvme: new Error('Access Denied') }],
    /Erasing \/dev\/nvme0n1 by NVMe format failed: Access Denied/,
  ],
  [
    'a frozen disk',
    [sata, { 'hdparm -I /dev/sda': identify('supported', 'not\tenabled', 'not\tlocked', '\tfrozen') }],
    /frozen by the firmware/,
  ],
  [
    'a disk that stays locked',
    [sata, { 'hdparm -I /dev/sda': identify('supported', 'enabled', 'locked', 'not\tfrozen'), hdparm: '' }],
    /security password that the agent does not know/,
  ],
  ['a read-only disk', [{}, {}, {}, { ro: '1\n' }], /flagged read-only/],
])('eraseDisk fails for %s', async (_, given, reason) => {
  const { error, zeroed } = await erase(...given);
  expect(error).toMatchObject({ type: 'BlockDeviceEraseError', message: expect.stringMatching(reason) as string });
  expect(zeroed).toBe(false);
});

it('eraseDisk removes the password after an ATA erasure that failed, and goes on where that is allowed', async () => {
  const LOCKED = identify('supported', 'enabled', 'locked', 'not\tfrozen');
  const UNLOCKED = identify('supported', 'enabled', 'not\tlocked', 'not\tfrozen');
  const answers = {
    'hdparm -I /dev/sda': (ran: readonly string[]) => {
      if (ran.at(-1)?.includes('--security-disable')) return identify(...CLEAN);
      if (ran.at(-1)?.includes('--security-unlock')) return UNLOCKED;
      return ran.length > 0 ? LOCKED : identify(...CLEAN);
    },
    'hdparm --user-master u --security-erase NULL /dev/sda': new Error('I/O error'),
    hdparm: '',
  };
  const commands = ['--security-set-pass', '--security-erase', '--security-unlock', '--security-disable'];
  const ran = commands.map((command) => `hdparm --user-master u ${command} NULL /dev/sda`);
  const failed = await erase(sata, answers);
  expect(failed).toMatchObject({ error: { type: 'BlockDeviceEraseError' }, ran, zeroed: false });
  const overwritten = await erase(sata, answers, { agent_continue_if_secure_erase_failed: true });
  expect(overwritten).toMatchObject({ error: undefined, ran, zeroed: true });
});

it('eraseDisk skips a read-only disk with agent_erase_skip_read_only', async () => {
  const skipped = await erase({}, {}, { agent_erase_skip_read_only: true }, { ro: '1\n' });
  expect(skipped).toMatchObject({ error: undefined, zeroed: false });
});

it('eraseMetadata erases only the first and last MiB of the disk and of its partitions', async () => {
  const device = await fileDevice(20 * MiB);
  await device.write(Buffer.alloc(20 * MiB, 1), 0);
  const table = Buffer.alloc(512);
  table[446 + 4] = 0x83;
  table.writeUInt32LE(4 * 2048, 446 + 8);
  table.writeUInt32LE(8 * 2048, 446 + 12);
  // A partition whose entry points beyond the disk's end.
  table[462 + 4] = 0x83;
  table.writeUInt32LE(15 * 2048, 462 + 8);
  table.writeUInt32LE(80 * 2048, 462 + 12);
  table.writeUInt16LE(0xaa55, 510);
  await device.write(table, 0);
  const ran: string[] = [];
  await eraseMetadata({
    disk: { name: '/dev/sda', size: 20 * MiB, tran: null, logical_sectors: 512 },
    settings: {},
    open: async () => ({ ...device, close: async () => {} }),
    query: async (program, args) => {
      ran.push([program, ...args].join(' '));
      if (ran.length === 1) throw new Error('Device or resource busy');
      return '';
    },
    tree: tree(fileTree({ empty: '' })),
    random: randomBytes,
    clock: { sleep: async () => {} },
    progress: () => {},
    log: silentLog,
  });
  const state = await Promise.all(Array.from({ length: 20 }, async (_, mib) => (isFull(await device.read(mib * MiB, MiB), 0) ? '0' : '1')));
  expect(state.join('')).toBe('01110111111011111110');
  // The disk was busy at first.
  expect(ran).toEqual(['blockdev --rereadpt /dev/sda', 'blockdev --rereadpt /dev/sda']);
});
