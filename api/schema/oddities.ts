/**
 * Where Ironic's routes and fields differ from what openapi.yaml says of all of them: one row each. Clients do not see these differences in
 * the document that the server serves.
 */
import type { Operations } from './operations';

/**
 * The response of a closed gate. A status: an error of the router. With a message: a fault after the check of the arguments
 * (`early`: before it). `member`: the path is not a route of its own, and its last segment may name a field. `handler`: the handler checks
 * the version.
 */
export type GateRefusal = number | readonly [status: number, sentence: string, when?: 'early'] | 'member' | 'handler';

interface PathOddities {
  /**
   * The response to a path with further segments. Absent: 404, or 405 if the path does not have the method.
   * - `fields`: GET with one more segment returns only the field of that name.
   * - 405: the router's error for a wrong method.
   * - [status, message]: Ironic's error. With a status other than 404, POST, PATCH and DELETE of the path itself get it too, if the path
   *   does not have this method.
   */
  readonly rest?: GateRefusal | 'fields';
  /** Words that are not names of fields for `rest`. If the router checks the identifier of the path, they are not identifiers either. */
  readonly reserved?: readonly string[];
  /** The path exists only for its own methods. For others, its last segment is a further segment of the path above it. */
  readonly only?: true;
  /**
   * Older spellings of the path, with the same operations. In a spelling without {node_ident}, the node's identifier is an argument of the
   * query or of the body. The router does not check the identifiers of a path with older spellings.
   */
  readonly aliases?: readonly string[];
  /** The router's error for other versions than those of x-since, for this path and all paths below it. The router checks it first. */
  readonly closed?: readonly [reading: number, writing: number, sentence: string];
}

const NODE = '/v1/nodes/{node_ident}';
const MALFORMED = [400, 'Malformed request URI.'] as const;
const NOT_FOUND = [404, 'The resource could not be found.'] as const;
const NO_TEMPLATES = [404, 405, 'The API version does not allow deploy templates'] as const;
const NO_RUNBOOKS = [404, 405, 'The API version does not allow runbooks'] as const;
const NO_RUNBOOK_TRAITS = [404, 404, 'The API version does not allow runbook traits'] as const;
/** The names of sub-collections. In a path, such a word is neither a node nor a field (exception: x-below: member). */
const SUB_COLLECTIONS = 'ports portgroups vifs volume traits bios allocation history inventory children firmware vmedia'.split(' ');
/** The spellings of /v1/nodes/{node_ident}/NAME without the identifier, and with the identifier last. */
const older = (name: string): readonly string[] => [`/v1/nodes/${name}`, `/v1/nodes/${name}/{node_ident}`];
/** The same, and with the identifier before the last word. */
const olderInside = (name: string, last: string): readonly string[] => [
  `/v1/nodes/${name}/${last}`,
  `/v1/nodes/${name}/{node_ident}/${last}`,
];

