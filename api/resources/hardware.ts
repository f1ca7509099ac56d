/** The hardware records that recorders on running hosts push, and their changes. Extensions (docs/recorder.md). */
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { instantOf, timestamp } from '../../model/clock';
import { conflict, Fault, invalid, invalidParameter, notFound } from '../../model/errors';
import {
  announcementOf,
  CHANGE_KINDS,
  changesBetween,
  COMPONENTS,
  digestOf,
  MAX_CHANGES,
  type ChangeKind,
  type Component,
  type HardwareChange,
  type HardwareRecord,
} from '../../model/hardware-records';
import type { NodeRecord } from '../../model/records';
import { isMac, isUuid, newUuid } from '../../model/idents';
import { originFields } from '../../model/origin';
import { hardwareSignals } from '../../model/rules/health-hardware';
import { judged } from '../../model/rules/health-rules';
import { diskHealthOf, type DiskHealth } from '../../model/rules/health-smart';
import { isSameSystem } from '../../model/rules/system-identity';
import type { Operations } from '../schema/operations';
import { isSameSecret, newSecret } from '../../model/masks';
import type { HardwareChangeFilter, Store } from '../../store/store';
import { Refusal } from '../http/errors';
import { projectOfList } from '../pipeline/access';
import { hashToken } from '../pipeline/hardware-pushes';
import { nodeOf, onNode } from '../pipeline/node-find';
import type { Answer, OperationTypes, Request, RequestOf, SomeHandlers, ApiContext } from '../pipeline/handler';
import { MAX_ERROR, shortened } from '../../model/text';

function checkEnabled({ options }: ApiContext): void {
  if (!options['recorder.enabled']) throw invalidParameter('This server takes nothing from recorders: [recorder]enabled is false.');
}

// ---- pushes
type Push = RequestOf<'pushHardware'>['body'];

const recordOf = async (packed: Buffer): Promise<HardwareRecord> =>
  JSON.parse((await promisify(gunzip)(packed)).toString('utf8')) as HardwareRecord;

/** Stores the changes, an event, an entry in the node's history, and what follows for its health, all in one transaction. */
async function storeChanges(
  store: Store,
  uuid: string,
  changes: readonly HardwareChange[],
  { options, random, healthRules }: ApiContext,
): Promise<void> {
  const node = await store.nodes.find(uuid);
  const { payload, text } = announcementOf(changes, 'recorder');
  await store.events.add(node, 'hardware', payload);
  if (options['conductor.node_history'])
    await store.history.create({
      uuid: newUuid(random),
      node_uuid: uuid,
      conductor: null,
      user: null,
      event_type: 'hardware',
      severity: 'INFO',
      event: shortened(`Hardware of the running host: ${text}`, MAX_ERROR),
      state: node.provision_state,
      target_provision_state: node.target_provision_state,
      duration_seconds: null,
    });
  if (options['health.enabled']) {
    const { raised, cleared } = judged(healthRules, uuid, hardwareSignals(changes));
    const alerts = { raised: raised.map((alert) => ({ ...alert, of_recorder: true as const })), cleared };
    await store.healthAlerts.putChanges(alerts, () => newUuid(random), options['conductor.node_history'] && { user: null });
  }
  await store.hardware.addChanges(uuid, changes, options['recorder.history_max_entries']);
}

/** Stores a pushed record. Returns its digest, the changes, and the result for the metrics. */
async function storeRecord(
  uuid: string,
  hash: string,
  push: Push & { readonly hardware: HardwareRecord },
  smart: readonly DiskHealth[] | null,
  context: ApiContext,
) {
  const digest = digestOf(push.hardware);
  const bootId = push.boot_id ?? null;
  const record = await promisify(gzip)(JSON.stringify(push.hardware));
  return context.store.transaction(async (store) => {
    const before = await store.hardware.lock(uuid);
    // The token was revoked meanwhile.
    if (before?.token_hash == null || !isSameSecret(before.token_hash, hash)) throw new Fault('NotAuthorized');
    const changes =
      before.record === null || before.digest === digest ? [] : changesBetween(await recordOf(before.record), push.hardware, MAX_CHANGES);
    await store.hardware.put(uuid, { digest, record, bootId, smart }, context.options['conductor.node_history']);
    if (changes.length > 0) await storeChanges(store, uuid, changes, context);
    const result = before.record === null ? 'first' : changes.length > 0 ? 'changed' : before.digest === digest ? 'unchanged' : 'updated';
    return { digest, changes, result };
  });
}

