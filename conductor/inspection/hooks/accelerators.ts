/** The PCI devices that the hook `accelerators` recognizes. */
import { readFile } from 'node:fs/promises';
import { parse } from 'yaml';
import type { Accelerator } from '../../hardware/accelerator';
import { reasonOf } from '../../../model/errors';
import { isObject } from '../../../model/json';

const NVIDIA: Readonly<Record<string, string>> = {
  '1eb8': 'Tesla T4',
  '1df6': 'GV100GL',
  '2236': 'A10',
  '2235': 'A40',
  '26b9': 'L40S',
  '26ba': 'L20',
};
/** Used if the option names no file. */
const KNOWN: readonly Accelerator[] = Object.entries(NVIDIA).map(([device_id, name]) => ({
  vendor_id: '10de',
  device_id,
  type: 'GPU',
  device_info: `NVIDIA Corporation ${name}`,
}));
/**
 * Reads [inspector]known_accelerators.
 * @throws Error for the operator
 */
export async function readAccelerators(path: string | null): Promise<readonly Accelerator[]> {
  if (path === null) return KNOWN;
  try {
    const list = (parse(await readFile(path, 'utf8')) as { readonly pci_devices?: unknown } | null)?.pci_devices;
    if (!Array.isArray(list)) throw new Error('pci_devices should contain a list of devices');
    if (!list.every((candidate) => isObject(candidate) && candidate['vendor_id'] && candidate['device_id']))
      throw new Error('one of the PCI devices is missing vendor_id or device_id');
    return list as readonly Accelerator[];
  } catch (error) {
    throw new Error(`[inspector]known_accelerators: ${path}: ${reasonOf(error)}`, { cause: error });
  }
}
