/**
 * Notifications in Ironic's format. Tables define the payloads, with the class names and versions that consumers check.
 * server/notifications.ts sends them.
 */
import { maskSecrets, NODE_MASKS } from './masks';
import type { Origin } from './origin';
import { INTERFACE_KINDS, type Json, type JsonObject } from './records';

export const LEVELS = ['debug', 'info', 'warning', 'error', 'critical'] as const;
export type Level = (typeof LEVELS)[number];
export type Status = 'start' | 'end' | 'success' | 'error';

/** The class of a payload, its version, and the fields of the record that it contains. */
interface PayloadRow {
  readonly name: string;
  readonly version: string;
  readonly fields: readonly string[];
}
const STAMPS = ['created_at', 'updated_at', 'uuid'] as const;
// Ironic's payload class is older than the firmware interface, and has no field for it.
const INTERFACES = INTERFACE_KINDS.filter((kind) => kind !== 'firmware').map((kind) => `${kind}_interface`);
const NODE = [
  'clean_step',
  'conductor_group',
  'console_enabled',
  'created_at',
  'deploy_step',
  'description',
  'disable_power_off',
  'driver',
  'extra',
  'boot_mode',
  'secure_boot',
  'inspection_finished_at',
  'inspection_started_at',
  'instance_uuid',
  'last_error',
  'maintenance',
  'maintenance_reason',
  'fault',
  ...INTERFACES,
  'name',
  'owner',
  'lessee',
  'power_state',
  'properties',
  'protected',
  'protected_reason',
  'provision_state',
  'provision_updated_at',
  'resource_class',
  'retired',
  'retired_reason',
  'target_power_state',
  'target_provision_state',
  'traits',
  'updated_at',
  'uuid',
];
/** Resource of the API → its payload. */
const RESOURCES = {
  allocation: {
    name: 'AllocationCRUDPayload',
    version: '1.1',
    fields: ['name', 'node_uuid', 'state', 'last_error', 'owner', 'resource_class', 'traits', 'candidate_nodes', 'extra', ...STAMPS],
  },
  chassis: { name: 'ChassisCRUDPayload', version: '1.0', fields: ['description', 'extra', ...STAMPS] },
  // Not in Ironic.
  defaultconfig: {
    name: 'DefaultConfigCRUDPayload',
    version: '1.0',
    fields: ['resource_class', 'property', 'value', 'node_uuid', 'description', 'steps', ...STAMPS],
  },
  deploytemplate: { name: 'DeployTemplateCRUDPayload', version: '1.0', fields: ['name', 'steps', 'extra', ...STAMPS] },
  inspectionrule: {
    name: 'InspectionRuleCRUDPayload',
    version: '1.0',
    fields: ['description', 'phase', 'priority', 'scope', 'sensitive', 'actions', 'conditions', ...STAMPS],
  },
  node: { name: 'NodeCRUDPayload', version: '1.15', fields: [...NODE, 'chassis_uuid', 'driver_info', 'instance_info'] },
  port: {
    name: 'PortCRUDPayload',
    version: '1.8',
    fields: [
      'address',
      'extra',
      'local_link_connection',
      'pxe_enabled',
      'node_uuid',
      'portgroup_uuid',
      'physical_network',
      'is_smartnic',
      'name',
      'description',
      'vendor',
      'category',
      'available_for_dynamic_portgroup',
      ...STAMPS,
    ],
  },
  portgroup: {
    name: 'PortgroupCRUDPayload',
    version: '1.3',
    fields: [
      'address',
      'category',
      'extra',
      'mode',
      'name',
      'node_uuid',
      'physical_network',
      'properties',
      'standalone_ports_supported',
      'dynamic_portgroup',
      ...STAMPS,
    ],
  },
  runbook: {
    name: 'RunbookCRUDPayload',
    version: '1.1',
    fields: ['name', 'description', 'steps', 'disable_ramdisk', 'public', 'owner', 'traits', 'extra', ...STAMPS],
  },
  volumeconnector: {
    name: 'VolumeConnectorCRUDPayload',
    version: '1.0',
    fields: ['type', 'connector_id', 'node_uuid', 'extra', ...STAMPS],
  },
  volumetarget: {
    name: 'VolumeTargetCRUDPayload',
    version: '1.0',
    fields: ['volume_type', 'volume_id', 'boot_index', 'properties', 'node_uuid', 'extra', ...STAMPS],
  },
} as const satisfies Readonly<Record<string, PayloadRow>>;
export type NotifiedResource = keyof typeof RESOURCES;
export const isAnnounced = (resource: string): resource is NotifiedResource => Object.hasOwn(RESOURCES, resource);

