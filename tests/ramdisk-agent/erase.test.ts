import { randomBytes } from 'node:crypto';
import { silentLog } from '../../model/log';
import type { JsonObject } from '../../model/records';
import { eraseDisk, eraseExpress, eraseMetadata, type Erased } from '../../ramdisk-agent/erase/erase';
import type { Erasing } from '../../ramdisk-agent/erase/erasing';
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

/** Programs that only ask, and what is not part of the erasure. */
const ASKS = /^(?:hdparm (?:-I|--sanitize-status)|nvme (?:id-ctrl|list-ns|sanitize-log)|sg_opcodes|sedutil-cli --isValidSED|blockdev)/;
/** Programs after which the disk reads as another byte. */
const ERASES =
  /^(?:nvme (?:format|sanitize --ause --sanact=[24])|hdparm.*(?:--security-erase|--sanitize-[bc])|blkdiscard|sg_sanitize --ause|sedutil-cli --yes)/;
interface Outcome {
  readonly error: unknown;
  readonly result: Erased | undefined;
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
  more: Partial<Erasing> = {},
): Promise<Outcome> {
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
    if (!ASKS.test(command)) ran.push(command);
    const given = answers[command] ?? answers[program];
    const answer = typeof given === 'function' ? given(ran) : given;
    if (answer === undefined) throw new Error(`${program}: not found`);
    if (answer instanceof Error) throw answer;
    if (ERASES.test(command) && !answer.includes('without effect')) await device.write(Buffer.alloc(SIZE, 0xff), 0);
    return answer;
  };
  let result: Erased | undefined;
  let now = 1_000_000;
  const error: unknown = await work({
    disk: { name, size: SIZE, tran: null, logical_sectors: 512, ...disk },
    settings,
    open: async () => ({ ...device, close: async () => {}, command: (program, args) => run(program, [...args, name]) }),
    query: run,
    tree: tree(fileTree({ empty: '', ...given })),
    random: randomBytes,
    clock: { now: () => (now += 250), sleep: async () => {} },
    progress: (percent) => percents.push(percent),
    log: silentLog,
    ...more,
  }).then(
    (erased) => {
      result = erased;
    },
    (caught: unknown) => caught,
  );
  return { error, result, ran, zeroed: isFull(await device.read(0, SIZE), 0), percents };
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

it.each([0, -1, 'many'])('eraseDisk fails where there is nothing to write: %p passes and no zeros', async (iterations) => {
  const settings = { agent_erase_devices_iterations: iterations, agent_erase_devices_zeroize: false };
  const { error, result } = await erase({}, {}, settings);
  expect(result).toBeUndefined();
  expect(error).toMatchObject({ type: 'BlockDeviceEraseError', details: expect.stringContaining('there is nothing to write') as string });
});

it.each<[string, Parameters<typeof erase>, RegExp]>([
  [
    'a format that fails',
    [nvme, { 'nvme id-ctrl /dev/nvme0n1 --output-format=json': '{"oacs":2}', nvme: new Error('Access Denied') }],
    /Erasing \/dev\/nvme0n1 by NVMe format, user data erase failed: Access Denied/,
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
    clock: { now: () => 0, sleep: async () => {} },
    progress: () => {},
    log: silentLog,
  });
  const state = await Promise.all(Array.from({ length: 20 }, async (_, mib) => (isFull(await device.read(mib * MiB, MiB), 0) ? '0' : '1')));
  expect(state.join('')).toBe('01110111111011111110');
  // The disk was busy at first.
  expect(ran).toEqual(['blockdev --rereadpt /dev/sda', 'blockdev --rereadpt /dev/sda']);
});

/** In the form of hdparm's output: made from its strings, not captured from a disk. */
const features = (...names: readonly string[]): string =>
  `\n/dev/sda:\n\nCommands/features:\n\tEnabled\tSupported:\n${names.map((name) => `\t   *\t${name}\n`).join('')}`;
const ataState = (state: string, more = ''): string =>
  `\n/dev/sda:\nIssuing SANITIZE_STATUS command\nSanitize status:\n    State:    ${state}\n${more}`;
const IDLE = ataState('SD0 Sanitize Idle');
const SCRAMBLE = 'hdparm --yes-i-know-what-i-am-doing --sanitize-crypto-scramble /dev/sda';
/** In the form of nvme-cli's output: made from its sources, not captured from a disk. */
const sanitizeLog = (progress: number, status: string): string =>
  `Sanitize Progress                      (SPROG) :  ${progress}\nSanitize Status                        (SSTAT) :  ${status}\nSanitize Command Dword 10 Information (SCDW10) :  0x4\n`;
