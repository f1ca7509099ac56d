/** What an agent does about sanitize operations and passwords that somebody else left on disks. */
import { silentLog } from '../../model/log';
import type { JsonObject } from '../../model/records';
import type { Machine } from '../../ramdisk-agent/machine';
import { awaitUnfinished, disksWithoutSize } from '../../ramdisk-agent/erase/unfinished';
import { tree } from '../../ramdisk-agent/system/tree';
import { fileTree } from './support';

type Answer = string | ((ran: readonly string[]) => string);
function machineWith(files: Readonly<Record<string, string>>, answers: Readonly<Record<string, Answer>>) {
  const ran: string[] = [];
  const run = async (program: string, args: readonly string[]): Promise<string> => {
    const command = [program, ...args].join(' ');
    ran.push(command);
    const answer = answers[command];
    if (answer === undefined) throw new Error(`${program}: not found`);
    return typeof answer === 'function' ? answer(ran) : answer;
  };
  const clock = { now: () => 0, sleep: async () => {} };
  return { ran, machine: { tree: tree(fileTree(files)), bootedFromMedium: false, run, clock, log: silentLog } as unknown as Machine };
}
const SDA = { 'sys/block/sda/size': '65536', 'sys/block/sda/removable': '0' };
const NO_SIZE = { ...SDA, 'sys/block/sda/size': '0' };
const NVME = { 'sys/block/nvme0n1/size': '65536', 'sys/block/nvme0n1/removable': '0' };
const times = (ran: readonly string[], command: string): number => ran.filter((each) => each === command).length;
const IN_PROGRESS = 'Sense key: Not Ready\nAdditional sense: Logical unit not ready, sanitize in progress\n  Progress indication: 25.00%\n';
const FAILED = 'Sense key: Medium Error\nAdditional sense: Sanitize command failed\n';
const sstat = (value: string): string => `Sanitize Progress (SPROG) : 16384\nSanitize Status (SSTAT) : ${value}\n`;
const security = (...lines: readonly string[]): string =>
  `\n/dev/sda:\n\nCommands/features:\n\t...\nSecurity: \n${lines.map((line) => `\t${line}\n`).join('')}Logical Unit WWN: 5\n`;
const SANITIZES = '   *\tSANITIZE feature set\n';

it.each<[string, Readonly<Record<string, string>>, Readonly<Record<string, Answer>>, readonly string[]]>([
  [
    'waits for a SCSI disk, whose size the kernel then reads',
    NO_SIZE,
    {
      'sg_requests /dev/sda': (ran) => (times(ran, 'sg_requests /dev/sda') < 3 ? IN_PROGRESS : 'Sense key: No Sense\n'),
      'sh -c echo 1 > "$0" /sys/block/sda/device/rescan': '',
    },
    ['sg_requests /dev/sda', 'sg_requests /dev/sda', 'sg_requests /dev/sda', 'sh -c echo 1 > "$0" /sys/block/sda/device/rescan'],
  ],
  [
    'ends the failed state of a SCSI disk',
    NO_SIZE,
    {
      'sg_requests /dev/sda': FAILED,
      'sg_sanitize --fail --quick --wait /dev/sda': '',
      'sh -c echo 1 > "$0" /sys/block/sda/device/rescan': '',
    },
    ['sg_requests /dev/sda', 'sg_sanitize --fail --quick --wait /dev/sda', 'sh -c echo 1 > "$0" /sys/block/sda/device/rescan'],
  ],
  [
    'waits for an NVMe disk, and ends its failed state',
    NVME,
    {
      'nvme sanitize-log /dev/nvme0n1': (ran) => sstat(times(ran, 'nvme sanitize-log /dev/nvme0n1') < 2 ? '0x2' : '0x3'),
      'nvme sanitize --ause --sanact=1 /dev/nvme0n1': '',
    },
    ['nvme sanitize-log /dev/nvme0n1', 'nvme sanitize-log /dev/nvme0n1', 'nvme sanitize --ause --sanact=1 /dev/nvme0n1'],
  ],
  [
    'waits for an ATA disk',
    SDA,
    {
      'hdparm -I /dev/sda': SANITIZES,
      'hdparm --sanitize-status /dev/sda': (ran) =>
        times(ran, 'hdparm --sanitize-status /dev/sda') < 3
          ? 'State:    SD2 Sanitize operation In Process\n'
          : 'State:    SD0 Sanitize Idle\n',
    },
    ['hdparm --sanitize-status /dev/sda', 'hdparm --sanitize-status /dev/sda', 'hdparm --sanitize-status /dev/sda'],
  ],
  [
    'removes the password that an erasure left on a disk which lost its power',
    SDA,
    {
      'hdparm -I /dev/sda': (ran) => {
        const isOpen = ran.some((each) => each.includes('--security-unlock'));
        const isOff = ran.some((each) => each.includes('--security-disable'));
        return security('\tsupported', `${isOff ? 'not' : ''}\tenabled`, `${isOpen ? 'not' : ''}\tlocked`, 'not\tfrozen');
      },
      'hdparm --user-master u --security-unlock NULL /dev/sda': '',
      'hdparm --user-master u --security-disable NULL /dev/sda': '',
    },
    ['hdparm --user-master u --security-unlock NULL /dev/sda', 'hdparm --user-master u --security-disable NULL /dev/sda'],
  ],
  ['leaves a disk with a password that is open', SDA, { 'hdparm -I /dev/sda': security('\tsupported', '\tenabled', 'not\tlocked') }, []],
  ['asks nothing more of disks that cannot be asked', { ...SDA, ...NVME }, {}, ['nvme sanitize-log /dev/nvme0n1']],
])('%s', async (_, files, answers, expected) => {
  const { ran, machine } = machineWith(files, answers);
  await awaitUnfinished(machine, {}, () => false);
  const asked = (command: string): boolean =>
    command.startsWith('hdparm -I') || (!(command in answers) && command.startsWith('sg_requests'));
  expect(ran.filter((command) => !asked(command))).toEqual(expected);
});

it('tries no password where the settings do not allow ATA commands', async () => {
  const locked = security('\tsupported', '\tenabled', '\tlocked', 'not\tfrozen');
  const tried = async (settings: JsonObject): Promise<boolean> => {
    const { ran, machine } = machineWith(SDA, { 'hdparm -I /dev/sda': locked });
    await awaitUnfinished(machine, settings, () => false);
    return ran.some((command) => command.includes('--security-unlock'));
  };
  expect(await tried({})).toBe(true);
  expect(await tried({ agent_enable_ata_secure_erase: false })).toBe(false);
});

it('asks nothing of a disk that stays', async () => {
  const { ran, machine } = machineWith(NO_SIZE, { 'sg_requests /dev/sda': FAILED });
  await awaitUnfinished(machine, {}, ({ name }) => name === '/dev/sda');
  expect(ran).toEqual([]);
});

it('tells the disks without a size, but not drives without a medium', () => {
  const reader = { 'sys/block/sdb/size': '0', 'sys/block/sdb/removable': '1' };
  expect(disksWithoutSize(machineWith({ ...NO_SIZE, ...reader, ...NVME }, {}).machine).map(({ name }) => name)).toEqual(['/dev/sda']);
});
