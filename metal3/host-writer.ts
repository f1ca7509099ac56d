/**
 * Writes the record of one host where users of metal3 look: into HardwareData, and into the hardware and a condition of the host's status,
 * by server-side apply.
 */
import { createHash } from 'node:crypto';
import type { Clock } from '../model/clock';
import { digestOf } from '../model/hardware-records';
import { isObject, objectOf } from '../model/json';
import type { Json, JsonObject } from '../model/records';
import { fitting, type CrdMembers } from './crd-members';
import { detailsOfInspection, linksDown, withRecord, type HardwareDetails } from './hardware-details';
import type { Kubernetes, KubernetesObject } from './kubernetes';

export const MANAGER = 'bloomery-hardware-sync';
export const API = '/apis/metal3.io/v1alpha1';
const [DIGEST, RECORDED, STALE, DOWN] = ['digest', 'recorded-at', 'stale', 'links-down'].map((name) => `hardware.bloomery.io/${name}`) as [
  string,
  string,
  string,
  string,
];
const CONDITION = 'HardwareReported';

/** The record of a node in the server's list. */
export interface ListedRecord {
  readonly node_uuid: string;
  readonly node_name: string | null;
  readonly digest: string;
  readonly recorded_at: string;
  readonly received_at: string;
  readonly age: number;
  readonly stale: boolean;
}
/** What the server knows. */
export interface Records {
  /** Undefined: as at the last call that returned a list. */
  list(signal: AbortSignal): Promise<readonly ListedRecord[] | undefined>;
  /** Undefined: the node has no record any more. */
  hardware(nodeUuid: string, signal: AbortSignal): Promise<JsonObject | undefined>;
  /** What the last inspection found; undefined: there was none. */
  inspection(nodeUuid: string, signal: AbortSignal): Promise<{ readonly inventory: Json; readonly plugin_data: Json } | undefined>;
}
/** A host of the cluster, and its HardwareData if it has one. */
export interface Host {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly nodeUuid: string;
  readonly data: string | undefined;
  /** Whether this program wrote HardwareData or status, so that it says when the record ends. */
  readonly isOurs: boolean;
}

const MINUTE = 60;
/** Minutes. */
const [LEAST_AGE, MAX_AGE] = [15, 10_000_000];
const UNITS = [
  ['d', 1440],
  ['h', 60],
  ['min', 1],
] as const;
/** An age that changes ever more rarely, so that a host that stays silent is not written again and again: 15 min, 30 min, 1 h, 2 h … @internal */
export function roughAge(seconds: number): string {
  let minutes = LEAST_AGE;
  if (seconds < minutes * MINUTE) return `less than ${LEAST_AGE} min`;
  const next = (): number => (minutes === 16 * 60 ? 24 * 60 : 2 * minutes);
  while (next() <= Math.min(seconds / MINUTE, MAX_AGE)) minutes = next();
  const [unit, size] = UNITS.find(([, least]) => minutes >= least)!;
  return `more than ${minutes / size} ${unit}`;
}
export const staleText = ({ received_at: at }: ListedRecord, age: number): string => `no report since ${at}, for ${roughAge(age)}`;

const VERSION = { apiVersion: 'metal3.io/v1alpha1' };
const [HOST, HARDWARE_DATA] = [
  { ...VERSION, kind: 'BareMetalHost' },
  { ...VERSION, kind: 'HardwareData' },
];
const pathOf = (kind: 'baremetalhosts' | 'hardwaredata', { namespace, name }: Pick<Host, 'namespace' | 'name'>): string =>
  `${API}/namespaces/${namespace}/${kind}/${encodeURIComponent(name)}`;
const statusOf = (host: KubernetesObject): JsonObject => objectOf(host['status']);
/** The operator works on the hardware of these, or nobody may write them. */
const BUSY: readonly Json[] = [undefined, '', 'unmanaged', 'registering', 'inspecting', 'deleting', 'powering off before delete'];
const PAUSED = 'baremetalhost.metal3.io/paused';
const mayWrite = (host: KubernetesObject): boolean =>
  !BUSY.includes(objectOf(statusOf(host)['provisioning'])['state']) &&
  host.metadata['deletionTimestamp'] === undefined &&
  !(PAUSED in objectOf(host.metadata['annotations']));
const conditionsOf = (host: KubernetesObject): readonly JsonObject[] => {
  const conditions = statusOf(host)['conditions'];
  return Array.isArray(conditions) ? conditions.filter(isObject) : [];
};

interface Told {
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: string;
  readonly message: string;
}
const ENDED: Told = { status: 'Unknown', reason: 'NoRecord', message: 'no recorder reports the hardware of this host any more' };
const told = (record: ListedRecord, age: number): Told =>
  record.stale
    ? { status: 'False', reason: 'Stale', message: staleText(record, age) }
    : { status: 'True', reason: 'Reported', message: `as recorded at ${record.recorded_at}` };

/** Whether this program wrote the object before. @param data HardwareData, if there is any */
export const isWrittenByUs = (host: KubernetesObject, data: KubernetesObject | undefined): boolean =>
  DIGEST in objectOf(data?.metadata['annotations']) || conditionsOf(host).some(({ type }) => type === CONDITION);
/** The UUID of the host's node; undefined: the operator has not registered it yet. */
export function nodeUuidOf(host: KubernetesObject): string | undefined {
  const { ID: uuid } = objectOf(statusOf(host)['provisioning']);
  return typeof uuid === 'string' && uuid !== '' ? uuid : undefined;
}

