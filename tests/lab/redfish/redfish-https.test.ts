/**
 * `redfish-https`: a BMC gets the URL of an image, and the agent in that image inspects the machine. Behind our simulator, OVMF fetches the
 * image, by HTTP and by HTTPS; sushy-tools fetches it itself and inserts it into the machine's CD drive.
 */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { buildSync } from 'esbuild';
import type { JsonObject } from '../../../model/records';
import { call } from '../inspection/inspect-machine';
import { startLibvirt, type Libvirt } from '../support/libvirt';
import { consoleEnd, openLab, until, type Lab } from '../../../demo/lab/machines';
import { needs } from '../support/needs';
import { buildRamdisk } from '../support/ramdisk';
import { bootingSections, startServerProcess, type RunningServer } from '../../../demo/lab/server';
import type { TlsFront } from './tls-front';
import { root } from '../support/venv';

const run = promisify(execFile);
/** Seconds; each wait takes at most 40 alone. */
const PATIENCE = 900;
jest.setTimeout(1_200_000);
let lab: Lab;
let server: RunningServer | undefined;
let libvirt: Libvirt | undefined;

beforeAll(async () => {
  needs({ 'qemu-system-x86_64': 'qemu-system-x86', 'qemu-img': 'qemu-utils', ip: 'iproute2', curl: 'curl', openssl: 'openssl' });
  await buildRamdisk();
  lab = await openLab('bloomery-https');
  server = await startServerProcess(join(lab.folder, 'server'), bootingSections(lab), lab.namespace);
});
afterAll(async () => {
  await libvirt?.stop();
  await server?.stop();
  await lab?.close();
});

interface Machine {
  readonly driverInfo: JsonObject;
  readonly mac: string;
  readonly consoleFile: string;
}
/** A machine of our simulator. @param number of the machine */
async function simulated(number: number, ...more: readonly string[]): Promise<Machine> {
  const state = join(lab.folder, `fleet-${number}`);
  const qemu = ['--qemu', '1', '--qemu-bridge', lab.bridge, '--qemu-firmware', 'uefi', '--qemu-memory', '1024', '--qemu-disk', '1'];
  const place = `${lab.address}:${8001 + number}`;
  const places = ['--first', String(number), '--bmcs', 'redfish', '--redfish', place, '--control', 'no', '--state', state, '--json'];
  const fleet = lab.start(process.execPath, join(root, 'bin/bloomery'), 'simulate', ...qemu, ...places, ...more);
  let said = '';
  let errors = '';
  fleet.stdout!.on('data', (data: Buffer) => (said += data.toString()));
  fleet.stderr!.on('data', (data: Buffer) => (errors += data.toString()));
  await until(
    PATIENCE,
    () => `bloomery simulate to be ready: ${errors}`,
    () => errors.includes('ready') && said.includes('\n'),
  );
  const { macs, redfish } = JSON.parse(said.split('\n', 1)[0]!) as {
    readonly macs: readonly string[];
    readonly redfish: Readonly<Record<'address' | 'systemId' | 'username' | 'password', string>>;
  };
  const { address, systemId, username, password } = redfish;
  return {
    driverInfo: { redfish_address: address, redfish_system_id: systemId, redfish_username: username, redfish_password: password },
    mac: macs[0]!,
    consoleFile: join(state, `sim-${number}/console.log`),
  };
}
/** A TLS proxy in front of the boot service, on its own port. @returns the certificate, which is its own authority */
async function startTlsFront(port: number): Promise<string> {
  const [keyFile, certificateFile] = [join(lab.folder, 'tls.key'), join(lab.folder, 'tls.pem')];
  // OVMF of Debian 12 supports no elliptic curves.
  const key = ['-newkey', 'rsa:3072', '-nodes', '-keyout', keyFile, '-days', '2'];
  const name = ['-subj', `/CN=${lab.address}`, '-addext', `subjectAltName=IP:${lab.address}`];
  await run('openssl', ['req', '-x509', ...key, ...name, '-out', certificateFile], { timeout: 60_000 });
  const program = join(root, '.cache/lab/tls-front.js');
  buildSync({ entryPoints: [join(__dirname, 'tls-front.ts')], outfile: program, bundle: true, platform: 'node', logLevel: 'error' });
  const setup: TlsFront = { host: lab.address, port, to: 8080, keyFile, certificateFile };
  const front = lab.start(process.execPath, program, JSON.stringify(setup));
  let said = '';
  front.stdout!.on('data', (data: Buffer) => (said += data.toString()));
  await until(
    PATIENCE,
    () => `the TLS proxy to be ready: ${said}`,
    () => said.includes('ready'),
  );
  return certificateFile;
}
const MACHINES = {
  'simulator, HTTP': () => simulated(0),
  'simulator, HTTPS': async () => {
    const { driverInfo, ...rest } = await simulated(1, '--qemu-ca', await startTlsFront(8443));
    return { ...rest, driverInfo: { ...driverInfo, external_http_url: `https://${lab.address}:8443` } };
  },
  'sushy-tools': async () => {
    const machine = await lab.machine({ name: 'https', firmware: 'uefi', memoryMiB: 768, cpus: 1, diskGiB: 1 });
    libvirt = await startLibvirt({ ...lab, port: 8000 });
    await libvirt.define({ ...machine, disk: machine.diskFile, console: machine.consoleFile });
    const { mac, consoleFile } = machine;
    return { driverInfo: { redfish_address: libvirt.redfish, redfish_system_id: `/redfish/v1/Systems/${machine.uuid}` }, mac, consoleFile };
  },
} satisfies Record<string, () => Promise<Machine>>;

