/** /v1/runbooks: steps for cleaning and servicing. Traits approve them for nodes. */
import { Fault } from '../../model/errors';
import { isLogicalName, isUuid } from '../../model/idents';
import { valuesAt, type PatchOperation } from '../../model/patch';
import { repr } from '../../model/python';
import type { NewOf, RunbookRecord } from '../../model/records';
import type { Values } from '../resource/fields';
import { location } from '../resource/links';
import { projectOfList } from '../resource/access';
import { handlersOf, recordOf, type Resource } from '../resource/resource';
import type { Caller } from '../../policy/caller';
import type { Answer, Handlers, Request, ApiContext } from '../resource/handler';
import { checkDuplicates, masked, merged, pruned, stored, type StepInput } from '../resource/steps';
import { checkStepPolicies } from '../resource/step-policies';
import { checkTrait } from '../nodes/traits';

const stepsOf = (values: Values): readonly StepInput[] => values['steps'] as readonly StepInput[];

/** Project-scoped callers create private runbooks of their own project. */
function ownerFor({ system, project }: Caller, values: Values): Values {
  if (system) return {};
  const refuse = (message: string): never => {
    throw new Fault('Invalid', { message });
  };
  if (values['owner'] && values['owner'] !== project)
    refuse('Cannot create a runbook as a project scoped admin with an owner other than your own project.');
  if (project && values['public'] === true) refuse('Cannot create a public runbook as a project scoped admin.');
  return { owner: project };
}
/** A public runbook has no owner. */
function ownerAfter(patched: Values, patch: readonly PatchOperation[], before: RunbookRecord): unknown {
  const [owners, publics] = [valuesAt(patch, '/owner'), valuesAt(patch, '/public')];
  if (owners.length > 0 && (publics.length > 0 ? publics[0] : before.public))
    throw new Fault('PatchError', { patch: repr(patch), reason: 'There cannot be an owner for a public runbook' });
  return publics.length > 0 && owners.length === 0 ? null : patched['owner'];
}

const PATCH_POLICIES = [
  ['/owner', 'runbook:update:owner'],
  ['/public', 'runbook:update:public'],
] as const;

const RUNBOOKS: Resource<RunbookRecord> = {
  schema: 'Runbook',
  older: { before: 112, schema: 'RunbookNamedByTrait' },
  path: 'runbooks',
  list: 'runbooks',
  bodyLabel: 'runbook',
  ident: 'runbook_ident',
  policy: 'runbook',
  brief: ['uuid', 'name'],
  unsortable: ['extra', 'steps', 'traits'],
  computed: [],
  strict: false,
  table: ({ store }) => store.runbooks,
  projects: async ({ owner }) => ({ owner, lessee: null }),
  isPublic: (runbook) => runbook.public,
  ownedOrPublic: (request, context) => projectOfList(request, context, 'runbook', request.query['project'] as boolean | null | undefined),
  policiesOf(patch) {
    const named = patch.map(({ path }) => PATCH_POLICIES.find(([start]) => path.startsWith(start))?.[1]);
    const own = named.filter((policy) => policy !== undefined);
    return own.length === patch.length && patch.length > 0 ? own : [...own, 'runbook:update'];
  },
  // Ironic compares the owner with this boolean, so that only public runbooks remain.
  filter: ({ query }) => Promise.resolve(query['project'] === true ? { public: true } : {}),
  values: { steps: ({ steps }) => masked(steps), traits: ({ traits }) => [...traits].sort() },
  patched: (patched, patch, before) =>
    Promise.resolve({
      ...patched,
      ...('owner' in patched ? { owner: ownerAfter(patched, patch, before) } : {}),
      ...('steps' in patched ? { steps: pruned(patched['steps']) } : {}),
    }),
  check(values, { caller }, context, before) {
    checkDuplicates(stepsOf(values));
    checkStepPolicies(stepsOf(values), { caller }, context);
    return before ? { ...values, steps: merged(before.steps, stored(stepsOf(values))) } : { ...values, ...ownerFor(caller, values) };
  },
  create: (record, { store }) => store.runbooks.create({ ...record, steps: stored(stepsOf(record)) } as NewOf<RunbookRecord, 'name'>),
  update: ({ uuid }, changes, { store }) => store.runbooks.update(uuid, changes),
  remove: ({ uuid }, { store }) => store.runbooks.remove(uuid),
};

const USAGE =
  'A single runbook trait may be added via PUT /v1/runbooks/<runbook identifier>/traits/<trait> with no body, or all runbook traits may be replaced via PUT /v1/runbooks/<runbook identifier>/traits with the list of traits specified in the request body.';

async function runbookOf(request: Request, context: ApiContext, policy: string): Promise<RunbookRecord> {
  const ident = request.params['runbook_ident']!;
  if (!isLogicalName(ident) && !isUuid(ident)) throw new Fault('InvalidUuidOrName', { name: ident });
  return recordOf(RUNBOOKS, policy, request, context);
}
/** @param after maps the current traits to the new ones */
async function changeTraits(
  request: Request,
  context: ApiContext,
  after: (before: readonly string[]) => readonly string[],
): Promise<Answer> {
  const { uuid, traits } = await runbookOf(request, context, 'runbook:update');
  await context.store.runbooks.update(uuid, { traits: [...new Set(after(traits))] });
  return { status: 204 };
}
const traitsInBody = ({ body }: Request): readonly string[] | undefined => (body as { traits?: readonly string[] } | null)?.traits;

async function replaceRunbookTraits(request: Request, context: ApiContext): Promise<Answer> {
  const traits = traitsInBody(request);
  return changeTraits(request, context, () => {
    if (!traits) throw new Fault('Invalid', { message: USAGE });
    return traits;
  });
}
async function addRunbookTrait(request: Request, context: ApiContext): Promise<Answer> {
  const { params, base } = request;
  const trait = params['trait']!;
  checkTrait(trait, context);
  const answer = await changeTraits(request, context, (before) => {
    if (traitsInBody(request) !== undefined) throw new Fault('Invalid', { message: USAGE });
    return [...before, trait];
  });
  return { ...answer, headers: location(base, `runbooks/${params['runbook_ident']!}/traits/${trait}`) };
}

export const runbookHandlers: Handlers = {
  ...handlersOf(RUNBOOKS),
  listRunbookTraits: async (request, context) => ({
    status: 200,
    body: { traits: [...(await runbookOf(request, context, 'runbook:get')).traits].sort() },
  }),
  replaceRunbookTraits,
  addRunbookTrait,
  removeRunbookTrait: (request, context) =>
    changeTraits(request, context, (before) => before.filter((one) => one !== request.params['trait'])),
  removeRunbookTraits: (request, context) => changeTraits(request, context, () => []),
};
