/**
 * From an instance into the ramdisk by kexec, and back: a machine in QEMU behind IPMI, the whole server and its own ramdisk. The instance is
 * a small system on the disk, of our ramdisk's files, in which the resident agent runs.
 */
import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { startIpmiSim } from '../../../demo/lab/ipmi-sim';
import { consoleEnd, openLab, until, type Lab, type LabMachine } from '../../../demo/lab/machines';
import { root } from '../../../demo/lab/root';
import { bootingSections, startServerProcess, type RunningServer } from '../../../demo/lab/server';
import { API, call } from '../inspection/inspect-machine';
import { buildRamdisk } from '../support/ramdisk';

/** Seconds. */
const PATIENCE = 900;
jest.setTimeout(4 * PATIENCE * 1000);

let lab: Lab;
let server: RunningServer;
const undo: (() => Promise<unknown>)[] = [];
const serve = () => {
  const patient = { ...bootingSections(lab), deploy: { resident_kexec_timeout: PATIENCE } };
  return startServerProcess(join(lab.folder, 'server'), patient, lab.namespace);
};

beforeAll(async () => {
  await buildRamdisk();
  lab = await openLab('bloomery-resid');
  undo.push(() => lab.close());
  server = await serve();
  undo.push(() => server.stop());
});
afterAll(async () => {
  for (const step of undo.reverse()) await step();
});

const INIT = `#!/bin/sh
export PATH=/bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
mkdir -p /run /tmp /dev/shm; mount -t tmpfs tmpfs /dev/shm
echo "instance: started"
for word in $(cat /proc/cmdline); do case $word in node=*) node=\${word#node=};; token=*) echo "\${word#token=}" > /run/token;; esac; done
ip link set lo up
# The drivers of buses reveal further devices.
for round in 1 2 3; do cat /sys/bus/*/devices/*/modalias | sort -u | while read -r alias; do modprobe -q -b "$alias"; done; done
for path in /sys/class/net/*; do
  [ -e "$path/device" ] || continue
  ip link set "\${path##*/}" up; udhcpc -q -n -t 20 -T 1 -i "\${path##*/}" -s /bin/lease > /dev/null 2>&1
done
trap '' TERM
while :; do /bin/agent resident --url ${API} --node "$node" --token-file /run/token > /dev/ttyS0 2>&1; sleep 1; done
`;
/** Writes a system to the machine's disk: GRUB starts the ramdisk's kernel, with another first process in its files. */
function install(machine: LabMachine, node: string, token: string): void {
  const folder = join(lab.folder, 'instance');
  mkdirSync(join(folder, 'files'), { recursive: true });
  const at = (name: string): string => join(folder, name);
  const run = (program: string, ...words: readonly string[]) => execFileSync(program, words, { cwd: folder, stdio: 'pipe' });
  writeFileSync(at('files/init'), INIT);
  chmodSync(at('files/init'), 0o755);
  run('sh', '-c', 'cd files && echo init | cpio --quiet -o -H newc -R 0:0 > ../overlay');
  const line = `console=ttyS0 no_timer_check mitigations=off quiet node=${node} token=${token}`;
  writeFileSync(at('grub.cfg'), `linux /vmlinuz ${line}\ninitrd /initrd /overlay\nboot\n`);
  const modules = ['biosdisk', 'part_msdos', 'fat', 'normal', 'linux', 'configfile'];
  run('grub-mkimage', '-O', 'i386-pc', '-p', '(hd0,msdos1)/grub', '-o', at('core.img'), ...modules);
  const raw = at('disk.raw');
  writeFileSync(raw, '');
  truncateSync(raw, 200 * 2 ** 20);
  run('sh', '-c', `printf '2048,,c,*\\n' | sfdisk -q ${raw}`);
  run('dd', 'if=/usr/lib/grub/i386-pc/boot.img', `of=${raw}`, 'bs=446', 'count=1', 'conv=notrunc', 'status=none');
  run('dd', `if=${at('core.img')}`, `of=${raw}`, 'bs=512', 'seek=1', 'conv=notrunc', 'status=none');
  const fat = `${raw}@@1M`;
  run('mformat', '-i', fat, '-F', '-T', String(199 * 2048), '-h', '64', '-s', '32', '::');
  run('mmd', '-i', fat, '::/grub');
  for (const name of ['vmlinuz', 'initrd']) run('mcopy', '-i', fat, join(root, '.cache/ramdisk', name), `::/${name}`);
  run('mcopy', '-i', fat, at('overlay'), '::/overlay');
  run('mcopy', '-i', fat, at('grub.cfg'), '::/grub/grub.cfg');
  run('qemu-img', 'convert', '-f', 'raw', '-O', 'qcow2', raw, at('disk.qcow2'));
  run('qemu-img', 'resize', at('disk.qcow2'), '5G');
  copyFileSync(at('disk.qcow2'), machine.diskFile);
}

