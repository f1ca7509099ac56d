/** The real agent in this process, in a machine of files: one network interface, and disks that are files. */
import { randomBytes, randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../../model/clock';
import { runAgent } from '../../../ramdisk-agent/agent';
import { createKept } from '../../../ramdisk-agent/kept';
import { consoleLog } from '../../../ramdisk-agent/log';
import { parseParameters } from '../../../ramdisk-agent/parameters';
import { tree } from '../../../ramdisk-agent/system/tree';

const MiB = 2 ** 20;
interface FileDisk {
  readonly serial: string;
  readonly mib: number;
  readonly readOnly?: true;
}
/** By the serial numbers of the disks in QEMU. Those that need hardware are not there. */
const DISKS: readonly FileDisk[] = [
  { serial: 'GOOD', mib: 5 * 1024 },
  { serial: 'LOCKED', mib: 5 * 1024, readOnly: true },
  { serial: 'SMALL', mib: 4 },
];

interface ProcessOptions {
  /** Made by the first agent of a machine; the next one finds there what it left. */
  readonly root: string;
  readonly mac: string;
  readonly apiUrl: string;
  readonly port: number;
  /** PEM. */
  readonly authority: string;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}
/** Runs until the signal is aborted. */
export async function runAgentProcess({ root, mac, apiUrl, port, authority, now }: ProcessOptions, signal: AbortSignal): Promise<void> {
  const put = (path: string, content: string): void => {
    mkdirSync(join(root, path, '..'), { recursive: true });
    writeFileSync(join(root, path), content);
  };
  const isNew = !existsSync(root);
  put('sys/class/net/eth0/address', mac);
  put('sys/class/net/eth0/carrier', '1');
  if (isNew) symlinkSync('/devices/eth0', join(root, 'sys/class/net/eth0/device'));
  put('proc/cpuinfo', 'processor : 0\n');
  for (const { serial, mib, readOnly } of isNew ? DISKS : []) {
    const disk = join(root, serial);
    writeFileSync(disk, '');
    truncateSync(disk, mib * MiB);
    // The agent opens /dev/NAME: a name that leads to the file.
    const block = `sys/block/${`..${disk}`.replaceAll('/', '!')}`;
    put(`${block}/size`, String((mib * MiB) / 512));
    put(`${block}/serial`, serial);
    put(`${block}/ro`, readOnly ? '1' : '0');
    symlinkSync('/devices/disk', join(root, block, 'device'));
  }
  const words = [
    `ipa-api-url=${apiUrl}`,
    `BOOTIF=${mac}`,
    `ipa-listen-host=127.0.0.1 ipa-listen-port=${port} ipa-advertise-host=127.0.0.1 ipa-advertise-port=${port}`,
    'ipa-disk-wait-attempts=1 ipa-image-download-connection-retries=0 ipa-image-download-connection-timeout=10',
  ];
  const clock = { ...systemClock, now };
  const kept = createKept(root);
  const log = consoleLog(() => {}, clock, false, { earlier: kept.earlierLines(), also: (line) => kept.addLine(line) });
  const before = await kept.howTheLastEnded(async () => '', 1);
  if (before !== null) log.warn(before);
  await runAgent(
    {
      tree: tree(root),
      run: async (program) => (program === 'blkdiscard' ? Promise.reject(new Error('not here')) : ''),
      addresses: () => ({ eth0: [{ address: '127.0.0.1', family: 'IPv4' }] }),
      machine: 'x86_64',
      hostname: () => 'localhost',
      bootInterface: mac,
      bootedFromMedium: false,
      parameters: parseParameters(words.join(' ')),
      frames: async () => new Map(),
      findService: async () => undefined,
      ntpTime: async () => Promise.reject(new Error('no NTP')),
      clock,
      log,
      kept,
      fetching: { trust: { insecure: false, ca: authority, now }, timeoutMs: 10_000, signal },
      random: randomBytes,
      newUuid: randomUUID,
      root,
      retire: () => {},
      temporary: root,
      kernelCalls: { load: async () => {}, start: async () => {} },
      state: { node: {}, config: {}, partitionUuids: null, api: null },
    },
    signal,
  );
}
