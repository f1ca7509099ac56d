/** Logs for troubleshooting: a gzipped tar archive, base64 encoded. */
import { gzipSync } from 'node:zlib';
import type { Clock } from '../model/clock';
import { reasonOf } from '../model/errors';
import type { BufferedLog } from './log';
import type { Run } from './system/run';
import type { Tree } from './system/tree';

/** File in the archive → the program with its content. */
const SOURCES: Readonly<Record<string, readonly [string, ...string[]]>> = {
  dmesg: ['dmesg'],
  df: ['df', '-a'],
  ip_addr: ['ip', 'addr'],
  ip_route: ['ip', 'route'],
  mount: ['mount'],
  partitions: ['cat', '/proc/partitions'],
  modules: ['cat', '/proc/modules'],
  cmdline: ['cat', '/proc/cmdline'],
  efibootmgr: ['efibootmgr', '-v'],
  ps: ['ps'],
  meminfo: ['cat', '/proc/meminfo'],
  mdstat: ['cat', '/proc/mdstat'],
  multipath: ['multipath', '-ll'],
  blkid: ['blkid'],
  resident: ['sh', '-c', 'grep -s VmRSS /proc/[0-9]*/status; true'],
};

interface LogHost {
  readonly run: Run;
  readonly tree: Tree;
  readonly log: Pick<BufferedLog, 'text'>;
  readonly clock: Pick<Clock, 'now'>;
  /** Files with results of steps. */
  readonly state: { readonly outputFiles?: readonly string[] };
}
/** Milliseconds for each program. They run side by side, on slow machines too. */
const PROGRAM_MS = 30_000;
const MAX_DISKS = 256;
/** Characters of each file. */
const MAX_FILE = 2 ** 20;

/** For a failed program, the file contains the error. The names are ironic-python-agent's, where it has such a file. */
export async function collectLogs({ run, tree, log, clock, state }: LogHost): Promise<string> {
  const disks = tree.list('/sys/block').slice(0, MAX_DISKS);
  const properties = disks.map((name) => [`udev/${name}`, ['udevadm', 'info', '--query=property', `--path=/sys/block/${name}`]] as const);
  const outputs = await Promise.all(
    [...Object.entries(SOURCES), ...properties].map(async ([name, [program, ...args]]) => {
      const output = await run(program, args, { timeoutMs: PROGRAM_MS }).catch((error: unknown) => `${reasonOf(error)}\n`);
      // The command line may contain the agent's token.
      return [name, output.replace(/(ipa-agent-token=)\S+/g, '$1***')] as const;
    }),
  );
  const results = (state.outputFiles ?? []).map((file) => [file.replace(/^\/+/, ''), tree.text(file) ?? ''] as const);
  const files = [['agent.log', log.text()] as const, ...outputs, ...results].map(
    ([name, text]) => [name.slice(0, 99), text.slice(0, MAX_FILE)] as const,
  );
  return gzipSync(tar(files, clock.now())).toString('base64');
}

/** A ustar archive (POSIX.1-1988): a header block for each file, its content padded to whole blocks, two empty blocks. @internal */
export function tar(files: readonly (readonly [string, string])[], now: number): Buffer {
  const blocks = files.flatMap(([name, text]) => {
    const content = Buffer.from(text);
    const header = Buffer.alloc(512);
    const octal = (value: number, at: number, digits: number): number =>
      header.write(value.toString(8).padStart(digits, '0'), at, 'latin1');
    header.write(name, 0, 100, 'utf8');
    octal(0o644, 100, 7);
    octal(0, 108, 7);
    octal(0, 116, 7);
    octal(content.length, 124, 11);
    octal(Math.floor(now / 1000), 136, 11);
    header.write(' '.repeat(8), 148, 'latin1');
    header.write('0', 156, 'latin1');
    header.write('ustar\0' + '00', 257, 'latin1');
    octal(
      header.reduce((sum, byte) => sum + byte, 0),
      148,
      6,
    );
    header.writeUInt8(0, 154);
    return [header, content, Buffer.alloc((512 - (content.length % 512)) % 512)];
  });
  return Buffer.concat([...blocks, Buffer.alloc(1024)]);
}
