/** A task without a conductor, for tests of drivers: the node in memory, a clock that jumps, and a record of every order to the machine. */
import type { Options } from '../../config/options';
import { noopManagement, noopNetwork, noopStorage } from '../../drivers/noop';
import { fakeBoot, fakeConsole, fakeDeploy, fakeInspect, fakePower, fakeRescue } from '../../drivers/fake/fake';
import type { Connections, Driver, Task } from '../../drivers/interfaces';
import { NODE_FIELDS, PORT_FIELDS, PORTGROUP_FIELDS } from '../../model/fields';
import { Fault } from '../../model/errors';
import type { InternalInfo } from '../../model/internal-info';
import type { Log } from '../../model/log';
import { silentMetrics } from '../../model/metrics';
import {
  INTERFACE_KINDS,
  type ServedBoot,
  type JsonObject,
  type MediumRecord,
  type NodeRecord,
  type PortgroupRecord,
  type PortRecord,
  type SnapshotRecord,
  type VolumeConnectorRecord,
  type VolumeTargetRecord,
  type ResidentAgent,
} from '../../model/records';
import { optionsOf } from './options';
import { servicesOf } from './services';

export const NODE_UUID = '5b7b9a3e-1d0f-4b0c-9b0e-3f6f0c2f8a11';
const NOW = Date.parse('2026-02-03T04:05:06Z');

/** Empty values of all columns. */
const emptyFields = (fields: Readonly<Record<string, string>>): object =>
  Object.fromEntries(Object.entries(fields).map(([name, kind]) => [name, kind === 'json' ? {} : kind === 'texts' ? [] : null]));
const MADE_AT = '2026-02-03T04:05:06.000000+00:00';

export const nodeRecord = (changes: Partial<NodeRecord> = {}): NodeRecord => ({
  ...(emptyFields(NODE_FIELDS) as NodeRecord),
  ...Object.fromEntries(INTERFACE_KINDS.map((kind) => [`${kind}_interface`, 'fake'])),
  id: 1,
  uuid: NODE_UUID,
  name: 'n1',
  driver: 'fake-hardware',
  conductor_group: '',
  protected: false,
  retired: false,
  disable_power_off: false,
  maintenance: false,
  power_state: 'power off',
  provision_state: 'deploying',
  target_provision_state: 'active',
  reservation: 'here',
  console_enabled: false,
  created_at: MADE_AT,
  revision: 7,
  lock_fence: 3,
  ...changes,
});

/** Keys of driver_internal_info that no row describes, as an imported database may have them. */
export const foreign = (keys: object): InternalInfo => keys;

export const portRecord = (changes: Partial<PortRecord> = {}): PortRecord => ({
  ...(emptyFields(PORT_FIELDS) as PortRecord),
  id: 1,
  uuid: '0b3f8e0e-51a3-4a0e-8a5b-4f7f0f6c6d01',
  node_uuid: NODE_UUID,
  address: '52:54:00:00:00:01',
  pxe_enabled: true,
  is_smartnic: false,
  available_for_dynamic_portgroup: true,
  created_at: MADE_AT,
  revision: 1,
  ...changes,
});

export const portgroupRecord = (changes: Partial<PortgroupRecord> = {}): PortgroupRecord => ({
  ...(emptyFields(PORTGROUP_FIELDS) as PortgroupRecord),
  id: 1,
  uuid: '0b3f8e0e-51a3-4a0e-8a5b-4f7f0f6c6e01',
  node_uuid: NODE_UUID,
  standalone_ports_supported: true,
  mode: 'active-backup',
  dynamic_portgroup: false,
  created_at: MADE_AT,
  revision: 1,
  ...changes,
});

export const driverOptions = (changes: Partial<Options> = {}): Options =>
  optionsOf({ 'service_catalog.endpoint_override': 'http://10.0.0.1:6385', 'deploy.http_url': 'http://10.0.0.1:8080', ...changes });

export interface TestTask {
  readonly task: Task;
  /** What happened to the machine, in order: `power: power off`, `boot device: pxe once`, … */
  readonly events: string[];
  /** Node UUID → its boot row. */
  readonly boots: Map<string, ServedBoot>;
  /** Role → its published medium. */
  readonly media: Map<string, MediumRecord>;
  /** Lines of warnings and errors. */
  readonly complaints: string[];
  readonly node: () => NodeRecord;
  /** The volume targets as last saved. */
  readonly volumeTargets: () => readonly VolumeTargetRecord[];
  readonly stop: (reason: Error) => void;
}

