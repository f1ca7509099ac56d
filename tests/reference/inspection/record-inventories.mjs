// Records what the real ironic-python-agent reports of machines of many shapes, in QEMU, as inventories/recorded/recorded-NAME.json.
// hooks.test.ts compares our hooks with the real Ironic's by these files. Root, for the ramdisk only:
//   bash tests/reference/inspection/ipa-ramdisk.sh .cache/ipa-ramdisk && node tests/reference/inspection/record-inventories.mjs [NAME …]
// Two minutes a machine without KVM. Debian packages: qemu-system-x86 ovmf cpio zstd.
import { execFileSync, spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { clearInterval, setInterval, setTimeout } from 'node:timers';
import { dirname, join } from 'node:path';

const root = join(import.meta.dirname ?? dirname(new URL(import.meta.url).pathname), '../../..');
const cache = join(root, '.cache');
const PATIENCE_S = 900;
const ALL = 'default,pci-devices,numa-topology,dmi-decode,usb-devices,lldp';

const macOf = (machine, nic) => `52:54:0a:00:${machine.toString(16).padStart(2, '0')}:${nic.toString(16).padStart(2, '0')}`;
const tlv = (type, ...parts) => {
  const value = Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : Buffer.from(part))));
  return Buffer.concat([Buffer.from([(type << 1) | (value.length >> 8), value.length & 255]), value]);
};
const SWITCH = [0x02, 0, 0, 0, 0x11, 0x22];
/** IEEE 802.1AB: what a switch announces of itself. */
const LLDP = Buffer.concat([
  Buffer.from([0x01, 0x80, 0xc2, 0, 0, 0x0e, ...SWITCH, 0x88, 0xcc]),
  tlv(1, [4, ...SWITCH]),
  tlv(2, [5], 'Ethernet1/7'),
  tlv(3, [0, 120]),
  tlv(4, 'to the lab'),
  tlv(5, 'leaf-1.example.org'),
  tlv(6, 'Switch OS 1.2'),
  tlv(7, [0, 0x14, 0, 0x04]),
  tlv(8, [5, 1, 192, 0, 2, 250, 2, 0, 0, 0, 7, 0]),
  tlv(127, [0x00, 0x80, 0xc2, 1, 0, 101]),
  tlv(127, [0x00, 0x80, 0xc2, 3, 0, 101, 4], 'prod'),
  tlv(127, [0x00, 0x12, 0x0f, 1, 3, 0x6c, 0x11, 0, 16]),
  tlv(127, [0x00, 0x12, 0x0f, 3, 1, 0, 0, 0, 0]),
  tlv(127, [0x00, 0x12, 0x0f, 4, 0x05, 0xf2]),
  tlv(0),
]);

/** @param size GiB */
const disk = (device, size) => ({ device, size });
const nic = (model, { link = 'none', more = '' } = {}) => ({ model, link, more });
const booted = (model, more) => nic(model, { link: 'user', more });
const machineOf = (changes) => ({
  machine: 'q35',
  uefi: false,
  smp: '2',
  memory: '1536M',
  nics: [booted('virtio-net-pci')],
  disks: [],
  devices: [],
  words: [`ipa-inspection-collectors=${ALL}`],
  bootif: true,
  modules: [],
  prepare: '',
  node: {},
  /** The interfaces that are ports of the node before the inspection. */
  ports: [0],
  ...changes,
});
const NUMA = [0, 1].flatMap((node) => [
  '-object',
  `memory-backend-ram,id=m${node},size=1G`,
  '-numa',
  `node,nodeid=${node},cpus=${4 * node}-${4 * node + 3},memdev=m${node}`,
]);