async function push(request: RequestOf<'pushHardware'>, context: ApiContext): Promise<Answer> {
  const { options, metrics, pushes } = context;
  const { params, headers, path } = request;
  const uuid = params.node_ident;
  const { body } = request;
  const refuse = (result: string, error: Error): never => {
    metrics.count('bloomery_recorder_pushes_total', { result });
    throw error;
  };
  if (!options['recorder.enabled']) refuse('disabled', new Fault('HTTPForbidden', { resource: path }));
  const token = headers['x-recorder-token'];
  const row = isUuid(uuid) && typeof token === 'string' ? await pushes.authenticate(uuid, token) : undefined;
  // Without a token, the response does not reveal which nodes exist.
  if (!row) return refuse('refused', new Fault('NotAuthorized'));
  if (!pushes.mayPush(uuid)) refuse('limited', new Refusal(429, 'Too many pushes of this node.', { 'Retry-After': '60' }));
  const smart = body.smart === undefined ? null : diskHealthOf(body.smart);
  if (body.hardware) {
    const { digest, changes, result } = await storeRecord(uuid, row.token_hash!, { ...body, hardware: body.hardware }, smart, context);
    if (smart) await context.smartReports.observe(uuid, smart);
    metrics.count('bloomery_recorder_pushes_total', { result });
    for (const { component, kind } of changes) metrics.count('bloomery_recorder_changes_total', { component, kind });
    return { status: 200, body: { digest } };
  }
  if (body.digest === undefined) throw invalidParameter('A push has the hardware, or the digest of what was pushed before.');
  if (body.digest !== row.digest)
    refuse('unknown', conflict('Another record than the one of this digest is kept: push the hardware itself.'));
  pushes.sign({ nodeUuid: uuid, digest: body.digest, bootId: body.boot_id ?? null, smart });
  if (smart) await context.smartReports.observe(uuid, smart);
  metrics.count('bloomery_recorder_pushes_total', { result: 'unchanged' });
  return { status: 200, body: { digest: body.digest } };
}

// ---- registrations
/** The node of a host that registers itself, or why there is none. */
async function claimedNode({ body }: RequestOf<'registerRecorder'>, { store }: ApiContext): Promise<NodeRecord | string> {
  const owners = await store.ports.ownersOf(body.addresses.filter(isMac));
  const [uuid] = owners;
  if (uuid === undefined) return 'no node has ports with these addresses';
  if (owners.length > 1) return `the addresses are those of several nodes: ${owners.slice(0, 4).join(', ')}`;
  const node = await store.nodes.find(uuid);
  if (node.provision_state !== 'active') return `node ${uuid} is ${node.provision_state}, not active`;
  const found = await store.inventories.find(uuid);
  if (!found) return `node ${uuid} was never inspected`;
  return isSameSystem(found.inventory, body) ? node : `the inspection of node ${uuid} found another system, or one without an identity`;
}
async function registerRecorder(request: RequestOf<'registerRecorder'>, context: ApiContext): Promise<Answer> {
  const { store, options, random, log, agentAddresses } = context;
  checkEnabled(context);
  const refused = (reason: string): void =>
    log.warn('the registration of a recorder was refused', { ...originFields(request.origin), reason });
  const node = await claimedNode(request, context);
  if (typeof node === 'string') {
    refused(node);
    // One answer for all reasons, so that a stolen token finds out nothing.
    throw notFound('No active node has these addresses and was inspected as this system.');
  }
  const token = request.body.token ?? newSecret(random);
  const hash = hashToken(token);
  if (!(await store.hardware.claimToken(node.uuid, hash))) {
    const known = (await store.hardware.findToken(node.uuid))?.token_hash;
    // The host did not get the answer, or was killed before it kept it.
    if (known != null && request.body.token !== undefined && isSameSecret(known, hash))
      return { status: 201, body: { node_uuid: node.uuid, token } };
    refused(`node ${node.uuid} has a token`);
    await agentAddresses.report(node, 'recorder', 'A recorder that wanted to register was refused: the node has the token of another one.');
    throw conflict('The recorder of this node has a token already: an operator can revoke it.');
  }
  if (options['conductor.node_history'])
    await store.history.create({
      uuid: newUuid(random),
      node_uuid: node.uuid,
      conductor: null,
      user: request.origin.user,
      event_type: 'recorder',
      severity: 'INFO',
      event: 'The recorder of the running host registered itself.',
      state: node.provision_state,
      target_provision_state: node.target_provision_state,
      duration_seconds: null,
    });
  return { status: 201, body: { node_uuid: node.uuid, token } };
}