const PLAIN: PayloadRow = { name: 'NodePayload', version: '1.17', fields: NODE };
/** Action on a node → its payload. The caller adds details of the change. */
const ACTIONS = {
  maintenance_set: PLAIN,
  console_set: PLAIN,
  console_restore: PLAIN,
  console_stop: PLAIN,
  power_set: { name: 'NodeSetPowerStatePayload', version: '1.17', fields: NODE },
  power_state_corrected: { name: 'NodeCorrectedPowerStatePayload', version: '1.17', fields: NODE },
  // Ironic has no such actions (docs/out-of-service.md).
  out_of_service_set: PLAIN,
  out_of_service_overdue: PLAIN,
  provision_set: { name: 'NodeSetProvisionStatePayload', version: '1.18', fields: [...NODE, 'instance_info', 'driver_internal_info'] },
} as const satisfies Readonly<Record<string, PayloadRow>>;
type NodeAction = keyof typeof ACTIONS;

const OBJECTS = [
  'clean_step',
  'deploy_step',
  'driver_info',
  'driver_internal_info',
  'extra',
  'instance_info',
  'local_link_connection',
  'properties',
];
const MOMENT = /^\d{4}-\d\d-\d\dT[\d:]{8}(?:\.\d+)?(?:\+00:00|Z)$/;
/** Times without fractions of a second, as in Ironic's versioned objects. */
const moment = (text: string): string => (MOMENT.test(text) ? `${text.slice(0, 19)}Z` : text);
const REDACTED = { redacted_contents: '** Value redacted: not published on the notification bus. **' };
type Record_ = Readonly<Record<string, unknown>>;
/** Redacts fields that the API shows to some callers only. */
const WITHHELD: Readonly<Record<string, (record: Record_) => JsonObject>> = {
  VolumeTargetCRUDPayload: ({ properties }) => (Object.keys(properties ?? {}).length > 0 ? { properties: REDACTED } : {}),
  InspectionRuleCRUDPayload: ({ sensitive }) => (sensitive === true ? { actions: [REDACTED], conditions: [REDACTED] } : {}),
};

function dataOf({ name, fields }: PayloadRow, record: Record_, also: JsonObject): JsonObject {
  const shown = fields.map((field): [string, Json] => {
    const value = (record[field] ?? (OBJECTS.includes(field) ? {} : null)) as Json;
    if (field.endsWith('_at') && typeof value === 'string') return [field, moment(value)];
    const mask = NODE_MASKS[field];
    if (mask && value !== null) return [field, mask(value as JsonObject)];
    return [field, field === 'traits' ? [...((value as string[] | null) ?? [])].sort() : value];
  });
  // Arguments of steps and rules may contain secrets.
  return maskSecrets({ ...Object.fromEntries(shown), ...WITHHELD[name]?.(record), ...also });
}

/** A notification before it gets its id and time. */
export interface Notification {
  readonly publisher: 'ironic-api' | 'ironic-conductor';
  readonly eventType: string;
  readonly level: Level;
  readonly payload: JsonObject;
  /** Undefined: no request caused it. */
  readonly cause: Origin | undefined;
}
export interface Notifier {
  /** Whether notifications of this level are sent. Callers check this before they build a notification. */
  wants(level: Level): boolean;
  /** Returns at once and never throws. */
  send(notification: Notification): void;
}
export const silentNotifier: Notifier = { wants: () => false, send: () => {} };

const levelOf = (status: Status): Level => (status === 'error' ? 'error' : 'info');
const payloadOf = (row: PayloadRow, record: object, also: JsonObject = {}): JsonObject => ({
  'ironic_object.name': row.name,
  'ironic_object.namespace': 'ironic',
  'ironic_object.version': row.version,
  'ironic_object.data': dataOf(row, record as Record_, also),
});

/** Announces that the API creates, changes or removes a resource. */
export function announce(
  notifier: Notifier,
  resource: NotifiedResource,
  action: 'create' | 'update' | 'delete',
  status: Status,
  record: object,
  cause: Origin | undefined,
): void {
  const level = levelOf(status);
  if (!notifier.wants(level)) return;
  const payload = payloadOf(RESOURCES[resource], record);
  notifier.send({ publisher: 'ironic-api', eventType: `baremetal.${resource}.${action}.${status}`, level, payload, cause });
}
/** Announces an action on a node. `also`: additional fields of the payload. */
export function announceNode(
  notifier: Notifier,
  publisher: Notification['publisher'],
  action: NodeAction,
  status: Status,
  node: object,
  also: JsonObject,
  cause: Origin | undefined,
): void {
  const level = levelOf(status);
  if (!notifier.wants(level)) return;
  const payload = payloadOf(ACTIONS[action], node, also);
  notifier.send({ publisher, eventType: `baremetal.node.${action}.${status}`, level, payload, cause });
}

/** Announces sensor values or metrics. They are not versioned objects, and depend on [sensor_data], not on [DEFAULT]notification_level. */
export const announceSensors = (notifier: Notifier, eventType: string, payload: JsonObject): void =>
  notifier.send({ publisher: 'ironic-conductor', eventType, level: 'info', payload, cause: undefined });
