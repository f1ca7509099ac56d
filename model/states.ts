/**
 * The provision state machine as data: states, transitions and verbs. Heartbeats, timeouts, checks of changes and deletions, and
 * docs/reference/states.md (generated) use these tables. Source: the behaviour of Ironic 39.
 */

/** A state. `target`: the target provision state. */
interface StateShape {
  readonly stable?: true;
  readonly target?: string;
  /** A transition failed. Power actions do not clear `last_error`, and the target remains visible. */
  readonly failed?: true;
  /** The effect of a heartbeat: resume the flow, or only record it. Absent: it is accepted and ignored. */
  readonly heartbeat?: 'resume' | 'record';
  /** The flow that the state belongs to. */
  readonly flow?: string;
  /** A conductor works on the node in this state. Without a reservation, its conductor has died. */
  readonly working?: true;
  /** The option (section.name) with the timeout of this state, in seconds. */
  readonly timeout?: string;
  /** The option (section.name) that limits how many nodes may be in this state. States with the same option share the limit. */
  readonly limit?: string;
  /** When a wait with a timeout began; default: `provision_updated_at`, which each effective heartbeat sets anew. */
  readonly since?: 'inspection_started_at';
  /** A ramdisk may look up its node in this state. */
  readonly lookup?: true;
  /** Clients may update the node in this state, although it is transient. */
  readonly changeable?: true;
  /** The power synchronization skips nodes in this state. */
  readonly skipPowerSync?: true;
}

export const STATES = {
  enroll: { stable: true, skipPowerSync: true },
  manageable: { stable: true },
  available: { stable: true },
  active: { stable: true },
  error: { stable: true, failed: true, changeable: true },
  rescue: { stable: true },
  verifying: { target: 'manageable', flow: 'verify', working: true, changeable: true },
  deploying: {
    target: 'active',
    flow: 'deploy',
    working: true,
    heartbeat: 'record',
    limit: 'conductor.max_concurrent_deploy',
    lookup: true,
  },
  'wait call-back': {
    target: 'active',
    flow: 'deploy',
    heartbeat: 'resume',
    timeout: 'conductor.deploy_callback_timeout',
    limit: 'conductor.max_concurrent_deploy',
    lookup: true,
    skipPowerSync: true,
  },
  'deploy failed': { target: 'active', failed: true, changeable: true },
  'deploy hold': { target: 'active', flow: 'deploy', heartbeat: 'record' },
  cleaning: {
    target: 'available',
    flow: 'clean',
    working: true,
    heartbeat: 'record',
    limit: 'conductor.max_concurrent_clean',
    lookup: true,
  },
  'clean wait': {
    target: 'available',
    flow: 'clean',
    heartbeat: 'resume',
    timeout: 'conductor.clean_callback_timeout',
    limit: 'conductor.max_concurrent_clean',
    lookup: true,
    skipPowerSync: true,
  },
  'clean failed': { target: 'available', failed: true, changeable: true },
  'clean hold': { target: 'available', flow: 'clean', heartbeat: 'record' },
  deleting: { target: 'available', flow: 'undeploy', working: true, limit: 'conductor.max_concurrent_clean' },
  inspecting: { target: 'manageable', flow: 'inspect', working: true, lookup: true, changeable: true },
  'inspect wait': {
    target: 'manageable',
    flow: 'inspect',
    timeout: 'conductor.inspect_wait_timeout',
    since: 'inspection_started_at',
    lookup: true,
    changeable: true,
  },
  'inspect failed': { target: 'manageable', failed: true, changeable: true },
  adopting: { target: 'active', flow: 'adopt', working: true },
  'adopt failed': { target: 'active', failed: true, skipPowerSync: true, changeable: true },
  rescuing: { target: 'rescue', flow: 'rescue', working: true, heartbeat: 'record', lookup: true },
  'rescue wait': { target: 'rescue', flow: 'rescue', heartbeat: 'resume', timeout: 'conductor.rescue_callback_timeout', lookup: true },
  'rescue failed': { target: 'rescue', failed: true, changeable: true },
  unrescuing: { target: 'active', flow: 'unrescue', working: true },
  'unrescue failed': { target: 'active', failed: true, changeable: true },
  servicing: { target: 'active', flow: 'service', working: true, heartbeat: 'record' },
  'service wait': { target: 'active', flow: 'service', heartbeat: 'resume', timeout: 'conductor.service_callback_timeout', lookup: true },
  'service failed': { target: 'active', failed: true, changeable: true },
  'service hold': { target: 'active', flow: 'service', heartbeat: 'record', changeable: true },
} as const satisfies Record<string, StateShape>;
export type ProvisionState = keyof typeof STATES;

