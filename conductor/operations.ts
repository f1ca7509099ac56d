/**
 * All calls to a conductor, as a table: which conductor a call goes to, and what it runs there. The conductor of this process, the RPC
 * server and the RPC client use this table.
 */
import { originFields, type Origin } from '../model/origin';
import type { JsonObject, NodeRecord } from '../model/records';
import { INTERFACE_KINDS } from '../model/records';
import type { ConfigScope, Store } from '../store/store';
import { createAllocation, deleteAllocation } from './requests/allocations';
import { noteBmcEvents } from './requests/bmc-events';
import { getBootDevice, setBootDevice, supportedBootDevices } from './requests/boot-device';
import { setBootMode, setSecureBoot } from './requests/boot-mode';
import type { Calls, ConductorApi } from './conductor';
import type { Lookup, VolumeKind } from './core/call-types';
import { consoleInfo, readConsoleLog, setConsole } from './requests/console';
import type { Context } from './core/context';
import { defaultInterface } from './hardware/hardware';
import { heartbeat } from './engine/heartbeat';
import { checkDefaultConfig, readDefaults } from './requests/default-config';
import { getIndicator, injectNmi, listIndicators, setIndicator } from './requests/indicators';
import { continueInspection } from './flows/continue-inspection';
import { continueIntrospection, reapplyIntrospection } from './introspection/continue';
import { readReport } from './introspection/report';
import { startIntrospection } from './introspection/start';
import { abortIntrospection } from './introspection/unfinished';
import { deletePortgroup, updatePortgroup } from './requests/portgroups';
import { createPort, deletePort, updatePort } from './requests/ports';
import { setPower } from './requests/power';
import { provision } from './engine/provision';
import { setRaidConfig } from './requests/raid';
import { probeReadiness } from './requests/readiness';
import { readSensors } from './requests/sensors';
import { createNode, deleteNode, setMaintenance, setTraits, updateNode } from './requests/nodes';
import { deleteSnapshot } from './requests/snapshots';
import { declareOutOfService, endOutOfService } from './requests/out-of-service';
import { validateNode } from './requests/validate';
import { callDriverVendor, callVendor, driverVendorMethods, vendorMethods } from './requests/vendor';
import { attachVif, detachVif, listVifs } from './requests/vifs';
import { attachVirtualMedia, detachVirtualMedia, getVirtualMedia } from './requests/virtual-media';
import { deleteVolume, updateVolume } from './requests/volumes';

export type OperationName = keyof Calls;
/** Selects the conductor of a call: with this driver, in this group (absent: any), with the highest hash for the key. */
export interface ConductorSelector {
  readonly key: string;
  readonly driver?: string;
  readonly conductor_group?: string | undefined;
}
type Route = (store: Store, args: readonly unknown[]) => Promise<ConductorSelector>;
interface Operation<Name extends OperationName> {
  readonly to: Route;
  /** Running it twice is harmless: a call is retried when its caller cannot know whether it ran. */
  readonly repeatable?: true;
  readonly run: (context: Context, ...args: Parameters<Calls[Name]>) => ReturnType<Calls[Name]>;
}

const ofNode = ({ uuid, driver, conductor_group }: Pick<NodeRecord, 'uuid' | 'driver' | 'conductor_group'>): ConductorSelector => ({
  key: uuid,
  driver,
  conductor_group,
});
const node: Route = async ({ nodes }, [ident]) => ofNode(await nodes.find(ident as string));
const nodeOf =
  (find: (store: Store, args: readonly unknown[]) => Promise<{ readonly node_uuid: string }>): Route =>
  async (store, args) =>
    node(store, [(await find(store, args)).node_uuid]);
