/** A conductor without machines: it writes the API's requests straight into the store, and records them. */
import { AlreadyRead, type Conductor, type ConductorApi } from '../../../conductor/conductor';
import type { VolumeKind } from '../../../conductor/core/call-types';
import { Fault } from '../../../model/errors';
import { declared, endedOutage, outageOf } from '../../../model/rules/out-of-service';
import type { EnabledHardware, NodeRecord } from '../../../model/records';
import { INTERFACE_KINDS } from '../../../model/records';
import type { Store } from '../../../store/store';

interface Call {
  readonly name: string;
  readonly arguments: readonly unknown[];
}
export interface FakeConductor extends ConductorApi {
  /** The calls so far, in order. */
  readonly calls: readonly Call[];
  /** Sets the error that the next call of this name throws. */
  fail(name: keyof Conductor, error: Error): void;
}

const everyKind = <T>(value: T) =>
  Object.fromEntries(INTERFACE_KINDS.map((kind) => [kind, value])) as Record<(typeof INTERFACE_KINDS)[number], T>;
/** A conductor's registration in which everything is fake. */
export const FAKE_HARDWARE: EnabledHardware = { defaults: everyKind('fake'), enabled: everyKind(['fake']) };

/** @param store gives the store when a call comes (test databases are opened late) */
export function createFakeConductor(store: () => Store): FakeConductor {
  const calls: Call[] = [];
  const failures = new Map<string, Error>();
  const done =
    <Arguments extends readonly unknown[], Result>(name: keyof Conductor, work: (...given: Arguments) => Promise<Result>) =>
    async (...given: Arguments): Promise<Result> => {
      // As over RPC.
      calls.push({ name, arguments: given.filter((argument) => !(argument instanceof AlreadyRead)) });
      const failure = failures.get(name);
      failures.delete(name);
      if (failure !== undefined) throw failure;
      return work(...given);
    };
  const volumes = (kind: VolumeKind) => (kind === 'connector' ? store().volumeConnectors : store().volumeTargets) as Store['volumeTargets'];
  const find = (uuid: string): Promise<NodeRecord> => store().nodes.find(uuid);
  const conductor: FakeConductor = {
    from: () => conductor,
    calls,
    fail: (name, error) => void failures.set(name, error),
    createNode: done('createNode', (node) =>
      store().nodes.create({ ...Object.fromEntries(INTERFACE_KINDS.map((kind) => [`${kind}_interface`, 'fake'])), ...node }),
    ),
    updateNode: done('updateNode', (uuid, changes) => store().nodes.update(uuid, changes)),
    deleteNode: done('deleteNode', (uuid) => store().nodes.remove(uuid)),
    setMaintenance: done('setMaintenance', async (uuid, on, reason) => {
      await store().nodes.update(uuid, { maintenance: on, maintenance_reason: reason ?? null });
    }),
    declareOutOfService: done('declareOutOfService', async (uuid, request, by) => {
      const node = await find(uuid);
      return outageOf(await store().nodes.update(uuid, declared(node, request, by, Date.parse(node.created_at))))!;
    }),
    endOutOfService: done('endOutOfService', async (uuid) => {
      const outage = outageOf(await find(uuid));
      if (outage) await store().nodes.update(uuid, endedOutage(outage));
    }),
    validate: done('validate', async () => ({ power: { result: true }, boot: { result: false, reason: 'no' } })),
    probe: done('probe', async () => ({
      validation: {},
      bootMode: { now: null, changeable: false },
      images: [],
      deploying: { count: 0, limit: 250 },
      cleans: true,
      missingSteps: { steps: [], agentKnown: false },
    })),
    readDefaults: done('readDefaults', async () => ({ rows: [], isRead: true })),
    checkDefaultConfig: done('checkDefaultConfig', async () => {}),
    provision: done('provision', async () => {}),
    setPower: done('setPower', async () => {}),
    noteBmcEvents: done('noteBmcEvents', async () => true),
    readSensors: done('readSensors', async () => [{ kind: 'fan', sensor: 'Fan 1', entity: 'CPU', unit: 'rpm', value: 4200 }]),
    getBootDevice: done('getBootDevice', async () => ({ boot_device: 'pxe', persistent: false })),
    setBootDevice: done('setBootDevice', async () => {}),
    supportedBootDevices: done('supportedBootDevices', async () => ['pxe', 'disk']),
    setRaidConfig: done('setRaidConfig', async (uuid, config, objection) => {
      if (objection) throw new Fault('InvalidParameterValue', { message: objection });
      await store().nodes.update(uuid, { target_raid_config: config });
    }),
    setBootMode: done('setBootMode', async () => {}),
    setSecureBoot: done('setSecureBoot', async () => {}),
    setConsole: done('setConsole', async () => {}),
    attachVirtualMedia: done('attachVirtualMedia', async () => {}),
    detachVirtualMedia: done('detachVirtualMedia', async () => {}),
    getVirtualMedia: done('getVirtualMedia', async () => [{ media_types: ['CD'], inserted: false, image: null }]),
    readConsoleLog: done('readConsoleLog', async (_, offset) => ({
      start: 0,
      end: 9,
      offset: offset ?? 0,
      next_offset: 9,
      text: 'login: \u001b',
    })),
    consoleInfo: done('consoleInfo', async () => null),
    injectNmi: done('injectNmi', async () => {}),
    listIndicators: done('listIndicators', async () => ({ system: { led: { readonly: false, states: ['off', 'on'] } } })),
    getIndicator: done('getIndicator', async () => 'on'),
    setIndicator: done('setIndicator', async () => {}),
    vendorMethods: done('vendorMethods', async () => ({})),
    callVendor: done('callVendor', async (_uuid, method) => ({ async: method !== 'sync', result: method === 'sync' ? { a: [1] } : null })),
    driverVendorMethods: done('driverVendorMethods', async () => ({})),
    callDriverVendor: done('callDriverVendor', async () => ({ async: false, result: null })),
    setTraits: done('setTraits', async (uuid, { replace, add, remove }) => {
      const { traits } = await find(uuid);
      await store().nodes.update(uuid, { traits: replace ?? (add ? [...traits, add] : traits.filter((trait) => trait !== remove)) });
    }),
    createPort: done('createPort', (port) => store().ports.create(port)),
    updatePort: done('updatePort', (uuid, changes) => store().ports.update(uuid, changes)),
    deletePort: done('deletePort', (uuid) => store().ports.remove(uuid)),
    updateVolume: done('updateVolume', (kind, uuid, changes) => volumes(kind).update(uuid, changes as never)) as Conductor['updateVolume'],
    deleteVolume: done('deleteVolume', (kind, uuid) => volumes(kind).remove(uuid)),

    updatePortgroup: done('updatePortgroup', (uuid, changes) => store().portgroups.update(uuid, changes)),
    listVifs: done('listVifs', async () => [{ id: 'vif-1' }]),
    attachVif: done('attachVif', async () => {}),
    detachVif: done('detachVif', async () => {}),
    deletePortgroup: done('deletePortgroup', (uuid) => store().portgroups.remove(uuid)),

    createAllocation: done('createAllocation', (allocation, node) =>
      store().allocations.create({ ...allocation, state: node ? 'active' : 'allocating', ...(node ? { node_uuid: node } : {}) }),
    ),
    deleteSnapshot: done('deleteSnapshot', (uuid) => store().snapshots.remove(uuid)),
    deleteAllocation: done('deleteAllocation', (uuid) => store().allocations.remove(uuid)),

    driverProperties: done('driverProperties', async () => ({ address: 'where it is' })),
    heartbeat: done('heartbeat', async () => {}),
    startIntrospection: done('startIntrospection', async () => {}),
    abortIntrospection: done('abortIntrospection', async () => {}),
    reapplyIntrospection: done('reapplyIntrospection', async () => {}),
    continueIntrospection: done('continueIntrospection', async () => ({ uuid: 'of nobody' })),
    continueInspection: done('continueInspection', async ({ macs }) => {
      const [port] = await store().ports.byMacs(macs);
      if (!port) throw new Fault('NotFound', { message: 'Resource could not be found.' });
      return find(port.node_uuid);
    }),
  };
  return conductor;
}
