/** The ramdisks of the agent that the variables and the files below /shared/html/images name, by architecture. */
import { IMAGES, Metal3Error, type ContainerContext } from './container-context';

export interface Pair {
  readonly kernel: string;
  readonly initramfs: string;
}
/** iPXE's ${buildarch} of each architecture. */
export const BUILDS: Readonly<Record<string, string>> = { x86_64: 'x86_64', aarch64: 'arm64' };

/** `ARCH:URL,…` */
function byArch(name: string, text: string): ReadonlyMap<string, string> {
  const items = text.split(',').filter((item) => item.trim() !== '');
  return new Map(
    items.map((item) => {
      const [, arch = '', url = ''] = /^\s*(\w+):(\S+)\s*$/.exec(item) ?? [];
      if (url === '') throw new Metal3Error(`${name}: "${item}" is not ARCH:URL`);
      return [arch, url];
    }),
  );
}

/** Architecture → ramdisk; `''` is that of all others. @throws Metal3Error */
export function ramdisksOf({ get, exists, hasRamdisk }: ContainerContext): ReadonlyMap<string, Pair> {
  const found = new Map<string, Pair>();
  const [kernels, initramfses] = (['DEPLOY_KERNEL', 'DEPLOY_RAMDISK'] as const).map((name) =>
    byArch(`${name}_BY_ARCH`, get(`${name}_BY_ARCH`)),
  ) as [ReadonlyMap<string, string>, ReadonlyMap<string, string>];
  for (const arch of Object.keys(BUILDS)) {
    const file = `${IMAGES}/ironic-python-agent_${arch}`;
    const here = exists(`${file}.kernel`) && exists(`${file}.initramfs`);
    const kernel = get(`DEPLOY_KERNEL_URL_${arch.toUpperCase()}`, kernels.get(arch) ?? (here ? `file://${file}.kernel` : ''));
    const initramfs = get(`DEPLOY_RAMDISK_URL_${arch.toUpperCase()}`, initramfses.get(arch) ?? (here ? `file://${file}.initramfs` : ''));
    if (kernel !== '' && initramfs !== '') found.set(arch, { kernel, initramfs });
  }
  const plain = `file://${IMAGES}/ironic-python-agent`;
  const kernel = get('DEPLOY_KERNEL_URL', hasRamdisk || found.size === 0 ? `${plain}.kernel` : '');
  const initramfs = get('DEPLOY_RAMDISK_URL', hasRamdisk || found.size === 0 ? `${plain}.initramfs` : '');
  if (kernel !== '' && initramfs !== '') found.set('', { kernel, initramfs });
  return found;
}

/** The value of `[conductor]deploy_kernel_by_arch` or `deploy_ramdisk_by_arch`. Empty: there is no ramdisk with an architecture. @throws Metal3Error */
export const ramdisksByArch = (context: ContainerContext, file: keyof Pair): string =>
  [...ramdisksOf(context)].flatMap(([arch, pair]) => (arch === '' ? [] : [`${arch}:${pair[file]}`])).join(',');