/** Fake interfaces, a noop network, and a management interface that accepts every device, unless `driver` replaces them. */
export function testTask(
  given: {
    readonly node?: Partial<NodeRecord>;
    readonly ports?: readonly PortRecord[];
    readonly portgroups?: readonly PortgroupRecord[];
    readonly snapshots?: readonly SnapshotRecord[];
    readonly options?: Partial<Options>;
    readonly driver?: Partial<Driver>;
    readonly connections?: Partial<Connections>;
    readonly globalRequestId?: string;
    readonly recorder?: JsonObject;
    readonly residentAgent?: ResidentAgent;
    readonly connectors?: readonly VolumeConnectorRecord[];
    readonly targets?: readonly VolumeTargetRecord[];
  } = {},
): TestTask {
  let node = nodeRecord(given.node);
  let ports = given.ports ?? [portRecord()];
  let portgroups = given.portgroups ?? [];
  let targets = given.targets ?? [];
  let now = NOW;
  const events: string[] = [];
  const complaints: string[] = [];
  const boots = new Map<string, ServedBoot>();
  const media = new Map<string, MediumRecord>();
  const snapshots = new Map<string, SnapshotRecord>((given.snapshots ?? []).map((snapshot) => [snapshot.uuid, snapshot]));
  const snapshotOf = (uuid: string): SnapshotRecord => {
    const found = snapshots.get(uuid);
    if (!found) throw new Fault('RecordNotFound', { resource: 'Snapshot', ident: uuid });
    return found;
  };
  const stopping = new AbortController();
  const complain = (message: string, fields?: object): void => void complaints.push(`${message} ${JSON.stringify(fields ?? {})}`);
  const log: Log = { debug: () => {}, info: () => {}, warn: complain, error: complain, child: () => log };
  const driver: Driver = {
    bios: {},
    boot: fakeBoot,
    console: fakeConsole,
    deploy: fakeDeploy,
    firmware: {},
    inspect: fakeInspect,
    management: {
      ...noopManagement,
      setBootDevice: async (_, device, persistent) => void events.push(`boot device: ${device} ${persistent ? 'for good' : 'once'}`),
    },
    network: noopNetwork,
    power: fakePower,
    raid: {},
    rescue: fakeRescue,
    storage: noopStorage,
    vendor: {},
    ...given.driver,
  };
  const task: Task = {
    get node() {
      return node;
    },
    get ports() {
      return ports;
    },
    portgroups: async () => portgroups,
    saveAttachment: async (kind, uuid, keys) => {
      const changed = <R extends PortRecord | PortgroupRecord>(record: R): R => {
        if (record.uuid !== uuid) return record;
        const info = Object.entries({ ...record.internal_info, ...keys }).filter(([, value]) => value !== undefined);
        return { ...record, internal_info: Object.fromEntries(info) };
      };
      if (kind === 'port') ports = ports.map(changed);
      else portgroups = portgroups.map(changed);
    },
    groupPorts: async (group, members) => {
      const made = portgroupRecord({ ...group, uuid: 'made-portgroup' });
      portgroups = [...portgroups, made];
      ports = ports.map((port) => (members.includes(port.uuid) ? { ...port, portgroup_uuid: made.uuid } : port));
      return made;
    },
    ungroupPorts: async (uuid) => {
      portgroups = portgroups.filter((group) => group.uuid !== uuid);
      ports = ports.map((port) => (port.portgroup_uuid === uuid ? { ...port, portgroup_uuid: null } : port));
    },
    driver,
    metrics: silentMetrics,
    log,
    clock: {
      now: () => now,
      sleep: async (milliseconds, signal) => {
        signal?.throwIfAborted();
        now += milliseconds;
      },
    },
    signal: stopping.signal,
    boots: {
      put: async (boot) => {
        const served = { ...boot, token: boot.node_uuid };
        boots.set(boot.node_uuid, served);
        return served;
      },
      remove: async (uuid) => void boots.delete(uuid),
      ofNode: async (uuid) => boots.get(uuid),
      byToken: async (token) => boots.get(token),
      kickstartOf: async () => undefined,
      noteRequests: async () => {},
      requestsOf: async () => undefined,
      forMac: async (mac) => [...boots.values()].find((boot) => boot.macs.includes(mac)),
    },
    certifyErasure: async ({ step, command }) => void events.push(`certificate: ${step} ${command}`),
    snapshots: {
      find: async (uuid) => snapshotOf(uuid),
      update: async (uuid, changes) => {
        const changed = { ...snapshotOf(uuid), ...changes };
        snapshots.set(uuid, changed);
        return changed;
      },
    },
    media: {
      put: async (medium) => void media.set(medium.role, medium),
      remove: async (_, role) => void media.delete(role),
      ofNode: async (_, role) => media.get(role),
      byToken: async (token) => [...media.values()].find((medium) => medium.token === token),
    },
    volumes: {
      targets: async () => targets,
      connectors: async () => given.connectors ?? [],
      saveProperties: async (uuid, properties) => {
        targets = targets.map((target) => (target.uuid === uuid ? { ...target, properties } : target));
      },
      removeTargets: async () => {
        targets = [];
      },
    },
    random: (bytes) => Buffer.alloc(bytes, 7),
    options: driverOptions(given.options),
    connections: {
      ipmi: { request: async () => Promise.reject(new Error('no BMC here')), close: async () => {} },
      redfish: { request: async () => Promise.reject(new Error('no BMC here')), close: async () => {} },
      services: servicesOf(),
      ...given.connections,
    },
    ...(given.globalRequestId === undefined ? {} : { globalRequestId: given.globalRequestId }),
    save: async (changes) => {
      node = { ...node, ...changes };
    },
    saveInternal: async (keys) => {
      const kept = Object.entries({ ...node.driver_internal_info, ...keys }).filter(([, value]) => value !== undefined);
      node = { ...node, driver_internal_info: Object.fromEntries(kept) };
    },
    saveBiosSettings: async (settings) => void events.push(`BIOS: ${settings.map(({ name, value }) => `${name}=${value}`).join(', ')}`),
    saveFirmwareComponents: async (components) =>
      void events.push(`firmware: ${components.map(({ component, current_version: version }) => `${component}=${version}`).join(', ')}`),
    recorderData: async () => given.recorder,
    residentAgent: async () => given.residentAgent,
    recordBoot: async ({ of, ...boot }) => {
      events.push(`${of === 'instance' ? 'boot' : `${of} boot`}: ${Object.values(boot).join(': ')}`);
      if (boot.by === 'kexec') await task.saveInternal({ agent_url: undefined, kexec: undefined });
    },
    power: async (target) => {
      events.push(`power: ${target}`);
      node = { ...node, power_state: target === 'power off' || target === 'soft power off' ? 'power off' : 'power on' };
    },
  };
  return {
    task,
    events,
    boots,
    media,
    complaints,
    node: () => node,
    volumeTargets: () => targets,
    stop: (reason) => stopping.abort(reason),
  };
}
