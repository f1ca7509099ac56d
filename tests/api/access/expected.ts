/** What a caller may do by the rows of policy/rules.ts: an evaluation that shares no code with the one of the server. */
import { POLICIES } from '../../../policy/rules';
import { SERVICES, type Scope } from './callers';

/** The values that rules name: `node.owner` and so on. */
type Values = Readonly<Record<string, string | null>>;
const ROWS = new Map(POLICIES.map((row) => [row.name.replace(/^baremetal:/, ''), row]));

function evaluateCheck(check: string, caller: Scope, values: Values): boolean {
  if (check === '!') return false;
  const [kind = '', match = ''] = check.split(/:(.*)/s);
  if (kind === 'rule') return evaluate(ROWS.get(match.replace(/^baremetal:/, ''))!.check, caller, values);
  if (kind === 'role') return caller.roles.includes(match);
  if (kind === 'system_scope') return caller.system === true && match === 'all';
  if (check === 'project_name:%(config.service_project_name)s') return caller.project === SERVICES;
  const [, name] = /^%\((.+)\)s$/.exec(match) ?? [];
  if (kind !== 'project_id' || name === undefined) throw new Error(`the check ${check} is not known here`);
  const value = values[name] ?? null;
  return value !== null && value === caller.project;
}
/** Recursive descent over words: `or` below `and` below checks and parentheses. */
function evaluate(rule: string, caller: Scope, values: Values): boolean {
  const words = rule
    .replace(/(?<!%)\(|\)(?!s)/g, ' $& ')
    .split(/\s+/)
    .filter(Boolean);
  if (words.length === 0) return true;
  const check = (): boolean => {
    const word = words.shift()!;
    if (word !== '(') return evaluateCheck(word, caller, values);
    const inner = either();
    if (words.shift() !== ')') throw new Error(`the rule ${rule} cannot be read here`);
    return inner;
  };
  const both = (): boolean => {
    let all = check();
    while (words[0] === 'and') {
      words.shift();
      const next = check();
      all &&= next;
    }
    return all;
  };
  const either = (): boolean => {
    let any = both();
    while (words[0] === 'or') {
      words.shift();
      const next = both();
      any ||= next;
    }
    return any;
  };
  const result = either();
  if (words.length > 0) throw new Error(`the rule ${rule} cannot be read here`);
  return result;
}

/** @param owner and lessee of the resource; absent: the policy is asked without a resource */
export function may(caller: Scope, policy: string, owner: string | null = null, lessee: string | null = null): boolean {
  const row = ROWS.get(policy);
  if (!row) throw new Error(`there is no policy ${policy}`);
  const scope = caller.system ? 'system' : caller.domain === undefined ? 'project' : undefined;
  if (row.scopes.length > 0 && !row.scopes.some((candidate) => candidate === scope)) return false;
  const resources = ['node', 'allocation', 'runbook', 'snapshot', 'erasure'];
  const values: Record<string, string | null> = Object.fromEntries(resources.map((name) => [`${name}.owner`, owner]));
  return evaluate(row.check, caller, lessee === null ? values : { ...values, 'node.lessee': lessee, 'erasure.lessee': lessee });
}
