/** /v1/snapshots: images of the disks of nodes, and the parts of their files that agents send (docs/snapshots.md). Extensions. */
import { conflict, Fault, ifFound, invalid, invalidParameter, reasonOf } from '../../model/errors';
import { isUuid } from '../../model/idents';
import { UNFINISHED_SNAPSHOTS } from '../../model/states';
import { isSameSecret } from '../../model/masks';
import type { SnapshotRecord } from '../../model/records';
import { diskHintsProblem } from '../../model/agent/save-arguments';
import { digestOfPart, freeBytes, PART_BYTES, writePart } from '../../wire/snapshot-files';
import { AlreadyRead } from '../../conductor/conductor';
import { Refusal } from '../http/errors';
import { valuesAt } from '../../model/patch';
import { projectOfList, requirePolicy } from '../pipeline/access';
import type { Answer, ApiContext, Request, RequestOf, SomeHandlers } from '../pipeline/handler';
import { nodeOf, visibleNode } from '../pipeline/node-find';
import { createOf, listOf, recordOf, removeOf, showOf, updateOf, type Resource } from '../pipeline/resource';
import type { Inputs } from '../schema/operations';
import type { Present } from '../pipeline/fields';

type NewSnapshot = Omit<Present<Inputs['Snapshot']>, 'root_device'> &
  Pick<SnapshotRecord, 'node_uuid' | 'node_name' | 'owner' | 'state' | 'root_device'> & { readonly uuid?: string };

const MIB = 2 ** 20;
const leastFree = (context: ApiContext): number => context.options['snapshot.min_free_space'] * MIB;
const roomIn = (context: ApiContext): Promise<number> => freeBytes(context.options['snapshot.directory']);

/** The deploy interfaces that have the step deploy.snapshot. */
const SAVING = ['direct', 'custom-agent'];
/** Refuses what would fail later, before the machine is touched. */
async function checkNew(values: Present<Inputs['Snapshot']>, request: Request, context: ApiContext): Promise<NewSnapshot> {
  const node = await nodeOf(request as RequestOf<'createSnapshot'>, context, 'node:snapshot:create');
  const owner = node.lessee ?? node.owner;
  if (values.public === true) requirePolicy(request.caller, context, 'snapshot:update:public', { owner, lessee: null });
  const hints = values.root_device ?? {};
  const problem = Object.keys(hints).length === 0 ? undefined : diskHintsProblem(hints);
  if (problem !== undefined) throw invalidParameter(`root_device ${problem}`);
  if (context.options['api.disallow_service_steps'].includes('deploy.snapshot'))
    throw new Fault('StepNotAllowed', { step: 'deploy.snapshot', step_type: 'service' });
  if (!SAVING.includes(node.deploy_interface ?? ''))
    throw invalidParameter(`The deploy interface ${String(node.deploy_interface)} cannot save disks; ${SAVING.join(' and ')} can.`);
  if (node.provision_state !== 'active')
    throw new Fault('InvalidStateRequested', { action: 'snapshot', node: node.uuid, state: node.provision_state });
  const free = await roomIn(context).catch((error: unknown) => {
    throw conflict(`The folder of snapshots cannot be written: ${reasonOf(error)}`, error);
  });
  if (free < leastFree(context))
    throw conflict(
      `The folder of snapshots has ${Math.floor(free / MIB)} MiB of free space; [snapshot]min_free_space is ${context.options['snapshot.min_free_space']}.`,
    );
  return { ...values, root_device: hints, node_uuid: node.uuid, node_name: node.name, owner, state: 'queued' };
}

/** Records the snapshot, and begins its flow. The record goes if the conductor refuses. */
async function begin(record: NewSnapshot & { readonly uuid: string }, context: ApiContext): Promise<SnapshotRecord> {
  const { store, conductor } = context;
  const made = await store.snapshots.create(record);
  const steps = [{ interface: 'deploy', step: 'snapshot', args: { snapshot: made.uuid } }];
  const node = await store.nodes.find(made.node_uuid);
  try {
    await conductor.provision(node.uuid, 'service', { service_steps: steps }, new AlreadyRead(node));
  } catch (error) {
    await store.snapshots.remove(made.uuid);
    throw error;
  }
  return made;
}

const SNAPSHOTS: Resource<SnapshotRecord, 'Snapshot', NewSnapshot> = {
  schema: 'Snapshot',
  path: 'snapshots',
  list: 'snapshots',
  bodyLabel: 'snapshot',
  ident: 'snapshot_ident',
  policy: 'snapshot',
  unsortable: ['root_device', 'parts'],
  computed: [],
  strict: true,
  table: ({ store }) => store.snapshots,
  projects: async ({ owner }) => ({ owner, lessee: null }),
  projectOf: (request, context) => projectOfList(request, context, 'snapshot'),
  filter: async (_request, _context, project) => ({ ownedOrPublic: project }),
  check: checkNew,
  create: begin,
  find: async (patch, request, context) => {
    const policies = valuesAt(patch, '/public').length > 0 ? ['snapshot:update', 'snapshot:update:public'] : ['snapshot:update'];
    return { record: await recordOf(SNAPSHOTS, 'snapshot:update', request, context, () => policies) };
  },
  checkPatched: (values) => values,
  update: ({ uuid }, changes, { store }) => store.snapshots.update(uuid, changes),
  remove: ({ uuid }, { conductor }) => conductor.deleteSnapshot(uuid),
};

