/** Bootable containers by the agent, with a program in place of podman. tests/lab/deployment/bootc.test.ts has the real one. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { readBootcArguments } from '../../wire/oci/bootc-arguments';
import { silentLog } from '../../model/log';
import { installContainer } from '../../ramdisk-agent/bootc/install';
import { withEntry, writeGpt } from '../../ramdisk-agent/disk/gpt';
import { readPartitions } from '../../ramdisk-agent/disk/partitions';
import { tree } from '../../ramdisk-agent/system/tree';
import type { Run } from '../../ramdisk-agent/system/run';
import { fileDevice, fileTree, folder } from './support';

type Options = Parameters<typeof installContainer>[0];
const MiB = 2 ** 20;
const IMAGE = 'registry.example.com:5000/os/debian:13';
const AUTH = Buffer.from('user:a secret').toString('base64');
const DRIVE = Buffer.alloc(2048 * 20, 0x11);

describe('readBootcArguments', () => {
  const args = { image_source: `oci://${IMAGE}`, oci_pull_secret: null, configdrive: null };
  it.each<[object, object, object]>([
    [{}, {}, { auth: null, configDrive: null, authorizedKeys: null, encryptsByTpm: false }],
    [{ oci_pull_secret: Buffer.from(AUTH).toString('base64') }, {}, { auth: AUTH }],
    [
      { configdrive: 'H4sI' },
      { bootc_authorized_keys: 'ssh', bootc_tpm2_luks: 'True' },
      { configDrive: 'H4sI', authorizedKeys: 'ssh', encryptsByTpm: true },
    ],
    [{ configdrive: '' }, { bootc_authorized_keys: '' }, { configDrive: null, authorizedKeys: null }],
  ])('of %j with %j', (more, info, expected) => {
    const read = readBootcArguments({ ...args, ...more }, { instance_info: info });
    expect(read).toMatchObject({ image: { name: IMAGE, registry: 'registry.example.com:5000' }, ...expected });
  });
  it.each<[object, object, string]>([
    [{ image_source: null }, {}, "'image_source' must be the oci:// URL of an image in a registry."],
    [{ image_source: 'oci://--tls-verify=false/x' }, {}, "'image_source' must be the oci:// URL of an image in a registry."],
    [{ image_source: 'oci://r/x /dev/sda' }, {}, "'image_source' must be the oci:// URL of an image in a registry."],
    [{ oci_pull_secret: 7 }, {}, "'oci_pull_secret' must be base64."],
    [{ configdrive: {} }, {}, "'configdrive' must be a text"],
    [{}, { bootc_authorized_keys: 'x'.repeat(70_000) }, "'bootc_authorized_keys' must be a text of at most 65536 characters."],
    [{}, { bootc_tpm2_luks: 'perhaps' }, "'bootc_tpm2_luks' must be a boolean."],
  ])('refuses %j with %j', (more, info, text) => {
    expect(() => readBootcArguments({ ...args, ...more }, { instance_info: info })).toThrow(text);
  });
});

/** What the installer writes: a GPT with one partition. */
async function partitioned(device: Options['device'], withCode = true): Promise<void> {
  const mbr = Buffer.alloc(512);
  if (withCode) mbr[0] = 0xeb;
  mbr[450] = 0xee;
  mbr.writeUInt32LE(1, 454);
  mbr.writeUInt32LE(device.size / 512 - 1, 458);
  mbr.writeUInt16LE(0xaa55, 510);
  await device.write(mbr, 0);
  const GUID = '99999999-8888-4777-a666-555555555555';
  const empty = { diskGuid: GUID, firstUsable: 34, arrayLba: 2, entrySize: 128, array: Buffer.alloc(128 * 128) };
  const linux = { type: '0fc63daf-8483-4772-8e79-3d69d8477de4', guid: GUID, first: 2048, last: 4095, name: 'root' };
  await writeGpt(device, withEntry(empty, linux).gpt);
}

