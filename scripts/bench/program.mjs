// Modules of the built program.
import { join } from 'node:path';
import { root } from '../install.mjs';

/**
 * @typedef {{
 *   'config/load': typeof import('../../config/load.js'),
 *   'model/clock': typeof import('../../model/clock.js'),
 *   'model/hardware-records': typeof import('../../model/hardware-records.js'),
 *   'model/log': typeof import('../../model/log.js'),
 *   'model/metrics': typeof import('../../model/metrics.js'),
 *   'policy/caller': typeof import('../../policy/caller.js'),
 *   'policy/enforcer': typeof import('../../policy/enforcer.js'),
 *   'policy/rules': typeof import('../../policy/rules.js'),
 *   'ramdisk-agent/disk/device': typeof import('../../ramdisk-agent/disk/device.js'),
 *   'ramdisk-agent/disk/snapshot': typeof import('../../ramdisk-agent/disk/snapshot.js'),
 *   'ramdisk-agent/recorder': typeof import('../../ramdisk-agent/recorder.js'),
 *   'simulator/ipmi/ipmi': typeof import('../../simulator/ipmi/ipmi.js'),
 *   'store/embedded/embedded': typeof import('../../store/embedded/embedded.js'),
 *   'store/postgres': typeof import('../../store/postgres.js'),
 *   'wire/ipmi/client': typeof import('../../wire/ipmi/client.js'),
 *   'wire/snapshot-files': typeof import('../../wire/snapshot-files.js'),
 * }} Modules
 */

/**
 * @template {keyof Modules} Name
 * @param {Name} name
 * @returns {Promise<Modules[Name]>}
 */
export async function built(name) {
  /** @type {{ default: Modules[Name] }} */
  const { default: module } = await import(join(root, 'dist', `${name}.js`));
  return module;
}