it.each(['simulator, HTTP', 'simulator, HTTPS', 'sushy-tools'] as const)(
  'with %s, a machine boots the ramdisk from the URL in HttpBootUri, and its agent inspects it',
  async (bmc) => {
    const { driverInfo, mac, consoleFile } = await MACHINES[bmc]();
    const properties = { capabilities: 'boot_mode:uefi' };
    const name = bmc.replace(', ', '-');
    const { uuid } = await call(lab, 'POST', '/nodes', {
      name,
      driver: 'redfish',
      boot_interface: 'redfish-https',
      driver_info: driverInfo,
      properties,
    });
    await call(lab, 'POST', '/ports', { node_uuid: uuid, address: mac });
    let node: JsonObject = {};
    const describe = (): string =>
      `${bmc}: ${JSON.stringify(node)}\n${consoleEnd({ consoleFile })}\n${readFileSync(server!.log, 'utf8').slice(-3000)}`;
    for (const target of ['manage', 'inspect']) {
      await call(lab, 'PUT', `/nodes/${name}/states/provision`, { target });
      await until(PATIENCE, describe, async () => {
        node = await call(lab, 'GET', `/nodes/${name}`);
        if (/failed$|^error$|^enroll$/.test(String(node['provision_state'])) && node['last_error'] !== null) throw new Error(describe());
        return node['provision_state'] === 'manageable' && node['target_provision_state'] === null;
      });
    }
    expect(node).toMatchObject({ last_error: null, properties: { cpu_arch: 'x86_64' } });
    const { inventory } = await call(lab, 'GET', `/nodes/${name}/inventory`);
    expect(inventory).toMatchObject({ interfaces: [{ mac_address: mac }], boot: { current_boot_mode: 'uefi' } });
    // The image is removed after the inspection; its name was a secret.
    const fetched = /URI: (https?:\S+\/media\/\S+\/boot\.iso)/.exec(readFileSync(consoleFile, 'latin1'))?.[1];
    if (bmc === 'sushy-tools') {
      expect(fetched).toBeUndefined();
      return;
    }
    expect(new URL(fetched!).protocol).toBe(bmc === 'simulator, HTTPS' ? 'https:' : 'http:');
    expect(await lab.exec('curl', '-sk', '-o', '/dev/null', '-w', '%{http_code}', fetched!)).toBe('404');
  },
);
