/** The table `default_configs`: default arguments of steps, for a resource class, for a value of a property, or for a node. */
import type { Knex } from 'knex';
import type { Clock } from '../../model/clock';
import { DEFAULT_CONFIG_FIELDS } from '../../model/fields';
import type { BiosSettingRecord, DefaultConfigRecord, InterfaceFields, NodeRecord } from '../../model/records';
import { preparedOn } from '../sql/prepared';
import { DEFAULT_SIZES, type Sizes } from '../sql/sizes';
import { SHARED_COLUMNS } from '../sql/rows';
import { resourceTable, type Table } from './resources';

export type ConfigScope = Pick<DefaultConfigRecord, 'node_uuid' | 'property' | 'resource_class' | 'value'>;
/** What the nodes of a scope may have as steps. */
export interface ScopeSteps {
  /** The different drivers with their interfaces. */
  readonly drivers: readonly (InterfaceFields & { readonly driver: string })[];
  /** `driver_internal_info.agent_cached_KIND_steps` of some nodes. */
  readonly agentSteps: readonly unknown[];
}
export type BiosFacts = Pick<BiosSettingRecord, 'allowable_values' | 'lower_bound' | 'name' | 'read_only' | 'upper_bound'>;
interface DefaultConfigs extends Table<DefaultConfigRecord, 'steps'> {
  /** Those that apply to the node, in no order. One query. */
  ofNode(node: Pick<NodeRecord, 'properties' | 'resource_class' | 'uuid'>): Promise<readonly DefaultConfigRecord[]>;
  /** Some of the nodes of a scope stand for all. */
  stepsOf(scope: ConfigScope): Promise<ScopeSteps>;
  /** What some of the BIOSes in a scope say about settings of these names. Undefined: none of them was read yet. */
  biosOf(scope: ConfigScope, names: readonly string[]): Promise<readonly BiosFacts[] | undefined>;
  /** `driver_internal_info.network_ports` of some of the nodes in a scope, as far as these were read. */
  portsOf(scope: ConfigScope): Promise<readonly unknown[]>;
}

const CONFIGS = resourceTable<DefaultConfigRecord, 'steps'>({ table: 'default_configs', columns: DEFAULT_CONFIG_FIELDS });
const ALL = Object.keys({ ...SHARED_COLUMNS, ...DEFAULT_CONFIG_FIELDS }).join(', ');
const OF_NODE = `SELECT ${ALL} FROM default_configs WHERE resource_class = $1 OR node_uuid = $2
  OR (property, value) IN (SELECT * FROM unnest($3::text[], $4::text[]))`;
const IN_SCOPE = '(nodes.resource_class = $1 OR nodes.uuid = $2 OR nodes.properties ->> $3 = $4)';
const INTERFACES = ['bios', 'deploy', 'firmware', 'management', 'power', 'raid', 'vendor'].map((kind) => `${kind}_interface`).join(', ');
const DRIVERS = `SELECT DISTINCT driver, ${INTERFACES} FROM nodes WHERE ${IN_SCOPE} LIMIT 50`;
const AGENT_STEPS = `SELECT steps FROM nodes, jsonb_each(driver_internal_info::jsonb) AS cached (key, steps)
  WHERE ${IN_SCOPE} AND key IN ('agent_cached_clean_steps', 'agent_cached_deploy_steps', 'agent_cached_service_steps') LIMIT 60`;

const HAS_BIOS = `SELECT EXISTS (SELECT FROM bios_settings JOIN nodes ON nodes.uuid = node_uuid WHERE ${IN_SCOPE}) AS has`;
const BIOS = `SELECT name, read_only, allowable_values, lower_bound, upper_bound FROM bios_settings
  WHERE name = ANY($5) AND node_uuid IN (SELECT uuid FROM nodes WHERE ${IN_SCOPE} LIMIT 200)`;

const PORTS = `SELECT ports FROM nodes, jsonb_each(driver_internal_info::jsonb) AS cached (key, ports)
  WHERE ${IN_SCOPE} AND key = 'network_ports' LIMIT 50`;

/** More properties of a node are not looked at. */
const MAX_PROPERTIES = 200;
const MAX_VALUE = 255;
/** The properties with plain values, as texts. */
const plainProperties = (properties: NodeRecord['properties']): readonly (readonly [string, string])[] =>
  Object.entries(properties)
    .filter(([, value]) => ['string', 'number', 'boolean'].includes(typeof value))
    .map(([name, value]) => [name, String(value)] as const)
    .filter(([, value]) => value.length <= MAX_VALUE)
    .slice(0, MAX_PROPERTIES);

const valuesOf = ({ resource_class: resourceClass, node_uuid: node, property, value }: ConfigScope): readonly unknown[] => [
  resourceClass,
  node,
  property,
  value,
];

export function defaultConfigsOn(db: Knex, clock: Clock, sizes: Sizes = DEFAULT_SIZES): DefaultConfigs {
  const prepared = preparedOn(db);
  return {
    ...CONFIGS(db, clock, sizes),
    ofNode: ({ uuid, resource_class: resourceClass, properties }) => {
      const plain = plainProperties(properties);
      const values = [resourceClass, uuid, plain.map(([name]) => name), plain.map(([, value]) => value)];
      return prepared<DefaultConfigRecord>('default_configs_of_node', OF_NODE, values);
    },
    stepsOf: async (scope) => {
      const values = valuesOf(scope);
      const [drivers, cached] = await Promise.all([
        prepared<ScopeSteps['drivers'][number]>(undefined, DRIVERS, values),
        prepared<{ readonly steps: unknown }>(undefined, AGENT_STEPS, values),
      ]);
      return { drivers, agentSteps: cached.map(({ steps }) => steps) };
    },
    portsOf: async (scope) => {
      const found = await prepared<{ readonly ports: unknown }>(undefined, PORTS, valuesOf(scope));
      return found.map(({ ports }) => ports);
    },
    biosOf: async (scope, names) => {
      const values = valuesOf(scope);
      const [found] = await prepared<{ readonly has: boolean }>(undefined, HAS_BIOS, values);
      return found?.has ? prepared<BiosFacts>(undefined, BIOS, [...values, [...names]]) : undefined;
    },
  };
}
