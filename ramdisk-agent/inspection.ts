/** Inspection from inside the machine: what the collectors found, posted to whom the command line names. */
import type { JsonObject } from '../model/records';
import type { Api, InspectionData } from './api';
import { rootDisk } from './disk/root';
import { reasonOf } from './system/errors';
import { COLLECTORS } from './collectors';
import { readInventory } from './inventory/inventory';
import { hearSwitches, type Tlvs } from './inventory/lldp';
import { collectLogs } from './logs';
import type { Machine } from './machine';
import { MANAGER } from './steps';

const ATTEMPTS = 5;
/** Collects and posts. Answers the node's UUID, or null: the lookup goes by MAC addresses then. */
export async function inspect(machine: Machine, server: Api, signal: AbortSignal): Promise<string | null> {
  const { log, clock } = machine;
  const data = await gather(machine, signal);
  for (let tries = 1; ; tries++) {
    try {
      const uuid = await server.continueInspection(data);
      log.info(`Inspection data delivered${uuid === null ? '' : ` for node ${uuid}`}`);
      return uuid;
    } catch (error) {
      const status = (error as { httpStatus?: number }).httpStatus ?? 0;
      log.warn(`Inspection data not delivered: ${reasonOf(error)}`);
      if (tries === ATTEMPTS || (status >= 400 && status < 500 && status !== 409)) return null;
      await clock.sleep(Math.min(30, 5 * 1.5 ** (tries - 1)) * 1000, signal);
    }
  }
}

/** All that is posted; what failed is in `error`, beside what did not. */
async function gather(machine: Machine, signal: AbortSignal): Promise<InspectionData> {
  const { parameters, clock, log } = machine;
  const collectors = parameters.inspectionCollectors;
  const failures: string[] = [];
  const attempt = async <T>(what: string, work: () => Promise<T>, otherwise: T): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      signal.throwIfAborted();
      failures.push(`${what}: ${reasonOf(error)}`);
      return otherwise;
    }
  };

  // Switches speak every half a minute or so: it is listened to them while the rest is read.
  const listens = parameters.collectLldp || collectors.includes('lldp');
  const hear = (): Promise<Readonly<Record<string, Tlvs>>> => hearSwitches(machine, parameters.lldpTimeout * 1000, signal);
  const silence: Readonly<Record<string, Tlvs>> = {};
  const [inventory, heard] = await Promise.all([
    readInventory(machine),
    listens ? attempt('collector lldp failed', hear, silence) : silence,
  ]);
  const withLldp = (name: string): Tlvs | null => (parameters.collectLldp ? (heard[name] ?? null) : null);
  const found: JsonObject[] = [];
  for (const name of collectors) {
    if (name === 'default' || name === 'logs') continue;
    if (Object.hasOwn(COLLECTORS, name))
      found.push(await attempt(`collector ${name} failed`, () => COLLECTORS[name]!(machine, heard, signal), {}));
    else failures.push(`Failed to load collector ${name}`);
  }
  return {
    inventory: { ...inventory, interfaces: inventory.interfaces.map((one) => ({ ...one, lldp: withLldp(one.name) })) },
    ...rootDiskOf(inventory.disks),
    boot_interface: inventory.boot?.pxe_interface ?? null,
    configuration: { collectors, managers: [{ name: MANAGER.name, version: MANAGER.version }] },
    ...(Object.assign({}, ...found) as JsonObject),
    ...(collectors.includes('logs') ? { logs: await collectLogs(machine.run, log.text(), clock.now()) } : {}),
    error: failures.length > 0 ? `The following errors were encountered:\n${failures.map((one) => `* ${one}`).join('\n')}` : null,
  };
}

/** Where a deployment without hints would write to; a machine may have no such disk. */
function rootDiskOf(disks: Parameters<typeof rootDisk>[0]): JsonObject {
  try {
    return { root_disk: rootDisk(disks, {}) };
  } catch {
    return {};
  }
}