const ALONE = '[   0]:0x1\n';
const CONTROLLER = '{"oacs":14,"fna":4,"sanicap":3}';
const nvmeAnswers = (log: (ran: readonly string[]) => string, more: Parameters<typeof erase>[1] = {}): Parameters<typeof erase>[1] => ({
  'nvme id-ctrl /dev/nvme0n1 --output-format=json': CONTROLLER,
  'nvme list-ns /dev/nvme0n1 --all': ALONE,
  'nvme sanitize-log /dev/nvme0n1': log,
  nvme: '',
  ...more,
});
/** Answers in turn; the last one stays. */
const inTurn = (...answers: readonly string[]): (() => string) => {
  const left = [...answers];
  return () => (left.length > 1 ? left.shift()! : left[0]!);
};
const sas = { name: '/dev/sda', tran: 'sas' };
const PSID = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ012345';
const psids = new Map([['S1', PSID]]);

it.each<[method: string, Parameters<typeof erase>, ran: readonly string[]]>([
  [
    'nvme-sanitize-crypto',
    [nvme, nvmeAnswers(inTurn(sanitizeLog(65_535, '0'), sanitizeLog(0, '0x2'), sanitizeLog(32_768, '0x2'), sanitizeLog(65_535, '0x101')))],
    ['nvme sanitize --ause --sanact=4 /dev/nvme0n1'],
  ],
  [
    'nvme-sanitize-block',
    [
      nvme,
      nvmeAnswers(inTurn(sanitizeLog(65_535, '0x1'), sanitizeLog(65_535, '0x101')), {
        'nvme id-ctrl /dev/nvme0n1 --output-format=json': '{"oacs":14,"fna":4,"sanicap":2}',
      }),
    ],
    ['nvme sanitize --ause --sanact=2 /dev/nvme0n1'],
  ],
  [
    // Sanitizing would erase the other namespace too, and this format erases one only.
    'nvme-format-crypto',
    [nvme, nvmeAnswers(() => sanitizeLog(65_535, '0'), { 'nvme list-ns /dev/nvme0n1 --all': '[   0]:0x1\n[   1]:0x2\n' })],
    ['nvme format --ses 2 --force /dev/nvme0n1'],
  ],
  [
    // Every method of the disk would erase the other namespace.
    'write-zeroes',
    [
      nvme,
      nvmeAnswers(() => sanitizeLog(65_535, '0'), {
        'nvme id-ctrl /dev/nvme0n1 --output-format=json': '{"oacs":14,"fna":7,"sanicap":3}',
        'nvme list-ns /dev/nvme0n1 --all': '[   0]:0x1\n[   1]:0x2\n',
        blkdiscard: '',
      }),
      {},
      OFFLOAD,
    ],
    ['blkdiscard --zeroout --force /dev/nvme0n1'],
  ],
  [
    'ata-sanitize-crypto',
    [
      sata,
      {
        'hdparm -I /dev/sda': features('SANITIZE feature set', 'CRYPTO_SCRAMBLE_EXT command', 'BLOCK_ERASE_EXT command'),
        'hdparm --sanitize-status /dev/sda': inTurn(
          IDLE,
          IDLE,
          ataState('SD2 Sanitize operation In Process', '    Progress: 0x41c2 (25%)\n'),
          ataState('SD0 Sanitize Idle', '    Last Sanitize Operation Completed Without Error\n'),
        ),
        hdparm: '',
      },
    ],
    [SCRAMBLE],
  ],
  [
    'ata-sanitize-block',
    [
      sata,
      {
        'hdparm -I /dev/sda': features('SANITIZE feature set', 'BLOCK_ERASE_EXT command'),
        'hdparm --sanitize-status /dev/sda': inTurn(IDLE, IDLE, ataState('SD4 Sanitize Operation succeeded')),
        hdparm: '',
      },
    ],
    ['hdparm --yes-i-know-what-i-am-doing --sanitize-block-erase /dev/sda'],
  ],
  [
    'ata-secure-erase',
    [
      sata,
      {
        'hdparm -I /dev/sda': `${features('SANITIZE feature set', 'CRYPTO_SCRAMBLE_EXT command')}${identify(...CLEAN)}`,
        'hdparm --sanitize-status /dev/sda': ataState('SD1 Sanitize Frozen'),
        hdparm: '',
      },
    ],
    [setPassword, 'hdparm --user-master u --security-erase NULL /dev/sda'],
  ],
  [
    // A controller that passes on no registers: hdparm ends well, and shows an idle disk.
    'ata-secure-erase',
    [
      sata,
      {
        'hdparm -I /dev/sda': `${features('SANITIZE feature set', 'CRYPTO_SCRAMBLE_EXT command')}${identify(...CLEAN)}`,
        'hdparm --sanitize-status /dev/sda': `${IDLE}SG_IO: bad/missing sense data, sb[]:  70 00 01\n`,
        hdparm: '',
      },
    ],
    [setPassword, 'hdparm --user-master u --security-erase NULL /dev/sda'],
  ],
  [
    'scsi-sanitize-crypto',
    [
      sas,
      {
        'sg_opcodes --opcode=0x48,3 /dev/sda':
          '  Opcode=0x48  Service_action=0x0003\n  Command is supported [conforming to SCSI standard]\n',
        sg_sanitize: '',
      },
    ],
    ['sg_sanitize --ause --crypto --quick --wait /dev/sda'],
  ],
  [
    'scsi-sanitize-block',
    [
      sas,
      {
        'sg_opcodes --opcode=0x48,3 /dev/sda': '  Opcode=0x48  Service_action=0x0003\n  Command is NOT supported\n',
        'sg_opcodes --opcode=0x48,2 /dev/sda':
          '  Opcode=0x48  Service_action=0x0002\n  Command is supported [conforming to SCSI standard]\n',
        sg_sanitize: '',
      },
    ],
    ['sg_sanitize --ause --block --quick --wait /dev/sda'],
  ],
  [
    'discard',
    [
      sata,
      {
        'hdparm -I /dev/sda': features('Data Set Management TRIM supported (limit 8 blocks)', 'Deterministic read ZEROs after TRIM'),
        blkdiscard: '',
      },
      {},
      { 'queue/discard_max_bytes': '2147450880\n' },
    ],
    ['blkdiscard --force /dev/sda'],
  ],
  [
    // Without that promise, a discarded block may read as before.
    'write-zeroes',
    [
      sata,
      { 'hdparm -I /dev/sda': features('Data Set Management TRIM supported (limit 8 blocks)'), blkdiscard: '' },
      {},
      { 'queue/discard_max_bytes': '2147450880\n', ...OFFLOAD },
    ],
    ['blkdiscard --zeroout --force /dev/sda'],
  ],
  [
    'opal-psid-revert',
    [
      { ...sata, serial: ['S0', 'S1'] },
      { 'sedutil-cli --isValidSED /dev/sda': '/dev/sda SED -2- MODEL FW', 'sedutil-cli': '' },
      {},
      {},
      eraseDisk,
      { psids },
    ],
    [`sedutil-cli --yesIreallywanttoERASEALLmydatausingthePSID ${PSID} /dev/sda`],
  ],
  [
    'write-zeroes',
    [{ ...sata, serial: ['S1'] }, { blkdiscard: '' }, {}, OFFLOAD, eraseDisk, { psids }],
    ['blkdiscard --zeroout --force /dev/sda'],
  ],
])('eraseDisk says what it used: %s', async (method, given, ran) => {
  const { result, ...outcome } = await erase(...given);
  expect(outcome).toMatchObject({ error: undefined, ran });
  expect(result).toMatchObject({
    method,
    skipped: null,
    sample: { places: expect.any(Number) as number, bytes: 4096, zero: 0, changed: 0, same: 0 },
  });
  const { places, blank, held_data: held } = result!.sample!;
  expect([blank, held]).toEqual([places, places]);
  expect(places).toBeGreaterThan(32);
});