const NAME = 'resident';
const described = async (machine: LabMachine): Promise<string> =>
  `${JSON.stringify(await call(lab, 'GET', `/nodes/${NAME}`))}\n${consoleEnd(machine)}\n${server.logEnd()}`;
async function reach(machine: LabMachine, state: string, isSo: () => Promise<boolean> = async () => true): Promise<void> {
  let text = '';
  await until(
    PATIENCE,
    () => `${NAME} to be ${state}: ${text}`,
    async () => {
      const node = await call(lab, 'GET', `/nodes/${NAME}`);
      if (node['provision_state'] === state && (await isSo())) return true;
      text = await described(machine);
      if (/failed$|^error$/.test(String(node['provision_state']))) throw new Error(text);
      await delay(500);
      return false;
    },
  );
}
const order = (target: string, more: object = {}) => call(lab, 'PUT', `/nodes/${NAME}/states/provision`, { target, ...more });
const listed = async (path: string, key: string): Promise<readonly Readonly<Record<string, unknown>>[]> =>
  (await call(lab, 'GET', path))[key] as readonly Readonly<Record<string, unknown>>[];
const powerOns = async (): Promise<number> =>
  (await listed(`/events?node=${NAME}&kind=power&limit=1000`, 'events'))
    .map(({ payload }) => payload as Readonly<Record<string, unknown>>)
    .filter(({ power_state: now, previous_power_state: before }) => now === 'power on' && before === 'power off').length;

it('the resident agent starts the ramdisk for a service, and the firmware only boots the instance again', async () => {
  const machine = await lab.machine({ name: NAME, firmware: 'bios', memoryMiB: 1280, cpus: 2, diskGiB: 5 });
  const sim = await startIpmiSim(machine, { namespace: lab.namespace, address: lab.address, port: 6230, folder: lab.folder });
  undo.push(() => sim.stop());
  const created = await call(lab, 'POST', '/nodes', {
    name: NAME,
    driver: 'ipmi',
    boot_interface: 'ipxe',
    driver_info: {
      ipmi_address: sim.address,
      ipmi_port: sim.port,
      ipmi_username: sim.username,
      ipmi_password: sim.password,
      resident_kexec: true,
    },
    properties: { capabilities: 'boot_mode:bios' },
    instance_info: { image_source: 'http://192.0.2.1/unknown' },
  });
  await call(lab, 'POST', '/ports', { node_uuid: created['uuid'], address: machine.mac });
  await order('manage');
  await reach(machine, 'manageable');
  await order('adopt');
  await reach(machine, 'active');
  const { token } = await call(lab, 'POST', `/nodes/${NAME}/resident_agent/token`);
  install(machine, String(created['uuid']), String(token));
  await call(lab, 'PUT', `/nodes/${NAME}/management/boot_device`, { boot_device: 'disk', persistent: true });
  await call(lab, 'PUT', `/nodes/${NAME}/states/power`, { target: 'power on' });
  const seen = async (): Promise<unknown> => (await call(lab, 'GET', `/nodes/${NAME}/resident_agent`))['seen_at'];
  await reach(machine, 'active', async () => (await seen()) !== null);
  const before = await powerOns();
  const first = await seen();

  const began = Date.now();
  const made = await call(lab, 'POST', `/nodes/${NAME}/snapshots`, {});
  const isSaving = async (): Promise<boolean> => (await call(lab, 'GET', `/snapshots/${String(made['uuid'])}`))['state'] !== 'queued';
  await reach(machine, 'service wait', isSaving);
  process.stderr.write(`resident: ${((Date.now() - began) / 1000).toFixed(1)} s from the request to the ramdisk's first part, by kexec\n`);
  await reach(machine, 'active', async () => (await seen()) !== first);
  const history = await listed(`/nodes/${NAME}/history?detail=true`, 'history');
  const boots = history.filter(({ event_type: type }) => type === 'ramdisk_boot').map(({ event }) => event);
  expect(boots).toEqual(['The agent in the instance started the ramdisk by kexec: vmlinuz']);
  expect(await powerOns()).toBe(before + 1);
  await until(
    PATIENCE,
    () => server.logEnd(),
    async () => {
      const { state } = await call(lab, 'GET', `/snapshots/${String(made['uuid'])}`);
      if (state === 'failed') throw new Error('the snapshot failed');
      return state === 'available';
    },
  );
});
