/** A real iSCSI target (Debian's tgt) with its volumes, in a network namespace. */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { until, type Lab } from '../../../demo/lab/machines';

const run = promisify(execFile);

export interface Chap {
  readonly username: string;
  readonly password: string;
}
export interface IscsiTarget {
  /** In the form of a volume target's properties. */
  readonly portal: string;
  /** The LUN of the first volume; LUN 0 is tgt's controller. */
  readonly lun: number;
  /** Offers a file as a volume. @returns its name */
  add(name: string, file: string, chap?: Chap): Promise<string>;
  /** The names of the initiators that are logged in to a volume. */
  initiators(iqn: string): Promise<readonly string[]>;
  /** The output of tgtd. */
  log(): string;
  stop(): Promise<void>;
}

export async function startIscsiTarget(lab: Lab): Promise<IscsiTarget> {
  const portal = `${lab.address}:3260`;
  const socket = join(lab.folder, 'tgt.sock');
  let written = '';
  const server = lab.start('env', `TGT_IPC_SOCKET=${socket}`, 'tgtd', '-f', '-d', '1', '--iscsi', `portal=${portal}`);
  server.stderr!.on('data', (data: Buffer) => (written += data.toString()));
  const admin = async (...words: readonly string[]): Promise<string> =>
    (await run('tgtadm', ['--lld', 'iscsi', ...words], { env: { ...process.env, TGT_IPC_SOCKET: socket }, timeout: 30_000 })).stdout;
  const show = (): Promise<string> => admin('--mode', 'target', '--op', 'show');
  await until(
    60,
    () => `tgtd to answer: ${written}`,
    async () =>
      show().then(
        () => true,
        () => false,
      ),
  );
  let count = 0;
  return {
    portal,
    lun: 1,
    add: async (name, file, chap) => {
      const iqn = `iqn.2026-01.org.example:${name}`;
      const target = ['--tid', String(++count)];
      await admin('--mode', 'target', '--op', 'new', ...target, '-T', iqn);
      await admin('--mode', 'logicalunit', '--op', 'new', ...target, '--lun', '1', '-b', file);
      await admin('--mode', 'target', '--op', 'bind', ...target, '-I', 'ALL');
      if (chap) {
        await admin('--mode', 'account', '--op', 'new', '--user', chap.username, '--password', chap.password);
        await admin('--mode', 'account', '--op', 'bind', ...target, '--user', chap.username);
      }
      return iqn;
    },
    initiators: async (iqn) => {
      const [, own = ''] = (await show()).split(new RegExp(`^Target \\d+: ${iqn.replaceAll('.', '\\.')}$`, 'm'));
      return [...own.split(/^Target \d+: /m)[0]!.matchAll(/^ +Initiator: (\S+)/gm)].map(([, name]) => name!);
    },
    log: () => written,
    stop: async () => {
      // tgtd ignores SIGTERM while it has targets.
      const ended = once(server, 'exit');
      server.kill('SIGKILL');
      await ended;
    },
  };
}
