/**
 * Our agent beside ironic-python-agent, in equal machines of QEMU, in turns: the time from power on to the first heartbeat, and the speed at
 * which both write an image. Prints tables; the ratios of the medians are what counts, since the machine that runs this may be busy.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { diskFile, startDiskMachine, startImageApi, PATIENCE } from '../../lab/disks/disk-machine';
import { buildIpaRamdisk } from '../../lab/support/ipa-ramdisk';
import { buildRamdisk } from '../../lab/support/ramdisk';
import { root } from '../../lab/support/venv';
import { cpuSecondsOf } from '../../support/cpu-time';

const MiB = 2 ** 20;
const ROUNDS = Number(process.env['SPEED_ROUNDS'] ?? 3);
const SIZE = Number(process.env['SPEED_MIB'] ?? 512) * MiB;
/** Image → how it is made from the raw one, and what is declared. The real agent unpacks no compressed files. */
const FORMATS: Readonly<Record<string, { readonly make: string; readonly declared: string; readonly ours?: boolean }>> = {
  raw: { make: 'cp raw IMAGE', declared: 'raw' },
  qcow2: { make: 'qemu-img convert -f raw -O qcow2 raw IMAGE', declared: 'qcow2' },
  'qcow2 compressed': { make: 'qemu-img convert -f raw -O qcow2 -c raw IMAGE', declared: 'qcow2' },
  'raw.zst': { make: 'zstd -q -3 raw -o IMAGE', declared: 'raw', ours: true },
  'raw.gz': { make: 'gzip -1 -c raw > IMAGE', declared: 'raw', ours: true },
  'raw.xz': { make: 'xz -1 -T1 -c raw > IMAGE', declared: 'raw', ours: true },
};
type Agent = 'ours' | 'real';

let folder: string;
const initrds: Record<Agent, string> = { ours: join(root, '.cache/ramdisk/initrd'), real: '' };
const images: Record<string, Buffer> = {};

/** A disk with a partition, and a system's mixture: a third zeros, a third text, a third noise. */
function disk(size: number): Buffer {
  const bytes = Buffer.alloc(size);
  let noise = createHash('sha256').update('noise').digest();
  for (let at = MiB, kind = 0; at < size; at += MiB, kind = (kind + 1) % 3) {
    if (kind === 1) bytes.fill(`text of a system ${at} `, at, at + MiB);
    if (kind !== 2) continue;
    for (let place = at; place < at + MiB; place += 32) {
      if (place % 4096 === 0) noise = createHash('sha256').update(noise).digest();
      bytes.set(noise, place);
      bytes.writeUInt32LE(Math.imul(place, 0x9e3779b1) >>> 0, place);
    }
  }
  bytes[446 + 4] = 0x83;
  bytes.writeUInt32LE(2048, 446 + 8);
  bytes.writeUInt32LE(size / 512 - 2048, 446 + 12);
  bytes.writeUInt16LE(0xaa55, 510);
  return bytes;
}

