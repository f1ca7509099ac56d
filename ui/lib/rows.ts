/** The nodes of the fleet as rows, and how events change them (docs/reference/events.md). Pure. */
import type { JsonObject } from '../../model/json';
import { STATES, stateRow, type ProvisionState } from '../../model/states';

interface StepProgress {
  readonly step: string;
  readonly number?: number;
  readonly of?: number;
  readonly percent?: number;
  /** The bytes of the image that the step has written, and the size of the image. */
  readonly bytes?: { readonly done: number; readonly of: number };
}
export interface NodeEvent {
  readonly id: string;
  readonly at: string;
  readonly kind: string;
  readonly node_uuid: string | null;
  readonly node_name: string | null;
  readonly payload: Readonly<Record<string, unknown>>;
}

/** The fields that the page requests of each node. */
const FIELDS = [
  'uuid',
  'name',
  'provision_state',
  'target_provision_state',
  'power_state',
  'health',
  'maintenance',
  'maintenance_reason',
  'last_error',
  'driver',
  'resource_class',
  'owner',
  'lessee',
  'conductor_group',
  'shard',
  'properties',
  'clean_step',
  'deploy_step',
  'service_step',
  'out_of_service',
] as const;
export const ROW_FIELDS = FIELDS.join(',');
type NodeFields = Readonly<Partial<Record<(typeof FIELDS)[number], unknown>>>;

/** The number of written bytes in an event's payload. */
export const bytesWritten = ({ bytes: done, bytes_of: of }: JsonObject): Pick<StepProgress, 'bytes'> =>
  typeof done === 'number' && typeof of === 'number' ? { bytes: { done, of } } : {};
/** What a person said who took the node out of service. */
interface OutageRow {
  readonly reason: string;
  /** A URL of http or https, which the server has checked. */
  readonly ticket: string | null;
  readonly until: string;
  readonly by: string | null;
}
/** @param value a field of the node, or the payload of an event: without a time, the node is in service */
function outageIn(value: unknown): OutageRow | null {
  const { reason, ticket, until, declared_by: by } = (value ?? {}) as JsonObject;
  return typeof until === 'string' ? { reason: textOf(reason) ?? '', ticket: textOf(ticket), until, by: textOf(by) } : null;
}
export const isOverdue = ({ until }: OutageRow, now: number): boolean => Date.parse(until) <= now;
const textOf = (value: unknown): string | null => (typeof value === 'string' ? value : null);
const stepOf = (value: unknown): StepProgress | null => {
  const { interface: kind, step } = (value ?? {}) as JsonObject;
  return typeof step === 'string' ? { step: `${String(kind)}.${step}` } : null;
};
function hardwareOf(properties: unknown): string {
  const { vendor, cpus, cpu_arch: arch, memory_mb: memory, local_gb: disk } = (properties ?? {}) as JsonObject;
  const parts: readonly (readonly [unknown, string])[] = [
    [vendor, ''],
    [arch, ''],
    [cpus, ' CPUs'],
    [memory === undefined || memory === null ? null : Math.round(Number(memory) / 1024), ' GiB'],
    [disk, ' GB disk'],
  ];
  return parts
    .flatMap(([value, unit]) =>
      value === undefined || value === null || value === '' ? [] : [`${String(value as string | number)}${unit}`],
    )
    .join(', ');
}
const isState = (state: string): state is ProvisionState => Object.hasOwn(STATES, state);
const flowOf = (state: string): string | undefined => (isState(state) ? stateRow(state).flow : undefined);
/** Flow → the field with its step. */
const STEP_FIELDS: Readonly<Record<string, keyof NodeFields>> = { deploy: 'deploy_step', clean: 'clean_step', service: 'service_step' };
/** The step of the flow that the state belongs to: the other fields may have steps of earlier flows. */
function runningStepOf(node: NodeFields): StepProgress | null {
  const field = STEP_FIELDS[flowOf(String(node.provision_state)) ?? ''];
  return field === undefined ? null : stepOf(node[field]);
}
export const rowOf = (node: NodeFields) => ({
  uuid: String(node.uuid),
  name: textOf(node.name),
  state: String(node.provision_state),
  target: textOf(node.target_provision_state),
  power: textOf(node.power_state),
  health: textOf(node.health),
  maintenance: node.maintenance === true,
  reason: textOf(node.maintenance_reason),
  outage: outageIn(node.out_of_service),
  error: textOf(node.last_error),
  driver: String(node.driver),
  resourceClass: textOf(node.resource_class),
  owner: textOf(node.owner),
  lessee: textOf(node.lessee),
  group: textOf(node.conductor_group) ?? '',
  shard: textOf(node.shard),
  hardware: hardwareOf(node.properties),
  progress: runningStepOf(node),
  /** The worst of its alerts: the page reads them besides the nodes. */
  alert: null as string | null,
});
export type NodeRow = Readonly<ReturnType<typeof rowOf>>;