/** The values of a member in all rows. */
type ValueOf<Member extends keyof StateShape> = Extract<(typeof STATES)[ProvisionState], Readonly<Record<Member, string>>>[Member];
export type FlowName = ValueOf<'flow'>;
/** The options that limit waits. */
export type WaitTimeout = ValueOf<'timeout'>;
/** The options that limit how many nodes may be in a state. */
export type StateLimit = ValueOf<'limit'>;
interface StateRow extends StateShape {
  readonly target?: ValueOf<'target'>;
  readonly flow?: FlowName;
  readonly timeout?: WaitTimeout;
  readonly limit?: StateLimit;
}
/** The row of a state, with all optional members. */
export const stateRow = (state: ProvisionState): StateRow => STATES[state];
/** Whether a node in this state waits for its machine. All such states have a timeout. */
export const isWaiting = (state: ProvisionState): boolean => stateRow(state).timeout !== undefined;

export type Event =
  | 'deploy'
  | 'rebuild'
  | 'delete'
  | 'manage'
  | 'provide'
  | 'inspect'
  | 'clean'
  | 'service'
  | 'rescue'
  | 'unrescue'
  | 'adopt'
  | 'abort'
  | 'unhold'
  | 'hold'
  | 'wait'
  | 'resume'
  | 'done'
  | 'fail';

/** With fast track, heartbeats and lookups are also accepted in these states. */
export const FAST_TRACK_STATES: readonly ProvisionState[] = ['enroll', 'manageable', 'available', 'servicing', 'service hold'];

/** [from, event, to, since?]. `since`: the first microversion in which users may request it (below: 406). */
export const TRANSITIONS: readonly (readonly [ProvisionState, Event, ProvisionState, number?])[] = [
  ['enroll', 'manage', 'verifying'],
  ['verifying', 'done', 'manageable'],
  ['verifying', 'fail', 'enroll'],
  ['manageable', 'provide', 'cleaning'],
  ['manageable', 'clean', 'cleaning'],
  ['manageable', 'inspect', 'inspecting'],
  ['manageable', 'adopt', 'adopting'],
  ['available', 'deploy', 'deploying'],
  ['available', 'manage', 'manageable'],
  ['deploying', 'wait', 'wait call-back'],
  ['deploying', 'hold', 'deploy hold'],
  ['deploying', 'done', 'active'],
  ['deploying', 'fail', 'deploy failed'],
  ['wait call-back', 'resume', 'deploying'],
  ['wait call-back', 'hold', 'deploy hold'],
  ['wait call-back', 'fail', 'deploy failed'],
  ['wait call-back', 'abort', 'deploy failed', 110],
  ['wait call-back', 'delete', 'deleting'],
  ['deploy hold', 'unhold', 'wait call-back'],
  ['deploy hold', 'abort', 'deploy failed'],
  ['deploy failed', 'deploy', 'deploying'],
  ['deploy failed', 'rebuild', 'deploying'],
  ['deploy failed', 'delete', 'deleting'],
  ['active', 'rebuild', 'deploying'],
  ['active', 'delete', 'deleting'],
  ['active', 'rescue', 'rescuing'],
  ['active', 'service', 'servicing'],
  ['error', 'rebuild', 'deploying'],
  ['error', 'delete', 'deleting'],
  ['deleting', 'clean', 'cleaning'],
  ['deleting', 'fail', 'error'],
  ['cleaning', 'wait', 'clean wait'],
  ['cleaning', 'hold', 'clean hold'],
  ['cleaning', 'done', 'available'],
  ['cleaning', 'manage', 'manageable'],
  ['cleaning', 'fail', 'clean failed'],
  ['clean wait', 'resume', 'cleaning'],
  ['clean wait', 'hold', 'clean hold'],
  ['clean wait', 'fail', 'clean failed'],
  ['clean wait', 'abort', 'clean failed'],
  ['clean hold', 'unhold', 'clean wait'],
  ['clean hold', 'abort', 'clean failed'],
  ['clean failed', 'manage', 'manageable'],
  ['inspecting', 'done', 'manageable'],
  ['inspecting', 'wait', 'inspect wait'],
  ['inspecting', 'fail', 'inspect failed'],
  ['inspect wait', 'done', 'manageable'],
  ['inspect wait', 'resume', 'inspecting'],
  ['inspect wait', 'fail', 'inspect failed'],
  ['inspect wait', 'abort', 'inspect failed', 41],
  ['inspect failed', 'inspect', 'inspecting'],
  ['inspect failed', 'manage', 'manageable'],
  ['adopting', 'done', 'active'],
  ['adopting', 'fail', 'adopt failed'],
  ['adopt failed', 'adopt', 'adopting'],
  ['adopt failed', 'manage', 'manageable'],
  ['rescue', 'rescue', 'rescuing'],
  ['rescue', 'unrescue', 'unrescuing'],
  ['rescue', 'delete', 'deleting'],
  ['rescuing', 'done', 'rescue'],
  ['rescuing', 'wait', 'rescue wait'],
  ['rescuing', 'fail', 'rescue failed'],
  ['rescue wait', 'resume', 'rescuing'],
  ['rescue wait', 'fail', 'rescue failed'],
  ['rescue wait', 'abort', 'rescue failed'],
  ['rescue wait', 'delete', 'deleting'],
  ['rescue failed', 'rescue', 'rescuing'],
  ['rescue failed', 'unrescue', 'unrescuing'],
  ['rescue failed', 'delete', 'deleting'],
  ['unrescuing', 'done', 'active'],
  ['unrescuing', 'fail', 'unrescue failed'],
  ['unrescue failed', 'rescue', 'rescuing'],
  ['unrescue failed', 'unrescue', 'unrescuing'],
  ['unrescue failed', 'delete', 'deleting'],
  ['servicing', 'done', 'active'],
  ['servicing', 'wait', 'service wait'],
  ['servicing', 'hold', 'service hold'],
  ['servicing', 'fail', 'service failed'],
  ['service wait', 'resume', 'servicing'],
  ['service wait', 'hold', 'service hold'],
  ['service wait', 'fail', 'service failed'],
  ['service wait', 'abort', 'service failed'],
  ['service wait', 'delete', 'deleting'],
  ['service hold', 'unhold', 'service wait'],
  ['service hold', 'service', 'servicing'],
  ['service hold', 'abort', 'service failed'],
  ['service hold', 'fail', 'service failed'],
  ['service failed', 'service', 'servicing'],
  ['service failed', 'rescue', 'rescuing'],
  ['service failed', 'abort', 'active'],
  ['service failed', 'delete', 'deleting'],
  ['service failed', 'wait', 'service wait'],
  ['service failed', 'hold', 'service hold'],
];