// ---- queries
const among = <Word extends string>(
  name: string,
  words: readonly string[] | undefined,
  known: readonly Word[],
): readonly Word[] | undefined =>
  words?.map((word) => {
    const found = known.find((candidate) => candidate === word);
    if (found === undefined) throw invalidParameter(`Unknown ${name} ${word}: use ${known.join(', ')}.`);
    return found;
  });
/** ISO 8601: a date, or a time in UTC unless it has a zone. An unescaped plus sign in a URL arrives as a space. */
const TIMESTAMP = /^(\d{4}-\d\d-\d\d)(?:T(\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)(Z|[ +-]\d\d:\d\d)?)?$/;
function timestampOf(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const [, day = '', time = '00:00', zone = 'Z'] = TIMESTAMP.exec(text) ?? [];
  const milliseconds = instantOf(`${day}T${time}${zone.replace(' ', '+')}`);
  if (Number.isNaN(milliseconds) || milliseconds < 0 || milliseconds > Date.UTC(9999, 0))
    throw invalidParameter(`Expected a timestamp (ISO 8601) for since: ${text}`);
  return timestamp(milliseconds);
}
async function listChanges(
  { query, base, caller }: Request<OperationTypes & Pick<Operations['listAllHardwareChanges'], 'query'>>,
  { store, options, auth }: ApiContext,
  path: string,
  nodes: Pick<HardwareChangeFilter, 'nodeUuid' | 'project'>,
): Promise<Answer> {
  const limit = Math.min(query.limit ?? Infinity, options['api.max_limit']);
  if (limit <= 0) throw invalid('Limit must be positive');
  const after = query.marker;
  if (after !== undefined && !Number.isSafeInteger(after)) throw invalidParameter(`Expected the id of a change for marker: ${after}`);
  const kinds = among<ChangeKind>('kind', query.kind, CHANGE_KINDS);
  const components = among('component', query.component, Object.keys(COMPONENTS) as Component[]);
  const since = timestampOf(query.since);
  const filter: HardwareChangeFilter = {
    limit,
    ...nodes,
    kinds,
    components,
    since,
    after,
  };
  const rows = await store.hardware.changes(filter);
  // Whoever leases a node sees it, but not its hardware records.
  const readable = rows.filter(({ owner, lessee }) => auth.allowed(caller, 'node:hardware:get', { owner, lessee }));
  const changes = readable.map(({ id, at, node_uuid, node_name, source, kind, component, key, before, after: now }) => {
    return { id, at, node_uuid, node_name, source, kind, component, key, before, after: now };
  });
  if (rows.length < limit) return { status: 200, body: { changes } };
  const search = new URLSearchParams({
    ...(kinds ? { kind: kinds.join() } : {}),
    ...(components ? { component: components.join() } : {}),
    ...(since === undefined ? {} : { since }),
    limit: String(limit),
    marker: String(rows.at(-1)!.id),
  });
  return { status: 200, body: { changes, next: `${base}/v1/${path}?${search.toString()}` } };
}

