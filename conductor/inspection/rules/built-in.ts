/** [inspection_rules]built_in_rules: a YAML file with built-in rules. */
import { readFile } from 'node:fs/promises';
import { parse } from 'yaml';
import { reasonOf } from '../../../model/errors';
import { ACTIONS, checkedRule, operatorOf, OPERATORS, type RuleStep, type InspectionRule } from '../../../model/rules/inspection-rules';
import { isObject, type JsonObject } from '../../../model/json';

function stepsOf(rule: JsonObject, part: 'conditions' | 'actions', known: object): readonly RuleStep[] {
  const given = rule[part] ?? [];
  if (!Array.isArray(given)) throw new Error(`${part} is not a list`);
  for (const step of given as readonly unknown[]) {
    if (!isObject(step) || typeof step['op'] !== 'string') throw new Error(`each of ${part} needs an op`);
    if (!Object.hasOwn(known, operatorOf(step['op']))) throw new Error(`unknown op ${step['op']} in ${part}`);
    if (typeof step['args'] !== 'object' || step['args'] === null) throw new Error(`${step['op']} needs args`);
  }
  return given as readonly RuleStep[];
}
function ruleOf(given: unknown, at: number): InspectionRule {
  if (!isObject(given)) throw new Error('it is not an object');
  const { uuid = `00000000-0000-0000-0000-${at.toString(16).padStart(12, '0')}`, priority = 0, phase = 'main', sensitive = false } = given;
  const rule = { conditions: stepsOf(given, 'conditions', OPERATORS), actions: stepsOf(given, 'actions', ACTIONS) };
  if (rule.actions.length === 0) throw new Error('it has no actions');
  if (typeof uuid !== 'string' || !Number.isInteger(priority) || typeof sensitive !== 'boolean')
    throw new Error('uuid, priority or sensitive is of the wrong type');
  // Built-in rules may use priorities outside the range of clients' rules.
  const { conditions, actions, wrong } = checkedRule({ ...rule, phase });
  if (wrong.length > 0) throw new Error(wrong.join('; '));
  return { uuid, priority: priority as number, phase: phase as string, sensitive, conditions, actions };
}

/** @throws Error for the operator, which names the file and the rule */
export async function readBuiltInRules(path: string | null): Promise<readonly InspectionRule[]> {
  if (path === null) return [];
  const fail = (what: string, error: unknown): never => {
    throw new Error(`[inspection_rules]built_in_rules: ${path}: ${what}${reasonOf(error)}`, { cause: error });
  };
  const text = await readFile(path, 'utf8').catch((error: unknown) => fail('', error));
  let list: unknown;
  try {
    list = parse(text) as unknown;
  } catch (error) {
    fail('', error);
  }
  if (!Array.isArray(list)) return fail('', new Error('it must contain a list of rules'));
  return list.map((item: unknown, at) => {
    try {
      return ruleOf(item, at);
    } catch (error) {
      return fail(`rule ${at + 1}: `, error);
    }
  });
}
