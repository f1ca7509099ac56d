/** Checks of the files from which machines boot: kernels, ramdisks and boot loaders. */
import { accessSync, constants } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { loadBootTemplates } from '../../boot/boot-templates';
import { loadersOf } from '../../boot/dhcp/setup';
import { openServedFile } from '../../boot/files';
import type { LoadedOptions } from '../../config/options';
import { basicAuthorization, credentialsOf, withoutCredentials, withoutUrlCredentials } from '../../model/urls';
import { imageServerLogin } from '../../wire/image-servers';
import { glanceId } from '../../wire/openstack/glance';
import { timeoutSignal } from '../../wire/timeout-signal';
import { REQUEST_TIMEOUT_MS, type CheckContext, type HostCheck, type Result } from './check-row';

/** fetch takes no URL with a user and a password. */
const headOf = async (source: string, options: LoadedOptions): Promise<Response> =>
  fetch(withoutCredentials(source), {
    method: 'HEAD',
    headers: basicAuthorization(imageServerLogin(source, options) ?? credentialsOf(source)),
    signal: timeoutSignal(REQUEST_TIMEOUT_MS),
  });
/** The path below [deploy]http_root of a URL that this server answers itself, and only once it runs. */
function ownPath({ resolved, roles }: CheckContext, source: string): string | undefined {
  const own = `${resolved['deploy.http_url']}/`;
  return roles.includes('boot') && source.startsWith(own) ? source.slice(own.length).split(/[?#]/, 1)[0] : undefined;
}
async function ramdiskFinding(shown: string, source: string, context: CheckContext): Promise<Result> {
  const path = ownPath(context, source);
  if (path !== undefined) {
    const root = context.resolved['deploy.http_root'];
    const file = await openServedFile({ named: {}, root, own: context.resolved['files.own'] }, path);
    await file?.handle.close();
    return file ? ['ok', shown] : ['warning', `${shown}: this server answers there, and ${root} has no ${path}`];
  }
  if (/^https?:/i.test(source)) {
    const answer = await headOf(source, context.options).catch((error: unknown) => {
      const { cause, message } = error as Error;
      return (cause as Error | undefined)?.message || message;
    });
    if (typeof answer === 'string') return ['warning', `${shown}: ${answer}`];
    await answer.body?.cancel();
    return answer.ok ? ['ok', shown] : ['warning', `${shown}: ${new URL(source).host} answers ${answer.status}`];
  }
  if (glanceId(source) !== undefined) return ['note', `${shown}: an image in Glance, not checked`];
  if (/^\w+:/.test(source) && !/^file:/i.test(source)) return ['note', `${shown}: not checked`];
  try {
    accessSync(/^file:/i.test(source) ? fileURLToPath(source) : source, constants.R_OK);
    return ['ok', shown];
  } catch (error) {
    return ['warning', `${shown}: ${(error as Error).message}`];
  }
}
/** The kernel or the ramdisk of the agent: of all nodes, and of nodes by architecture. */
async function ramdiskFindings(name: 'kernel' | 'ramdisk', context: CheckContext): Promise<readonly Result[]> {
  const option = `deploy_${name}` as const;
  const other = `deploy_${name === 'kernel' ? 'ramdisk' : 'kernel'}` as const;
  const common = context.options[`conductor.${option}`];
  const byArch = context.options[`conductor.${option}_by_arch`];
  const counterparts = context.options[`conductor.${other}_by_arch`];
  const found: Result[] = [];
  if (common) found.push(await ramdiskFinding(`[conductor]${option} = ${withoutUrlCredentials(common)}`, common, context));
  else {
    const except = Object.keys(byArch).length > 0 ? ` without an entry in ${option}_by_arch` : '';
    found.push(['warning', `[conductor]${option} is not set: nodes${except} that boot from the network need ${option} in driver_info`]);
  }
  for (const [arch, source] of Object.entries(byArch)) {
    const shown = `[conductor]${option}_by_arch, ${arch}: ${withoutUrlCredentials(source)}`;
    found.push(
      Object.hasOwn(counterparts, arch)
        ? await ramdiskFinding(shown, source, context)
        : ['warning', `${shown}: ${other}_by_arch has no ${arch}, so nodes of this architecture cannot boot a ramdisk`],
    );
  }
  return found;
}

/** Files that no node needs, if options name them. */
const OPTIONAL = ['rescue_kernel', 'rescue_ramdisk', 'bootloader'] as const;
async function optionalFindings(context: CheckContext): Promise<readonly Result[]> {
  const named = OPTIONAL.flatMap((name): readonly (readonly [shown: string, source: string])[] => {
    const common = context.options[`conductor.${name}`];
    const byArch = Object.entries(context.options[`conductor.${name}_by_arch`]);
    return [
      ...(common ? [[`[conductor]${name} = ${withoutUrlCredentials(common)}`, common] as const] : []),
      ...byArch.map(([arch, source]) => [`[conductor]${name}_by_arch, ${arch}: ${withoutUrlCredentials(source)}`, source] as const),
    ];
  });
  for (const [name, source] of Object.entries(context.options['conductor.bootloader_files']))
    named.push([`[conductor]bootloader_files, ${name}: ${withoutUrlCredentials(source)}`, source]);
  return Promise.all(named.map(([shown, source]) => ramdiskFinding(shown, source, context)));
}

async function loaderFindings({ resolved }: CheckContext): Promise<readonly Result[]> {
  const { ipxeLoaders, pxeLoaders } = loadersOf(resolved);
  // DHCP sends iPXE to machines that it does not know, whatever boot interfaces are enabled.
  const others = [...resolved['DEFAULT.enabled_boot_interfaces'], resolved['boot.discovery_boot_interface']];
  const usesPxe = others.includes('pxe');
  const named = [
    ipxeLoaders.bios,
    ipxeLoaders.uefi,
    ...Object.values(ipxeLoaders.byArch),
    ...(usesPxe ? [pxeLoaders.bios] : []),
    // A BIOS does not boot by HTTP.
    ...(usesPxe || others.includes('http') ? [pxeLoaders.uefi, ...Object.values(pxeLoaders.byArch)] : []),
  ];
  const served = { named: resolved['pxe.loader_file_paths'], root: resolved['pxe.tftp_root'], own: resolved['files.own'] };
  const missing: string[] = [];
  for (const name of new Set(named)) {
    const file = await openServedFile(served, name);
    if (file) await file.handle.close();
    else missing.push(name);
  }
  if (missing.length === 0) return [['ok', [...new Set(named)].join(', ')]];
  return [
    [
      'warning',
      `${served.root} lacks the boot loaders ${missing.join(', ')}: machines that need them do not boot (docs/install.md, Network boot)`,
    ],
  ];
}

export const agentFiles: HostCheck = {
  what: 'agent',
  roles: ['conductor'],
  check: async (context) => [
    ...(await ramdiskFindings('kernel', context)),
    ...(await ramdiskFindings('ramdisk', context)),
    ...(await optionalFindings(context)),
  ],
};

export const bootTemplates: HostCheck = {
  what: 'boot templates',
  roles: ['boot'],
  check: async ({ resolved }) => {
    await loadBootTemplates(resolved, () => Promise.resolve(undefined));
    return [];
  },
};

export const bootLoaders: HostCheck = { what: 'boot loaders', roles: ['boot'], check: loaderFindings };
