/** Payloads of notifications. The names, versions and fields are those of the payload classes of Ironic 39. */
import {
  announce,
  announceNode,
  announceSensors,
  isAnnounced,
  silentNotifier,
  type Notification,
  type NotifiedResource,
  type Notifier,
  type Status,
} from '../../model/notifications';

/** Collects what `work` sends. */
function sent(work: (notifier: Notifier) => void, wants: Notifier['wants'] = () => true): readonly Notification[] {
  const notifications: Notification[] = [];
  work({ wants, send: (notification) => void notifications.push(notification) });
  return notifications;
}
const cause = { requestId: 'req-1', user: 'u', project: null };
const data = ([notification]: readonly Notification[]): unknown => notification!.payload['ironic_object.data'];
const announced = (resource: NotifiedResource, record: object): unknown =>
  data(sent((notifier) => announce(notifier, resource, 'create', 'end', record, undefined)));

const NODE = `bios_interface boot_interface boot_mode clean_step conductor_group console_enabled console_interface created_at
  deploy_interface deploy_step description disable_power_off driver extra fault inspect_interface inspection_finished_at
  inspection_started_at instance_uuid last_error lessee maintenance maintenance_reason management_interface name
  network_interface owner power_interface power_state properties protected protected_reason provision_state
  provision_updated_at raid_interface rescue_interface resource_class retired retired_reason secure_boot
  storage_interface target_power_state target_provision_state traits updated_at uuid vendor_interface`;
it.each<[NotifiedResource, string, string, string]>([
  [
    'allocation',
    'AllocationCRUDPayload',
    '1.1',
    'candidate_nodes created_at extra last_error name node_uuid owner resource_class state traits updated_at uuid',
  ],
  ['chassis', 'ChassisCRUDPayload', '1.0', 'created_at description extra updated_at uuid'],
  ['deploytemplate', 'DeployTemplateCRUDPayload', '1.0', 'created_at extra name steps updated_at uuid'],
  [
    'inspectionrule',
    'InspectionRuleCRUDPayload',
    '1.0',
    'actions conditions created_at description phase priority scope sensitive updated_at uuid',
  ],
  ['node', 'NodeCRUDPayload', '1.15', `${NODE} chassis_uuid driver_info instance_info`],
  [
    'port',
    'PortCRUDPayload',
    '1.8',
    `address available_for_dynamic_portgroup category created_at description extra is_smartnic local_link_connection name
    node_uuid physical_network portgroup_uuid pxe_enabled updated_at uuid vendor`,
  ],
  [
    'portgroup',
    'PortgroupCRUDPayload',
    '1.3',
    `address category created_at dynamic_portgroup extra mode name node_uuid physical_network properties
    standalone_ports_supported updated_at uuid`,
  ],
  ['runbook', 'RunbookCRUDPayload', '1.1', 'created_at description disable_ramdisk extra name owner public steps traits updated_at uuid'],
  ['volumeconnector', 'VolumeConnectorCRUDPayload', '1.0', 'connector_id created_at extra node_uuid type updated_at uuid'],
  [
    'volumetarget',
    'VolumeTargetCRUDPayload',
    '1.0',
    'boot_index created_at extra node_uuid properties updated_at uuid volume_id volume_type',
  ],
])('announces the resource %s with the payload %s %s', (resource, name, version, fields) => {
  const [notification, ...others] = sent((notifier) => announce(notifier, resource, 'update', 'start', {}, cause));
  const payload = {
    'ironic_object.name': name,
    'ironic_object.namespace': 'ironic',
    'ironic_object.version': version,
    'ironic_object.data': expect.any(Object) as unknown,
  };
  const eventType = `baremetal.${resource}.update.start`;
  expect(notification).toEqual({ publisher: 'ironic-api', eventType, level: 'info', payload, cause });
  expect(Object.keys(data([notification!]) as object).sort()).toEqual(fields.split(/\s+/).sort());
  expect(others).toEqual([]);
});

it.each<[Parameters<typeof announceNode>[2], string, string, string]>([
  ['maintenance_set', 'NodePayload', '1.17', ''],
  ['console_set', 'NodePayload', '1.17', ''],
  ['console_restore', 'NodePayload', '1.17', ''],
  ['console_stop', 'NodePayload', '1.17', ''],
  ['power_set', 'NodeSetPowerStatePayload', '1.17', ''],
  ['power_state_corrected', 'NodeCorrectedPowerStatePayload', '1.17', ''],
  ['provision_set', 'NodeSetProvisionStatePayload', '1.18', 'driver_internal_info instance_info'],
])('announces the action %s on a node with the payload %s %s', (action, name, version, more) => {
  const also = { told: 'by the caller' };
  const [notification] = sent((notifier) => announceNode(notifier, 'ironic-conductor', action, 'success', { name: 'n' }, also, cause));
  const payload = {
    'ironic_object.name': name,
    'ironic_object.namespace': 'ironic',
    'ironic_object.version': version,
    'ironic_object.data': expect.objectContaining({ name: 'n', told: 'by the caller' }) as unknown,
  };
  const eventType = `baremetal.node.${action}.success`;
  expect(notification).toEqual({ publisher: 'ironic-conductor', eventType, level: 'info', payload, cause });
  const fields = `${NODE} ${more} told`.trim().split(/\s+/);
  expect(Object.keys(data([notification!]) as object).sort()).toEqual(fields.sort());
});

