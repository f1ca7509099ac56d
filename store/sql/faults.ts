/** Converts errors of the database to faults. */
import { Fault } from '../../model/errors';
import type { FaultName } from '../../model/errors';

/** Constraint (named in migrations/) → the fault, and the fields of the record for its details. */
const CONSTRAINTS: Readonly<Record<string, readonly [FaultName, Readonly<Record<string, string>>]>> = {
  nodes_uuid_unique: ['NodeAlreadyExists', { uuid: 'uuid' }],
  nodes_name_unique: ['DuplicateName', { name: 'name' }],
  nodes_instance_uuid_unique: ['InstanceAssociated', { instance_uuid: 'instance_uuid', node: 'uuid' }],
  ports_uuid_unique: ['PortAlreadyExists', { uuid: 'uuid' }],
  ports_address_unique: ['MACAlreadyExists', { mac: 'address' }],
  ports_name_unique: ['PortDuplicateName', { name: 'name' }],
  ports_node_known: ['NodeNotFound', { node: 'node_uuid' }],
  boots_node_known: ['NodeNotFound', { node: 'node_uuid' }],
  media_node_known: ['NodeNotFound', { node: 'node_uuid' }],
  hardware_node_known: ['NodeNotFound', { node: 'node_uuid' }],
  hardware_changes_node_known: ['NodeNotFound', { node: 'node_uuid' }],
  bmc_watches_node_known: ['NodeNotFound', { node: 'node_uuid' }],
  health_alerts_node_known: ['NodeNotFound', { node: 'node_uuid' }],
  inventories_node_known: ['NodeNotFound', { node: 'node_uuid' }],
  chassis_uuid_unique: ['ChassisAlreadyExists', { uuid: 'uuid' }],
  nodes_parent_known: ['ParentNodeUnknown', { parent: 'parent_node' }],
  nodes_parent_acyclic: ['ParentNodeCycle', { node: 'uuid', parent: 'parent_node' }],
  nodes_children_gone: ['NodeHasChildren', { node: 'uuid' }],
  nodes_chassis_known: ['ChassisNotEmpty', { chassis: 'uuid' }],
  portgroups_uuid_unique: ['PortgroupAlreadyExists', { uuid: 'uuid' }],
  portgroups_name_unique: ['PortgroupDuplicateName', { name: 'name' }],
  portgroups_address_unique: ['PortgroupMACAlreadyExists', { mac: 'address' }],
  portgroups_node_known: ['NodeNotFound', { node: 'node_uuid' }],
  ports_portgroup_known: ['PortgroupNotEmpty', { portgroup: 'uuid' }],
  volume_connectors_uuid_unique: ['VolumeConnectorAlreadyExists', { uuid: 'uuid' }],
  volume_connectors_type_and_id_unique: ['VolumeConnectorTypeAndIdAlreadyExists', { type: 'type', connector_id: 'connector_id' }],
  volume_connectors_node_known: ['NodeNotFound', { node: 'node_uuid' }],
  volume_targets_uuid_unique: ['VolumeTargetAlreadyExists', { uuid: 'uuid' }],
  volume_targets_boot_index_unique: ['VolumeTargetBootIndexAlreadyExists', { boot_index: 'boot_index' }],
  volume_targets_node_known: ['NodeNotFound', { node: 'node_uuid' }],
  allocations_uuid_unique: ['AllocationAlreadyExists', { uuid: 'uuid' }],
  allocations_name_unique: ['AllocationDuplicateName', { name: 'name' }],
  allocations_node_known: ['NodeNotFound', { node: 'node_uuid' }],
  deploy_templates_uuid_unique: ['DeployTemplateAlreadyExists', { uuid: 'uuid' }],
  deploy_templates_name_unique: ['DeployTemplateDuplicateName', { name: 'name' }],
  runbooks_uuid_unique: ['RunbookAlreadyExists', { uuid: 'uuid' }],
  runbooks_name_unique: ['RunbookDuplicateName', { name: 'name' }],
  inspection_rules_uuid_unique: ['InspectionRuleAlreadyExists', { uuid: 'uuid' }],
  introspection_rules_uuid_unique: ['IntrospectionRuleAlreadyExists', { uuid: 'uuid' }],
  introspections_node_known: ['NodeNotFound', { node: 'node_uuid' }],
  node_history_node_known: ['NodeNotFound', { node: 'node_uuid' }],
  bios_settings_node_known: ['NodeNotFound', { node: 'node_uuid' }],
  default_configs_node_known: ['NodeNotFound', { node: 'node_uuid' }],
  default_configs_resource_class_unique: ['DefaultConfigExists', { scope: 'resource_class' }],
  default_configs_property_unique: ['DefaultConfigExists', { scope: 'value' }],
  default_configs_node_uuid_unique: ['DefaultConfigExists', { scope: 'node_uuid' }],
  firmware_components_node_known: ['NodeNotFound', { node: 'node_uuid' }],
};

