/** Inspection by the agent: boots the ramdisk, which posts its findings to `/v1/continue_inspection`. */
import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { Fault, reasonOf } from '../../model/errors';
import { canonicalAddress, canonicalHost, isLoopback } from '../../model/idents';
import type { NodeRecord } from '../../model/records';
import { isTrue, setBootDevice } from '../common/boot-settings';
import { fastTracked } from './fast-track';
import { apiUrlOf } from './ramdisk';
import { type InspectInterface, type Task, failed, wait } from '../interfaces';

const LOOKUP_TIMEOUT_MS = 5000;

/** [inspector]require_managed_boot, with Ironic's default. */
const managedBootRequired = (task: Task): boolean => task.options['inspector.require_managed_boot'] ?? true;

/** Throws UnsupportedDriverExtension, or the reason why the ramdisk cannot be booted: by the boot interface, or for lack of a network. */
async function validateBoot(task: Task): Promise<void> {
  const { boot } = task.driver;
  if (!boot.validateInspection) {
    throw new Fault('UnsupportedDriverExtension', { driver: task.node.driver, extension: 'validate_inspection' });
  }
  await boot.validateInspection(task);
  await task.driver.network.validateInspection?.(task);
}

async function managesBoot(task: Task): Promise<boolean> {
  if (managedBootRequired(task)) {
    await validateBoot(task);
    return true;
  }
  try {
    await validateBoot(task);
    return true;
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    task.log.debug('The boot interface cannot boot the ramdisk for inspection; the network is expected to boot it', {
      reason: error.message,
    });
    return false;
  }
}

/** `a b=c d="e f"` → {a: '', b: 'c', d: '"e f"'}. */
export const kernelParameters = (text: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    (text.match(/(?:[^\s"]|"[^"]*")+/g) ?? []).map((word) => {
      const [name, ...value] = word.split('=');
      return [name!, value.join('=')];
    }),
  );

/**
 * The BMC's addresses, by which an inventory of a machine without ports is matched: every `…_address` of driver_info, and the addresses
 * that a name resolves to. Loopback addresses identify no machine.
 */
export async function bmcAddresses(node: NodeRecord, task: Task): Promise<readonly string[]> {
  const found = new Set<string>();
  for (const [key, value] of Object.entries(node.driver_info)) {
    if (!key.endsWith('_address') || typeof value !== 'string' || value === '') continue;
    // With IPMI bridging, ipmi_address is the address of another machine's BMC.
    if (key.startsWith('ipmi_') && (key !== 'ipmi_address' || !['no', undefined].includes(bridging(node)))) continue;
    // In the form that the lookup of a report has too.
    const url = value.includes('//') ? value : `http://${value}`;
    const named = canonicalAddress(value) ?? (URL.canParse(url) ? new URL(url).hostname : value);
    const host = canonicalHost(named) ?? named;
    const addresses = isIP(host) ? [host] : [host, ...(await resolved(host, task))];
    for (const address of addresses) if (!isLoopback(address) && address !== 'localhost.localdomain') found.add(address);
  }
  return [...found];
}
function bridging(node: NodeRecord): string | undefined {
  const value = node.driver_info['ipmi_bridging'];
  return typeof value === 'string' ? value : undefined;
}

async function resolved(host: string, task: Task): Promise<readonly string[]> {
  const answered = new AbortController();
  try {
    const late = task.clock.sleep(LOOKUP_TIMEOUT_MS, AbortSignal.any([task.signal, answered.signal])).then(
      () => [],
      () => [],
    );
    return (await Promise.race([lookup(host, { all: true }), late])).map(({ address }) => canonicalAddress(address) ?? address);
  } catch (error) {
    task.log.warn('The name of a BMC does not resolve', { host, reason: reasonOf(error) });
    return [];
  } finally {
    answered.abort();
  }
}

async function start(task: Task, managed: boolean): Promise<void> {
  if (!task.node.disable_power_off) await task.power('power off');
  if (managed) {
    await task.driver.network.addInspectionNetwork(task);
    await task.driver.boot.prepareRamdisk(task, {
      ...(task.options['inspector.force_dhcp'] ? { 'ipa-collect-lldp': '1' } : {}),
      ...kernelParameters(task.options['inspector.extra_kernel_params']),
      'ipa-inspection-callback-url': `${(await apiUrlOf(task)).replace(/\/v1$/, '')}/v1/continue_inspection`,
    });
  } else {
    await setBootDevice(task, 'pxe', false);
  }
  await task.power(task.node.disable_power_off ? 'rebooting' : 'power on');
}

/** Cleans up after the inspection: boot files, inspection network, power (a reboot where power off is forbidden). */
async function cleanUp(task: Task): Promise<void> {
  const managed = isTrue(task.node.driver_internal_info['inspector_manage_boot']);
  await task.saveInternal({ lookup_bmc_addresses: undefined, inspector_manage_boot: undefined });
  if (managed) {
    await task.driver.boot.cleanUpRamdisk(task);
    await task.driver.network.removeInspectionNetwork(task);
  }
  // With fast track the agent stays for the next flow.
  if (task.options['inspector.power_off'] && !fastTracked(task.node, task.options))
    await task.power(task.node.disable_power_off ? 'rebooting' : 'power off');
}

export const agentInspect: InspectInterface = {
  inBand: true,
  validate: async (task) => {
    if (managedBootRequired(task)) await validateBoot(task);
  },
  inspect: async (task) => {
    const managed = await managesBoot(task);
    const addresses = await bmcAddresses(task.node, task);
    await task.saveInternal({
      inspector_manage_boot: managed,
      lookup_bmc_addresses: addresses.length > 0 ? addresses : undefined,
    });
    try {
      await start(task, managed);
      return wait;
    } catch (error) {
      task.signal.throwIfAborted();
      return failed(`Failed to inspect hardware. Reason: unable to start inspection: ${reasonOf(error)}`);
    }
  },
  finish: cleanUp,
  abort: cleanUp,
};
