/** How a node of fake hardware gets into each state in which it can rest, and the requests in that state. */
import { VERBS } from '../../model/states';
import { send, type Step } from './requests/steps';

export interface Start {
  /** Fields besides the driver. */
  readonly node?: Readonly<Record<string, unknown>>;
  /** The steps that bring the node there; it settles after each. */
  readonly by: (path: string) => readonly Step[];
}
const provision = (path: string, target: string, more: object = {}): Step => send('PUT', `${path}/states/provision`, { target, ...more });
const verbs =
  (...targets: readonly (string | readonly [string, object])[]): Start['by'] =>
  (path) =>
    targets.map((target) => (typeof target === 'string' ? provision(path, target) : provision(path, ...target)));

const log = { interface: 'vendor', step: 'log_passthrough' };
/** Fields for the waiting states: the node needs the agent, which never comes. */
const agents = (image: string) =>
  ({
    deploy_interface: 'direct',
    inspect_interface: 'agent',
    boot_interface: 'fake',
    instance_info: { image_source: image, image_checksum: 'd41d8cd98f00b204e9800998ecf8427e', image_disk_format: 'raw' },
    driver_info: { deploy_kernel: `${image}.kernel`, deploy_ramdisk: `${image}.ramdisk` },
  }) as const;
const withoutCleaning = { automated_clean: false };

/** @param image URL of a file that can be fetched */
export const starts = (image: string): Readonly<Record<string, Start>> => ({
  enroll: { by: verbs() },
  manageable: { by: verbs('manage') },
  available: { by: verbs('manage', 'provide') },
  active: { by: verbs('manage', 'provide', 'active') },
  'active with an instance': {
    node: {
      traits: ['CUSTOM_T'],
      instance_info: { image_source: image, project_id: 'p1', capabilities: { boot_option: 'local' } },
      extra: { a: 1 },
    },
    by: verbs('manage', 'provide', 'active'),
  },
  rescue: { by: verbs('manage', 'provide', 'active', ['rescue', { rescue_password: 'secret' }]) },
  'clean failed': { by: verbs('manage', ['clean', { clean_steps: [{ interface: 'bios', step: 'nosuch' }] }]) },
  'clean wait': { node: agents(image), by: verbs('manage', 'provide') },
  'clean wait in manual cleaning': { node: agents(image), by: verbs('manage', ['clean', { clean_steps: [log] }]) },
  'clean failed after an abort': { node: agents(image), by: verbs('manage', 'provide', 'abort') },
  'wait call-back': { node: { ...agents(image), ...withoutCleaning }, by: verbs('manage', 'provide', 'active') },
  'deploy failed': { node: { ...agents(image), ...withoutCleaning }, by: verbs('manage', 'provide', 'active', 'abort') },
  'inspect wait': { node: agents(image), by: verbs('manage', 'inspect') },
  'inspect failed': { node: agents(image), by: verbs('manage', 'inspect', 'abort') },
  'adopt failed': {
    // An instance in memory boots from a port, and the node has none.
    node: { boot_interface: 'ipxe', deploy_interface: 'ramdisk' },
    by: verbs('manage', 'adopt'),
  },
  'service wait': {
    by: verbs('manage', 'provide', 'active', ['service', { service_steps: [{ interface: 'vendor', step: 'trigger_servicewait' }] }]),
  },
  'service failed': {
    by: verbs('manage', 'provide', 'active', ['service', { service_steps: [{ interface: 'vendor', step: 'nosuch' }] }]),
  },
});

/** An operation that is tried in a state. */
export interface Act {
  readonly name: string;
  readonly steps: (path: string) => readonly Step[];
}
const BODIES: Readonly<Record<string, object>> = {
  clean: { clean_steps: [log] },
  service: { service_steps: [log] },
  rescue: { rescue_password: 'secret' },
};
const acts = (names: readonly string[], prefix: string, before: (path: string) => readonly Step[]): readonly Act[] =>
  names.map((target) => ({
    name: `${prefix}${target}`,
    steps: (path) => [...before(path), provision(path, target, BODIES[target])],
  }));
