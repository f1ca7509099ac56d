/** What the database is to the other rooms: rows in, rows out, each write in a transaction. SQL lives in this room only. */
import type { NodeWrite } from '../model/node-write';
import type { EventKind, EventRecord } from '../model/events';
import type { ChangeKind, Component, HardwareChange } from '../model/hardware';
import type { IntrospectionRecord, IntrospectionState } from '../model/introspection';
import type {
  AllocationRecord,
  BiosSettingRecord,
  Boots,
  ChangesOf,
  ChassisRecord,
  ConductorRecord,
  DeployTemplateRecord,
  FirmwareComponentRecord,
  HistoryRecord,
  InspectionRuleRecord,
  IntrospectionRuleRecord,
  InventoryRecord,
  JsonObject,
  LeaseRecord,
  Media,
  NewNode,
  NewOf,
  NewPort,
  NodeChanges,
  NodeRecord,
  PortChanges,
  PortgroupRecord,
  PortRecord,
  ResourceRecord,
  RunbookRecord,
  VolumeConnectorRecord,
  VolumeTargetRecord,
} from '../model/records';

export interface Paging {
  /** UUID of the last row of the page before; unknown: Fault NodeNotFound / PortNotFound. */
  readonly marker?: string;
  readonly limit?: number;
  /** A column; ties are broken by id. Default id. */
  readonly sortKey?: string;
  readonly sortDir?: 'asc' | 'desc';
}
/** A row by its number, and the number that every write of it raises: what a kept answer is held against. */
export interface RowVersion {
  readonly id: number;
  readonly revision: number;
}
/** What an agent's sign of life is held against. */
export type AgentNode = Pick<
  NodeRecord,
  'uuid' | 'name' | 'provision_state' | 'reservation' | 'last_error' | 'driver_info' | 'driver_internal_info'
