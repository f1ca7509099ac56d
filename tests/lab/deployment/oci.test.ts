/**
 * A machine in QEMU, the whole server, its own ramdisk, and a registry (Debian's docker-registry) with TLS and tokens: kernel, ramdisk and image
 * come from it. First the agent itself gets the image, then the HTTP boot service does, from another manifest with a compressed image.
 */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { closeSync, mkdirSync, openSync, readFileSync, truncateSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { startIpmiSim } from '../../../demo/lab/ipmi-sim';
import { consoleEnd, openLab, until, type Lab, type LabMachine } from '../../../demo/lab/machines';
import { bootingSections, startServerProcess, type RunningServer } from '../../../demo/lab/server';
import { call } from '../inspection/inspect-machine';
import { needs } from '../support/needs';
import { buildRamdisk } from '../support/ramdisk';
import { imageLayout, startRegistry, type LabRegistry } from '../support/registry';
import { root } from '../support/venv';

const MiB = 2 ** 20;
/** Seconds. */
const PATIENCE = 900;
jest.setTimeout(4 * PATIENCE * 1000);

let lab: Lab;
let server: RunningServer;
let registry: LabRegistry;
let digests: Readonly<Record<'kernel' | 'ramdisk' | 'packed', string>>;
const undo: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  needs({ 'docker-registry': 'docker-registry', skopeo: 'skopeo' });
  await buildRamdisk();
  lab = await openLab('bloomery-oci');
  undo.push(() => lab.close());
  const folder = join(lab.folder, 'registry');
  mkdirSync(folder);
  registry = await startRegistry({
    folder,
    address: lab.address,
    ports: [5000, 5001],
    auth: 'token',
    start: (...words) => lab.start(...words),
  });
  undo.push(() => registry.stop());
  digests = await pushImages();
  const sections = bootingSections(lab);
  server = await startServerProcess(
    join(lab.folder, 'server'),
    { ...sections, agent: { api_ca_file: registry.caFile }, oci: { verify_ca: registry.caFile } },
    lab.namespace,
  );
  undo.push(() => server.stop());
});
afterAll(async () => {
  for (const step of undo.reverse()) await step();
});

/** A disk that does not boot, with a partition and noise. @returns its file */
function disk(name: string): string {
  const path = join(lab.folder, `${name}.raw`);
  writeFileSync(path, '');
  truncateSync(path, 24 * MiB);
  const mbr = Buffer.alloc(512);
  mbr[450] = 0x83;
  mbr.writeUInt32LE(2048, 454);
  mbr.writeUInt32LE(40_000, 458);
  mbr.writeUInt16LE(0xaa55, 510);
  const file = openSync(path, 'r+');
  writeSync(file, mbr, 0, mbr.length, 0);
  writeSync(file, randomBytes(4 * MiB), 0, 4 * MiB, 8 * MiB);
  closeSync(file);
  return path;
}

async function pushImages(): Promise<typeof digests> {
  const layout = join(lab.folder, 'layout');
  const images = imageLayout(layout);
  const one = async (name: string, mediaType: string, path: string, repository = 'team/disk'): Promise<string> => {
    const { digest } = images.manifest({ artifactType: 'application/x-file', layers: [images.addFile(mediaType, path)] });
    await registry.push(layout, repository, name);
    return digest;
  };
  const entry = (path: string, architecture: string) => ({
    ...images.manifest({ artifactType: 'application/x-disk', layers: [images.addFile('application/x-raw-disk-image', path)] }),
    platform: { architecture, os: 'linux' },
    annotations: { disktype: 'raw' },
  });
  const arm = join(lab.folder, 'arm.raw');
  writeFileSync(arm, randomBytes(MiB));
  images.index([entry(arm, 'arm64'), entry(disk('first'), 'amd64')]);
  await registry.push(layout, 'team/disk', 'v1');
  const second = disk('second');
  execFileSync('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', second, `${second}.qcow2`]);
  execFileSync('zstd', ['-q', '-1', `${second}.qcow2`]);
  return {
    packed: await one('packed', 'application/zstd', `${second}.qcow2.zst`),
    kernel: await one('kernel', 'application/octet-stream', join(root, '.cache/ramdisk/vmlinuz'), 'boot/agent'),
    ramdisk: await one('ramdisk', 'application/octet-stream', join(root, '.cache/ramdisk/initrd'), 'boot/agent'),
  };
}