it.each<[string, Parameters<typeof erase>, RegExp]>([
  [
    'a sanitize operation that the NVMe disk reports as failed',
    [nvme, nvmeAnswers(inTurn(sanitizeLog(65_535, '0'), sanitizeLog(100, '0x2'), sanitizeLog(65_535, '0x3')))],
    /NVMe sanitize, crypto erase failed: the disk reports that the sanitize operation failed/,
  ],
  ['a sanitize operation that the NVMe disk never began', [nvme, nvmeAnswers(() => sanitizeLog(65_535, '0'))], /the disk did not begin/],
  [
    'a sanitize operation after which the ATA disk is idle and says nothing',
    [
      sata,
      {
        'hdparm -I /dev/sda': features('SANITIZE feature set', 'CRYPTO_SCRAMBLE_EXT command'),
        'hdparm --sanitize-status /dev/sda': IDLE,
        hdparm: '',
      },
    ],
    /does not report that the sanitize operation succeeded: idle/,
  ],
  [
    'a disk that says that it is erased, and still has its data',
    [nvme, { 'nvme id-ctrl /dev/nvme0n1 --output-format=json': '{"oacs":2,"fna":4}', nvme: 'without effect' }],
    /\d+ of \d+ places that were read still have their data/,
  ],
])('eraseDisk fails after %s', async (_, given, reason) => {
  expect((await erase(...given)).error).toMatchObject({ type: 'BlockDeviceEraseError', message: expect.stringMatching(reason) as string });
});

