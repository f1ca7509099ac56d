/** A Redfish BMC that we did not write: sushy-emulator over a libvirtd of the lab's own, whose domains QEMU runs. */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { until } from '../../../demo/lab/machines';
import { programs } from './venv';

const run = promisify(execFile);

export interface Libvirt {
  /** The URL of the Redfish service, without a path. */
  readonly redfish: string;
  /** The URI of the libvirtd, for other BMCs in front of its domains. */
  readonly uri: string;
  define(domain: Domain): Promise<void>;
  /** Whether the domain runs. */
  isOn(name: string): Promise<boolean>;
  stop(): Promise<void>;
}
interface Domain {
  readonly name: string;
  readonly uuid: string;
  readonly firmware: 'bios' | 'uefi' | 'uefi-http';
  readonly memoryMiB: number;
  readonly cpus: number;
  readonly mac: string;
  /** Network interfaces on tap devices that exist already, in place of one on the lab's bridge. */
  readonly taps?: readonly { readonly mac: string; readonly name: string }[];
  /** qcow2 file. */
  readonly disk: string;
  readonly diskSerial: string;
  readonly console: string;
}

const UEFI = '/usr/share/OVMF/OVMF_CODE_4M.fd';
const VARIABLES = '/usr/share/OVMF/OVMF_VARS_4M.fd';
// For a BIOS, QEMU uses this loader anyway; but without the element sushy-tools reports no boot mode and cannot set one.
const firmwareXml = (domain: Domain): string =>
  domain.firmware === 'bios'
    ? "<loader type='rom'>/usr/share/seabios/bios-256k.bin</loader>"
    : `<loader readonly='yes' type='pflash'>${UEFI}</loader><nvram template='${VARIABLES}'>${domain.disk}.vars</nvram>`;
// Linux uses LACP only on interfaces that report their speed, which virtio's do not.
const interfacesXml = ({ mac, taps }: Domain, bridge: string): string =>
  taps === undefined
    ? `<interface type='bridge'><source bridge='${bridge}'/><mac address='${mac}'/><model type='virtio'/></interface>`
    : taps
        .map(
          (tap) =>
            `<interface type='ethernet'><target dev='${tap.name}' managed='no'/><mac address='${tap.mac}'/><model type='e1000'/></interface>`,
        )
        .join('');
const domainXml = (domain: Domain, bridge: string): string => `<domain type='qemu'>
 <name>${domain.name}</name><uuid>${domain.uuid}</uuid>
 <memory unit='MiB'>${domain.memoryMiB}</memory><vcpu>${domain.cpus}</vcpu>
 <os><type arch='x86_64' machine='q35'>hvm</type>${firmwareXml(domain)}<boot dev='network'/><bios useserial='yes'/></os>
 <features><acpi/></features><cpu mode='maximum'/>
 <on_poweroff>destroy</on_poweroff><on_reboot>restart</on_reboot>
 <devices><emulator>/usr/bin/qemu-system-x86_64</emulator>
  <disk type='file' device='disk'><driver name='qemu' type='qcow2' cache='unsafe'/><source file='${domain.disk}'/><target dev='vda' bus='virtio'/><serial>${domain.diskSerial}</serial></disk>
  ${interfacesXml(domain, bridge)}
  <serial type='file'><source path='${domain.console}' append='on'/></serial>
  <rng model='virtio'><backend model='random'>/dev/urandom</backend></rng>
 </devices>
</domain>
`;

interface LibvirtTls {
  readonly certificate: string;
  readonly key: string;
  /** Authorities with which it verifies the servers of virtual media. */
  readonly ca: string;
}
/**
 * @param lab the namespace with its bridge, the address in it for the Redfish service, and a folder for all files; `tls`: files for a
 * Redfish service with TLS
 */
