/** Reads single nodes of the table `nodes` by UUID or name, with prepared statements. */
import type { Clock } from '../../model/clock';
import { Fault } from '../../model/errors';
import { NODE_FIELDS } from '../../model/fields';
import { MASK } from '../../model/masks';
import type { NodeRecord } from '../../model/records';
import { asked, batched, eachOf } from '../sql/batch';
import type { Prepared } from '../sql/prepared';
import { SHARED_COLUMNS, type Columns, type OwnedVersion, type RowVersion } from '../sql/rows';
import { isReadable } from '../sql/sizes';
import { ALIVE_VERSION, aliveCheckTime } from './conductors';

/** The columns that the handler of heartbeats reads. */
export type AgentNode = Pick<
  NodeRecord,
  'uuid' | 'name' | 'provision_state' | 'reservation' | 'last_error' | 'driver_info' | 'driver_internal_info'
>;
/** The columns that a lookup reads for each request. Of the objects, only `fast_track`, and what is about the agent's token. */
export type LookupNode = RowVersion & Pick<NodeRecord, (typeof LOOKUP_COLUMNS)[number] | 'driver_info' | 'driver_internal_info'>;
/** The columns that the answer to a lookup shows. */
export type AnsweredNode = RowVersion &
  Pick<NodeRecord, 'uuid' | 'owner' | 'lessee' | 'properties' | 'instance_info' | 'driver_internal_info'>;
/** The columns that a request needs to find a node, check its policies and look up its cached JSON. */
export interface NodeSummary extends OwnedVersion {
  readonly uuid: string;
  /** The version of the alive conductors (`Conductors.alive`), read in the same query. */
  readonly conductors_version: string;
}
export interface NodeLookups {
  /** By UUID or name. Concurrent calls share one query. Throws NodeNotFound. */
  readonly find: (ident: string) => Promise<NodeRecord>;
  /** What a lookup checks. Throws NodeNotFound. */
  findLookup(uuid: string): Promise<LookupNode>;
  /** What the answer to a lookup shows; undefined: the node was deleted. A large config drive is masked. */
  answered(uuid: string): Promise<AnsweredNode | undefined>;
  /** The columns that a heartbeat needs; of the objects, only the members. Concurrent calls share one query. Throws NodeNotFound. */
  findAgent(ident: string): Promise<AgentNode>;
  /** By UUIDs and names, in their order; undefined for unknown ones. `timeout`: see `Conductors.alive`. */
  findSummaries(idents: readonly string[], timeout: number): Promise<readonly (NodeSummary | undefined)[]>;
}

export const NODE_COLUMNS: Columns<NodeRecord> = {
  ...NODE_FIELDS,
  ...SHARED_COLUMNS,
  lock_fence: 'integer',
  driver_internal_info: 'jsonb',
  // Triggers read these (migrations/000/0005_events.ts).
  clean_step: 'jsonb',
  deploy_step: 'jsonb',
  service_step: 'jsonb',
  out_of_service: 'jsonb',
};

/** A UUID with or without hyphens. The API refuses names that match. */
const UUID = /^[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}$/i;
/** The column to look up an identifier from a request in. */
export const identColumn = (ident: string): 'uuid' | 'name' => (UUID.test(ident) ? 'uuid' : 'name');
/** False for texts that no row can have: PostgreSQL refuses U+0000 in texts and in queries. */
export const findable = (ident: string): boolean => ident !== '' && !ident.includes('\0');

const ALL = Object.keys(NODE_COLUMNS).join(', ');
/** The members of these objects that requests of agents need. The rest may be large: the steps of agents, secrets of BMCs. */
const MEMBERS = {
  driver_info: ['fast_track'],
  driver_internal_info: [
    'agent_url',
    'agent_secret_token',
    'agent_version',
    'agent_verify_ca',
    'agent_status',
    'agent_status_message',
    'redfish_fw_updates',
    'firmware_updates',
  ],
} as const;
/** SQL for the object with these members, without those that are null; the whole object if PostgreSQL cannot read members of it. */
function part(column: keyof typeof MEMBERS, names: readonly string[] = MEMBERS[column]): string {
  const members = names.map((name) => `'${name}', ${column} -> '${name}'`);
  const object = `jsonb_strip_nulls(jsonb_build_object(${members.join(', ')}))`;
  return NODE_COLUMNS[column] === 'json'
    ? `CASE WHEN ${isReadable(column)} THEN ${object}::json ELSE ${column} END AS ${column}`
    : `${object} AS ${column}`;
}
const PARTS = `${part('driver_info')}, ${part('driver_internal_info')}`;
const AGENT_COLUMNS = ['uuid', 'name', 'provision_state', 'reservation', 'last_error'] as const;
const LOOKUP_COLUMNS = ['uuid', 'provision_state', 'target_power_state', 'reservation', 'owner', 'lessee', 'management_interface'] as const;
const TOKEN_MEMBERS = ['agent_secret_token', 'agent_secret_token_giver', 'agent_url'];
const FIND_LOOKUP = `SELECT id, revision, ${LOOKUP_COLUMNS.join(', ')}, ${part('driver_info')}, ${part('driver_internal_info', TOKEN_MEMBERS)} FROM nodes
  WHERE uuid = $1`;
