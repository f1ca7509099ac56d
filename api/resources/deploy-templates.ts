/** /v1/deploy_templates: steps for the deployment of nodes whose instance has a trait with the template's name. */
import type { DeployTemplateRecord, NewOf, StepRecord } from '../../model/records';
import type { Values } from '../resource/fields';
import { handlersOf, type Resource } from '../resource/resource';
import type { Handlers } from '../resource/handler';
import { checkDuplicates, masked, merged, pruned, stored, type StepInput } from '../resource/steps';

const stepsOf = (values: Values): readonly StepInput[] => values['steps'] as readonly StepInput[];

const TEMPLATES: Resource<DeployTemplateRecord> = {
  schema: 'DeployTemplate',
  path: 'deploy_templates',
  list: 'deploy_templates',
  bodyLabel: 'template',
  ident: 'template_ident',
  policy: 'deploy_template',
  brief: ['uuid', 'name'],
  unsortable: ['extra', 'steps'],
  computed: [],
  strict: true,
  table: ({ store }) => store.deployTemplates,
  values: { steps: ({ steps }) => masked(steps) },
  patched: (patched) => Promise.resolve({ ...patched, ...('steps' in patched ? { steps: pruned(patched['steps']) } : {}) }),
  check(values, _request, _context, before) {
    checkDuplicates(stepsOf(values));
    // Ironic accepts `description`, but neither stores nor shows it.
    const columns = Object.fromEntries(Object.entries(values).filter(([name]) => name !== 'description'));
    return before ? { ...columns, steps: merged(before.steps, stored(stepsOf(values))) } : columns;
  },
  async create(record, { store }) {
    const created = await store.deployTemplates.create({ ...record, steps: stored(stepsOf(record)) } as NewOf<
      DeployTemplateRecord,
      'name'
    >);
    // The response has the numbers as the client wrote them.
    return { ...created, steps: stepsOf(record) as readonly StepRecord[] };
  },
  update: ({ uuid }, changes, { store }) => store.deployTemplates.update(uuid, changes),
  remove: ({ uuid }, { store }) => store.deployTemplates.remove(uuid),
};

export const deployTemplateHandlers: Handlers = handlersOf(TEMPLATES);