/** The constraints of resources that Ironic does not have need no row. */
const UNIQUE = /^(.+)_(uuid|name)_unique$/;
/** A record of a table in messages. `deploy_templates`: `Deploy template`. */
export const resourceIn = (table: string): string =>
  `${table.charAt(0).toUpperCase()}${table.slice(1).replaceAll('_', ' ')}`.replace(/s$/, '');

/** The error code for a database other than the one that this server started with. */
export const OTHER_DATABASE = 'OTHER_DATABASE';
/**
 * Codes of PostgreSQL and of sockets → the message of the response. The caller may retry. (57: stopping, starting; 53: out of resources;
 * 08: connections, but not 08P01, a statement that is wrong; 58: files of the host; 40, 55, 57014, 25P0x: cancelled by the server.)
 */
const UNAVAILABLE: readonly (readonly [RegExp, string])[] = [
  [/^OTHER_DATABASE$/, 'Another database is at the address of the one that this server started with.'],
  [/^53100$/, 'The database has no space left on its disk, please retry when there is some.'],
  [/^(?:25006|42501|58\w{3})$/, 'The database cannot read or write its files at the moment, please retry.'],
  [/^(?:57014|55P03|40001|40P01|25P0[34])$/, 'The database did not answer in time, please retry.'],
  [
    /^(?:57P0\d|53\d{3}|08(?!P01)\w{3}|ECONN\w+|ENOENT|EACCES|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|EHOSTDOWN|ENOTFOUND|EAI_\w+)$/,
    'The database cannot be reached at the moment, please retry.',
  ],
];
const UNAVAILABLE_TEXT =
  /(?:^| - )(?:Knex: Timeout acquiring a connection|Connection terminated|Client has encountered|Client was closed|timeout expired|timeout exceeded|Unable to acquire a connection|Cannot use a pool)/;

/** Undefined: the error does not mean that the database is unavailable. */
const unavailableText = (error: unknown): string | undefined =>
  (UNAVAILABLE.find(([codes]) => codes.test(codeOf(error))) ??
    (UNAVAILABLE_TEXT.test(messageOf(error)) ? UNAVAILABLE.at(-1) : undefined))?.[1];
export const isUnavailable = (error: unknown): boolean => unavailableText(error) !== undefined;
const codeOf = (error: unknown): string => {
  const code = (error as { code?: unknown } | null | undefined)?.code;
  return typeof code === 'string' ? code : '';
};

/** The message of an error. In the sandbox of tests, errors of sockets are not `instanceof Error`, so this checks the member. */
export const messageOf = (error: unknown): string => {
  const message = (error as { message?: unknown } | null | undefined)?.message;
  return typeof message === 'string' ? message : String(error);
};

/**
 * Converts an error of a query to a fault. Other errors are returned unchanged, except that the database's copy of the values is removed.
 * `record` is the written record, for the details of the fault.
 */
export function toFault(error: unknown, record: object = {}): unknown {
  if (typeof error !== 'object' || error === null || error instanceof Fault) return error;
  // "Failing row contains (…)" may hold passwords, and errors are logged.
  if ('detail' in error) delete error.detail;
  const { constraint } = error as { constraint?: unknown };
  const violated = typeof constraint === 'string' ? constraint : '';
  const values = record as Readonly<Record<string, unknown>>;
  const known = CONSTRAINTS[violated];
  if (known) {
    const [name, fields] = known;
    const details = Object.fromEntries(Object.entries(fields).map(([detail, field]) => [detail, String(values[field])]));
    return new Fault(name, details, { cause: error });
  }
  const [, table, column] = UNIQUE.exec(violated) ?? [];
  if (table !== undefined && column !== undefined) {
    const resource = resourceIn(table).toLowerCase();
    const details = { resource: `${/^[aeiou]/.test(resource) ? 'An' : 'A'} ${resource}`, column: column.replace('uuid', 'UUID') };
    return new Fault('RecordAlreadyExists', { ...details, value: String(values[column]) }, { cause: error });
  }
  // Class 22, data exceptions: a value that no column can hold, such as a number out of range. Class 54, limits of the program: a text
  // that is too long for an index, JSON with too much nesting.
  if (/^(?:22|54)/.test(codeOf(error)))
    return new Fault('Invalid', { message: `A value cannot be stored: ${messageOf(error).replace(/^.* - /s, '')}` }, { cause: error });
  const message = unavailableText(error);
  if (message !== undefined) return new Fault('TemporaryFailure', { message }, { cause: error });
  return error;
}

/** Runs a query, and converts its errors to faults. */
export async function run<T>(query: PromiseLike<T>, record?: object): Promise<T> {
  try {
    return await query;
  } catch (error) {
    throw toFault(error, record);
  }
}