const order = (name: string, target: string) => call(lab, 'PUT', `/nodes/${name}/states/provision`, { target });
const set = (name: string, path: string, value: unknown) => call(lab, 'PATCH', `/nodes/${name}`, [{ op: 'add', path, value }]);
async function reach(machine: LabMachine, state: string): Promise<Readonly<Record<string, unknown>>> {
  let node: Readonly<Record<string, unknown>> = {};
  const described = (): string => `${machine.name} to be ${state}: ${JSON.stringify(node)}\n${consoleEnd(machine)}\n${server.logEnd()}`;
  await until(PATIENCE, described, async () => {
    node = await call(lab, 'GET', `/nodes/${machine.name}`);
    if (node['provision_state'] === state) return true;
    if (/failed$|^error$/.test(String(node['provision_state']))) throw new Error(described());
    await delay(500);
    return false;
  });
  return node;
}
const compare = (name: string, machine: LabMachine): string =>
  execFileSync('qemu-img', ['compare', '-U', '-f', 'raw', '-F', 'qcow2', join(lab.folder, `${name}.raw`), machine.diskFile]).toString();

it('boots and deploys from a registry, by the agent and through the HTTP boot service', async () => {
  const machine = await lab.machine({ name: 'oci-a', firmware: 'bios', memoryMiB: 1024, cpus: 2, diskGiB: 5 });
  const sim = await startIpmiSim(machine, { namespace: lab.namespace, address: lab.address, port: 6230, folder: lab.folder });
  undo.push(() => sim.stop());
  const secret = `${registry.username}:${registry.password}`;
  const { uuid } = await call(lab, 'POST', '/nodes', {
    name: machine.name,
    driver: 'ipmi',
    boot_interface: 'ipxe',
    automated_clean: false,
    resource_class: 'small',
    driver_info: {
      ipmi_address: sim.address,
      ipmi_port: sim.port,
      ipmi_username: sim.username,
      ipmi_password: sim.password,
      deploy_kernel: `oci://${registry.host}/boot/agent@${digests.kernel}`,
      deploy_ramdisk: `oci://${registry.host}/boot/agent@${digests.ramdisk}`,
      image_pull_secret: secret,
    },
    properties: { capabilities: 'boot_mode:bios', cpu_arch: 'x86_64' },
  });
  await call(lab, 'POST', '/ports', { node_uuid: uuid, address: machine.mac });
  await order(machine.name, 'manage');
  await reach(machine, 'manageable');
  await order(machine.name, 'provide');
  await reach(machine, 'available');

  // Refused before the machine is touched.
  await set(machine.name, '/instance_info', { image_source: `oci://${registry.host}/team/disk:v2`, image_pull_secret: secret });
  await order(machine.name, 'active');
  await expect(reach(machine, 'active')).rejects.toThrow(
    /image_source: Image tag oci:\S+:v2 could not be found, available tags are (?:v1, packed|packed, v1)/,
  );
  expect(machine.isOn()).toBe(false);

  await set(machine.name, '/instance_info', { image_source: `oci://${registry.host}/team/disk:v1`, image_pull_secret: secret });
  await order(machine.name, 'active');
  const first = await reach(machine, 'active');
  expect(compare('first', machine)).toContain('identical');
  expect(first['instance_info']).toMatchObject({ image_pull_secret: '******', image_disk_format: 'raw' });

  const source = `oci://${registry.host}/team/disk@${digests.packed}`;
  await set(machine.name, '/instance_info', { image_source: source, image_pull_secret: secret, image_download_source: 'local' });
  await order(machine.name, 'rebuild');
  await reach(machine, 'active');
  expect(compare('second', machine)).toContain('identical');
  const log = readFileSync(server.log, 'utf8');
  expect(log).toMatch(/oci-blob:\/\/\S+\/team\/disk@sha256:.{64,200}downloaded into the image cache/);

  const asked = registry.tokens();
  expect(asked).toMatch(/^200 puller repository:boot\/agent:pull$/m);
  expect(asked).toMatch(/^200 puller repository:team\/disk:pull$/m);
  const shown = `${log}\n${JSON.stringify(first)}`;
  for (const hidden of [registry.password, 'Bearer ', Buffer.from(secret).toString('base64')]) expect(shown).not.toContain(hidden);
});