const patch = (path: string, name: string, value: unknown): Step => send('PATCH', path, [{ op: 'add', path: `/${name}`, value }]);
const maintain = (path: string): Step => send('PUT', `${path}/maintenance`, { reason: 'walk' });

export const ACTS: readonly Act[] = [
  ...acts(Object.keys(VERBS), '', () => []),
  ...['power on', 'power off', 'rebooting', 'soft power off', 'soft rebooting'].map((target) => ({
    name: target,
    steps: (path: string) => [send('PUT', `${path}/states/power`, { target })],
  })),
  {
    name: 'power off with disable_power_off',
    steps: (path) => [patch(path, 'disable_power_off', true), send('PUT', `${path}/states/power`, { target: 'power off' })],
  },
  {
    name: 'rebooting with disable_power_off',
    steps: (path) => [patch(path, 'disable_power_off', true), send('PUT', `${path}/states/power`, { target: 'rebooting' })],
  },
  { name: 'clean without a ramdisk', steps: (path) => [provision(path, 'clean', { clean_steps: [log], disable_ramdisk: true })] },
  {
    name: 'clean by several steps',
    steps: (path) => [
      provision(path, 'clean', {
        clean_steps: [
          { interface: 'bios', step: 'factory_reset' },
          log,
          { interface: 'bios', step: 'apply_configuration', args: { settings: [] } },
        ],
      }),
    ],
  },
  { name: 'service without a ramdisk', steps: (path) => [provision(path, 'service', { service_steps: [log], disable_ramdisk: true })] },
  {
    name: 'service with unknown step arguments',
    steps: (path) => [provision(path, 'service', { service_steps: [{ ...log, args: { x: 1 } }] })],
  },
  {
    name: 'active without the core step deploy',
    steps: (path) => [provision(path, 'active', { deploy_steps: [{ interface: 'deploy', step: 'deploy', args: {}, priority: 0 }] })],
  },
  {
    name: 'active with the core step deploy at another priority',
    steps: (path) => [provision(path, 'active', { deploy_steps: [{ interface: 'deploy', step: 'deploy', args: {}, priority: 50 }] })],
  },
  { name: 'rebuild with a config drive', steps: (path) => [provision(path, 'rebuild', { configdrive: { meta_data: { a: 'b' } } })] },
  { name: 'maintenance', steps: (path) => [maintain(path)] },
  { name: 'maintenance, set and ended', steps: (path) => [maintain(path), send('DELETE', `${path}/maintenance`, undefined)] },
  { name: 'a console', steps: (path) => [send('PUT', `${path}/states/console`, { enabled: true })] },
  { name: 'delete', steps: (path) => [send('DELETE', path, undefined)] },
  { name: 'delete in maintenance', steps: (path) => [maintain(path), send('DELETE', path, undefined)] },
  {
    name: 'active with traits that the node does not have',
    steps: (path) => [patch(path, 'instance_info', { traits: ['CUSTOM_NONE'] }), provision(path, 'active')],
  },
  ...acts(
    ['active', 'rebuild', 'deleted', 'provide', 'clean', 'inspect', 'manage', 'adopt', 'rescue', 'unrescue', 'service', 'abort'],
    'in maintenance: ',
    (path) => [maintain(path)],
  ),
  ...acts(['provide', 'clean', 'active', 'deleted', 'manage', 'abort'], 'retired: ', (path) => [patch(path, 'retired', true)]),
  ...acts(['rebuild', 'deleted', 'rescue', 'service'], 'protected: ', (path) => [patch(path, 'protected', true)]),
  ...acts(['provide', 'deleted'], 'with automated_clean = false: ', (path) => [patch(path, 'automated_clean', false)]),
];
