/** /v1/runbooks: steps for cleaning and servicing. Traits approve them for nodes. */
import { Fault, invalid } from '../../model/errors';
import { isLogicalName, isUuid } from '../../model/idents';
import { valuesAt, type PatchOperation } from '../../model/patch';
import { repr } from '../../model/python';
import type { Inputs } from '../schema/operations';
import type { RunbookRecord } from '../../model/records';
import { isGateOpen } from '../../model/versions';
import type { Present, Values } from '../pipeline/fields';
import { location } from '../pipeline/present';
import { projectOfList } from '../pipeline/access';
import { checkPaths } from '../pipeline/patch';
import { createOf, listOf, recordOf, removeOf, showOf, updateOf, type Resource, type Variant } from '../pipeline/resource';
import type { Caller } from '../../policy/caller';
import type { Answer, Request, RequestOf, RequestOn, SomeHandlers, ApiContext } from '../pipeline/handler';
import { checkStepList, masked, merged, pruned, stored } from '../pipeline/steps';
import { checkStepPolicies } from '../pipeline/step-policies';
import { checkTrait } from '../nodes/traits';

/** Project-scoped callers create private runbooks of their own project. */
function ownerFor({ system, project }: Caller, values: Present<Inputs['Runbook']>): { readonly owner?: string | null } {
  if (system) return {};
  const refuse = (message: string): never => {
    throw invalid(message);
  };
  if (values.owner && values.owner !== project)
    refuse('Cannot create a runbook as a project scoped admin with an owner other than your own project.');
  if (project && values.public === true) refuse('Cannot create a public runbook as a project scoped admin.');
  return { owner: project };
}
/** A public runbook has no owner. */
function ownerAfter(patched: Readonly<Values>, patch: readonly PatchOperation[], before: RunbookRecord): unknown {
  const [owners, publics] = [valuesAt(patch, '/owner'), valuesAt(patch, '/public')];
  if (owners.length > 0 && (publics.length > 0 ? publics[0] : before.public))
    throw new Fault('PatchError', { patch: repr(patch), reason: 'There cannot be an owner for a public runbook' });
  return publics.length > 0 && owners.length === 0 ? null : patched['owner'];
}

const PATCH_POLICIES = [
  ['/owner', 'runbook:update:owner'],
  ['/public', 'runbook:update:public'],
] as const;

/** The policies of a patch. */
function policiesOf(patch: readonly PatchOperation[]): readonly string[] {
  const named = patch.map(({ path }) => PATCH_POLICIES.find(([start]) => path.startsWith(start))?.[1]);
  const own = named.filter((policy) => policy !== undefined);
  return own.length === patch.length && patch.length > 0 ? own : [...own, 'runbook:update'];
}

/** Before this version, the name of a new runbook must be a trait. */
const TRAITS_SINCE = 112;
function namedByTrait({ minor }: Pick<Request, 'minor'>, { document }: ApiContext): Variant {
  const trait = document.schemas['Traits']!.properties!['traits']!.items!;
  const known = document.fields('Runbook').filter(({ create, gate }) => create && isGateOpen(gate, minor));
  return { key: 'named by a trait', rows: known.map((row) => (row.name === 'name' ? { ...row, schema: trait } : row)) };
}

