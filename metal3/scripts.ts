/** The iPXE script of machines that belong to no node: they boot the ramdisk, which reports their inventory. */
import { Metal3Error, type ContainerContext } from './container-context';
import { BUILDS, ramdisksOf, type Pair } from './ramdisks';
import { inspectionArguments, isTrue, kernelArguments } from './variables';

const ATTEMPT_MS = 60_000;

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