export interface WriterParts {
  readonly records: Records;
  readonly kubernetes: Kubernetes;
  /** Of the cluster's CRDs, at the last list of hosts. */
  readonly members: () => CrdMembers;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}
/** What metal3 should have, for a record that is new. */
async function detailsOf(
  { records, members, signal }: WriterParts,
  host: Host,
  data: KubernetesObject | undefined,
  seen: KubernetesObject,
) {
  const record = await records.hardware(host.nodeUuid, signal);
  if (!record) return undefined;
  const inspection = await records.inspection(host.nodeUuid, signal);
  const known = objectOf(data ? objectOf(data['spec'])['hardware'] : statusOf(seen)['hardware']) as HardwareDetails;
  const details = withRecord(inspection ? detailsOfInspection(inspection) : known, record);
  const { data: ofData, status: ofStatus } = members();
  return { details: fitting(details, data ? ofData : ofStatus) as HardwareDetails, down: linksDown(record) };
}
/** Writes HardwareData. @returns the hardware that it has now: what somebody else changed since stays until the record changes */
async function writeData(
  parts: WriterParts,
  host: Host,
  data: KubernetesObject,
  { record, age, seen }: { readonly record: ListedRecord; readonly age: number; readonly seen: KubernetesObject },
): Promise<Json> {
  const found = await detailsOf(parts, host, data, seen);
  const hardware = objectOf(data['spec'])['hardware'];
  if (!found) return hardware;
  const { details, down } = found;
  const has = objectOf(data.metadata['annotations']);
  const digest = createHash('sha256')
    .update(digestOf(details as JsonObject))
    .update(record.digest)
    .digest('hex');
  const isWritten = has[DIGEST] === digest;
  const annotations = {
    [DIGEST]: digest,
    [RECORDED]: record.recorded_at,
    ...(record.stale ? { [STALE]: staleText(record, age) } : {}),
    ...(down.length === 0 ? {} : { [DOWN]: down.join(', ').slice(0, 1000) }),
  };
  if (isWritten && [RECORDED, STALE, DOWN].every((name) => has[name] === (annotations as JsonObject)[name])) return hardware;
  return applyData(parts, data, isWritten ? hardware : details, annotations);
}
/** Says in HardwareData that the record ended. It keeps the hardware. */
async function writeEnd(parts: WriterParts, data: KubernetesObject): Promise<Json> {
  const hardware = objectOf(data['spec'])['hardware'];
  const { [DIGEST]: digest, [RECORDED]: recorded, [STALE]: stale } = objectOf(data.metadata['annotations']);
  if (digest === undefined || stale === ENDED.message) return hardware;
  return applyData(parts, data, hardware, { [DIGEST]: digest, [RECORDED]: recorded, [STALE]: ENDED.message });
}
async function applyData(
  { kubernetes, signal }: WriterParts,
  data: KubernetesObject,
  hardware: Json,
  annotations: JsonObject,
): Promise<Json> {
  const { name, namespace, uid } = data.metadata;
  const content = { ...HARDWARE_DATA, metadata: { name, namespace, uid, annotations }, spec: { hardware } };
  const applied = await kubernetes.apply(pathOf('hardwaredata', data.metadata), content, signal);
  return objectOf(applied['spec'])['hardware'];
}
/** Hardware and condition are applied together, because what a manager leaves out is removed. */
async function writeStatus(
  { kubernetes, members, clock, signal }: WriterParts,
  seen: KubernetesObject,
  hardware: Json,
  tell: Told,
): Promise<void> {
  const before = conditionsOf(seen).find(({ type }) => type === CONDITION);
  const hasConditions = members().hasConditions ?? conditionsOf(seen).length > 0;
  const isTold = !hasConditions || (['status', 'reason', 'message'] as const).every((name) => before?.[name] === tell[name]);
  const current = statusOf(seen)['hardware'];
  if (isTold && digestOf(objectOf(current)) === digestOf(objectOf(hardware))) return;
  const since = before?.['status'] === tell.status ? before['lastTransitionTime'] : `${new Date(clock.now()).toISOString().slice(0, 19)}Z`;
  const conditions = hasConditions ? { conditions: [{ type: CONDITION, ...tell, lastTransitionTime: since }] } : {};
  const { name, namespace, uid } = seen.metadata;
  const content = { ...HOST, metadata: { name, namespace, uid }, status: { hardware, ...conditions } };
  await kubernetes.apply(`${pathOf('baremetalhosts', seen.metadata)}/status`, content, signal);
}
/** @param record undefined: the node has none any more. @returns false: the host may not be written, or not yet */
export async function writeHost(parts: WriterParts, host: Host, record: ListedRecord | undefined, age: number): Promise<boolean> {
  const { kubernetes, signal } = parts;
  const seen = await kubernetes.get(pathOf('baremetalhosts', host), signal);
  if (!seen || seen.metadata.uid !== host.uid || !mayWrite(seen)) return false;
  if (nodeUuidOf(seen) !== host.nodeUuid) return false;
  const data = await kubernetes.get(pathOf('hardwaredata', host), signal);
  let hardware: Json = statusOf(seen)['hardware'];
  // The operator inspects a host only while it has no hardware.
  if (!data && hardware === undefined) return false;
  if (data && data.metadata['deletionTimestamp'] !== undefined) return false;
  if (data) hardware = record ? await writeData(parts, host, data, { record, age, seen }) : await writeEnd(parts, data);
  else if (record) hardware = (await detailsOf(parts, host, undefined, seen))?.details ?? hardware;
  await writeStatus(parts, seen, hardware, record ? told(record, age) : ENDED);
  return true;
}