const isStable = (state: string): boolean => isState(state) && stateRow(state).stable === true;
const isFailed = (state: string): boolean => isState(state) && stateRow(state).failed === true;

const numberIn = (value: unknown): { readonly number?: number } => (typeof value === 'number' ? { number: value } : {});
/** Kind of an event → the fields of the row that it changes. Other kinds do not change the row. */
const CHANGES: Readonly<Record<string, (row: NodeRow, payload: JsonObject) => Partial<NodeRow>>> = {
  state: (row, payload) => {
    const state = String(payload['provision_state']);
    // The old error stays in failed states and in enroll, the state after a failed verification. A new error is an event of its own.
    const error = isFailed(state) || state === 'enroll' ? row.error : null;
    const flow = flowOf(state);
    const progress = flow !== undefined && flow === flowOf(row.state) ? row.progress : null;
    return { state, target: textOf(payload['target_provision_state']), error, progress };
  },
  power: (_, payload) => ({ power: textOf(payload['power_state']) }),
  maintenance: (_, payload) => ({ maintenance: payload['maintenance'] === true, reason: textOf(payload['maintenance_reason']) }),
  out_of_service: (_, payload) => ({ outage: outageIn(payload) }),
  health: (_, { health }) => ({ alert: health === 'ok' ? null : textOf(health) }),
  error: (_, payload) => ({ error: textOf(payload['last_error']) }),
  step: (_, { step, number, of }) => ({
    progress: { step: String(step), ...numberIn(number), ...(typeof of === 'number' ? { of } : {}) },
  }),
  progress: (row, { step, percent, ...payload }) => {
    if (typeof percent !== 'number') return {};
    return { progress: { ...row.progress, step: textOf(step) ?? row.progress?.step ?? '', percent, ...bytesWritten(payload) } };
  },
};
/** @returns the same row if the event does not change it */
export function applyEvent(row: NodeRow, { kind, payload }: Pick<NodeEvent, 'kind' | 'payload'>): NodeRow {
  const change = Object.hasOwn(CHANGES, kind) ? CHANGES[kind]!(row, payload) : {};
  const isNew = Object.entries(change).some(([name, value]) => row[name as keyof NodeRow] !== value);
  return isNew ? { ...row, ...change } : row;
}

/** The kind of a provision state, for colours and counts. */
export type StateClass = 'failed' | 'active' | 'available' | 'working' | 'waiting' | 'idle';
export function classOf({ state }: Pick<NodeRow, 'state'>): StateClass {
  if (isFailed(state)) return 'failed';
  if (state === 'active' || state === 'rescue') return 'active';
  if (state === 'available') return 'available';
  if (isStable(state)) return 'idle';
  return /wait|hold/.test(state) ? 'waiting' : 'working';
}
const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
export function sizeText(bytes: number): string {
  const unit = Math.min(UNITS.length - 1, Math.max(0, Math.floor(Math.log2(Math.max(1, bytes)) / 10)));
  return `${(bytes / 1024 ** unit).toFixed(unit === 0 ? 0 : 1)} ${UNITS[unit]!}`;
}
export const progressText = ({ progress }: NodeRow): string => {
  if (progress === null) return '';
  const { step, number, of, percent, bytes } = progress;
  return [
    step,
    ...(number === undefined ? [] : [`${number}/${of ?? '?'}`]),
    ...(percent === undefined ? [] : [`${percent} %`]),
    ...(bytes === undefined ? [] : [`(${sizeText(bytes.done)} of ${sizeText(bytes.of)})`]),
  ].join(' ');
};

/** Node → the worst of its alerts. @param alerts open and not masked */
export function worstOf(alerts: readonly { readonly node_uuid: string; readonly severity: string }[]): ReadonlyMap<string, string> {
  const worst = new Map<string, string>();
  for (const { node_uuid: uuid, severity } of alerts) if (worst.get(uuid) !== 'critical') worst.set(uuid, severity);
  return worst;
}
