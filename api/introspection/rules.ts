/** /v1/rules of the introspection service. Their format differs from that of /v1/inspection_rules. */
import { invalid } from '../../model/errors';
import { checkedIntrospectionRule } from '../../model/rules/introspection-rules';
import { isUuid, newUuid } from '../../model/idents';
import { isObject } from '../../model/json';
import type { IntrospectionRuleRecord } from '../../model/records';
import type { Handlers } from './handler';

const MAX_SCOPE = 255;

const brief = ({ uuid, description, scope }: IntrospectionRuleRecord): object => ({
  uuid,
  description,
  scope,
  links: [{ href: `/v1/rules/${uuid}`, rel: 'self' }],
});
const detailed = (rule: IntrospectionRuleRecord): object => ({ ...brief(rule), conditions: rule.conditions, actions: rule.actions });

const textOrNull = (value: unknown, name: string): string | null => {
  if (value === undefined || value === null) return null;
  if (typeof value === 'string') return value;
  throw invalid(`Invalid ${name}: a string is expected`);
};

export const ruleHandlers = {
  listRules: async (_, { store }) => ({ status: 200, body: { rules: (await store.introspectionRules.list({})).map(brief) } }),
  createRule: async ({ json, minor }, { store, random }) => {
    const body = await json();
    if (!isObject(body)) throw invalid('Invalid data: expected a JSON object');
    const { uuid, conditions = [], actions = [] } = body;
    if (uuid && !isUuid(uuid)) throw invalid('Invalid UUID value');
    const scope = textOrNull(body['scope'], 'scope');
    if (scope !== null && scope.length > MAX_SCOPE)
      throw invalid(`Invalid scope: the length of the scope should be within ${MAX_SCOPE} characters`);
    const rule = await store.introspectionRules.create({
      ...checkedIntrospectionRule(conditions, actions),
      uuid: (uuid as string | undefined) || newUuid(random),
      description: textOrNull(body['description'], 'description'),
      scope,
    });
    return { status: minor < 6 ? 200 : 201, body: detailed(rule) };
  },
  removeRules: async (_, { store }) => {
    await store.introspectionRules.removeAll();
    return { status: 204 };
  },
  showRule: async ({ params }, { store }) => ({ status: 200, body: detailed(await store.introspectionRules.find(params.rule)) }),
  removeRule: async ({ params }, { store }) => {
    await store.introspectionRules.remove(params.rule);
    return { status: 204 };
  },
} satisfies Partial<Handlers>;
