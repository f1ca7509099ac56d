/** npm run demo -- --qemu: one machine that really boots, on a network of its own, behind an IPMI BMC. */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { startIpmiSim } from './lab/ipmi-sim';
import { consoleEnd, openLab, until, type Lab } from './lab/machines';
import { bootingSections, startServerProcess } from './lab/server';
import { openClient, type Exchange } from './client';
import { openDisplay } from './progress';
import { walk } from './walk';
import { printableText } from '../model/log';
import { root } from './lab/root';

const API = 'http://10.77.0.1:6385';
const REPORT_PORT = 8099;
// Without KVM a boot takes minutes on a busy host.
const WITHIN_SECONDS = 1800;
const PROGRAMS = ['qemu-system-x86_64', 'qemu-img', 'ipmi_sim', 'curl', 'ip', 'cpio', 'zstd', 'grub-mkimage', 'mcopy', 'sfdisk'];

/** Fails early with the missing requirements. */
function check(): void {
  if (process.getuid?.() !== 0) throw new Error('--qemu needs root: it makes a network namespace and answers DHCP in it');
  const missing = PROGRAMS.filter((name) => spawnSync('sh', ['-c', `command -v ${name}`]).status !== 0);
  if (missing.length > 0)
    throw new Error(
      `--qemu needs programs that are not here: ${missing.join(', ')}; their Debian packages are listed in tests/lab/packages.txt`,
    );
}

/** Sends requests from the lab's namespace, where the API is. */
const throughNamespace =
  (lab: Lab): Exchange =>
  async (method, url, headers, body) => {
    const words = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
    const output = await lab.exec(
      'curl',
      '-s',
      '-m',
      '30',
      '-X',
      method,
      ...words,
      ...(body === undefined ? [] : ['-d', body]),
      '-w',
      '\n%{http_code}',
      url,
    );
    const end = output.lastIndexOf('\n');
    return { status: Number(output.slice(end + 1)), text: output.slice(0, end) };
  };

/** @returns whether the machine became active before `stopped` */
export async function booted(keep: boolean, stopped: Promise<void>): Promise<boolean> {
  check();
  console.log('building the ramdisk and an image to deploy …');
  const quiet = { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] as ('ignore' | 'inherit')[] };
  execFileSync('bash', [join(root, 'ramdisk-agent/build/ramdisk.sh')], quiet);
  const lab = await openLab('bloomery-demo');
  const undo: (() => Promise<unknown>)[] = [() => lab.close()];
  try {
    const images = join(lab.folder, 'server/state/httpboot');
    const report = join(lab.folder, 'report');
    mkdirSync(images, { recursive: true });
    execFileSync(
      'bash',
      [join(root, 'demo/lab/image.sh'), join(images, 'demo.raw'), `http://${lab.address}:${REPORT_PORT}/`, 'demo'],
      quiet,
    );
    lab.start(process.execPath, join(root, 'demo/lab/report-server.mjs'), lab.address, String(REPORT_PORT), report);
    const server = await startServerProcess(join(lab.folder, 'server'), bootingSections(lab), lab.namespace);
    undo.push(() => server.stop());
    console.log(server.ready);
    const machine = await lab.machine({ name: 'qemu-0', firmware: 'bios', memoryMiB: 768, cpus: 1, diskGiB: 5 });
    const bmc = await startIpmiSim(machine, { namespace: lab.namespace, address: lab.address, port: 6230, folder: lab.folder });
    undo.push(() => bmc.stop());
    const started = Date.now();
    const isActive = await walk(
      openClient(API, throughNamespace(lab)),
      [
        {
          name: machine.name,
          macs: machine.macs,
          driver: 'ipmi',
          driverInfo: { ipmi_address: bmc.address, ipmi_port: bmc.port, ipmi_username: bmc.username, ipmi_password: bmc.password },
        },
      ],
      { url: `http://${lab.address}:8080/demo.raw`, sha256: readFileSync(join(images, 'demo.raw.sha256'), 'utf8').trim(), format: 'raw' },
      openDisplay(process.stdout, Date.now),
      started + WITHIN_SECONDS * 1000,
      stopped,
    );
    if (!isActive) return false;
    const reported = until(
      WITHIN_SECONDS,
      () => `a report of the deployed system\n${consoleEnd(machine)}`,
      () => existsSync(report),
    );
    if (!(await Promise.race([reported.then(() => true), stopped.then(() => false)]))) return false;
    console.log(`\nThe deployed system reports (${((Date.now() - started) / 1000).toFixed(1)} s after enrolment):\n`);
    console.log(printableText(readFileSync(report, 'utf8').replaceAll(/^(file=\S+) .*$/gm, '$1')));
    if (keep) {
      console.log(
        `Running until Ctrl-C. Its network is a namespace: ip netns exec ${lab.namespace} env OS_AUTH_TYPE=none OS_ENDPOINT=${API} openstack baremetal node list`,
      );
      await stopped;
    }
    return true;
  } finally {
    for (const step of undo.reverse()) await step().catch((error: unknown) => console.error(`demo: cleaning up: ${String(error)}`));
  }
}