const port = nodeOf(({ ports }, [uuid]) => ports.find(uuid as string));
const portgroup = nodeOf(({ portgroups }, [uuid]) => portgroups.find(uuid as string));
const volume = nodeOf(({ volumeConnectors, volumeTargets }, [kind, uuid]) =>
  (kind as VolumeKind) === 'connector' ? volumeConnectors.find(uuid as string) : volumeTargets.find(uuid as string),
);
const newPort = nodeOf(async (_store, [made]) => made as { readonly node_uuid: string });
const driver: Route = async (_store, [name]) => ({ key: name as string, driver: name as string });
/** Any conductor. */
const anyone: Route = async (_store, [uuid]) => ({ key: uuid as string });
/** Without a group, the conductor that creates the node sets its own default group. */
const newNode: Route = async (_store, [made]) => {
  const { uuid, driver: name, conductor_group: group } = made as Pick<NodeRecord, 'uuid' | 'driver'> & { conductor_group?: string };
  return { key: uuid, driver: name, conductor_group: group?.toLowerCase() };
};
const newAllocation: Route = async (store, [made, ident]) =>
  typeof ident === 'string' ? node(store, [ident]) : { key: (made as { readonly uuid: string }).uuid };
/** A conductor of a node's driver; for a resource class or a property, any. */
const configured: Route = async (store, [scope]) => {
  const { node_uuid: ident } = scope as ConfigScope;
  return ident === null ? { key: JSON.stringify(scope) } : node(store, [ident]);
};
const allocation: Route = async (store, [uuid]) => {
  const { node_uuid: ident } = await store.allocations.find(uuid as string);
  return ident === null ? { key: uuid as string } : node(store, [ident]);
};
/** Guesses the node by UUID or MAC addresses. The conductor that gets the call finds the node itself, and may lock any node. */
const inspected: Route = async (store, [lookup]) => {
  const { macs, nodeUuid, discovery } = lookup as Lookup;
  const [known] = await store.ports.byMacs(macs);
  const found = (await store.nodes.list({ where: { uuid: nodeUuid ?? known?.node_uuid ?? '' }, children: 'all' }))[0];
  return found ? ofNode(found) : { key: macs.join(), ...discovery };
};
/** The node that waits for this report, if any. */
const introspected: Route = async (store, [data]) => {
  const { macs, bmcAddresses } = readReport(data as JsonObject, 'all');
  const [best] = await store.introspections.matching(macs, bmcAddresses);
  return best ? node(store, [best.node_uuid]) : { key: macs.join() };
};

/** driver_info key → description, of the default interfaces of the hardware type. */
const propertiesOf = (context: Context, name: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    INTERFACE_KINDS.flatMap((kind) => Object.entries(defaultInterface(context, name, kind).properties ?? {})).map(([key, property]) => [
      key,
      property.description,
    ]),
  );