/** Bytes of instance_info from which the config drive is replaced. */
const LARGE_INSTANCE = 128 * 1024;
const ANSWERED = `SELECT id, revision, uuid, owner, lessee, properties, driver_internal_info,
    CASE WHEN octet_length(instance_info::text) < ${LARGE_INSTANCE} THEN instance_info WHEN NOT ${isReadable('instance_info')} THEN instance_info
      WHEN instance_info ->> 'configdrive' IS NULL THEN instance_info
      ELSE (instance_info::jsonb || '{"configdrive": "${MASK}"}')::json END AS instance_info
  FROM nodes WHERE uuid = $1`;
const SUMMARY = 'id, uuid, name, revision, owner, lessee';
const VERSION = `coalesce((${ALIVE_VERSION.replace('$2', '$3').replace('$1', '$2')}), '') AS conductors_version`;
/** One row needs no join. */
const summaryBy = (column: string): string => `SELECT ${SUMMARY}, ${VERSION} FROM nodes WHERE ${column} = $1`;
const summariesBy = (column: string): string => `SELECT summaries.*, ${VERSION} FROM (${eachOf('nodes', column, SUMMARY)}) AS summaries`;

export function nodeLookupsOn(prepared: Prepared, clock: Clock): NodeLookups {
  const findBy = (column: 'uuid' | 'name') =>
    batched(async (idents: readonly string[]) => {
      // One row needs no join.
      if (idents.length === 1) return prepared<NodeRecord>(`node_${column}`, `SELECT ${ALL} FROM nodes WHERE ${column} = $1`, idents);
      const nodes = await prepared<NodeRecord>(`nodes_${column}`, eachOf('nodes', column, ALL), [asked(idents)]);
      const found = new Map(nodes.map((node) => [node[column], node]));
      return idents.map((ident) => found.get(ident));
    });
  const finds = { uuid: findBy('uuid'), name: findBy('name') };
  const find = async (ident: string): Promise<NodeRecord> => {
    const node = findable(ident) ? await finds[identColumn(ident)](ident) : undefined;
    if (!node) throw new Fault('NodeNotFound', { node: ident });
    return node;
  };
  const agentsBy = (column: 'uuid' | 'name') =>
    batched(async (idents: readonly string[]) => {
      const text = eachOf('nodes', column, `${AGENT_COLUMNS.join(', ')}, ${PARTS}`);
      const found = new Map((await prepared<AgentNode>(`agents_${column}`, text, [asked(idents)])).map((node) => [node[column], node]));
      return idents.map((ident) => found.get(ident));
    });
  const agents = { uuid: agentsBy('uuid'), name: agentsBy('name') };

  return {
    find,

    async findLookup(uuid) {
      const [node] = findable(uuid) ? await prepared<LookupNode>('node_lookup', FIND_LOOKUP, [uuid]) : [];
      if (!node) throw new Fault('NodeNotFound', { node: uuid });
      return node;
    },
    async answered(uuid) {
      const [node] = await prepared<AnsweredNode>('node_answered', ANSWERED, [uuid]);
      return node;
    },

    async findAgent(ident) {
      const node = findable(ident) ? await agents[identColumn(ident)](ident) : undefined;
      if (!node) throw new Fault('NodeNotFound', { node: ident });
      return node;
    },

    async findSummaries(idents, timeout) {
      const found = new Map<string, NodeSummary>();
      for (const column of ['uuid', 'name'] as const) {
        const matching = idents.filter((ident) => findable(ident) && identColumn(ident) === column);
        if (matching.length === 0) continue;
        const [name, text, value] =
          matching.length === 1
            ? [`summary_${column}`, summaryBy(column), matching[0]!]
            : [`summaries_${column}`, summariesBy(column), asked(matching)];
        const summaries = await prepared<NodeSummary & Pick<NodeRecord, 'name'>>(name, text, [value, timeout, aliveCheckTime(clock)]);
        for (const summary of summaries) found.set(summary[column]!, summary);
      }
      return idents.map((ident) => found.get(ident));
    },
  };
}