async function install(given: {
  readonly podman?: boolean;
  readonly pull?: Error;
  readonly installer?: (device: Options['device'], words: readonly string[]) => Promise<void>;
  readonly args?: object;
  readonly info?: object;
  readonly insecure?: boolean;
  readonly size?: number;
}) {
  const root = fileTree({ 'proc/mounts': 'proc /proc proc rw 0 0\n', ...(given.podman === false ? {} : { 'bin/podman': '' }) });
  const device = await fileDevice(given.size ?? 1200 * MiB);
  await device.write(Buffer.from('of the user before'), 0);
  const temporary = folder();
  const ran: string[] = [];
  const seen: { auth?: string; mode?: number; keys?: string; atRun?: readonly string[] } = {};
  const run: Run = async (program, words) => {
    ran.push(
      [program, ...words]
        .join(' ')
        .replaceAll(temporary, '/tmp')
        .replace(device.path, '/dev/vda')
        .replaceAll(/-\w{6}(?=\/|:|$)/gm, '-X'),
    );
    const authFile = words.find((word) => word.startsWith('--authfile='))?.slice('--authfile='.length);
    if (authFile !== undefined) {
      [seen.auth, seen.mode] = [readFileSync(authFile, 'utf8'), statSync(authFile).mode & 0o777];
    }
    if (words[0] === 'pull' && given.pull) throw given.pull;
    if (words[0] === 'image') return '1000\n';
    if (words[0] !== 'run') return '';
    seen.atRun = readdirSync(temporary).filter((name) => name.startsWith('registry-'));
    const keys = words.find((word) => word.startsWith('--root-ssh-authorized-keys='))?.split('=')[1];
    if (keys !== undefined) seen.keys = readFileSync(keys, 'utf8');
    await (given.installer ?? ((one) => partitioned(one)))(device, words);
    return '';
  };
  const reported: number[] = [];
  const options: Options = {
    given: readBootcArguments(
      {
        image_source: `oci://${IMAGE}`,
        oci_pull_secret: Buffer.from(AUTH).toString('base64'),
        configdrive: gzipSync(DRIVE).toString('base64'),
        ...given.args,
      },
      { instance_info: given.info ?? {} },
    ),
    host: {
      run,
      tree: tree(root),
      root,
      temporary,
      trust: { insecure: given.insecure ?? false, ca: 'the authority' },
      signal: new AbortController().signal,
    },
    device,
    bootMode: 'bios',
    fetching: { trust: { insecure: false }, timeoutMs: 1000, signal: new AbortController().signal },
    conversion: { run, temporary },
    rescan: async () => void ran.push('rescan'),
    sync: async () => void ran.push('sync'),
    newGuid: () => '00000000-0000-4000-8000-000000000001',
    progress: (percent) => reported.push(percent),
    clock: {
      now: () => 0,
      sleep: (_, signal) => new Promise((_done, reject) => signal?.addEventListener('abort', () => reject(new Error('over')))),
    },
    log: silentLog,
  };
  const ended = await installContainer(options).then(
    () => null,
    (error: unknown) => error as Error & { type: string },
  );
  return { ended, ran, seen, device, root, reported };
}
const headOf = async (device: Options['device']): Promise<string> => (await device.read(0, 18)).toString();