>;
/** What stands for a node until its record is needed. */
export interface NodeSummary extends RowVersion {
  readonly uuid: string;
  readonly owner: string | null;
  readonly lessee: string | null;
  /** The conductors that are alive (`Conductors.alive`), read along. */
  readonly conductors_version: string;
}
export interface NodeFilter extends Paging {
  /** Only rows of these numbers. */
  readonly ids?: readonly number[];
  /** Only rows of higher numbers: for going through all, whatever comes and goes meanwhile. */
  readonly after?: number;
  /** Exact match on columns; null: the column is null; a list: any of them. */
  readonly where?: Readonly<Partial<Record<keyof NodeRecord, string | number | boolean | null | readonly string[]>>>;
  readonly associated?: boolean;
  readonly reserved?: boolean;
  readonly sharded?: boolean;
  /** With this key in driver_internal_info. */
  readonly internal?: string;
  /** SQL LIKE on the description, with its `%` and `_`. */
  readonly descriptionContains?: string;
  /** Owner or lessee equals it. */
  readonly project?: string;
  /** Absent: parents only. `'all'`: children too. A UUID: the children of that node. */
  readonly children?: string;
}
export interface Nodes {
  /** Throws NodeAlreadyExists, DuplicateName, InstanceAssociated. Missing columns get Ironic's empty values; state `enroll`. */
  create(node: NewNode): Promise<NodeRecord>;
  /** By UUID or name. Throws NodeNotFound. */
  find(ident: string): Promise<NodeRecord>;
  /** The few columns that every sign of life needs, for all that ask at the same time together. Throws NodeNotFound. */
  findAgent(ident: string): Promise<AgentNode>;
  /** When agents spoke that said nothing else, in one statement; of those only whose URL is still that. */
  recordHeartbeats(beats: readonly { readonly nodeUuid: string; readonly agentUrl: string; readonly at: string }[]): Promise<void>;
  /** By UUIDs and names, in their order; undefined: there is none. `timeout`: see `Conductors.alive`. */
  findSummaries(idents: readonly string[], timeout: number): Promise<readonly (NodeSummary | undefined)[]>;
  list(filter: NodeFilter): Promise<readonly NodeRecord[]>;
  /** These columns of the same rows: for what goes through all nodes. */
  listColumns<Column extends keyof NodeRecord>(
    columns: readonly Column[],
    filter: NodeFilter,
  ): Promise<readonly Pick<NodeRecord, Column>[]>;
  /** How many nodes (of a conductor group) are in these states; counted no further than `most`. */
  countInStates(most: number, states: readonly string[], group?: string): Promise<number>;
  /** The same rows by their versions: for answers that are kept. */
  versions(filter: NodeFilter): Promise<readonly RowVersion[]>;
  /**
   * Raises the revision and stamps updated_at. With `fence`: only while the row still carries that fencing number
   * (else NodeLocked: the caller's lock was taken over). Throws NodeNotFound, DuplicateName, InstanceAssociated.
   */
  update(uuid: string, changes: NodeChanges, fence?: number): Promise<NodeRecord>;
  /** The same while the row has this revision and nobody has reserved it; undefined: it is not so. */
  updateUnlocked(uuid: string, changes: NodeChanges, revision: number): Promise<NodeRecord | undefined>;
  /** Sets keys of driver_internal_info in one statement, whatever else is written meanwhile; `undefined` removes a key. */
  mergeInternal(uuid: string, keys: Readonly<Record<string, unknown>>, fence?: number): Promise<NodeRecord>;
  /** The same while the row lacks the first of the keys (or it is empty); false: another was sooner. */
  mergeInternalOnce(uuid: string, keys: Readonly<Record<string, unknown>>): Promise<boolean>;
  /** With its ports, boots and inventory. */
  remove(uuid: string, fence?: number): Promise<void>;
  /** One conditional UPDATE on `reservation`, which raises the fencing number. Throws NodeLocked (with the holder), NodeNotFound. */
  reserve(ident: string, host: string): Promise<NodeRecord>;
  release(uuid: string, fence: number): Promise<void>;
  /** How many nodes there are of each kind. */
  counts(): Promise<
    readonly (Pick<NodeRecord, 'provision_state' | 'power_state' | 'maintenance' | 'fault'> & { readonly count: number })[]
  >;
  /**
   * Writes a node that is held, with the entries of its history, in one statement; `node` is what the holder knows of it, and what comes
   * back is what it is now. `release`: the reservation ends with it. Throws NodeLocked (the lock was taken over), NodeNotFound.
   */
  writeLocked(node: NodeRecord, fence: number, write: NodeWrite, release?: boolean): Promise<NodeRecord>;
  /** How many nodes each shard has (null: those without), most first. */
  shards(): Promise<readonly { readonly name: string | null; readonly count: number }[]>;
  /** Ends every reservation of this host (it just started, so none can be its own); answers the nodes as they were. */
  releaseAll(host: string): Promise<readonly NodeRecord[]>;
}
/** Records of nodes in one of these shards or conductor groups. */
export interface NodeScope {
  readonly shards?: readonly string[];
  readonly conductorGroups?: readonly string[];
}
export interface PortFilter extends Paging, NodeScope {
  readonly ids?: readonly number[];
  readonly where?: Readonly<Partial<Record<keyof PortRecord, string | number | boolean | null>>>;
  /** Part of the description. */
  readonly descriptionContains?: string;
}
export interface Ports {
  /** Throws MACAlreadyExists, PortAlreadyExists. */
  create(port: NewPort): Promise<PortRecord>;
  /** Those whose address is no port's yet, in one statement; they have no names. */
  createMissing(ports: readonly NewPort[]): Promise<void>;
  /** By UUID or name. Throws PortNotFound. */
  find(ident: string): Promise<PortRecord>;
  list(filter: PortFilter): Promise<readonly PortRecord[]>;
  versions(filter: PortFilter): Promise<readonly RowVersion[]>;
  ofNode(nodeUuid: string): Promise<readonly PortRecord[]>;
  /** Those of the given addresses that exist, in one query. */
  byMacs(macs: readonly string[]): Promise<readonly PortRecord[]>;
  update(uuid: string, changes: PortChanges): Promise<PortRecord>;
  remove(uuid: string): Promise<void>;
}
export interface TableFilter<RecordType> extends Paging {
  /** Exact match on columns; null: the column is null; a list: any of them. */
  readonly where?: Readonly<Partial<Record<keyof RecordType, string | number | boolean | null | readonly string[]>>>;
  readonly nodeScope?: NodeScope;
}
/** What every table of a further resource can do (`Needed`: columns without which there is no record). */
export interface Table<RecordType extends ResourceRecord, Needed extends keyof RecordType = never> {
  /** Throws the table's faults for what exists already. */
  create(record: NewOf<RecordType, Needed>): Promise<RecordType>;
  /** By UUID, or by name where the table has names. Throws the table's "not found". */
  find(ident: string): Promise<RecordType>;
  list(filter: TableFilter<RecordType>): Promise<readonly RecordType[]>;
  /** Raises the revision and stamps updated_at. `only`: while the row is still so; else it is "not found". */
  update(uuid: string, changes: ChangesOf<RecordType>, only?: TableFilter<RecordType>['where']): Promise<RecordType>;
  remove(uuid: string, only?: TableFilter<RecordType>['where']): Promise<void>;
}
interface History extends Table<HistoryRecord, 'node_uuid'> {
  /** Removes the oldest entries of nodes with more than `keep` that are older than `before`. Answers how many went. */
  trim(limits: { readonly keep: number; readonly before: string; readonly atMost: number }): Promise<number>;
}
export interface BiosSettings {
  /** By name. */
  ofNode(nodeUuid: string): Promise<readonly BiosSettingRecord[]>;
  /** Adds those that are new and changes the others. */
  put(nodeUuid: string, settings: readonly (Partial<BiosSettingRecord> & { readonly name: string })[]): Promise<void>;
  remove(nodeUuid: string, names: readonly string[]): Promise<void>;
}
export interface FirmwareComponents {
  ofNode(nodeUuid: string): Promise<readonly FirmwareComponentRecord[]>;
  /** Adds those that are new and changes the others. */
  put(
    nodeUuid: string,
    components: readonly (Partial<FirmwareComponentRecord> & Pick<FirmwareComponentRecord, 'component' | 'initial_version'>)[],
  ): Promise<void>;
}
export interface Inventories {
  find(nodeUuid: string): Promise<InventoryRecord | undefined>;
  put(nodeUuid: string, record: InventoryRecord): Promise<void>;
  /** In the transaction that removes the node itself, at its end. */
  remove(nodeUuid: string): Promise<void>;
}
/** Where an address stands among the nodes. */
export interface AddressStatus {
  readonly mac: string;
  /** The inspect interface of its node while that is being inspected; null: it is not. */
  readonly inspectedBy: string | null;
  /** Whether the introspection service waits for what its machine reports. */
  readonly introspected: boolean;
}
/** Machines that were enrolled because nobody knew them. */
export interface Discoveries {
  /** Those of these MAC addresses that are a node's: by a port, or since the machine was discovered. In one query. */
  addressStatuses(macs: readonly string[]): Promise<readonly AddressStatus[]>;
  /** The nodes that were enrolled for any of these addresses. */
  owners(addresses: readonly string[]): Promise<readonly { readonly node_uuid: string; readonly finished: boolean }[]>;
  /** Makes the addresses those of this node, unless one of them is another's: false. In the transaction that makes the node. */
  claim(nodeUuid: string, addresses: readonly string[]): Promise<boolean>;
  isFinished(nodeUuid: string): Promise<boolean>;
  /** What its machine told was taken in: it is not listened to again. */
  finish(nodeUuid: string): Promise<void>;
}
export interface AliveConductors {
  /** `id:revision,…`: another whenever the conductors are others, or offer something else. */
  readonly version: string;
  /** Their signs of life, `updated_at`, are not kept up. */
  readonly conductors: readonly ConductorRecord[];
}
export interface Conductors {
  /**
   * Makes the row, or takes it over from this instance (null: from nobody). False: it belongs to another meanwhile. In a transaction.
   */
  register(
    conductor: Pick<ConductorRecord, 'hostname' | 'conductor_group' | 'drivers' | 'address'> & { readonly instance: string },
    over: string | null,
  ): Promise<boolean>;
  /** A sign of life. Throws ConductorNotFound when the row is not this instance's any more. */
  touch(hostname: string, instance: string): Promise<void>;
  /** Gets nothing new; what it holds, it holds as long as it gives signs of life. Throws as `touch`. */
  drain(hostname: string, instance: string): Promise<void>;
  /** Holds nothing any more. Throws as `touch`. */
  unregister(hostname: string, instance: string): Promise<void>;
  /**
   * Ends what the conductor of this name holds, unless it gave a sign of life within so many seconds (false then); one that is unknown
   * holds nothing. In a transaction, with what is taken from it.
   */
  declareDead(hostname: string, timeout: number): Promise<boolean>;
  /** Removes at most so many that were not heard of for so many seconds. Their names. */
  removeExpired(seconds: number, atMost: number): Promise<readonly string[]>;
  /**
   * Those online that gave a sign of life within so many seconds. Read only when the database's word for them is another than before.
   * @param word that of now, when it is known already (`NodeHead.alive`)
   */
  alive(timeout: number, word?: string): Promise<AliveConductors>;
  /** All of them. `timeout`: as in `alive`. */
  list(timeout: number): Promise<readonly ConductorRecord[]>;
}
export interface Secrets {
  /** The value of this name: the same for all processes on this database. `make`: when there is none yet. */
  shared(name: string, make: () => string): Promise<string>;
}
export interface Leases {
  /** Every lease that is known, expired ones too (their addresses are reused last). */
  list(): Promise<readonly LeaseRecord[]>;
  put(lease: LeaseRecord): Promise<void>;
  remove(mac: string): Promise<void>;
}
/** What happened to nodes; written with every change of a node by the database itself. */
export interface Events {
  /** The next ones, and from where on to read the ones after them: what can be read at this moment lies before it. */
  read(after: string, atMost: number): Promise<{ readonly events: readonly EventRecord[]; readonly reached: string }>;
  /** What no column of a node says. */
  add(node: NodeRecord, kind: EventKind, payload: JsonObject): Promise<void>;
  /** From where on only what is not told yet comes. */
  endPosition(): Promise<string>;
  /** Whether all that comes after this position is still there. */
  isReachable(position: string): Promise<boolean>;
  /** Removes those from before a moment, and the oldest beyond so many, `atMost` at a time. Answers how many went. */
  trim(limits: { readonly keep: number; readonly before: string; readonly atMost: number }): Promise<number>;
}

