/**
 * Podman in the ramdisk: it fetches a container's image into the machine's memory, and runs the container's installer. Only a variant of the
 * ramdisk has it.
 */
import { access, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import type { BootcArguments, ImageReference } from '../../wire/oci/bootc-arguments';
import { AgentError } from '../../model/agent/errors';
import { reasonOf } from '../../model/errors';
import type { Trust } from '../system/http';
import type { Run } from '../system/run';
import type { Tree } from '../system/tree';

export interface PodmanHost {
  readonly run: Run;
  readonly tree: Tree;
  /** The root folder of the system's files: /. */
  readonly root: string;
  /** The folder for temporary directories. */
  readonly temporary: string;
  readonly trust: Trust;
  readonly signal: AbortSignal;
}

const STORAGE = '/var/lib/containers';
/** Share of the memory that images may take, packed and unpacked. The agent and the installer need some, too. */
const MEMORY = '75%';
/** Milliseconds. */
const PULL_MS = 2 * 3_600_000;
const INSTALL_MS = 4 * 3_600_000;
/** Characters of what a program says that go into an error. */
const MAX_WORDS = 2000;

/** The end of a long text: programs say at last why they failed. */
const lastWords = (error: unknown): string => {
  const text = reasonOf(error);
  return text.length > MAX_WORDS ? `…${text.slice(-MAX_WORDS)}` : text;
};

/** Throws DeploymentError for a ramdisk without podman, before anything is changed. */
export async function preparePodman({ run, tree, root, trust }: PodmanHost): Promise<void> {
  const has = await access(join(root, 'bin/podman')).then(
    () => true,
    () => false,
  );
  if (!has)
    throw new AgentError(
      'DeploymentError',
      'This ramdisk has no podman, which the deploy interface bootc needs: set deploy_ramdisk to the ramdisk variant with podman (npm run build:ramdisk -- --variant podman)',
    );
  const mounts = tree.text('/proc/mounts') ?? '';
  const mount = async (kind: string, folder: string, options: readonly string[] = []): Promise<void> => {
    if (mounts.includes(` ${folder} ${kind} `)) return;
    await mkdir(join(root, folder), { recursive: true });
    await run('mount', ['-t', kind, ...options, kind, folder]);
  };
  await mount('tmpfs', STORAGE, ['-o', `size=${MEMORY}`]);
  await mount('cgroup2', '/sys/fs/cgroup');
  await mount('tmpfs', '/dev/shm');
  // Where podman looks for them.
  await mkdir(join(root, 'etc/ssl/certs'), { recursive: true });
  await writeFile(join(root, 'etc/ssl/certs/ca-certificates.crt'), trust.ca ?? rootCertificates.join('\n'));
  // An agent that died leaves a container that still writes.
  await removeContainers(run);
}

const removeContainers = (run: Run): Promise<string> => run('podman', ['rm', '--all', '--force', '--time=0'], { timeoutMs: 120_000 });

/** Frees the memory. */
export async function forgetImages(run: Run): Promise<void> {
  await removeContainers(run);
  await run('podman', ['rmi', '--all', '--force'], { timeoutMs: 600_000 });
}

/**
 * Fetches the image. No program of it runs while the secret is in a file.
 * @param auth base64 of `user:password`, or null
 * @returns the size of the unpacked image in bytes
 * @throws ImageDownloadError
 */
export async function pullImage(host: PodmanHost, { name, registry }: ImageReference, auth: string | null): Promise<number> {
  const { run, signal, temporary, trust } = host;
  const folder = await mkdtemp(join(temporary, 'registry-'));
  try {
    const file = join(folder, 'auth.json');
    const login = auth === null ? [] : [`--authfile=${file}`];
    if (auth !== null) await writeFile(file, JSON.stringify({ auths: { [registry]: { auth } } }), { mode: 0o600 });
    const verify = trust.insecure ? ['--tls-verify=false'] : [];
    await run('podman', ['pull', '--quiet', ...login, ...verify, name], { timeoutMs: PULL_MS, signal });
    return Number(await run('podman', ['image', 'inspect', '--format={{.Size}}', name]));
  } catch (error) {
    const full = /no space left on device/.test(reasonOf(error))
      ? `: the image does not fit into ${MEMORY} of the memory of this machine`
      : '';
    throw new AgentError('ImageDownloadError', `Failed to pull container image ${name}${full}: ${lastWords(error)}`, { cause: error });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

interface Disk {
  readonly path: string;
  /** Bytes. */
  readonly size: number;
}
/** MiB of the disk that the root file system leaves: for a boot partition of 512 MiB and the config drive, as ironic-python-agent does. */
const RESERVED_MIB = 768;
const LEAST_ROOT_MIB = 256;
/** What the root file system gets. Throws ImageWriteError for a disk that is too small. */
export function rootMib({ path, size }: Disk): number {
  const mib = Math.floor(size / 2 ** 20) - RESERVED_MIB;
  if (mib >= LEAST_ROOT_MIB) return mib;
  throw new AgentError('ImageWriteError', `the disk ${path} of ${size} bytes is smaller than ${RESERVED_MIB + LEAST_ROOT_MIB} MiB`);
}

const NO_INSTALLER = /executable file [`"']?bootc[`"']? not found/;

/**
 * Runs the container's installer, which may do anything that root may do on this machine.
 * @throws ImageDownloadError for a container without an installer, ImageWriteError for one that fails
 */
export async function runInstaller(host: PodmanHost, { image, authorizedKeys, encryptsByTpm }: BootcArguments, disk: Disk): Promise<void> {
  const { run, signal, temporary } = host;
  const folder = await mkdtemp(join(temporary, 'keys-'));
  const keys = join(folder, 'authorized_keys');
  try {
    if (authorizedKeys !== null) await writeFile(keys, authorizedKeys, { mode: 0o600 });
    const container = ['run', '--rm', '--privileged', '--pid=host', '--pull=never', '-v', `${STORAGE}:${STORAGE}`, '-v', '/dev:/dev'];
    const installer = [image.name, 'bootc', 'install', 'to-disk', '--wipe', '--skip-fetch-check', `--root-size=${rootMib(disk)}M`];
    if (authorizedKeys !== null) container.push('-v', `${folder}:${folder}:ro`);
    if (encryptsByTpm) installer.push('--block-setup=tpm2-luks');
    if (authorizedKeys !== null) installer.push(`--root-ssh-authorized-keys=${keys}`);
    const words = [...container, ...installer, '--disable-selinux', disk.path];
    await run('podman', words, { timeoutMs: INSTALL_MS, signal, withErrors: true });
  } catch (error) {
    if (NO_INSTALLER.test(reasonOf(error)))
      throw new AgentError(
        'ImageDownloadError',
        `oci://${image.name}: Container does not contain the required bootc binary and thus cannot be deployed.`,
        { cause: error },
      );
    throw new AgentError('ImageWriteError', `Writing image to device ${disk.path} failed: ${lastWords(error)}`, { cause: error });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
