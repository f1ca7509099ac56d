/** Refuses a kernel of another architecture than the machine's, before the machine is touched. */
import { Fault } from '../../model/errors';
import type { NodeRecord } from '../../model/records';
import { hasProcessor } from '../../wire/processors/processors';
import { KERNEL_HEAD, kernelProcessors } from '../../wire/processors/kernel-processor';
import { openFile } from '../../wire/local-files';

/**
 * Only a local file is read: others tell only to the machine what they are. Other names of architectures, such as amd64, say nothing.
 * @param files of a boot record; `kernel` is for the node's property cpu_arch, `kernel.aarch64` for aarch64
 * @throws Fault InvalidParameterValue
 */
export async function checkKernels(
  { uuid, properties }: Pick<NodeRecord, 'uuid' | 'properties'>,
  option: string,
  files: Readonly<Record<string, string>>,
): Promise<void> {
  for (const [name, source] of Object.entries(files)) {
    const [part, own] = name.split('.', 2);
    const wanted = own ?? properties['cpu_arch'];
    if (part !== 'kernel' || typeof wanted !== 'string' || !hasProcessor(wanted) || !source.startsWith('/')) continue;
    const found = await processorsOf(source);
    if (found.length === 0 || found.includes(wanted)) continue;
    const claims = own === undefined ? `node ${uuid} has the property cpu_arch ${wanted}` : `the option is for ${wanted}`;
    throw new Fault('InvalidParameterValue', {
      message: `${option}${own === undefined ? '' : '_by_arch'}: ${source} is a kernel for ${found[0]!}, but ${claims}`,
    });
  }
}
async function processorsOf(path: string): Promise<readonly string[]> {
  const file = await openFile(path);
  if (!file) return [];
  try {
    const head = Buffer.alloc(KERNEL_HEAD);
    const { bytesRead } = await file.handle.read(head, 0, head.length, 0);
    return kernelProcessors(head.subarray(0, bytesRead));
  } finally {
    await file.handle.close();
  }
}
