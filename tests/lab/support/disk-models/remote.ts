/** Disks that a machine's kernel reaches over the network, with what its ramdisk needs for that: iSCSI (open-iscsi), NVMe over TCP. */
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { root } from '../venv';

const MODULES = ['iscsi_tcp', 'nvme_tcp'];
const PROGRAM = '/sbin/iscsistart';
const output = (program: string, ...args: readonly string[]): string => execFileSync(program, args, { encoding: 'utf8' });

/** @param folder the ramdisk's root */
export function fillForRemoteDisks(folder: string): void {
  const kernel = join(root, '.cache/kernel');
  const [version] = readdirSync(join(kernel, 'lib/modules'));
  mkdirSync(join(folder, 'remote'));
  const needed = MODULES.flatMap((module) =>
    [...output('/sbin/modprobe', '-d', kernel, '-S', version!, '--show-depends', module).matchAll(/^insmod (\S+)/gm)].map(
      ([, file]) => file!,
    ),
  );
  // In the order in which they are loaded.
  for (const [index, file] of [...new Set(needed)].entries())
    copyFileSync(file, join(folder, 'remote', `${String(index).padStart(2, '0')}-${basename(file)}`));
  for (const [file] of [[PROGRAM], ...output('ldd', PROGRAM).matchAll(/\/\S+/g)]) {
    const place = join(folder, file === PROGRAM ? 'bin' : file!.slice(0, file!.lastIndexOf('/')));
    mkdirSync(place, { recursive: true });
    copyFileSync(file!, join(place, basename(file!)));
  }
}
interface RemoteDisk {
  readonly name: string;
  readonly port: number;
}
/** @param host of the targets, as the machine reaches it */
export const connectRemoteDisks = (host: string, iscsi: readonly RemoteDisk[], nvme: readonly RemoteDisk[]): string =>
  [
    'until ip -4 addr | grep -q "scope global"; do sleep 1; done',
    'for module in /remote/*.ko; do insmod $module 2> /dev/null; done',
    ...iscsi.map(({ name, port }) => `iscsistart -i iqn.2026-01.org.example:machine -t ${name} -g 1 -a ${host} -p ${port}`),
    ...nvme.map(({ name, port }) => `nvme connect -t tcp -a ${host} -s ${port} -n ${name} -q nqn.2026-01.org.example:machine`),
    'udevadm settle -t 30',
  ].join('\n');
