/** /v1/default_configs, and GET /v1/nodes/X/default_config: default arguments of steps. An extension of this server. */
import { invalid } from '../../model/errors';
import type { DefaultConfigRecord } from '../../model/records';
import { differencesText, stepsProblem } from '../../model/rules/default-config';
import type { ConfigScope } from '../../store/store';
import type { ApiContext, RequestOf, SomeHandlers } from '../pipeline/handler';
import { nodeOf } from '../pipeline/node-find';
import { createOf, listOf, removeOf, showOf, updateOf, type Resource } from '../pipeline/resource';
import { checkStepPolicies } from '../pipeline/step-policies';
import { masked, stored } from '../pipeline/steps';
import type { Inputs } from '../schema/operations';

const SCOPES = ['resource_class', 'property', 'node_uuid'] as const;
type Scoped = Partial<Pick<Inputs['DefaultConfig'], keyof ConfigScope>>;
/** The scope of a new default config. Throws unless it is exactly one. */
function scopeOf(values: Scoped): ConfigScope {
  const scope = { resource_class: null, property: null, value: null, node_uuid: null };
  for (const name of [...SCOPES, 'value'] as const) Object.assign(scope, { [name]: values[name] ?? null });
  const named = SCOPES.filter((name) => scope[name] !== null);
  if (named.length !== 1) throw invalid(`one of ${SCOPES.join(', ')} is needed${named.length > 1 ? `, not ${named.join(' and ')}` : ''}`);
  if ((scope.property === null) !== (scope.value === null)) throw invalid('property and value need each other');
  return scope;
}
type Checked = Parameters<typeof checkStepPolicies>[1];
async function checkSteps(
  scope: ConfigScope,
  steps: Inputs['DefaultConfig']['steps'],
  request: Checked,
  context: ApiContext,
): Promise<DefaultConfigRecord['steps']> {
  const problem = stepsProblem(steps);
  if (problem !== undefined) throw invalid(problem);
  checkStepPolicies(steps, request, context);
  const records = stored(steps);
  await context.conductor.checkDefaultConfig(scope, records);
  return records;
}

type ConfigQuery = RequestOf<'listDefaultConfigs'>['query'];
type NewConfig = ConfigScope & Pick<DefaultConfigRecord, 'steps'> & { readonly uuid?: string; readonly description?: string | null };
const CONFIGS: Resource<DefaultConfigRecord, 'DefaultConfig', NewConfig, ConfigQuery> = {
  schema: 'DefaultConfig',
  path: 'default_configs',
  list: 'default_configs',
  bodyLabel: 'default config',
  ident: 'default_config_uuid',
  policy: 'default_config',
  unsortable: ['steps'],
  computed: [],
  strict: true,
  table: ({ store }) => store.defaultConfigs,
  filter: async ({ query: { resource_class, property, value, node_uuid } }) => ({
    where: {
      ...(resource_class === undefined ? {} : { resource_class }),
      ...(property === undefined ? {} : { property }),
      ...(value === undefined ? {} : { value }),
      ...(node_uuid === undefined ? {} : { node_uuid }),
    },
  }),
  values: { steps: ({ steps }) => masked(steps) },
  async check({ steps, ...values }, request, context) {
    const scope = scopeOf(values);
    return { ...values, ...scope, steps: await checkSteps(scope, steps, request, context) };
  },
  create: (record, { store }) => store.defaultConfigs.create(record),
  async checkPatched({ steps, ...values }, { record: scope }, _patch, request, context) {
    return { ...values, steps: await checkSteps(scope, steps, request, context) };
  },
  update: ({ uuid }, changes, { store }) => store.defaultConfigs.update(uuid, changes),
  remove: ({ uuid }, { store }) => store.defaultConfigs.remove(uuid),
};

export const defaultConfigHandlers = {
  listDefaultConfigs: (request, context) => listOf(CONFIGS, request, context),
  createDefaultConfig: (request, context) => createOf(CONFIGS, request, context),
  showDefaultConfig: (request, context) => showOf(CONFIGS, request, context),
  updateDefaultConfig: (request, context) => updateOf(CONFIGS, request, context),
  deleteDefaultConfig: (request, context) => removeOf(CONFIGS, request, context),
  showNodeDefaultConfig: async (request, context) => {
    const { uuid } = await nodeOf(request, context, 'node:default_config:get');
    const { rows, isRead } = await context.conductor.readDefaults(uuid);
    return { status: 200, body: { arguments: rows, differences: differencesText(rows), read_now: isRead } };
  },
} satisfies SomeHandlers;
