/** /v1/deploy_templates: steps for the deployment of nodes whose instance has a trait with the template's name. */
import type { DeployTemplateRecord } from '../../model/records';
import { createOf, listOf, removeOf, showOf, updateOf, type Resource } from '../pipeline/resource';
import type { SomeHandlers } from '../pipeline/handler';
import { asWritten, checkStepList, masked, merged, pruned, stored } from '../pipeline/steps';

const TEMPLATES: Resource<DeployTemplateRecord, 'DeployTemplate'> = {
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
  // Ironic accepts `description`, but neither stores nor shows it.
  check(values) {
    checkStepList(values.steps);
    const { description: _, ...columns } = values;
    return columns;
  },
  async create(record, { store }) {
    const created = await store.deployTemplates.create({ ...record, steps: stored(record.steps) });
    // The response has the numbers as the client wrote them.
    return { ...created, steps: asWritten(record.steps) };
  },
  patched: (values) => ({ ...values, ...('steps' in values ? { steps: pruned(values['steps']) } : {}) }),
  checkPatched({ steps, ...values }, { record: before }) {
    checkStepList(steps);
    return { ...values, steps: merged(before.steps, stored(steps)) };
  },
  update: ({ uuid }, changes, { store }) => store.deployTemplates.update(uuid, changes),
  remove: ({ uuid }, { store }) => store.deployTemplates.remove(uuid),
};

export const deployTemplateHandlers = {
  listDeployTemplates: (request, context) => listOf(TEMPLATES, request, context),
  createDeployTemplate: (request, context) => createOf(TEMPLATES, request, context),
  showDeployTemplate: (request, context) => showOf(TEMPLATES, request, context),
  updateDeployTemplate: (request, context) => updateOf(TEMPLATES, request, context),
  deleteDeployTemplate: (request, context) => removeOf(TEMPLATES, request, context),
} satisfies SomeHandlers;