it('eraseDisk waits for a sanitize operation of an earlier agent, which says nothing of its own', async () => {
  const log = inTurn(sanitizeLog(100, '0x2'), sanitizeLog(65_535, '0x3'), sanitizeLog(65_535, '0x101'));
  const { ran, error } = await erase(nvme, nvmeAnswers(log));
  expect(error).toBeUndefined();
  expect(ran).toEqual(['nvme sanitize --ause --sanact=1 /dev/nvme0n1', 'nvme sanitize --ause --sanact=4 /dev/nvme0n1']);
});

it('eraseDisk tells no PSID in its errors', async () => {
  const given = {
    'sedutil-cli --isValidSED /dev/sda': '/dev/sda SED -2-',
    'sedutil-cli': new Error(`sedutil-cli ${PSID} /dev/sda: NOT_AUTHORIZED`),
  };
  const { error } = await erase({ ...sata, serial: ['S1'] }, given, {}, {}, eraseDisk, { psids });
  expect((error as Error).message).toContain('NOT_AUTHORIZED');
  expect((error as Error).message).not.toContain(PSID);
});

it.each<[method: string, Parameters<typeof erase>, ran: readonly string[]]>([
  [
    'nvme-format-crypto',
    [nvme, { 'nvme id-ctrl /dev/nvme0n1 --output-format=json': '{"oacs":2,"fna":4}', nvme: '', blockdev: '' }, {}, {}, eraseExpress],
    ['nvme format --ses 2 --force /dev/nvme0n1'],
  ],
  ['metadata', [{ name: '/dev/vda' }, { blockdev: '', blkdiscard: '' }, {}, OFFLOAD, eraseExpress], []],
  ['metadata', [sata, { 'hdparm -I /dev/sda': identify(...CLEAN), hdparm: '', blockdev: '' }, {}, {}, eraseExpress], []],
])('eraseExpress takes only what the disk does in seconds: %s', async (method, given, ran) => {
  expect(await erase(...given)).toMatchObject({ error: undefined, ran, result: { method } });
});

it('eraseDisk brings a SCSI disk out of the failed state, and tries the next method where that is allowed', async () => {
  const given = {
    'sg_opcodes --opcode=0x48,3 /dev/sda': '  Opcode=0x48  Service_action=0x0003\n  Command is supported [conforming to SCSI standard]\n',
    'sg_sanitize --ause --crypto --quick --wait /dev/sda': new Error('sanitize failed'),
    sg_sanitize: '',
    blkdiscard: '',
  };
  const { ran, result } = await erase(sas, given, { agent_continue_if_secure_erase_failed: true }, OFFLOAD);
  expect(ran).toEqual([
    'sg_sanitize --ause --crypto --quick --wait /dev/sda',
    'sg_sanitize --fail --quick --wait /dev/sda',
    'blkdiscard --zeroout --force /dev/sda',
  ]);
  expect(result).toMatchObject({ method: 'write-zeroes' });
});

it('eraseDisk counts places that the disk cannot read any more', async () => {
  let erased = false;
  const device = await fileDevice(SIZE);
  await device.write(randomBytes(SIZE), 0);
  let reads = 0;
  const opened = {
    ...device,
    close: async () => {},
    read: (position: number, length: number) => {
      if (!erased) return device.read(position, length);
      reads++;
      return Promise.reject(new Error('EIO'));
    },
    command: async () => {
      erased = true;
      return '';
    },
  };
  const given = { 'nvme id-ctrl /dev/nvme0n1 --output-format=json': '{"oacs":2,"fna":4}', nvme: '' };
  const { result } = await erase(nvme, given, {}, {}, eraseDisk, { open: async () => opened });
  expect(result?.sample).toMatchObject({ zero: 0, blank: 0, changed: 0, same: 0, unreadable: result?.sample?.places });
  expect(reads).toBe(4);
});