it('fetches the image, runs its installer without the secret, and writes the config drive behind its partitions', async () => {
  const { ended, ran, seen, device, root, reported } = await install({ info: { bootc_authorized_keys: 'ssh-ed25519 A\n' } });
  expect(ended).toBeNull();
  expect(ran).toEqual([
    'mount -t tmpfs -o size=75% tmpfs /var/lib/containers',
    'mount -t cgroup2 cgroup2 /sys/fs/cgroup',
    'mount -t tmpfs tmpfs /dev/shm',
    'podman rm --all --force --time=0',
    `podman pull --quiet --authfile=/tmp/registry-X/auth.json ${IMAGE}`,
    `podman image inspect --format={{.Size}} ${IMAGE}`,
    `podman run --rm --privileged --pid=host --pull=never -v /var/lib/containers:/var/lib/containers -v /dev:/dev -v /tmp/keys-X:/tmp/keys-X:ro ${IMAGE} bootc install to-disk --wipe --skip-fetch-check --root-size=432M --root-ssh-authorized-keys=/tmp/keys-X/authorized_keys --disable-selinux /dev/vda`,
    'sync',
    'rescan',
    'podman rm --all --force --time=0',
    'podman rmi --all --force',
  ]);
  expect(seen).toMatchObject({ mode: 0o600, keys: 'ssh-ed25519 A\n', atRun: [] });
  expect(JSON.parse(seen.auth!)).toEqual({ auths: { 'registry.example.com:5000': { auth: AUTH } } });
  expect(readFileSync(join(root, 'etc/ssl/certs/ca-certificates.crt'), 'utf8')).toBe('the authority');
  expect(reported).toEqual([1, 40]);
  const { partitions } = (await readPartitions(device))!;
  expect(partitions).toHaveLength(2);
  expect((await device.read(partitions[1]!.start, DRIVE.length)).equals(DRIVE)).toBe(true);
});

it('asks for a disk that a TPM encrypts, and for no verification of TLS, if it is told so', async () => {
  const { ran } = await install({ info: { bootc_tpm2_luks: true }, insecure: true, args: { oci_pull_secret: null } });
  expect(ran).toContain(`podman pull --quiet --tls-verify=false ${IMAGE}`);
  expect(ran.find((line) => line.startsWith('podman run'))).toContain(' --root-size=432M --block-setup=tpm2-luks --disable-selinux ');
});

it.each<[string, Parameters<typeof install>[0], string, string]>([
  ['a ramdisk without podman', { podman: false }, 'DeploymentError', 'This ramdisk has no podman, which the deploy interface bootc needs'],
  ['a disk that is too small', { size: 1000 * MiB }, 'ImageWriteError', 'is smaller than 1024 MiB'],
  ['a config drive that is none', { args: { configdrive: 'no gzip' } }, 'DeploymentError', 'not base64 encoded gzip content'],
  ['a registry that refuses', { pull: new Error(`${'x'.repeat(5000)} unauthorized`) }, 'ImageDownloadError', 'unauthorized'],
  [
    'an image for which the memory is too small',
    { pull: new Error('write: no space left on device') },
    'ImageDownloadError',
    'does not fit into 75% of the memory',
  ],
])('leaves the disk as it is after %s', async (_, given, type, text) => {
  const { ended, device, seen } = await install(given);
  expect(ended).toMatchObject({ type, message: expect.stringContaining(text) as string });
  expect(ended!.message.length).toBeLessThan(2500);
  expect(ended!.message).not.toContain(AUTH);
  expect(await headOf(device)).toBe('of the user before');
  expect(seen.atRun).toBeUndefined();
});

it.each<[string, Parameters<typeof install>[0], string, string]>([
  [
    'an installer that fails half way',
    { installer: async (device) => partitioned(device).then(() => Promise.reject(new Error('error: no room'))) },
    'ImageWriteError',
    'error: no room',
  ],
  [
    'a container without an installer',
    { installer: () => Promise.reject(new Error('crun: executable file `bootc` not found in $PATH')) },
    'ImageDownloadError',
    'Container does not contain the required bootc binary and thus cannot be deployed.',
  ],
  ['an installer that writes nothing', { installer: async () => {} }, 'DeploymentError', 'Unable to find a valid partition table'],
  ['an installer without a boot loader', { installer: (device) => partitioned(device, false) }, 'DeploymentError', 'left no boot loader'],
])('leaves a disk that does not boot after %s', async (_, given, type, text) => {
  const { ended, device, ran } = await install(given);
  expect(ended).toMatchObject({ type, message: expect.stringContaining(text) as string });
  expect((await device.read(0, MiB)).every((byte) => byte === 0)).toBe(true);
  expect(ran.at(-1)).toBe('podman rmi --all --force');
});