/** The order determines the addresses: new machines come at the end. */
const MACHINES = {
  'old-pc': machineOf({ machine: 'pc', smp: '1', nics: [booted('e1000')], disks: [disk('ide-hd,bus=ide.0,serial=OLD1', 20)], words: [] }),
  uefi: machineOf({ uefi: true, disks: [disk('nvme,serial=NVME-A', 40), disk('nvme,serial=NVME-B', 40)] }),
  'two-sockets': machineOf({
    smp: '8,sockets=2,cores=2,threads=2',
    memory: '2G',
    nics: [booted('e1000e', 'bus=far')],
    disks: [disk('virtio-blk-pci,serial=FIRST,bus=pcie.0', 8), disk('virtio-blk-pci,serial=SECOND,bus=pcie.0', 16)],
    devices: [
      ...NUMA,
      '-device',
      'pxb-pcie,id=pxb,bus_nr=128,numa_node=1,bus=pcie.0',
      '-device',
      'pcie-root-port,id=far,bus=pxb,chassis=1',
    ],
    node: { root_device: { serial: 'SECOND' } },
  }),
  sata: machineOf({
    disks: [
      disk('ide-hd,bus=ide.0,serial=SATA-1,wwn=0x5000c500a1b2c3d1,rotation_rate=7200,model=SPINNER', 100),
      disk('ide-hd,bus=ide.1,serial=SATA-2,wwn=0x5000c500a1b2c3d2,rotation_rate=1', 30),
      disk('ide-hd,bus=ide.2,serial=SATA-3,physical_block_size=4096,logical_block_size=512', 50),
    ],
    devices: ['-device', 'ide-cd,bus=ide.3'],
    node: { root_device: { rotational: false } },
  }),
  scsi: machineOf({
    nics: [booted('virtio-net-pci'), nic('virtio-net-pci')],
    devices: ['-device', 'virtio-scsi-pci,id=scsi0'],
    disks: [
      disk('scsi-hd,bus=scsi0.0,scsi-id=0,vendor=ACME,product=Disk15K,serial=SCSI-1,wwn=0x5000c50015ea71aa,rotation_rate=15000', 10),
      disk('scsi-hd,bus=scsi0.0,scsi-id=3,lun=5,serial=SCSI-2', 12),
    ],
  }),
  raid: machineOf({
    modules: ['raid1'],
    disks: [disk('virtio-blk-pci,serial=HALF1', 6), disk('virtio-blk-pci,serial=HALF2', 6)],
    prepare: 'chroot /ipa mdadm --create /dev/md0 --run --metadata=1.0 --level=1 --raid-devices=2 /dev/vda /dev/vdb --assume-clean',
  }),
  diskless: machineOf({}),
  'many-nics': machineOf({
    modules: ['8139cp'],
    nics: [
      nic('e1000'),
      nic('e1000e'),
      nic('virtio-net-pci'),
      nic('rtl8139'),
      nic('vmxnet3'),
      nic('virtio-net-pci'),
      booted('virtio-net-pci'),
      nic('e1000', { more: 'bus=pcie.0' }),
    ],
    disks: [disk('virtio-blk-pci,serial=ONE', 10)],
    ports: [0, 6],
  }),
  lldp: machineOf({
    nics: [booted('virtio-net-pci'), nic('virtio-net-pci', { link: 'switch' }), nic('e1000', { link: 'switch' })],
    disks: [disk('virtio-blk-pci,serial=LLDP', 10)],
    words: [`ipa-inspection-collectors=${ALL}`, 'ipa-collect-lldp=1', 'ipa-lldp-timeout=10'],
    ports: [0, 1],
  }),
  'four-sockets': machineOf({
    memory: '1536M,slots=4,maxmem=8G',
    smp: '4,sockets=4',
    devices: [
      '-object',
      'memory-backend-ram,id=d0,size=1G',
      '-device',
      'pc-dimm,id=dimm0,memdev=d0',
      '-object',
      'memory-backend-ram,id=d1,size=512M',
      '-device',
      'pc-dimm,id=dimm1,memdev=d1',
    ],
    disks: [disk('virtio-blk-pci,serial=M', 10)],
  }),
  ipv6: machineOf({
    uefi: true,
    nics: [booted('e1000e'), nic('virtio-net-pci', { link: 'user6' })],
    disks: [disk('virtio-blk-pci', 10)],
    bootif: false,
    words: ['ipa-inspection-collectors=default', 'ipa-inspection-dhcp-wait-timeout=0'],
  }),
  vlan: machineOf({
    modules: ['8021q'],
    nics: [booted('virtio-net-pci'), nic('virtio-net-pci', { link: 'switch' })],
    disks: [disk('virtio-blk-pci,serial=V', 10)],
    words: [`ipa-inspection-collectors=${ALL}`, 'ipa-collect-lldp=1', 'ipa-lldp-timeout=10', 'ipa-enable-vlan-interfaces=all'],
    ports: [0, 1],
  }),
  peripherals: machineOf({
    devices: [
      '-device',
      'ipmi-bmc-sim,id=bmc0',
      '-device',
      'isa-ipmi-kcs,bmc=bmc0',
      '-device',
      'qemu-xhci,id=usb',
      '-device',
      'usb-tablet,bus=usb.0',
      '-device',
      'edu',
      '-device',
      'virtio-rng-pci',
      '-device',
      'ich9-intel-hda',
      '-smbios',
      'type=2,manufacturer=ACME,product=Board 3,serial=BOARD-1',
      '-smbios',
      'type=17,manufacturer=DIMMs,part=P-1,serial=D-1,speed=3200',
      '-smbios',
      'type=4,manufacturer=CPUs,version=Model 9,max-speed=3600,current-speed=2400',
    ],
    disks: [disk('usb-storage,bus=usb.0,serial=STICK', 2), disk('nvme,serial=N1', 64)],
    node: { root_device: { size: '> 10' } },
  }),
  'agent-error': machineOf({ words: ['ipa-inspection-collectors=default,extra-hardware'], disks: [disk('virtio-blk-pci,serial=E', 10)] }),
  'small-disks': machineOf({
    disks: [disk('virtio-blk-pci,serial=TINY1', 1), disk('virtio-blk-pci,serial=TINY2', 2)],
    words: ['ipa-inspection-collectors=default'],
  }),
};
const names = Object.keys(MACHINES);