it.each<[Status, 'info' | 'error']>([
  ['start', 'info'],
  ['end', 'info'],
  ['success', 'info'],
  ['error', 'error'],
])('announces the status %s with the level %s', (status, level) => {
  const both = (notifier: Notifier): void => {
    announce(notifier, 'port', 'delete', status, {}, undefined);
    announceNode(notifier, 'ironic-api', 'console_set', status, {}, {}, undefined);
  };
  expect(sent(both)).toMatchObject([
    { eventType: `baremetal.port.delete.${status}`, level },
    { publisher: 'ironic-api', eventType: `baremetal.node.console_set.${status}`, level },
  ]);
  expect(sent(both, (wanted) => wanted !== level)).toEqual([]);
});
it('announces sensor values whatever the level of notifications is', () => {
  const payload = { node_uuid: 'n' };
  expect(
    sent(
      (notifier) => announceSensors(notifier, 'hardware.redfish.metrics', payload),
      () => false,
    ),
  ).toEqual([{ publisher: 'ironic-conductor', eventType: 'hardware.redfish.metrics', level: 'info', payload, cause: undefined }]);
});
it('the silent notifier wants no notification', () => {
  expect(silentNotifier.wants('critical')).toBe(false);
  const notification: Notification = { publisher: 'ironic-api', eventType: 'e', level: 'info', payload: {}, cause: undefined };
  expect(() => silentNotifier.send(notification)).not.toThrow();
});

it.each([
  ['node', true],
  ['deploytemplate', true],
  ['conductor', false],
  ['constructor', false],
])('isAnnounced(%j) is %s', (resource, expected) => expect(isAnnounced(resource)).toBe(expected));

it.each<[NotifiedResource, object, object]>([
  // Fields without a value: objects are empty, others are null.
  ['chassis', {}, { description: null, extra: {}, created_at: null }],
  ['port', {}, { local_link_connection: {}, pxe_enabled: null }],
  ['node', {}, { clean_step: {}, deploy_step: {}, driver_info: {}, instance_info: {}, extra: {}, properties: {}, traits: [], name: null }],
  [
    'port',
    { pxe_enabled: false, local_link_connection: { port_id: 'p' } },
    { pxe_enabled: false, local_link_connection: { port_id: 'p' } },
  ],
  // Ironic's objects have no fractions of a second.
  ['chassis', { created_at: '2026-03-01T09:00:00.500000+00:00' }, { created_at: '2026-03-01T09:00:00Z' }],
  ['chassis', { created_at: '2026-03-01T09:00:00+00:00' }, { created_at: '2026-03-01T09:00:00Z' }],
  ['chassis', { updated_at: '2026-03-01T09:00:00.5Z' }, { updated_at: '2026-03-01T09:00:00Z' }],
  ['chassis', { updated_at: '2026-03-01T09:00:00Z' }, { updated_at: '2026-03-01T09:00:00Z' }],
  ['node', { provision_updated_at: '2026-03-01T09:00:00.123Z' }, { provision_updated_at: '2026-03-01T09:00:00Z' }],
  // Other texts stay, even those that contain a time.
  ['chassis', { created_at: '2026-03-01T09:00:00+01:00' }, { created_at: '2026-03-01T09:00:00+01:00' }],
  ['chassis', { created_at: 'at 2026-03-01T09:00:00Z' }, { created_at: 'at 2026-03-01T09:00:00Z' }],
  ['chassis', { created_at: '2026-03-01T09:00:00Z?' }, { created_at: '2026-03-01T09:00:00Z?' }],
  ['chassis', { description: '2026-03-01T09:00:00.5Z' }, { description: '2026-03-01T09:00:00.5Z' }],
  ['node', { traits: ['CUSTOM_B', 'CUSTOM_A'] }, { traits: ['CUSTOM_A', 'CUSTOM_B'] }],
  ['portgroup', { properties: { b: 1, a: 2 } }, { properties: { b: 1, a: 2 } }],
])('announces the %s %j with the fields %j', (resource, record, fields) => {
  expect(announced(resource, record)).toMatchObject(fields);
});

const M = '******';
const REDACTED = { redacted_contents: '** Value redacted: not published on the notification bus. **' };
it.each<[NotifiedResource, object, object]>([
  ['node', { driver_info: { snmp_auth_key: 'k', address: 'a' } }, { driver_info: { snmp_auth_key: M, address: 'a' } }],
  ['node', { instance_info: { image_url: 'u', image_source: 's' } }, { instance_info: { image_url: M, image_source: 's' } }],
  ['deploytemplate', { steps: [{ args: { password: 'p', level: '1' } }] }, { steps: [{ args: { password: M, level: '1' } }] }],
  ['volumetarget', { properties: { iqn: 'i' } }, { properties: REDACTED }],
  ['volumetarget', { properties: {} }, { properties: {} }],
  ['volumetarget', {}, { properties: {} }],
  ['portgroup', { properties: { miimon: 1 } }, { properties: { miimon: 1 } }],
  ['inspectionrule', { sensitive: true, actions: [1, 2], conditions: [] }, { actions: [REDACTED], conditions: [REDACTED] }],
  ['inspectionrule', { sensitive: false, actions: [1, 2], conditions: [3] }, { actions: [1, 2], conditions: [3] }],
])('withholds secrets of the %s %j', (resource, record, fields) => {
  const shown = announced(resource, record) as Readonly<Record<string, unknown>>;
  expect(Object.fromEntries(Object.keys(fields).map((name) => [name, shown[name]]))).toEqual(fields);
});
it('masks secrets in the fields that the caller adds, and in driver_internal_info', () => {
  const node = { driver_internal_info: { agent_secret_token: 't', steps: [] } };
  const notifications = sent((notifier) =>
    announceNode(notifier, 'ironic-conductor', 'provision_set', 'end', node, { password: 'p' }, undefined),
  );
  expect(data(notifications)).toMatchObject({ password: M, driver_internal_info: { agent_secret_token: M, steps: [] } });
});
