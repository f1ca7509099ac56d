/** The iPXE script of machines that belong to no node: they boot the ramdisk, which reports their inventory. */
import { IMAGES, Metal3Error, type ContainerContext } from './container-context';
import { inspectionArguments, isTrue, kernelArguments } from './variables';

interface Pair {
  readonly kernel: string;
  readonly initramfs: string;
}
/** iPXE's ${buildarch} of each architecture. */
const BUILDS: Readonly<Record<string, string>> = { x86_64: 'x86_64', aarch64: 'arm64' };
const ATTEMPT_MS = 60_000;

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
function ramdisksOf({ get, exists, hasRamdisk }: ContainerContext): ReadonlyMap<string, Pair> {
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

/** @param httpUrl of the files below /shared/html @throws Metal3Error */
export function inspectorScript(context: ContainerContext, httpUrl: string): string {
  const { get, baseUrl } = context;
  const base = get('IRONIC_IPA_BASE_URL', httpUrl);
  const served = (url: string): string => url.replace(/^file:\/\/\/shared\/html(?=\/)/, base);
  const words = [
    `ipa-inspection-callback-url=${baseUrl}/v1/continue_inspection`,
    ...(isTrue(get('IRONIC_FAST_TRACK', 'true')) ? [`ipa-api-url=${baseUrl}`] : []),
    `ipa-debug=${get('IRONIC_IPA_DEBUG', '1')}`,
    kernelArguments(context),
    inspectionArguments(context),
    'BOOTIF=${mac}',
  ].join(' ');
  const ramdisks = ramdisksOf(context);
  const load = ({ kernel, initramfs }: Pair): readonly string[] => [
    `kernel --timeout ${ATTEMPT_MS} ${served(kernel)} ${words} initrd=ramdisk || goto again`,
    `initrd --timeout ${ATTEMPT_MS} --name ramdisk ${served(initramfs)} || goto again`,
    'boot || goto again',
  ];
  const own = [...ramdisks].filter(([arch]) => arch !== '');
  const lines = [
    '#!ipxe',
    ':start',
    'imgfree',
    ...own.map(([arch]) => `iseq \${buildarch} ${BUILDS[arch]!} && goto ${arch} ||`),
    ...(ramdisks.has('') ? load(ramdisks.get('')!) : ['echo There is no ramdisk for ${buildarch}', 'goto again']),
    ...own.flatMap(([arch, pair]) => [`:${arch}`, ...load(pair)]),
    ':again',
    'echo Could not boot the ramdisk, the next attempt is in 10 seconds',
    'sleep 10',
    'goto start',
    '',
  ];
  if (lines.some((line) => /[\r\n]/.test(line))) throw new Metal3Error('a variable of the ramdisk has more than one line');
  return lines.join('\n');
}