export const PATHS: Readonly<Record<string, PathOddities>> = {
  [NODE]: { rest: 'fields', reserved: SUB_COLLECTIONS },
  [`${NODE}/validate`]: { only: true },
  [`${NODE}/readiness`]: { only: true },
  [`${NODE}/sensors`]: { only: true },
  [`${NODE}/hardware`]: { only: true },
  [`${NODE}/hardware/changes`]: { only: true },
  [`${NODE}/hardware/token`]: { only: true },
  [`${NODE}/maintenance`]: { aliases: older('maintenance') },
  [`${NODE}/states`]: { aliases: older('states'), rest: NOT_FOUND },
  [`${NODE}/states/power`]: { aliases: older('states/power') },
  [`${NODE}/states/provision`]: { aliases: older('states/provision') },
  [`${NODE}/states/raid`]: { aliases: older('states/raid') },
  [`${NODE}/states/boot_mode`]: { aliases: older('states/boot_mode') },
  [`${NODE}/states/secure_boot`]: { aliases: older('states/secure_boot') },
  [`${NODE}/states/console`]: { aliases: [...older('states/console'), '/v1/nodes/states/{node_ident}/console'] },
  [`${NODE}/management`]: { aliases: older('management') },
  [`${NODE}/management/boot_device`]: { aliases: older('management/boot_device') },
  [`${NODE}/management/boot_device/supported`]: { aliases: olderInside('management/boot_device', 'supported') },
  [`${NODE}/management/inject_nmi`]: { aliases: older('management/inject_nmi') },
  [`${NODE}/management/indicators`]: { aliases: ['/v1/nodes/management/indicators'] },
  [`${NODE}/management/indicators/{indicator}`]: {
    aliases: ['/v1/nodes/management/indicators/{node_ident}', '/v1/nodes/management/indicators/{node_ident}/{indicator}'],
  },
  [`${NODE}/vendor_passthru`]: { aliases: older('vendor_passthru') },
  [`${NODE}/vendor_passthru/methods`]: { aliases: olderInside('vendor_passthru', 'methods') },
  [`${NODE}/vendor_passthru/{method}`]: { aliases: ['/v1/nodes/vendor_passthru/{node_ident}/{method}'] },
  [`${NODE}/firmware`]: { rest: 405 },
  [`${NODE}/ports`]: { rest: MALFORMED },
  [`${NODE}/portgroups`]: { rest: MALFORMED },
  [`${NODE}/volume/connectors`]: { rest: MALFORMED },
  [`${NODE}/volume/targets`]: { rest: MALFORMED },
  '/v1/ports/{port_ident}': { rest: 'fields', reserved: ['detail'] },
  '/v1/portgroups/{portgroup_ident}': { rest: 'fields', reserved: ['detail'] },
  '/v1/portgroups/{portgroup_ident}/ports': { rest: MALFORMED },
  '/v1/chassis/{chassis_uuid}': { rest: 'fields', reserved: ['detail'] },
  '/v1/chassis/{chassis_uuid}/nodes': { rest: MALFORMED },
  '/v1/drivers/{driver_name}': { rest: 'fields' },
  '/v1/drivers/{driver_name}/properties': { aliases: ['/v1/drivers/properties'] },
  '/v1/drivers/{driver_name}/raid': { aliases: ['/v1/drivers/raid'] },
  '/v1/drivers/{driver_name}/raid/logical_disk_properties': { aliases: ['/v1/drivers/raid/logical_disk_properties'] },
  '/v1/drivers/{driver_name}/vendor_passthru': { aliases: ['/v1/drivers/vendor_passthru'] },
  '/v1/drivers/{driver_name}/vendor_passthru/methods': { aliases: ['/v1/drivers/vendor_passthru/methods'] },
  '/v1/conductors/{hostname}': { rest: 'fields' },
  '/v1/volume/connectors/{connector_uuid}': { rest: 'fields' },
  '/v1/volume/targets/{target_uuid}': { rest: 'fields' },
  '/v1/allocations/{allocation_ident}': { rest: 'fields' },
  '/v1/shards': { rest: NOT_FOUND },
  '/v1/deploy_templates': { closed: NO_TEMPLATES },
  '/v1/deploy_templates/{template_ident}': { rest: 'fields', closed: NO_TEMPLATES },
  '/v1/runbooks': { closed: NO_RUNBOOKS },
  '/v1/runbooks/{runbook_ident}': { rest: 'fields', closed: NO_RUNBOOKS },
  '/v1/runbooks/{runbook_ident}/traits': { closed: NO_RUNBOOK_TRAITS },
  '/v1/runbooks/{runbook_ident}/traits/{trait}': { rest: 405, closed: NO_RUNBOOK_TRAITS },
  '/v1/inspection_rules/{inspection_rule_uuid}': { rest: 'fields' },
};
/** The paths whose identifier the router checks, and refuses a wrong one with its own error: these and those below them. */
export const ROUTED = /^\/v1\/(?:nodes\/\{node_ident\}|portgroups\/\{portgroup_ident\})(?:\/|$)/;

interface OperationOddities extends Pick<PathOddities, 'rest'> {
  /** Further minor versions that have the operation. */
  readonly also?: readonly number[];
  /** The server checks the body before the arguments. */
  readonly bodyFirst?: true;
}
export const OPERATIONS: Readonly<Partial<Record<keyof Operations, OperationOddities>>> = {
  deleteNode: { rest: [404, 'Resource could not be found.'] },
  continueInspection: { also: [1], bodyFirst: true },
};

/** Fields that `fields` cannot select. */
const LINKS_AND_TIMES = ['created_at', 'updated_at', 'links', 'ports', 'states', 'portgroups', 'volume'];
export const UNSELECTABLE: Readonly<Record<string, readonly string[]>> = { Node: LINKS_AND_TIMES };
/** Fields that requests of every version may name, although only later versions show them. */
export const NAMED_EARLY: Readonly<Record<string, readonly string[]>> = {
  Port: ['internal_info'],
  Portgroup: ['physical_network', 'category'],
};
/** Lists that are null in the response where the caller may not read them. */
export const MASKED: Readonly<Record<string, readonly string[]>> = { InspectionRule: ['actions', 'conditions'] };
