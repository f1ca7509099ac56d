/** In-band inspection: posts the inventory and the collectors' data to the inspection URLs. */
import type { JsonObject } from '../model/records';
import type { Api, InspectionData } from './api';
import { rootDisk } from '../model/agent/root-disk';
import { retry } from '../model/clock';
import { reasonOf } from '../model/errors';
import { COLLECTORS } from './collectors';
import { readInventory } from './inventory/inventory';
import { receiveLldp, stopFirmwareAgents, type Tlvs } from './inventory/lldp';
import { collectLogs } from './logs';
import type { Machine } from './machine';
import { managersOf } from './managers/registry';

const ATTEMPTS = 5;
/** Collects and posts the data. Returns the node's UUID, or null: then the lookup has only MAC addresses to find the node. */
export async function inspect(machine: Machine, server: Api, signal: AbortSignal): Promise<string | null> {
  const { log, clock } = machine;
  const data = await gather(machine, signal);
  const deliver = () => server.continueInspection(data);
  const pauseAfter = (error: unknown, attempt: number): number | undefined => {
    const status = (error as { httpStatus?: number }).httpStatus ?? 0;
    log.warn(`Inspection data not delivered: ${reasonOf(error)}`);
    const isFinal = attempt === ATTEMPTS || (status >= 400 && status < 500 && status !== 409);
    return isFinal ? undefined : Math.min(30, 5 * 1.5 ** (attempt - 1)) * 1000;
  };
  try {
    const uuid = await retry({ clock, signal }, deliver, pauseAfter);
    log.info(`Inspection data delivered${uuid === null ? '' : ` for node ${uuid}`}`);
    return uuid;
  } catch {
    signal.throwIfAborted();
    return null;
  }
}

/** All data to post: the parts that could be read, and in `error` the errors of the others. */
async function gather(machine: Machine, signal: AbortSignal): Promise<InspectionData> {
  const { parameters } = machine;
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

  // Switches send LLDP about every 30 s, so it is received while the rest is read.
  const listens = parameters.collectLldp || collectors.includes('lldp');
  if (listens) await stopFirmwareAgents(machine);
  const receive = (): Promise<Readonly<Record<string, Tlvs>>> => receiveLldp(machine, parameters.lldpTimeout * 1000, signal);
  const none: Readonly<Record<string, Tlvs>> = {};
  const [inventory, received] = await Promise.all([
    readInventory(machine),
    listens ? attempt('collector lldp failed', receive, none) : none,
  ]);
  const withLldp = (name: string): Tlvs | null => (parameters.collectLldp ? (received[name] ?? null) : null);
  const found: JsonObject[] = [];
  for (const name of collectors) {
    if (name === 'default' || name === 'logs') continue;
    if (Object.hasOwn(COLLECTORS, name))
      found.push(await attempt(`collector ${name} failed`, () => COLLECTORS[name]!(machine, received, signal), {}));
    else failures.push(`Failed to load collector ${name}`);
  }
  const managers = await attempt(
    'hardware managers',
    async () => (await managersOf(machine)).map(({ name, version }) => ({ name, version })),
    [],
  );
  return {
    inventory: { ...inventory, interfaces: inventory.interfaces.map((item) => ({ ...item, lldp: withLldp(item.name) })) },
    ...rootDiskOf(inventory.disks),
    boot_interface: inventory.boot?.pxe_interface ?? null,
    configuration: { collectors, managers },
    ...(Object.assign({}, ...found) as JsonObject),
    ...(collectors.includes('logs') ? { logs: await collectLogs(machine) } : {}),
    error: failures.length > 0 ? `The following errors were encountered:\n${failures.map((failure) => `* ${failure}`).join('\n')}` : null,
  };
}

/** The disk that a deployment without root device hints would use, if there is one. */
function rootDiskOf(disks: Parameters<typeof rootDisk>[0]): JsonObject {
  try {
    return { root_disk: rootDisk(disks, {}) };
  } catch {
    return {};
  }
}
