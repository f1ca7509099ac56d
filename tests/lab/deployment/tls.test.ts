/**
 * TLS on every hop under an authority that no system knows: API, BMC, virtual media, image server and agent. With our agent and with
 * ironic-python-agent, both with `ipa-insecure=0` and without the authority in their ramdisks. iPXE trusts no private authority: it loads
 * the ramdisk without TLS, and the agent in that ramdisk uses TLS.
 */
import { execFile } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { JsonObject } from '../../../model/records';
import { buildIpaRamdisk } from '../support/ipa-ramdisk';
import { startLibvirt, type Libvirt } from '../support/libvirt';
import { consoleEnd, openLab, until, type Lab, type LabMachine } from '../../../demo/lab/machines';
import { needs } from '../support/needs';
import { buildRamdisk } from '../support/ramdisk';
import { bootingSections, startServerProcess, type RunningServer } from '../../../demo/lab/server';
import { root } from '../support/venv';

const run = promisify(execFile);
const ADDRESS = '10.77.0.1';
const API = `https://${ADDRESS}:6385`;
const IMAGES = `https://${ADDRESS}:8444`;
const REPORT_PORT = 8099;
/** Seconds. A boot takes a minute alone, or three with ironic-python-agent, and longer beside other work. */
const PATIENCE = 1200;
const KERNEL = 'console=ttyS0 no_timer_check ipa-insecure=0';

let lab: Lab;
let server: RunningServer | undefined;
let libvirt: Libvirt | undefined;
const file = (name: string): string => join(lab.folder, name);

/** An authority, and a certificate for the lab's address that it signed. */
async function makeCertificates(): Promise<void> {
  const openssl = (...words: readonly string[]): Promise<unknown> => run('openssl', words, { timeout: 60_000 });
  const [caKey, ca, key] = [file('ca.key'), file('ca.crt'), file('host.key')];
  const [request, extensions] = [file('host.csr'), file('host.ext')];
  const pair = ['-newkey', 'rsa:3072', '-nodes'];
  await openssl('req', '-x509', ...pair, '-days', '2', '-subj', '/CN=Lab CA', '-keyout', caKey, '-out', ca);
  await openssl('req', ...pair, '-subj', `/CN=${ADDRESS}`, '-keyout', key, '-out', request);
  writeFileSync(extensions, `subjectAltName=IP:${ADDRESS}\nbasicConstraints=critical,CA:FALSE\n`);
  const signing = ['-CA', ca, '-CAkey', caKey, '-CAcreateserial', '-days', '2', '-extfile', extensions];
  await openssl('x509', '-req', '-in', request, ...signing, '-out', file('host.crt'));
}

/** The folder of the image server: our ramdisk, ironic-python-agent's, and an image. */
async function makeImages(): Promise<string> {
  const images = file('images');
  mkdirSync(images);
  await buildRamdisk();
  copyFileSync(join(root, '.cache/ramdisk/vmlinuz'), join(images, 'vmlinuz'));
  copyFileSync(join(root, '.cache/ramdisk/initrd'), join(images, 'ours'));
  copyFileSync(await buildIpaRamdisk(), join(images, 'ironic-python-agent'));
  const image = join(__dirname, '../../../demo/lab/image.sh');
  await run('bash', [image, join(images, 'lab.raw'), `http://${ADDRESS}:${REPORT_PORT}/`, 'lab'], { timeout: 300_000 });
  return images;
}
let sent = '';
async function startImageServer(images: string): Promise<void> {
  const words = [join(__dirname, '../support/tls-files.mjs'), ADDRESS, '8444', images, file('host.crt'), file('host.key')];
  lab.start(process.execPath, ...words).stdout!.on('data', (data: Buffer) => (sent += data.toString()));
  await until(
    PATIENCE,
    () => `the image server to be ready: ${sent}`,
    () => sent.includes('ready'),
  );
}

beforeAll(async () => {
  const common = { ip: 'iproute2', curl: 'curl', openssl: 'openssl', mmdebstrap: 'mmdebstrap' };
  needs({ 'qemu-system-x86_64': 'qemu-system-x86', 'qemu-img': 'qemu-utils', ...common });
  lab = await openLab('bloomery-tls');
  await makeCertificates();
  const images = await makeImages();
  await startImageServer(images);
  lab.start(process.execPath, join(__dirname, '../../../demo/lab/report-server.mjs'), ADDRESS, String(REPORT_PORT), file('report'));
  const sections = bootingSections(lab);
  const trusted = file('ca.crt');
  server = await startServerProcess(
    file('server'),
    {
      ...sections,
      DEFAULT: { ...sections['DEFAULT'], webserver_verify_ca: trusted },
      conductor: { ...sections['conductor'], deploy_kernel: `${IMAGES}/vmlinuz`, deploy_ramdisk: `${IMAGES}/ours` },
      api: { enable_ssl_api: 'true' },
      ssl: { cert_file: file('host.crt'), key_file: file('host.key') },
      boot: { ...sections['boot'], https_port: 8443 },
      agent: { api_ca_file: trusted },
      redfish: { verify_ca: trusted, kernel_append_params: KERNEL },
      pxe: { kernel_append_params: KERNEL },
    },
    lab.namespace,
  );
  const tls = { certificate: file('host.crt'), key: file('host.key'), ca: trusted };
  libvirt = await startLibvirt({ ...lab, port: 8000, tls });
}, 2_400_000);
afterAll(async () => {
  await libvirt?.stop();
  await server?.stop();
  await lab?.close();
});

