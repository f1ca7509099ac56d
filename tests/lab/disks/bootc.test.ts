/**
 * Bootable containers by the agent in the variant of its ramdisk with podman: from Debian's docker-registry with TLS and a password to systems
 * that boot by BIOS, by UEFI, by UEFI with Secure Boot and on aarch64. The container's installer stands for the real bootc (demo/lab/bootable-container-bootc).
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { AGENT_CA_PATH } from '../../../wire/agent-authorities';
import { freePort } from '../../support/free-port';
import { buildRamdisk } from '../support/ramdisk';
import { type LabRegistry, startRegistry } from '../support/registry';
import { root } from '../support/venv';
import { firmwareArguments, makeConfigDrive, type Reports, startReports } from './direct-boot';
import { overlaid, startDiskMachine, startImageApi } from './disk-machine';

jest.setTimeout(3_600_000);
const run = promisify(execFile);
/** The host, as QEMU's own network shows it. */
const HOST = '10.0.2.2';
const KEY = 'ssh-ed25519 AAAA lab';
let folder: string;
let reports: Reports;
let registry: LabRegistry;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'bootc-'));
  reports = await startReports();
  registry = await startRegistry({
    folder: join(folder, 'registry'),
    address: '127.0.0.1',
    reachedAt: HOST,
    ports: [await freePort(), await freePort()],
    auth: 'basic',
    start: (program, ...words) => spawn(program, words, { stdio: ['ignore', 'pipe', 'pipe'] }),
  });
}, 100_000);
afterAll(async () => {
  await registry?.stop();
  await reports?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Architecture, its name in Go, its ramdisk, and the firmware under which the agent installs → those under which the system boots. */
const CASES = [
  {
    architecture: 'x86_64',
    go: 'amd64',
    ramdisk: {},
    firmwares: [
      ['bios', ['bios']],
      // Under Secure Boot, the firmware starts only the signed loaders of the container.
      ['uefi', ['uefi', 'uefi with secure boot']],
    ],
  },
  {
    architecture: 'aarch64',
    go: 'arm64',
    ramdisk: { architecture: 'aarch64' },
    firmwares: [['uefi of aarch64', ['uefi of aarch64']]],
  },
] as const;
describe.each(CASES)('$architecture', ({ architecture, go, ramdisk, firmwares }) => {
  beforeAll(async () => {
    await buildRamdisk(ramdisk);
    const built = await buildRamdisk({ ...ramdisk, variant: 'podman' });
    const tar = join(folder, `${architecture}.tar`);
    const env = { ...process.env, ARCH: architecture };
    await run('bash', [join(root, 'demo/lab/bootable-container.sh'), tar, reports.url], { env });
    await registry.pushContainer(tar, architecture, go);
    overlaid(join(folder, `${architecture}.initrd`), { [AGENT_CA_PATH]: readFileSync(registry.caFile) }, join(built, 'initrd'));
  }, 2_000_000);

  it.each<(typeof CASES)[number]['firmwares'][number]>(firmwares)(
    '%s: the agent installs the container, and the system boots',
    async (firmware, systems) => {
      const place = join(folder, firmware.replaceAll(' ', '-'));
      mkdirSync(place);
      const machine = await startDiskMachine(await startImageApi({}), {
        architecture,
        folder: place,
        initrd: join(folder, `${architecture}.initrd`),
        memoryMiB: 1536,
        words: ['ipa-disk-wait-attempts=1'],
        more: firmwareArguments(firmware, place),
        prepare: () => {},
        disks: { vda: ['virtio-blk-pci,drive=vda,serial=DISK-a'] },
      });
      try {
        await machine.waitFor('/v1/heartbeat/u');
        const args = {
          image_source: `oci://${registry.host}/lab/${architecture}:1`,
          configdrive: makeConfigDrive(place),
          oci_pull_secret: Buffer.from(registry.secret).toString('base64'),
        };
        const installed = await machine.command('deploy.execute_deploy_step', {
          step: { step: 'execute_bootc_install', interface: 'deploy', args },
          node: { uuid: 'u', properties: {}, driver_internal_info: {}, instance_info: { bootc_authorized_keys: KEY } },
          ports: [],
        });
        expect(installed).toMatchObject({ command_error: null, command_status: 'SUCCEEDED' });
        for (const secret of [registry.secret, registry.password]) expect(machine.console()).not.toContain(secret);
        const ended = once(machine.process, 'exit');
        await machine.command('standby.power_off', {}).catch(() => undefined);
        await ended;
      } finally {
        await machine.stop();
      }
      for (const system of systems) {
        const report = await reports.boot(system, place, { vda: 'virtio-blk-pci,drive=vda' });
        const keys = `keys=${Buffer.from(KEY).toString('base64')}`;
        for (const line of [`firmware=${firmware.split(' ')[0]}`, 'root=/dev/vda3', 'configdrive=/dev/vda4', keys])
          expect(report).toContain(line);
        if (system === 'uefi with secure boot') expect(report).toMatch(/^lockdown=.*\[integrity\]/m);
      }
    },
  );
});