/** What a push is held against. */
export interface HardwareToken {
  readonly node_uuid: string;
  /** SHA-256 in hexadecimal; null: whoever had one has it no more. */
  readonly token_hash: string | null;
  readonly digest: string | null;
}
export interface HardwareRow extends HardwareToken {
  readonly token_from: 'operator' | 'deployment' | null;
  readonly token_made_at: string | null;
  /** Compressed JSON; null as long as nothing was pushed, as all that follows. */
  readonly record: Buffer | null;
  readonly boot_id: string | null;
  /** When this record came, and when it was last said to be still so. */
  readonly recorded_at: string | null;
  readonly received_at: string | null;
  readonly stale: boolean;
}
export interface HardwareChangeRow extends HardwareChange {
  readonly id: number;
  readonly node_uuid: string;
  readonly node_name: string | null;
  readonly owner: string | null;
  readonly lessee: string | null;
  readonly at: string;
}
/** A recorder said that all is as it was. */
export interface HardwareUnchanged {
  readonly nodeUuid: string;
  readonly digest: string;
  readonly bootId: string | null;
  readonly at: string;
}
export interface HardwareChangeFilter {
  /** Absent: of all nodes. */
  readonly nodeUuid?: string;
  readonly kinds?: readonly ChangeKind[];
  readonly components?: readonly Component[];
  readonly since?: string;
  /** Only those behind this one. */
  readonly after?: number;
  readonly limit: number;
}
/** What recorders on running hosts said. A node has a row from its first token on, until its instance ends; what changed stays. */
export interface Hardware {
  /** Many at once are one question. */
  findToken(nodeUuid: string): Promise<HardwareToken | undefined>;
  find(nodeUuid: string): Promise<HardwareRow | undefined>;
  /** The same, held until the transaction ends. */
  lock(nodeUuid: string): Promise<HardwareRow | undefined>;
  /** In place of the record that is kept. When it was stale that is told: as an event, and in the node's history where that is wanted. */
  put(
    nodeUuid: string,
    latest: { readonly digest: string; readonly record: Buffer; readonly bootId: string | null },
    inHistory: boolean,
  ): Promise<void>;
  /** In the place of the one that the node had. Throws NodeNotFound. */
  putToken(nodeUuid: string, hash: string, from: 'operator' | 'deployment'): Promise<void>;
  revoke(nodeUuid: string): Promise<void>;
  /** Those whose digest is another meanwhile are left out. Answers how many were stale, which is told as `put` does. One a node. */
  recordUnchanged(signs: readonly HardwareUnchanged[], inHistory: boolean): Promise<number>;
  /** Those not heard of since; told likewise. Answers how many are stale only now. */
  markStale(before: string, inHistory: boolean): Promise<number>;
  counts(): Promise<{ readonly fresh: number; readonly stale: number }>;
  /** Keeps so many of the node's. The last thing in its transaction: until that ends, nobody else adds any. */
  addChanges(nodeUuid: string, changes: readonly HardwareChange[], keep: number): Promise<void>;
  /** The oldest first. */
  changes(filter: HardwareChangeFilter): Promise<readonly HardwareChangeRow[]>;
  /** Answers how many went. */
  trimChanges(before: string, atMost: number): Promise<number>;
}
/** What the introspection service knows of nodes. */
export interface Introspections {
  find(nodeUuid: string): Promise<IntrospectionRecord | undefined>;
  /** The newest first. `marker`: a node; unknown: Fault NotFound. */
  list(page: {
    readonly marker?: string;
    readonly limit: number;
    readonly states?: readonly IntrospectionState[];
  }): Promise<readonly IntrospectionRecord[]>;
  /** Begins anew, without the data of before, unless one is under way that may not be; undefined then. Throws NodeNotFound. */
  start(
    begun: Pick<IntrospectionRecord, 'node_uuid' | 'started_at' | 'manage_boot' | 'macs' | 'bmc_addresses'>,
    from: readonly IntrospectionState[],
  ): Promise<IntrospectionRecord | undefined>;
  /** Writes while it is in one of these states; undefined: it is not. */
  change(
    nodeUuid: string,
    from: readonly IntrospectionState[],
    changes: Partial<Omit<IntrospectionRecord, 'node_uuid'>>,
  ): Promise<IntrospectionRecord | undefined>;
  /** Those under way that know some of the addresses, with how many, the most first. */
  matching(
    macs: readonly string[],
    bmcAddresses: readonly string[],
  ): Promise<readonly { readonly node_uuid: string; readonly score: number }[]>;
  /** What the ramdisk sent, or what became of it; undefined: there is none. */
  data(nodeUuid: string, which: 'processed' | 'unprocessed'): Promise<JsonObject | undefined>;
  putData(nodeUuid: string, which: 'processed' | 'unprocessed', data: JsonObject): Promise<void>;
  /** Those under way that began before a moment. */
  startedBefore(moment: string): Promise<readonly IntrospectionRecord[]>;
  /** Nodes whose introspection is in one of these states; reapplying, it is finished at the same time. */
  nodesIn(states: readonly IntrospectionState[]): Promise<readonly string[]>;
}