function initrdOf(folder, { modules, prepare }) {
  if (modules.length === 0 && prepare === '') return join(cache, 'ipa-ramdisk/initrd');
  const tree = join(folder, 'tree');
  mkdirSync(join(tree, 'bin'), { recursive: true });
  const kernel = join(cache, 'kernel');
  const version = readdirSync(join(kernel, 'lib/modules'))[0];
  const files = modules.flatMap((name) =>
    execFileSync('modprobe', ['-d', kernel, '-S', version, '--show-depends', name], { encoding: 'utf8' })
      .split('\n')
      .flatMap((line) => (line.startsWith('insmod ') ? [line.split(' ')[1]] : [])),
  );
  const inserted = files.map((file, at) => {
    copyFileSync(file, join(tree, `${at}.ko`));
    return `insmod /${at}.ko`;
  });
  const path = join(tree, 'bin/prepare');
  writeFileSync(path, ['#!/bin/sh', ...inserted, prepare, ''].join('\n'));
  chmodSync(path, 0o755);
  const archive = execFileSync('sh', ['-c', 'find . | cpio --quiet -o -H newc -R 0:0 | zstd -q'], { cwd: tree, maxBuffer: 64 << 20 });
  const initrd = join(folder, 'initrd');
  writeFileSync(initrd, Buffer.concat([readFileSync(join(cache, 'ipa-ramdisk/initrd')), archive]));
  return initrd;
}

