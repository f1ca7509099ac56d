/**
 * The operations that cause notifications on both sides: everything is created, changed and removed, and a node goes through its states.
 */
import { send, type Step } from './steps';

const NODE = 'aaaaaaaa-0000-4000-8000-0000000000f1';
const CHASSIS = 'cccccccc-0000-4000-8000-0000000000f1';
const uuid = (number: number): string => `bbbbbbbb-0000-4000-8000-0000000000f${number}`;
const settle: Step = { settle: NODE };
const set = (path: string, value: unknown): object[] => [{ op: 'add', path, value }];
const life = (path: string, body: object): Step[] => [send('PUT', `/v1/nodes/${NODE}/states/${path}`, body), settle];
const goes = (target: string, more: object = {}): Step[] => life('provision', { target, ...more });
const of = (path: string, body: object, change: object[] = set('/extra', { b: 1 })): Step[] => [
  send('POST', `/v1/${path}`, body),
  send('PATCH', `/v1/${path}/${(body as { uuid: string }).uuid}`, change),
];
const gone = (path: string): Step => send('DELETE', `/v1/${path}`, undefined);
const step = { interface: 'bios', step: 'apply_configuration', args: { password: 'hush-step' } };

export const REQUESTS: readonly Step[] = [
  ...of('chassis', { uuid: CHASSIS, description: 'c' }, set('/description', 'd')),
  ...of('nodes', {
    uuid: NODE,
    name: 'told',
    driver: 'fake-hardware',
    driver_info: { fake_password: 'hush-driver', x: 1 },
    chassis_uuid: CHASSIS,
    properties: { cpus: 1 },
    resource_class: 'told',
  }),
  send('PATCH', `/v1/nodes/${NODE}`, [...set('/instance_info/image_url', 'http://x'), ...set('/instance_info/configdrive', 'aGk=')]),
  send('PUT', `/v1/nodes/${NODE}/maintenance`, { reason: 'why' }),
  gone(`nodes/${NODE}/maintenance`),
  send('PUT', `/v1/nodes/${NODE}/traits`, { traits: ['CUSTOM_B', 'CUSTOM_A'] }),
  send('PUT', `/v1/nodes/${NODE}/traits/CUSTOM_C`, undefined),
  gone(`nodes/${NODE}/traits/CUSTOM_A`),

  ...of('portgroups', { uuid: uuid(1), node_uuid: NODE, name: 'pg', address: '52:54:00:00:0F:0A' }),
  ...of('ports', { uuid: uuid(2), node_uuid: NODE, address: '52:54:00:00:0F:01', portgroup_uuid: uuid(1) }),
  // The address is in use.
  send('POST', '/v1/ports', { uuid: uuid(3), node_uuid: NODE, address: '52:54:00:00:0F:01' }),
  gone(`portgroups/${uuid(1)}`),
  gone(`ports/${uuid(2)}`),
  gone(`portgroups/${uuid(1)}`),
  ...life('power', { target: 'power off' }),
  ...of('volume/connectors', { uuid: uuid(4), node_uuid: NODE, type: 'iqn', connector_id: 'iqn.x' }),
  ...of('volume/targets', {
    uuid: uuid(5),
    node_uuid: NODE,
    volume_type: 'iscsi',
    volume_id: 'v',
    boot_index: 0,
    properties: { auth_password: 'hush-volume' },
  }),
  gone(`volume/connectors/${uuid(4)}`),
  gone(`volume/targets/${uuid(5)}`),
  ...of('deploy_templates', { uuid: uuid(6), name: 'CUSTOM_TOLD', steps: [{ ...step, priority: 10 }] }),
  gone('deploy_templates/CUSTOM_TOLD'),
  ...of('runbooks', { uuid: uuid(7), name: 'CUSTOM_TOLD', steps: [{ ...step, args: {}, order: 1 }] }),
  gone('runbooks/CUSTOM_TOLD'),
  ...[true, false].flatMap((sensitive) => [
    ...of(
      'inspection_rules',
      {
        uuid: uuid(8),
        description: 'r',
        sensitive,
        actions: [{ op: 'fail', args: { msg: sensitive ? 'hush-rule' : 'seen' } }],
        conditions: [{ op: 'eq', args: { values: [1, 2] } }],
      },
      set('/description', 'q'),
    ),
    gone(`inspection_rules/${uuid(8)}`),
  ]),

  ...goes('manage'),
  ...goes('inspect'),
  ...goes('provide'),
  send('POST', '/v1/allocations', { uuid: uuid(9), name: 'told', resource_class: 'told' }),
  { settleAllocations: true },
  send('PATCH', '/v1/allocations/told', set('/extra', { b: 1 })),
  gone('allocations/told'),
  ...life('power', { target: 'power on' }),
  ...life('power', { target: 'power on' }),
  ...life('power', { target: 'rebooting' }),
  ...goes('active'),
  ...life('console', { enabled: true }),
  ...life('console', { enabled: true }),
  ...life('console', { enabled: false }),
  ...goes('rescue', { rescue_password: 'hush-rescue' }),
  ...goes('unrescue'),
  ...goes('deleted'),
  ...goes('manage'),
  // There is no such step.
  ...goes('clean', { clean_steps: [{ interface: 'deploy', step: 'erase_devices' }] }),
  gone(`nodes/${NODE}`),
  send('PUT', `/v1/nodes/${NODE}/maintenance`, { reason: 'why' }),
  gone(`nodes/${NODE}`),
  gone(`chassis/${CHASSIS}`),
];
