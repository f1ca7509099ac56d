/** /v1/inspection_rules: actions on an inspected node whose data fulfils the conditions. */
import { Fault, invalid, invalidParameter } from '../../model/errors';
import { checkedRule, type RuleStep } from '../../model/rules/inspection-rules';
import { isObject } from '../../model/json';
import { repr } from '../../model/python';
import type { Inputs } from '../schema/operations';
import type { InspectionRuleRecord } from '../../model/records';
import { linksTo } from '../pipeline/present';
import { checkDirection, createOf, listOf, removeOf, showOf, updateOf, type Resource } from '../pipeline/resource';
import type { ApiContext, RequestOf, SomeHandlers } from '../pipeline/handler';

const UNSORTABLE = ['actions', 'conditions'];

/** This path does not exist, but Ironic's links have it. */
const LINKED = 'inspection';

function checkQuery({ query: { sort_dir: direction, sort_key: key } }: RequestOf<'listInspectionRules'>): void {
  checkDirection(direction);
  if (!UNSORTABLE.includes(key)) return;
  const known = repr({ type: 'string', enum: UNSORTABLE });
  throw invalidParameter(`Schema error: ${repr(key)} should not be valid under ${known}`);
}

const isFilled = (value: unknown): boolean => value !== null && typeof value === 'object' && Object.keys(value).length > 0;
const looped = ({ loop }: RuleStep): object => (isFilled(loop) ? { loop } : {});
const shownAction = (step: RuleStep): object => ({ op: step.op, args: step.args, ...looped(step) });
const shownCondition = (step: RuleStep): object => ({
  ...shownAction(step),
  ...(isFilled(step.loop) ? { multiple: step.multiple ?? 'any' } : {}),
});
/** Conditions and actions of sensitive rules are never shown. */
const partsOf =
  (name: 'conditions' | 'actions', shown: (step: RuleStep) => object) =>
  (rule: InspectionRuleRecord): unknown =>
    rule.sensitive ? null : (rule[name] as unknown as readonly RuleStep[]).map(shown);

/** Undefined where the body of a new rule has no phase; it may not be null. */
function checked<Rule extends Inputs['InspectionRule']>(values: Rule, phase: unknown) {
  const { conditions = [], actions, priority } = values;
  const { wrong, ...steps } = checkedRule({ conditions, actions, phase, priority });
  const [first, ...more] = wrong;
  if (first !== undefined) throw invalid(more.length === 0 ? first : `Multiple validation errors occurred: ${wrong.join('; ')}`);
  return { ...values, conditions: steps.conditions, actions: steps.actions };
}

const RULES: Resource<InspectionRuleRecord, 'InspectionRule'> = {
  schema: 'InspectionRule',
  path: 'inspection_rules',
  list: 'inspection_rules',
  bodyLabel: '',
  ident: 'inspection_rule_uuid',
  policy: 'inspection_rule',
  brief: ['uuid', 'priority', 'phase', 'description'],
  unsortable: [],
  computed: [],
  strict: false,
  table: ({ store }) => store.inspectionRules,
  values: {
    links: ({ uuid }, { base }) => linksTo(base, `${LINKED}/${uuid}`),
    conditions: partsOf('conditions', shownCondition),
    actions: partsOf('actions', shownAction),
  },
  check: (values, { body }) => checked(values, isObject(body) ? body['phase'] : undefined),
  create: (record, { store }) => store.inspectionRules.create({ phase: 'main', ...record }),
  // A patch may name any field. Changes of fields that are not patchable are ignored.
  checkPatch: () => undefined,
  patched(values, { record: before }, patch) {
    // A sensitive rule stays sensitive.
    if (before.sensitive && values['sensitive'] !== true)
      throw new Fault('PatchError', { patch: repr(patch), reason: 'Inspection rules cannot have the sensitive flag unset.' });
    return values;
  },
  checkPatched(values, { record: before }) {
    if (values.uuid !== before.uuid) throw new Fault('InspectionRuleNotFound', { rule: String(values.uuid) });
    return checked(values, values.phase);
  },
  update: ({ uuid }, changes, { store }) => store.inspectionRules.update(uuid, changes),
  remove: ({ uuid }, { store }) => store.inspectionRules.remove(uuid),
};

function listRules(request: RequestOf<'listInspectionRules'>, context: ApiContext) {
  checkQuery(request);
  const { phase } = request.query;
  // Ironic repeats the phase in the link to the next page, but does not filter by it.
  return listOf(RULES, request, context, { path: LINKED, first: [['filters', repr(phase ? { phase } : {})]] });
}

export const inspectionRuleHandlers = {
  listInspectionRules: listRules,
  createInspectionRule: (request, context) => createOf(RULES, request, context),
  showInspectionRule: (request, context) => showOf(RULES, request, context),
  updateInspectionRule: (request, context) => updateOf(RULES, request, context),
  deleteInspectionRule: (request, context) => removeOf(RULES, request, context),
} satisfies SomeHandlers;