async function call(method: string, path: string, body?: unknown): Promise<JsonObject> {
  const headers = ['-H', 'X-OpenStack-Ironic-API-Version: 1.109', '-H', 'content-type: application/json'];
  const data = body === undefined ? [] : ['--data', JSON.stringify(body)];
  const words = ['-sS', '--cacert', file('ca.crt'), '-w', '\n%{http_code}', '-X', method, ...headers, ...data, `${API}/v1${path}`];
  const said = await lab.exec('curl', ...words);
  const end = said.lastIndexOf('\n');
  if (Number(said.slice(end + 1)) >= 400) throw new Error(`${method} ${path}: ${said}`);
  return (end === 0 ? {} : JSON.parse(said.slice(0, end))) as JsonObject;
}

/** Sends a verb, and waits for the state. A failed state ends the wait at once, with the reason and the machine's console. */
async function reach(machine: LabMachine, state: string, request: JsonObject): Promise<JsonObject> {
  const path = `/nodes/${machine.name}`;
  await call('PUT', `${path}/states/provision`, request);
  let node: JsonObject = {};
  const describe = (): string =>
    `${machine.name} to be ${state}: ${JSON.stringify(node)}\n--- console\n${consoleEnd(machine)}\n--- server\n${readFileSync(server!.log, 'utf8').slice(-3000)}`;
  await until(PATIENCE, describe, async () => {
    node = await call('GET', path);
    const now = String(node['provision_state']);
    if (now === state && node['target_provision_state'] === null) return true;
    if (now !== state && /failed$|^error$/.test(now)) throw new Error(describe());
    await delay(900);
    return false;
  });
  return node;
}

it('curl trusts the API, the image server, the boot service and the BMC only with our authority', async () => {
  for (const url of [API, IMAGES, `https://${ADDRESS}:8443`, libvirt!.redfish]) {
    // curl's exit code 60: the certificate cannot be verified.
    await expect(lab.exec('curl', '-sS', url)).rejects.toMatchObject({ code: 60 });
    expect(await lab.exec('curl', '-sS', '-o', '/dev/null', '--cacert', file('ca.crt'), url)).toBe('');
  }
});

it.each([
  { agent: 'ours', boot: 'redfish-virtual-media', memoryMiB: 768 },
  { agent: 'ours', boot: 'ipxe', memoryMiB: 768 },
  { agent: 'ironic-python-agent', boot: 'redfish-virtual-media', memoryMiB: 3072 },
])(
  'agent $agent, boot interface $boot: our server inspects and deploys a machine over TLS',
  async ({ agent, boot, memoryMiB }) => {
    const name = `${agent}-${boot}`;
    const machine = await lab.machine({ name, firmware: 'bios', memoryMiB, cpus: 2, diskGiB: 5 });
    await libvirt!.define({ ...machine, disk: machine.diskFile, console: machine.consoleFile });
    rmSync(file('report'), { force: true });
    const { uuid } = await call('POST', '/nodes', {
      name,
      driver: 'redfish',
      boot_interface: boot,
      automated_clean: false,
      properties: { capabilities: 'boot_mode:bios' },
      driver_info: {
        redfish_address: libvirt!.redfish,
        redfish_system_id: `/redfish/v1/Systems/${machine.uuid}`,
        deploy_kernel: `${IMAGES}/vmlinuz`,
        deploy_ramdisk: `${IMAGES}/${agent}`,
        fast_track: true,
      },
    });
    await call('POST', '/ports', { node_uuid: uuid, address: machine.mac });
    await reach(machine, 'manageable', { target: 'manage' });
    await reach(machine, 'manageable', { target: 'inspect' });
    // The agent that inspected the machine also deploys it, once the server knows the agent's URL.
    let internal: JsonObject = {};
    await until(
      PATIENCE,
      () => `a heartbeat: ${JSON.stringify(internal)}\n${consoleEnd(machine)}`,
      async () => {
        internal = (await call('GET', `/nodes/${name}`))['driver_internal_info'] as JsonObject;
        await delay(900);
        return internal['agent_url'] !== undefined;
      },
    );
    expect(internal).toMatchObject({ agent_url: expect.stringMatching(/^https:/) as string, agent_verify_ca: expect.anything() as string });
    expect(readFileSync(machine.consoleFile, 'latin1')).toMatch(/Command line: .*ipa-insecure=0/);

    await reach(machine, 'available', { target: 'provide' });
    const instance = { image_source: `${IMAGES}/lab.raw`, image_checksum: `${IMAGES}/lab.raw.sha256`, image_disk_format: 'raw' };
    await call('PATCH', `/nodes/${name}`, [{ op: 'replace', path: '/instance_info', value: instance }]);
    const configdrive = { meta_data: { name } };
    await reach(machine, 'active', { target: 'active', configdrive });
    await until(
      PATIENCE,
      () => `a report\n${consoleEnd(machine)}`,
      () => existsSync(file('report')),
    );
    expect(readFileSync(file('report'), 'utf8')).toContain(`macs=${machine.mac}`);
    expect(sent.split('\n')).toEqual(expect.arrayContaining(['vmlinuz', agent, 'lab.raw', 'lab.raw.sha256']));
    await call('PUT', `/nodes/${name}/states/power`, { target: 'power off' });
  },
  4 * PATIENCE * 1000,
);