type NewRunbook = Omit<Present<Inputs['Runbook']>, 'owner'> & { readonly owner?: string | null };
type RunbookQuery = RequestOf<'listRunbooks'>['query'];
const RUNBOOKS: Resource<RunbookRecord, 'Runbook', NewRunbook, RunbookQuery> = {
  schema: 'Runbook',
  path: 'runbooks',
  list: 'runbooks',
  bodyLabel: 'runbook',
  ident: 'runbook_ident',
  policy: 'runbook',
  brief: ['uuid', 'name'],
  unsortable: ['extra', 'steps', 'traits'],
  computed: [],
  strict: false,
  ignoresLater: true,
  table: ({ store }) => store.runbooks,
  projects: async ({ owner }) => ({ owner, lessee: null }),
  projectOf: (request, context) => projectOfList(request, context, 'runbook', request.query.project),
  // Ironic compares the owner with this boolean, so that only public runbooks remain.
  filter: async ({ query }, _context, project) => ({
    where: query.project === true ? { public: true } : undefined,
    ownedOrPublic: project,
  }),
  values: { steps: ({ steps }) => masked(steps), traits: ({ traits }) => [...traits].sort() },
  check(values, { caller }, context) {
    checkStepList(values.steps);
    checkStepPolicies(values.steps, { caller }, context);
    return { ...values, ...ownerFor(caller, values) };
  },
  create: (record, { store }) => store.runbooks.create({ ...record, steps: stored(record.steps) }),
  checkPatch: (patch, { minor }, { document }) =>
    checkPaths(
      patch,
      document.fields('Runbook').filter(({ gate }) => isGateOpen(gate, minor)),
    ),
  find: async (patch, request, context) => ({
    record: await recordOf(RUNBOOKS, 'runbook:update', request, context, () => policiesOf(patch)),
  }),
  patched: (values, { record: before }, patch) => ({
    ...values,
    ...('owner' in values ? { owner: ownerAfter(values, patch, before) } : {}),
    ...('steps' in values ? { steps: pruned(values['steps']) } : {}),
  }),
  checkPatched(values, { record: before }, _patch, { caller }, context) {
    checkStepList(values.steps);
    checkStepPolicies(values.steps, { caller }, context);
    return { ...values, steps: merged(before.steps, stored(values.steps)) };
  },
  update: ({ uuid }, changes, { store }) => store.runbooks.update(uuid, changes),
  remove: ({ uuid }, { store }) => store.runbooks.remove(uuid),
};

const USAGE =
  'A single runbook trait may be added via PUT /v1/runbooks/<runbook identifier>/traits/<trait> with no body, or all runbook traits may be replaced via PUT /v1/runbooks/<runbook identifier>/traits with the list of traits specified in the request body.';

async function runbookOf(request: RequestOn<'runbook_ident'>, context: ApiContext, policy: string): Promise<RunbookRecord> {
  const ident = request.params.runbook_ident;
  if (!isLogicalName(ident) && !isUuid(ident)) throw new Fault('InvalidUuidOrName', { name: ident });
  return recordOf(RUNBOOKS, policy, request, context);
}
/** @param after maps the current traits to the new ones */
async function changeTraits(
  request: RequestOn<'runbook_ident'>,
  context: ApiContext,
  after: (before: readonly string[]) => readonly string[],
): Promise<Answer> {
  const { uuid, traits } = await runbookOf(request, context, 'runbook:update');
  await context.store.runbooks.update(uuid, { traits: [...new Set(after(traits))] });
  return { status: 204 };
}
async function replaceRunbookTraits(request: RequestOf<'replaceRunbookTraits'>, context: ApiContext): Promise<Answer> {
  const { traits } = request.body;
  return changeTraits(request, context, () => {
    if (!traits) throw invalid(USAGE);
    return traits;
  });
}
async function addRunbookTrait(request: RequestOf<'addRunbookTrait'>, context: ApiContext): Promise<Answer> {
  const { params, base, body } = request;
  const { trait } = params;
  checkTrait(trait, context);
  const answer = await changeTraits(request, context, (before) => {
    if (body.traits !== undefined) throw invalid(USAGE);
    return [...before, trait];
  });
  return { ...answer, headers: location(base, `runbooks/${params.runbook_ident}/traits/${trait}`) };
}

export const runbookHandlers = {
  listRunbooks: (request, context) => listOf(RUNBOOKS, request, context),
  createRunbook: (request, context) =>
    createOf(RUNBOOKS, request, context, request.minor < TRAITS_SINCE ? namedByTrait(request, context) : undefined),
  showRunbook: (request, context) => showOf(RUNBOOKS, request, context, (runbook) => (runbook.public ? [] : ['runbook:get'])),
  updateRunbook: (request, context) => updateOf(RUNBOOKS, request, context),
  deleteRunbook: (request, context) => removeOf(RUNBOOKS, request, context),
  listRunbookTraits: async (request, context) => ({
    status: 200,
    body: { traits: [...(await runbookOf(request, context, 'runbook:get')).traits].sort() },
  }),
  replaceRunbookTraits,
  addRunbookTrait,
  removeRunbookTrait: (request, context) =>
    changeTraits(request, context, (before) => before.filter((candidate) => candidate !== request.params.trait)),
  removeRunbookTraits: (request, context) => changeTraits(request, context, () => []),
} satisfies SomeHandlers;
