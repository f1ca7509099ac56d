/** The simulated machines that the page of a demonstration offers to add: the file that `bloomery simulate --resources` writes. */
import { reasonOf } from '../../model/errors';
import { isObject } from '../../model/json';
import { readRegularFile } from '../../wire/authorities';
import { Unread } from '../http/errors';

const MAX_FILE = 1 << 20;
/** The most machines that one click adds. */
const MAX_MACHINES = 50;

/** @throws Unread when the file cannot be used */
export async function readDemoMachines(path: string): Promise<{ readonly nodes: readonly object[] }> {
  try {
    const value = JSON.parse(await readRegularFile(path, MAX_FILE)) as unknown;
    const nodes = isObject(value) && Array.isArray(value['nodes']) ? (value['nodes'] as unknown[]) : [];
    return { nodes: nodes.filter(isObject).slice(0, MAX_MACHINES) };
  } catch (error) {
    throw new Unread(503, `The simulated machines cannot be read: ${reasonOf(error)}`);
  }
}
