/** /v1/runbooks: steps for cleaning and servicing that an operator has approved for nodes, by traits. */
import { Fault } from '../../model/errors';
import { isLogicalName, isUuid } from '../../model/idents';
import { valuesAt, type PatchOperation } from '../../model/patch';
import { repr } from '../../model/python';
import type { NewOf, RunbookRecord } from '../../model/records';
import type { Values } from '../resource/fields';
import { location } from '../resource/links';
import { createOf, listOf, removeOf, showOf, updateOf, type Resource } from '../resource/resource';
import type { Answer, Handlers, Request, Rooms, Who } from '../resource/routes';
import { checkDuplicates, masked, merged, pruned, stored, type SaidStep } from '../resource/steps';
import { checkStepPolicies } from '../resource/step-policies';
import { checkTrait } from '../nodes/traits';

const stepsOf = (values: Values): readonly SaidStep[] => values['steps'] as readonly SaidStep[];

/** Whoever does not speak for the whole system makes private ones of the own project. */
function ownerFor({ system, project }: Who, values: Values): Values {
  if (system) return {};
  const refuse = (message: string): never => {
    throw new Fault('Invalid', { message });
  };
  if (values['owner'] && values['owner'] !== project)
    refuse('Cannot create a runbook as a project scoped admin with an owner other than your own project.');
  if (project && values['public'] === true) refuse('Cannot create a public runbook as a project scoped admin.');
  return { owner: project };
}
/** A public runbook belongs to nobody. */
function ownerAfter(patched: Values, patch: readonly PatchOperation[], before: RunbookRecord): unknown {
  const [owners, publics] = [valuesAt(patch, '/owner'), valuesAt(patch, '/public')];
  if (owners.length > 0 && (publics.length > 0 ? publics[0] : before.public))
    throw new Fault('PatchError', { patch: repr(patch), reason: 'There cannot be an owner for a public runbook' });
  return publics.length > 0 && owners.length === 0 ? null : patched['owner'];
}

const RUNBOOKS: Resource<RunbookRecord> = {
  schema: 'Runbook',
  older: { before: 112, schema: 'RunbookNamedByTrait' },
  path: 'runbooks',
  list: 'runbooks',
  said: 'runbook',
  ident: 'runbook_ident',
  policy: 'runbook',
  brief: ['uuid', 'name'],
  unsortable: ['extra', 'steps', 'traits'],
  computed: [],
  strict: false,
  table: ({ store }) => store.runbooks,
  // Ironic compares the owner with the parameter's value, which is a boolean: the public ones remain.
  filter: ({ query }) => Promise.resolve(query['project'] === true ? { public: true } : {}),
  values: { steps: ({ steps }) => masked(steps), traits: ({ traits }) => [...traits].sort() },
  patched: (patched, patch, before) =>
    Promise.resolve({
      ...patched,
      ...('owner' in patched ? { owner: ownerAfter(patched, patch, before) } : {}),
      ...('steps' in patched ? { steps: pruned(patched['steps']) } : {}),
    }),
  check(values, { who }, rooms, before) {
    checkDuplicates(stepsOf(values));
    checkStepPolicies(stepsOf(values), { who }, rooms);
    return before ? { ...values, steps: merged(before.steps, stored(stepsOf(values))) } : { ...values, ...ownerFor(who, values) };
  },
  create: (record, { store }) => store.runbooks.create({ ...record, steps: stored(stepsOf(record)) } as NewOf<RunbookRecord, 'name'>),
  update: ({ uuid }, changes, { store }) => store.runbooks.update(uuid, changes),
  remove: ({ uuid }, { store }) => store.runbooks.remove(uuid),
};

const USAGE =
  'A single runbook trait may be added via PUT /v1/runbooks/<runbook identifier>/traits/<trait> with no body, or all runbook traits may be replaced via PUT /v1/runbooks/<runbook identifier>/traits with the list of traits specified in the request body.';

async function runbookOf({ params }: Request, { store }: Rooms): Promise<RunbookRecord> {
  const ident = params['runbook_ident']!;
  if (!isLogicalName(ident) && !isUuid(ident)) throw new Fault('InvalidUuidOrName', { name: ident });
  return store.runbooks.find(ident);
}
/** @param after the traits that the runbook has then, of those that it has now */
async function changeTraits(request: Request, rooms: Rooms, after: (before: readonly string[]) => readonly string[]): Promise<Answer> {
  const { uuid, traits } = await runbookOf(request, rooms);
  await rooms.store.runbooks.update(uuid, { traits: [...new Set(after(traits))] });
  return { status: 204 };
}
const traitsSaid = ({ body }: Request): readonly string[] | undefined => (body as { traits?: readonly string[] } | null)?.traits;

async function replaceRunbookTraits(request: Request, rooms: Rooms): Promise<Answer> {
  const said = traitsSaid(request);
  return changeTraits(request, rooms, () => {
    if (!said) throw new Fault('Invalid', { message: USAGE });
    return said;
  });
}
async function addRunbookTrait(request: Request, rooms: Rooms): Promise<Answer> {
  const { params, base } = request;
  const trait = params['trait']!;
  checkTrait(trait, rooms);
  const answer = await changeTraits(request, rooms, (before) => {
    if (traitsSaid(request) !== undefined) throw new Fault('Invalid', { message: USAGE });
    return [...before, trait];
  });
  return { ...answer, headers: location(base, `runbooks/${params['runbook_ident']!}/traits/${trait}`) };
}

export const runbookHandlers: Handlers = {
  listRunbooks: (request, rooms) => listOf(RUNBOOKS, request, rooms),
  createRunbook: (request, rooms) => createOf(RUNBOOKS, request, rooms),
  showRunbook: (request, rooms) => showOf(RUNBOOKS, request, rooms),
  updateRunbook: (request, rooms) => updateOf(RUNBOOKS, request, rooms),
  deleteRunbook: (request, rooms) => removeOf(RUNBOOKS, request, rooms),
  listRunbookTraits: async (request, rooms) => ({ status: 200, body: { traits: [...(await runbookOf(request, rooms)).traits].sort() } }),
  replaceRunbookTraits,
  addRunbookTrait,
  removeRunbookTrait: (request, rooms) => changeTraits(request, rooms, (before) => before.filter((one) => one !== request.params['trait'])),
  removeRunbookTraits: (request, rooms) => changeTraits(request, rooms, () => []),
};