export const OPERATIONS: { readonly [Name in OperationName]: Operation<Name> } = {
  createNode: { to: newNode, run: createNode },
  updateNode: { to: node, run: updateNode },
  deleteNode: { to: node, run: deleteNode },
  setMaintenance: { to: node, repeatable: true, run: setMaintenance },
  declareOutOfService: { to: node, repeatable: true, run: declareOutOfService },
  endOutOfService: { to: node, repeatable: true, run: endOutOfService },
  validate: { to: node, repeatable: true, run: validateNode },
  probe: { to: node, repeatable: true, run: probeReadiness },
  provision: { to: node, run: provision },
  readDefaults: { to: node, repeatable: true, run: readDefaults },
  checkDefaultConfig: { to: configured, repeatable: true, run: checkDefaultConfig },
  setPower: { to: node, run: setPower },
  deleteSnapshot: { to: anyone, run: deleteSnapshot },
  readSensors: { to: node, repeatable: true, run: readSensors },
  noteBmcEvents: { to: node, repeatable: true, run: noteBmcEvents },
  getBootDevice: { to: node, repeatable: true, run: getBootDevice },
  setBootDevice: { to: node, repeatable: true, run: setBootDevice },
  supportedBootDevices: { to: node, repeatable: true, run: supportedBootDevices },
  setRaidConfig: { to: node, repeatable: true, run: setRaidConfig },
  setBootMode: { to: node, run: setBootMode },
  setSecureBoot: { to: node, run: setSecureBoot },
  setConsole: { to: node, run: setConsole },
  attachVirtualMedia: { to: node, run: attachVirtualMedia },
  detachVirtualMedia: { to: node, run: detachVirtualMedia },
  getVirtualMedia: { to: node, repeatable: true, run: getVirtualMedia },
  consoleInfo: { to: node, repeatable: true, run: consoleInfo },
  readConsoleLog: { to: node, repeatable: true, run: readConsoleLog },
  injectNmi: { to: node, run: injectNmi },
  listIndicators: { to: node, repeatable: true, run: listIndicators },
  getIndicator: { to: node, repeatable: true, run: getIndicator },
  setIndicator: { to: node, repeatable: true, run: setIndicator },
  vendorMethods: { to: driver, repeatable: true, run: async (context, name) => vendorMethods(context, name) },
  callVendor: { to: node, run: callVendor },
  driverVendorMethods: { to: driver, repeatable: true, run: async (context, name) => driverVendorMethods(context, name) },
  callDriverVendor: { to: driver, run: callDriverVendor },
  setTraits: { to: node, run: setTraits },
  createPort: { to: newPort, run: createPort },
  updatePort: { to: port, run: updatePort },
  deletePort: { to: port, run: deletePort },
  updateVolume: { to: volume, run: updateVolume },
  deleteVolume: { to: volume, run: deleteVolume },
  updatePortgroup: { to: portgroup, run: updatePortgroup },
  deletePortgroup: { to: portgroup, run: deletePortgroup },
  listVifs: { to: node, repeatable: true, run: listVifs },
  attachVif: { to: node, run: attachVif },
  detachVif: { to: node, run: detachVif },
  createAllocation: { to: newAllocation, run: createAllocation },
  deleteAllocation: { to: allocation, run: deleteAllocation },
  driverProperties: { to: driver, repeatable: true, run: async (context, name) => propertiesOf(context, name) },
  heartbeat: { to: node, repeatable: true, run: heartbeat },
  continueInspection: { to: inspected, run: continueInspection },

  startIntrospection: { to: node, run: startIntrospection },
  abortIntrospection: { to: node, run: abortIntrospection },
  reapplyIntrospection: { to: node, run: reapplyIntrospection },
  continueIntrospection: { to: introspected, run: continueIntrospection },
};

export const isOperation = (name: unknown): name is OperationName => typeof name === 'string' && Object.hasOwn(OPERATIONS, name);

/** Runs an operation, here or on another conductor. */
export type Perform = (name: OperationName, args: readonly unknown[], origin: Origin | undefined, caller?: AbortSignal) => Promise<unknown>;

/** Runs operations in this process. All work that follows from the call has its origin. */
export const performLocally =
  (context: Context): Perform =>
  (name, args, origin, caller) => {
    const ours: Context = {
      ...context,
      ...(origin ? { origin, log: context.log.child(originFields(origin)) } : {}),
      ...(caller ? { caller } : {}),
    };
    const run = OPERATIONS[name].run as (context: Context, ...given: readonly unknown[]) => Promise<unknown>;
    return run(ours, ...args);
  };

/** Makes the functions that the API calls, one for each row of the table. */
export function conductorApi(perform: Perform): ConductorApi {
  const functions: Record<string, unknown> = {
    from: (origin: Origin) => Object.assign(Object.create(functions) as object, { origin }),
  };
  for (const name of Object.keys(OPERATIONS) as OperationName[])
    functions[name] = function (this: { readonly origin?: Origin }, ...args: readonly unknown[]): Promise<unknown> {
      return perform(name, args, this.origin);
    };
  return functions as unknown as ConductorApi;
}