beforeAll(async () => {
  await buildRamdisk();
  initrds.real = process.env['SPEED_REAL'] ?? (await buildIpaRamdisk());
  folder = mkdtempSync(join(tmpdir(), 'speed-'));
  writeFileSync(join(folder, 'raw'), disk(SIZE));
  for (const [name, { make }] of Object.entries(FORMATS)) {
    const file = join(folder, 'image');
    rmSync(file, { force: true });
    execFileSync('bash', ['-c', make.replace('IMAGE', 'image')], { cwd: folder });
    images[encodeURIComponent(name)] = readFileSync(file);
  }
}, 1_800_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Moment {
  readonly wall: number;
  readonly cpu: number;
}
type Measured = Record<string, Moment>;

/** Boots a ramdisk, and writes the images. @returns what was measured: seconds since power on at its requests, seconds of each image */
async function measure(agent: Agent, formats: readonly string[]): Promise<Measured> {
  const measured: Measured = {};
  let moment = (): Moment => ({ wall: 0, cpu: 0 });
  const seen = (path: string): unknown => (measured[path] ??= moment());
  const api = await startImageApi(images, {}, seen);
  rmSync(diskFile(folder, 'vda'), { force: true });
  const begun = Date.now();
  const machine = await startDiskMachine(api, {
    folder,
    initrd: initrds[agent],
    memoryMiB: 2048,
    words: (process.env['SPEED_WORDS'] ?? '').split(' '),
    more: [],
    prepare: () => {},
    disks: { vda: ['virtio-blk-pci,drive=vda,serial=VIRTIO1'] },
    inspects: false,
  });
  try {
    moment = () => ({ wall: (Date.now() - begun) / 1000, cpu: cpuSecondsOf(machine.process.pid!) });
    await machine.waitFor('/v1/heartbeat/u');
    for (const format of formats) {
      const { declared, ours = false } = FORMATS[format]!;
      if (ours && agent === 'real') continue;
      const name = encodeURIComponent(format);
      const sum = createHash('sha256').update(images[name]!).digest('hex');
      const info = {
        id: 'i',
        urls: [`${machine.url}/images/${name}`],
        disk_format: declared,
        os_hash_algo: 'sha256',
        os_hash_value: sum,
        node_uuid: 'u',
        stream_raw_images: true,
      };
      const before = moment();
      const result = await machine.command('deploy.execute_deploy_step', {
        step: { step: 'write_image', interface: 'deploy', args: { image_info: info } },
        node: { uuid: 'u', properties: {}, instance_info: {}, driver_internal_info: {} },
        ports: [],
      });
      expect(result).toMatchObject({ command_status: 'SUCCEEDED' });
      const after = moment();
      measured[format] = { wall: after.wall - before.wall, cpu: after.cpu - before.cpu };
    }
    if (process.env['SPEED_CONSOLE']) writeFileSync(`${process.env['SPEED_CONSOLE']}-${agent}`, machine.console());
  } finally {
    await machine.stop();
  }
  return measured;
}
const median = (numbers: readonly number[]): number => [...numbers].sort((one, other) => one - other)[Math.floor(numbers.length / 2)]!;

it(
  'our agent sends its first heartbeat in half of the time, and writes as fast',
  async () => {
    const rounds: Record<Agent, Measured>[] = [];
    const formats = process.env['SPEED_FORMATS']?.split(',') ?? Object.keys(FORMATS);
    const isAsked = (agent: Agent): boolean => (process.env['SPEED_AGENTS'] ?? agent).includes(agent);
    for (let round = 0; round < ROUNDS; round++)
      rounds.push({ ours: await measure('ours', formats), real: isAsked('real') ? await measure('real', formats) : {} });
    const of = (agent: Agent, what: string, kind: keyof Moment): number => median(rounds.map((round) => round[agent][what]?.[kind] ?? NaN));
    const row = (what: string, scale = (seconds: number): string => seconds.toFixed(1)): string => {
      const both = (kind: keyof Moment): string => `${scale(of('ours', what, kind))} | ${scale(of('real', what, kind))}`;
      return `| ${what} | ${both('wall')} | ${both('cpu')} | ${(of('ours', what, 'cpu') / of('real', what, 'cpu')).toFixed(2)} |`;
    };
    const lines = [
      `ramdisks of ${(statSync(initrds.ours).size / 1e6).toFixed(1)} and ${(statSync(initrds.real).size / 1e6).toFixed(1)} MB`,
      '| | ours, s | real, s | ours, CPU s | real, CPU s | CPU ratio |',
      ...['/v1/lookup', '/v1/heartbeat/u', ...formats].map((what) => row(what)),
      '| | ours, MB/s | real, MB/s | of CPU time | | |',
      ...formats.map((what) => row(what, (seconds) => (SIZE / 1e6 / seconds).toFixed(1))),
    ];
    process.stderr.write(`${lines.join('\n')}\n`);
    expect(of('ours', '/v1/heartbeat/u', 'cpu')).toBeLessThanOrEqual(0.5 * of('real', '/v1/heartbeat/u', 'cpu'));
  },
  20 * PATIENCE * 1000,
);
