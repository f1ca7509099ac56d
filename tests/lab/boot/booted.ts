/** What the tests of network boot have in common: a kernel with a tiny ramdisk that says its command line, and the boot services. */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { buildSync } from 'esbuild';
import type { Lab } from '../../../demo/lab/machines';
import { root } from '../support/venv';
import type { BootServerSetup } from './boot-server';

const run = promisify(execFile);

/** Prints the kernel's command line, and its lockdown where it has one. */
const INIT = `#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sysfs /sys
/bin/busybox mount -t securityfs securityfs /sys/kernel/security
echo "REACHED $(/bin/busybox cat /proc/cmdline /sys/kernel/security/lockdown | /bin/busybox tr '\\n' ' ') END"
/bin/busybox sleep 1000
`;
/** What the console of a machine has when it runs the ramdisk. */
export const REACHED = /REACHED [^\n]* END/;

/** Debian's kernel, with which the other tests make their image. */
async function kernel(folder: string): Promise<string> {
  const cache = join(root, '.cache/kernel/boot');
  if (!existsSync(cache))
    await run('bash', [join(root, 'demo/lab/image.sh'), join(folder, 'image.raw'), 'http://0/'], { timeout: 300_000 });
  return join(
    cache,
    readdirSync(cache).find((name) => name.startsWith('vmlinuz-'))!,
  );
}

/** The kernel, and an initramfs that needs no other files. */
export async function bootedFiles(folder: string): Promise<{ readonly kernel: string; readonly ramdisk: string }> {
  const tree = join(folder, 'ramdisk');
  const ramdisk = join(folder, 'ramdisk.gz');
  mkdirSync(join(tree, 'bin'), { recursive: true });
  for (const folder of ['proc', 'sys']) mkdirSync(join(tree, folder));
  writeFileSync(join(tree, 'init'), INIT, { mode: 0o755 });
  await run('bash', ['-c', 'cp /bin/busybox "$0/bin/" && cd "$0" && find . | cpio --quiet -o -H newc | gzip > "$1"', tree, ramdisk]);
  return { kernel: await kernel(folder), ramdisk };
}

/** Starts the boot services in the lab's namespace. @param logged gets what they log */
export async function startBootServer(lab: Lab, setup: BootServerSetup, logged: (text: string) => void): Promise<void> {
  const program = join(root, `.cache/lab/${lab.name}-server.js`);
  buildSync({
    entryPoints: [join(__dirname, 'boot-server.ts')],
    outfile: program,
    bundle: true,
    platform: 'node',
    packages: 'external',
    logLevel: 'error',
  });
  const server = lab.start(process.execPath, program, JSON.stringify(setup));
  let said = '';
  server.stderr!.on('data', (data: Buffer) => {
    said += data.toString();
    logged(data.toString());
  });
  const [ready] = (await Promise.race([once(server.stdout!, 'data'), once(server, 'exit')])) as [unknown];
  if (String(ready) !== 'ready\n') throw new Error(`the boot services did not start: ${said}`);
}