export async function startLibvirt(lab: {
  readonly namespace: string;
  readonly bridge: string;
  readonly address: string;
  readonly port: number;
  readonly folder: string;
  readonly tls?: LibvirtTls;
}): Promise<Libvirt> {
  const emulator = join(await programs('sushy', ['sushy-tools==2.2.0'], true), 'sushy-emulator');
  const folder = join(lab.folder, 'libvirt');
  for (const name of ['etc', 'run', 'lib', 'cache']) mkdirSync(join(folder, name), { recursive: true });
  writeFileSync(join(folder, 'etc/libvirtd.conf'), 'auth_unix_rw = "none"\n');
  writeFileSync(
    join(folder, 'etc/qemu.conf'),
    'user = "root"\ngroup = "root"\nsecurity_driver = "none"\nstdio_handler = "file"\nnamespaces = []\ncgroup_controllers = []\nremember_owner = 0\n',
  );
  // `ip netns exec` also makes a mount namespace: there, libvirt's fixed paths become the lab's own.
  const mounts = [
    ['etc', '/etc/libvirt'],
    ['lib', '/var/lib/libvirt'],
    ['cache', '/var/cache/libvirt'],
    ['run', '/run/libvirt'],
  ].map(([name, path]) => `mkdir -p ${path!}; mount --bind ${join(folder, name!)} ${path!}`);
  const processes: ChildProcess[] = [];
  const start = (name: string, ...words: string[]): void => {
    const log = createWriteStream(join(folder, `${name}.log`));
    const child = spawn('ip', ['netns', 'exec', lab.namespace, ...words], { stdio: ['ignore', 'pipe', 'pipe'] });
    child.stdout.pipe(log);
    child.stderr.pipe(log);
    processes.push(child);
  };
  start('libvirtd', 'sh', '-c', `${mounts.join('; ')}; exec libvirtd -p ${join(folder, 'libvirtd.pid')}`);
  const socket = join(folder, 'run/libvirt-sock');
  const uri = `qemu+unix:///system?socket=${socket}`;
  const virsh = async (...words: string[]): Promise<string> =>
    (await run('virsh', ['-q', '-c', uri, ...words], { timeout: 30_000 })).stdout.trim();
  const stop = async (): Promise<void> => {
    if (existsSync(socket))
      for (const name of (await virsh('list', '--name').catch(() => '')).split('\n').filter(Boolean))
        await virsh('destroy', name).catch(() => '');
    for (const child of processes.reverse()) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const ended = once(child, 'exit');
      child.kill();
      await ended;
    }
  };
  try {
    await until(
      240,
      () => 'libvirtd',
      () => existsSync(socket),
    );
    // The pool in which sushy-tools keeps inserted images.
    mkdirSync(join(folder, 'pool'), { recursive: true });
    await virsh('pool-define-as', 'default', 'dir', '--target', join(folder, 'pool'));
    await virsh('pool-start', 'default');
    const config = join(folder, 'emulator.conf');
    const values = {
      LIBVIRT_URI: `"${uri}"`,
      LISTEN_IP: `"${lab.address}"`,
      LISTEN_PORT: lab.port,
      ...(lab.tls ? { SSL_CERT: `"${lab.tls.certificate}"`, SSL_KEY: `"${lab.tls.key}"`, VMEDIA_VERIFY_SSL: 'True' } : {}),
      BOOT_LOADER_MAP: `{"UEFI": {"x86_64": "${UEFI}"}, "Legacy": {"x86_64": None}}`,
    };
    const lines = Object.entries(values).map(([name, value]) => `SUSHY_EMULATOR_${name} = ${value}\n`);
    writeFileSync(config, lines.join(''));
    const environment = lab.tls ? ['env', `REQUESTS_CA_BUNDLE=${lab.tls.ca}`] : [];
    start('sushy-emulator', ...environment, emulator, '--config', config);
    const redfish = `${lab.tls ? 'https' : 'http'}://${lab.address}:${lab.port}`;
    const trust = lab.tls ? ['--cacert', lab.tls.ca] : [];
    await until(
      240,
      () => 'sushy-emulator',
      async () => {
        const words = ['netns', 'exec', lab.namespace, 'curl', '-sf', ...trust, `${redfish}/redfish/v1/`];
        const answer = await run('ip', words).catch(() => undefined);
        return answer !== undefined;
      },
    );
    return {
      redfish,
      uri,
      define: async (domain) => {
        const file = join(folder, `${domain.name}.xml`);
        writeFileSync(file, domainXml(domain, lab.bridge));
        await virsh('define', file);
      },
      isOn: async (name) => (await virsh('domstate', name)) === 'running',
      stop,
    };
  } catch (error) {
    await stop();
    const logs = ['libvirtd', 'sushy-emulator'].map((name) => join(folder, `${name}.log`)).filter((file) => existsSync(file));
    throw new Error(`libvirt: ${String(error)}\n${logs.map((file) => readFileSync(file, 'utf8').slice(-2000)).join('\n')}`, {
      cause: error,
    });
  }
}