/** Seconds since a time. */
const ageOf = (at: string, { clock }: ApiContext): number => Math.max(0, Math.floor((clock.now() - Date.parse(at)) / 1000));

/**
 * The latest records without the hardware itself. The entity tag is that of digests and stale records, not of the times of pushes, so that
 * a client that follows the records usually gets 304.
 */
async function listRecords(request: RequestOf<'listHardware'>, context: ApiContext): Promise<Answer> {
  const { store, options, auth } = context;
  const { query, base, caller, headers } = request;
  const project = projectOfList(request, context, 'node');
  const limit = Math.min(query.limit ?? Infinity, options['api.max_limit']);
  if (limit <= 0) throw invalid('Limit must be positive');
  const { marker: after } = query;
  if (after !== undefined && !isUuid(after)) throw invalidParameter('Expected the UUID of a node for marker.');
  const rows = await store.hardware.summaries({ limit, project, after });
  // Whoever leases a node sees it, but not its hardware records.
  const readable = rows.filter(({ owner, lessee }) => auth.allowed(caller, 'node:hardware:get', { owner, lessee }));
  const last = rows.length < limit ? undefined : rows.at(-1)!.node_uuid;
  const known = readable.map(({ node_uuid: uuid, node_name: name, digest, stale }) => [uuid, name, digest, stale]);
  const hash = createHash('sha256').update(JSON.stringify([known, last]));
  const tag = { ETag: `W/"${hash.digest('base64url').slice(0, 22)}"` };
  if (headers['if-none-match'] === tag.ETag) return { status: 304, headers: tag };
  const records = readable.map(({ node_uuid, node_name, digest, boot_id, recorded_at, received_at, stale }) => {
    return { node_uuid, node_name, digest, boot_id, recorded_at, received_at, age: ageOf(received_at, context), stale };
  });
  const next =
    last === undefined ? {} : { next: `${base}/v1/hardware?${new URLSearchParams({ limit: String(limit), marker: last }).toString()}` };
  return { status: 200, body: { hardware: records, ...next }, headers: tag };
}

export const hardwareHandlers = {
  pushHardware: push,
  registerRecorder,
  listHardware: listRecords,
  showHardware: async (request, context) => {
    const { uuid } = await nodeOf(request, context, 'node:hardware:get');
    const row = await context.store.hardware.find(uuid);
    if (!row?.record) throw notFound(`No recorder has pushed the hardware of node ${uuid}.`);
    const { digest, boot_id, recorded_at, received_at, stale, smart, token_from: from, token_made_at: made_at } = row;
    const age = ageOf(received_at!, context);
    const token = from === null ? null : { from, made_at };
    const hardware = await recordOf(row.record);
    return { status: 200, body: { node_uuid: uuid, digest, boot_id, recorded_at, received_at, age, stale, token, smart, hardware } };
  },
  listHardwareChanges: async (request, context) => {
    const { uuid } = await nodeOf(request, context, 'node:hardware:get');
    return listChanges(request, context, `nodes/${request.params.node_ident}/hardware/changes`, { nodeUuid: uuid });
  },
  listAllHardwareChanges: async (request, context) => {
    const project = projectOfList(request, context, 'node');
    return listChanges(request, context, 'hardware/changes', project === undefined ? {} : { project });
  },
  createHardwareToken: async (request, context) => {
    const { uuid } = await nodeOf(request, context, 'node:hardware:token');
    checkEnabled(context);
    const token = newSecret(context.random);
    await context.store.hardware.putToken(uuid, hashToken(token), 'operator');
    return { status: 201, body: { token } };
  },
  deleteHardwareToken: onNode(({ uuid }, _, { store }) => store.hardware.revoke(uuid)),
} satisfies SomeHandlers;
