/** /v1/inspection_rules: actions on an inspected node whose data fulfils the conditions. */
import { invalid, Fault } from '../../model/errors';
import { checkedRule, type RuleStep } from '../../model/rules/inspection-rules';
import { repr } from '../../model/python';
import type { InspectionRuleRecord, JsonObject } from '../../model/records';
import type { Values } from '../resource/fields';
import { checkDirection, handlersOf, type Resource } from '../resource/resource';
import type { Handlers, Request } from '../resource/handler';

const UNSORTABLE = ['actions', 'conditions'];

function checkQuery(request: Request): void {
  checkDirection(request);
  const key = request.query['sort_key'] as string;
  if (!UNSORTABLE.includes(key)) return;
  const known = repr({ type: 'string', enum: UNSORTABLE });
  throw new Fault('InvalidParameterValue', { message: `Schema error: ${repr(key)} should not be valid under ${known}` });
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

const RULES: Resource<InspectionRuleRecord> = {
  schema: 'InspectionRule',
  path: 'inspection_rules',
  // This path does not exist, but Ironic's links have it.
  linked: 'inspection',
  list: 'inspection_rules',
  bodyLabel: '',
  ident: 'inspection_rule_uuid',
  policy: 'inspection_rule',
  brief: ['uuid', 'priority', 'phase', 'description'],
  unsortable: [],
  computed: [],
  strict: false,
  lenient: true,
  checkQuery,
  // Ironic repeats the phase in the link to the next page, but does not filter by it.
  next: ({ query }) => [['filters', repr(query['phase'] ? { phase: query['phase'] } : {})]],
  table: ({ store }) => store.inspectionRules,
  values: { conditions: partsOf('conditions', shownCondition), actions: partsOf('actions', shownAction) },
  patched(patched, patch, before) {
    // A sensitive rule stays sensitive.
    if (before.sensitive && patched['sensitive'] !== true)
      throw new Fault('PatchError', { patch: repr(patch), reason: 'Inspection rules cannot have the sensitive flag unset.' });
    return Promise.resolve(patched);
  },
  check(values, { body }, _context, before) {
    if (before && values['uuid'] !== before.uuid) throw new Fault('InspectionRuleNotFound', { rule: String(values['uuid']) });
    // A new rule may have no phase, but not a null phase.
    const { phase } = before ? values : (body as Values);
    const { conditions = [], actions, priority } = values as { conditions?: RuleStep[]; actions: RuleStep[]; priority?: number };
    const checked = checkedRule({ conditions, actions, phase, priority });
    const [first, ...more] = checked.wrong;
    if (first !== undefined) throw invalid(more.length === 0 ? first : `Multiple validation errors occurred: ${checked.wrong.join('; ')}`);
    const steps = (list: readonly RuleStep[]) => list as unknown as readonly JsonObject[];
    return { ...values, conditions: steps(checked.conditions), actions: steps(checked.actions) };
  },
  create: (record, { store }) => store.inspectionRules.create({ phase: 'main', ...record }),
  update: ({ uuid }, changes, { store }) => store.inspectionRules.update(uuid, changes),
  remove: ({ uuid }, { store }) => store.inspectionRules.remove(uuid),
};

export const inspectionRuleHandlers: Handlers = handlersOf(RULES);