// ---- parts
/** RFC 9530 §2. */
const DIGEST = /^sha-256=:([A-Za-z0-9+/]{43}=):$/;
const MAX_POSITION = 2 ** 46;

/** The snapshot, if the request comes from the agent of its node. Otherwise the response does not reveal which snapshots exist. */
async function unfinishedOf(
  { params, headers }: RequestOf<'checkSnapshotPart' | 'putSnapshotPart'>,
  { store }: ApiContext,
): Promise<SnapshotRecord> {
  const token = headers['x-agent-token'];
  const refused = new Fault('NotAuthorized');
  if (!isUuid(params.snapshot_ident) || typeof token !== 'string') throw refused;
  const snapshot = await ifFound(store.snapshots.find(params.snapshot_ident));
  const node = snapshot && (await ifFound(store.nodes.findAgent(snapshot.node_uuid)));
  const secret = node?.driver_internal_info.agent_secret_token;
  if (!snapshot || typeof secret !== 'string' || !isSameSecret(token, secret)) throw refused;
  if (!UNFINISHED_SNAPSHOTS.includes(snapshot.state)) throw conflict(`Snapshot ${snapshot.uuid} is in the state ${snapshot.state}.`);
  return snapshot;
}

/** @throws Fault for a text that is no position */
function positionOf({ position }: { readonly position: string }): number {
  const given = Number(position);
  if (!Number.isSafeInteger(given) || given < 0 || given > MAX_POSITION) throw invalid('position: it is not a position in a file');
  return given;
}
const inPart = (length: number): boolean => length > 0 && length <= PART_BYTES;

async function checkPart(request: RequestOf<'checkSnapshotPart'>, context: ApiContext): Promise<Answer> {
  const snapshot = await unfinishedOf(request, context);
  const position = positionOf(request.params);
  const { length = 0 } = request.query;
  if (!inPart(length)) throw invalid(`A part has 1 to ${PART_BYTES} bytes.`);
  const digest = await digestOfPart(context.options['snapshot.directory'], snapshot.uuid, position, length);
  if (!digest) throw new Refusal(404, 'The part is not stored.');
  return { status: 204, headers: { 'content-digest': `sha-256=:${digest.toString('base64')}:` } };
}

async function putPart(request: RequestOf<'putSnapshotPart'>, context: ApiContext): Promise<Answer> {
  const { store, options } = context;
  const snapshot = await unfinishedOf(request, context);
  const position = positionOf(request.params);
  const { body: pieces, headers, query } = request;
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  if (!inPart(length)) throw invalid(`A part has 1 to ${PART_BYTES} bytes.`);
  const digest = DIGEST.exec(String(headers['content-digest']))?.[1];
  if (digest === undefined) throw invalid('Content-Digest: a part needs its SHA-256.');
  if ((await roomIn(context)) < leastFree(context) + length) throw new Refusal(507, 'The folder of snapshots is full.');
  const isWhole = await writePart(options['snapshot.directory'], snapshot.uuid, { pieces, position, digest });
  if (!isWhole) throw new Refusal(503, 'The part is not what its digest says.');
  const progress = Math.max(0, Math.min(100, query.progress ?? 0));
  if (snapshot.state === 'queued' || progress > snapshot.progress)
    await store.snapshots.update(snapshot.uuid, { state: 'saving', progress }, { state: UNFINISHED_SNAPSHOTS });
  return { status: 204 };
}

export const snapshotHandlers = {
  listSnapshots: (request, context) => listOf(SNAPSHOTS, request, context),
  listNodeSnapshots: async (request, context) => {
    const { uuid } = await visibleNode(request.params.node_ident, request, context);
    const ofNode: typeof SNAPSHOTS = {
      ...SNAPSHOTS,
      filter: async (_request, _context, project) => ({ where: { node_uuid: uuid }, ownedOrPublic: project }),
    };
    return listOf(ofNode, request, context, { path: `nodes/${request.params.node_ident}/snapshots` });
  },
  createSnapshot: (request, context) => createOf(SNAPSHOTS, request, context),
  showSnapshot: (request, context) => showOf(SNAPSHOTS, request, context, (snapshot) => (snapshot.public ? [] : ['snapshot:get'])),
  updateSnapshot: (request, context) => updateOf(SNAPSHOTS, request, context),
  deleteSnapshot: (request, context) => removeOf(SNAPSHOTS, request, context),
  checkSnapshotPart: checkPart,
  putSnapshotPart: putPart,
} satisfies SomeHandlers;