export interface Store {
  readonly nodes: Nodes;
  readonly ports: Ports;
  readonly boots: Boots;
  readonly media: Media;
  readonly inventories: Inventories;
  readonly hardware: Hardware;
  readonly discoveries: Discoveries;
  readonly conductors: Conductors;
  readonly secrets: Secrets;
  readonly leases: Leases;
  readonly chassis: Table<ChassisRecord>;
  readonly portgroups: Table<PortgroupRecord, 'node_uuid'>;
  readonly volumeConnectors: Table<VolumeConnectorRecord, 'node_uuid' | 'type' | 'connector_id'>;
  readonly volumeTargets: Table<VolumeTargetRecord, 'node_uuid' | 'volume_type' | 'volume_id' | 'boot_index'>;
  readonly allocations: Table<AllocationRecord, 'state'>;
  readonly deployTemplates: Table<DeployTemplateRecord, 'name'>;
  readonly runbooks: Table<RunbookRecord, 'name'>;
  readonly inspectionRules: Table<InspectionRuleRecord>;
  readonly introspections: Introspections;
  readonly introspectionRules: Table<IntrospectionRuleRecord> & { removeAll(): Promise<void> };
  readonly history: History;
  readonly biosSettings: BiosSettings;
  readonly firmwareComponents: FirmwareComponents;

  readonly events: Events;

  /** Everything done through the inner store is one transaction. */
  transaction<T>(work: (store: Store) => Promise<T>): Promise<T>;
}