/** The verbs of PUT …/states/provision: the event, and the first microversion. */
export const VERBS: Readonly<Record<string, { readonly event: Event; readonly since: number }>> = {
  active: { event: 'deploy', since: 1 },
  deploy: { event: 'deploy', since: 73 },
  rebuild: { event: 'rebuild', since: 1 },
  deleted: { event: 'delete', since: 1 },
  undeploy: { event: 'delete', since: 73 },
  manage: { event: 'manage', since: 4 },
  provide: { event: 'provide', since: 4 },
  inspect: { event: 'inspect', since: 6 },
  abort: { event: 'abort', since: 13 },
  clean: { event: 'clean', since: 15 },
  adopt: { event: 'adopt', since: 17 },
  rescue: { event: 'rescue', since: 38 },
  unrescue: { event: 'unrescue', since: 38 },
  unhold: { event: 'unhold', since: 85 },
  service: { event: 'service', since: 87 },
};

/** The state after `event` in `from`; undefined: there is no such transition. */
export function nextState(from: ProvisionState, event: Event): ProvisionState | undefined {
  return TRANSITIONS.find(([f, e]) => f === from && e === event)?.[2];
}

/** The verbs of nodes that are out of service (docs/out-of-service.md): they end work, or leave the machine as it is. */
export const VERBS_OUT_OF_SERVICE: readonly string[] = ['deleted', 'undeploy', 'abort', 'manage'];
/** States in which a node may be deleted. In maintenance it may be deleted in every state; an option decides for available nodes. */
export const DELETABLE_STATES: readonly ProvisionState[] = ['manageable', 'enroll', 'adopt failed'];

/** States in which the server awaits inspection data from a node's machine. */
export const INSPECTED_STATES: readonly ProvisionState[] = ['inspecting', 'inspect wait'];

/** A file is complete when its snapshot is `available`. `storing`: the whole file has arrived, and is checked. */
export type SnapshotState = 'queued' | 'saving' | 'storing' | 'available' | 'failed';
/** Their files have not arrived whole. */
export const UNFINISHED_SNAPSHOTS: readonly SnapshotState[] = ['queued', 'saving'];
