/** Verbs in the states that permit them, with every body that they take; history and children. */
import { get, MAX, quietly, send, type Step } from './steps';
import { NEWEST } from '../../support/newest';

const NODE = 'aaaaaaaa-0000-4000-8000-0000000000a1';
const CHILD = 'aaaaaaaa-0000-4000-8000-0000000000a2';
const GONE = 'cccccccc-0000-4000-8000-000000000000';
const path = `/v1/nodes/${NODE}`;
const provision = `${path}/states/provision`;
const VERSIONS = [1, 31, 50, 80, 96, 109, NEWEST];

const verb = (target: string, more: object = {}, minor = MAX): Step[] => [
  send('PUT', provision, { target, ...more }, minor),
  { settle: NODE },
];
/** The fields that a verb changes; of times and the like, only their presence is compared. */
const state = [
  'provision_state',
  'target_provision_state',
  'last_error',
  'maintenance',
  'fault',
  'clean_step',
  'deploy_step',
  'service_step',
  'instance_info',
  'retired',
  'protected',
];
const look = (): Step => get(`${path}?fields=${state.join(',')}`);
const done = (target: string, more: object = {}): Step[] => [...verb(target, more), look()];
const step = { interface: 'vendor', step: 'log_passthrough' };

const setup: Step[] = [
  send('POST', '/v1/nodes', { driver: 'fake-hardware', name: 'provisioned', uuid: NODE, rescue_interface: 'fake', bios_interface: 'fake' }),
  send('POST', '/v1/nodes', { driver: 'fake-hardware', name: 'child', uuid: CHILD, parent_node: NODE }),
];
/** Each body is refused, so the node does not change. */
const refused = (target: string, bodies: readonly object[], versions: readonly number[] = [MAX]): Step[] =>
  bodies.flatMap((body) => versions.map((minor) => send('PUT', provision, { target, ...body }, minor)));

const runbooks = [{ runbook: 'CUSTOM_NOSUCH' }, { runbook: GONE }, { runbook: 5 }, { runbook: '' }];
const life = (): Step[] => [
  ...setup,
  ...done('manage'),
  ...refused(
    'clean',
    [{}, { clean_steps: [] }, { clean_steps: [{ interface: 'vendor', step: 'send_raw' }] }, ...runbooks],
    [92, 111, 112, MAX],
  ),
  ...done('clean', { clean_steps: [step] }),
  ...done('clean', { clean_steps: [{ interface: 'bios', step: 'nosuch' }] }),
  ...refused('clean', [{ clean_steps: [step] }]),
  ...done('manage'),
  ...done('clean', { clean_steps: [{ interface: 'deploy', step: 'hold' }, step] }),
  ...done('clean', { clean_steps: [step], disable_ramdisk: true }),
  ...done('manage'),
  send('PUT', `${path}/maintenance`, { reason: 'x' }),
  ...refused('clean', [{ clean_steps: [step] }]),
  quietly(send('DELETE', `${path}/maintenance`, undefined)),
  ...done('inspect'),
  ...done('adopt'),
  ...refused('rescue', [{}, { rescue_password: '' }, { rescue_password: ' ' }, { rescue_password: null }], [38, MAX]),
  ...refused(
    'service',
    [{}, { service_steps: [] }, { service_steps: [{ interface: 'bogus', step: 'x' }] }, ...runbooks],
    [87, 91, 107, MAX],
  ),
  ...refused('abort', [{}], VERSIONS),
  ...refused('unhold', [{}], VERSIONS),
  send('PUT', `${path}/maintenance`, { reason: 'x' }),
  ...refused('rescue', [{ rescue_password: 'x' }]),
  ...refused('service', [{ service_steps: [step] }]),
  ...refused('rebuild', [{}]),
  quietly(send('DELETE', `${path}/maintenance`, undefined)),
  ...done('rescue', { rescue_password: 'secret' }),
  ...done('rescue', { rescue_password: 'another' }),
  ...done('unrescue'),
  ...done('service', { service_steps: [step], disable_ramdisk: true }),
  ...done('service', { service_steps: [{ interface: 'deploy', step: 'hold' }, step] }),
  send('PATCH', path, [{ op: 'add', path: '/protected', value: true }]),
  ...refused('rebuild', [{}]),
  ...refused('deleted', [{}]),
  send('PATCH', path, [{ op: 'remove', path: '/protected' }]),
  ...done('deleted'),
  look(),
];

const flags = (): Step[] =>
  ['retired', 'disable_power_off', 'protected', 'automated_clean', 'parent_node', 'description'].flatMap((name) =>
    [{ op: 'remove' }, { op: 'replace', value: null }].map((operation) => send('PATCH', path, [{ ...operation, path: `/${name}` }])),
  );

const creations = (): Step[] =>
  [
    { secure_boot: true },
    { boot_mode: 'uefi' },
    { boot_mode: 3 },
    { secure_boot: 'yes' },
    { parent_node: '' },
    { parent_node: 'nosuch' },
  ].flatMap((more) =>
    VERSIONS.flatMap((minor) => [
      send('POST', '/v1/nodes', { driver: 'fake-hardware', uuid: GONE, ...more }, minor),
      quietly(send('DELETE', `/v1/nodes/${GONE}`, undefined)),
    ]),
  );

/** The history of a node without entries, and of an unknown node. Entries would differ in times and identifiers. */
const history = (): Step[] =>
  [`/v1/nodes/${CHILD}`, `/v1/nodes/${GONE}`].flatMap((node) =>
    [
      'history',
      'history?detail=true',
      'history?detail=junk',
      'history?limit=0',
      'history?limit=x',
      'history?sort_key=event',
      'history?sort_key=bogus',
      'history?sort_dir=up',
      'history?marker=x',
      `history?marker=${GONE}`,
      'history?fields=uuid',
      'history/x',
      `history/${GONE}`,
    ].flatMap((item) => [77, 78, 82, 83, 113, MAX].map((minor) => get(`${node}/${item}`, minor))),
  );
// Below 1.83, the reference closes the connection without an answer.
const family = (): Step[] => [
  get(`${path}/children`),
  get(`${path}/children`, 83),
  get('/v1/nodes/provisioned/children'),
  get(`/v1/nodes/${GONE}/children`),
];

export const provisioningGroups: Readonly<Record<string, () => readonly Step[]>> = {
  'provisioning: a life': life,
  'provisioning: flags': flags,
  'provisioning: creations': creations,
  'provisioning: history': history,
  'provisioning: children': family,
};