async function record(name) {
  const number = names.indexOf(name) + 1;
  const given = MACHINES[name];
  const folder = mkdtempSync(join(tmpdir(), 'bloomery-record-'));
  /** @type {(() => Promise<unknown> | void)[]} */
  const ends = [() => rmSync(folder, { recursive: true, force: true })];
  try {
    let told;
    const callback = new Promise((resolve) => (told = resolve));
    const api = createServer((request, response) => {
      const parts = [];
      request.on('data', (part) => parts.push(part));
      request.on('end', () => {
        const ours = request.url.startsWith('/v1/continue_inspection');
        response.writeHead(ours ? 202 : 404, { 'content-type': 'application/json' }).end(JSON.stringify({ uuid: 'u' }));
        if (ours) told(JSON.parse(Buffer.concat(parts).toString()));
      });
    }).listen(0, '127.0.0.1');
    ends.push(
      () => api.close(),
      () => api.closeAllConnections(),
    );
    await once(api, 'listening');
    const url = `http://10.0.2.2:${api.address().port}`;

    const links = {
      none: (id) => ['-netdev', `hubport,id=${id},hubid=${id.slice(1)}`],
      user: (id) => ['-netdev', `user,id=${id},ipv6=off`],
      user6: (id) => ['-netdev', `user,id=${id},ipv4=off,ipv6=on`],
      switch: async (id) => {
        const [here, there] = [createSocket('udp4'), createSocket('udp4')];
        for (const socket of [here, there]) {
          socket.bind(0, '127.0.0.1');
          await once(socket, 'listening');
        }
        const port = there.address().port;
        there.close();
        const timer = setInterval(() => here.send(LLDP, port, '127.0.0.1'), 1000);
        here.on('error', () => {});
        ends.push(() => (clearInterval(timer), here.close()));
        return ['-netdev', `socket,id=${id},udp=127.0.0.1:${here.address().port},localaddr=127.0.0.1:${port}`];
      },
    };
    const nics = [];
    for (const [at, { model, link, more }] of given.nics.entries())
      nics.push(
        ...(await links[link](`n${at}`)),
        '-device',
        `${model},netdev=n${at},mac=${macOf(number, at)},romfile=${more === '' ? '' : `,${more}`}`,
      );
    const disks = given.disks.flatMap(({ device, size }, at) => {
      const file = join(folder, `disk${at}`);
      writeFileSync(file, '');
      truncateSync(file, size * 2 ** 30);
      return ['-drive', `if=none,id=disk${at},format=raw,cache=unsafe,file=${file}`, '-device', `${device},drive=disk${at}`];
    });
    if (given.uefi) copyFileSync('/usr/share/OVMF/OVMF_VARS_4M.fd', join(folder, 'vars'));
    const firmware = given.uefi
      ? [
          '-drive',
          'if=pflash,format=raw,readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.fd',
          '-drive',
          `if=pflash,format=raw,file=${join(folder, 'vars')}`,
        ]
      : ['-smbios', 'type=0,vendor=Lab Firmware,version=7.7,date=01/02/2026'];
    const bootMac = macOf(
      number,
      given.nics.findIndex(({ link }) => link === 'user'),
    );
    const words = [
      'console=ttyS0',
      `ipa-api-url=${url}`,
      `ipa-inspection-callback-url=${url}/v1/continue_inspection`,
      ...(given.bootif ? [`BOOTIF=01-${bootMac.replaceAll(':', '-')}`] : []),
      ...given.words,
    ];
    const consoleFile = join(folder, 'console');
    const qemu = spawn('qemu-system-x86_64', [
      '-machine',
      given.machine,
      '-accel',
      'tcg,thread=single',
      '-cpu',
      'max',
      '-nodefaults',
      '-display',
      'none',
      '-no-reboot',
      '-smp',
      given.smp,
      '-m',
      given.memory,
      '-uuid',
      `5ec0de00-0000-4000-8000-0000000000${number.toString(16).padStart(2, '0')}`,
      '-smbios',
      `type=1,manufacturer=Lab Works,product=${name},serial=LAB-${number}`,
      ...firmware,
      '-serial',
      `file:${consoleFile}`,
      '-kernel',
      join(cache, 'ipa-ramdisk/vmlinuz'),
      '-initrd',
      initrdOf(folder, given),
      '-append',
      words.join(' '),
      ...given.devices,
      ...nics,
      ...disks,
    ]);
    let errors = '';
    qemu.stderr.on('data', (data) => (errors += data));
    const ended = once(qemu, 'exit');
    ends.push(() => {
      qemu.kill('SIGKILL');
      return ended;
    });
    const failed = Promise.race([
      ended.then(() => 'QEMU ended'),
      new Promise((resolve) => setTimeout(resolve, PATIENCE_S * 1000, 'it was silent').unref()),
    ]).then((why) => {
      const said = errors + readFileSync(consoleFile, 'latin1').slice(-3000);
      throw new Error(`${name}: ${why}: ${said}`);
    });
    const data = await Promise.race([callback, failed]);
    delete data.logs;
    const ports = given.ports.map((at) => ({ address: macOf(number, at) }));
    const file = join(root, 'tests/reference/inspection/inventories/recorded', `recorded-${name}.json`);
    writeFileSync(file, `${JSON.stringify({ node: given.node, ports, callback: data }, null, 2)}\n`);
    execFileSync(join(root, 'node_modules/.bin/oxfmt'), [file]);
    console.log(`${name}: ${data.error ?? 'recorded'}`);
  } finally {
    for (const end of ends.reverse()) await end();
  }
}

let problems = 0;
for (const name of process.argv.length > 2 ? process.argv.slice(2) : names)
  await record(name).catch((error) => {
    problems++;
    console.error(String(error));
  });
process.exitCode = problems === 0 ? 0 : 1;
