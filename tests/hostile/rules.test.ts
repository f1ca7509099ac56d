/** Regular expressions of rules, on texts of machines: backtracking must not hold the event loop. */
import { readFileSync } from 'node:fs';
import { applyRules } from '../../conductor/inspection/rules/engine';
import { draftOf } from '../../conductor/inspection/rules/rule';
import { applyIntrospectionRules } from '../../conductor/introspection/rules';
import { silentLog } from '../../model/log';
import type { IntrospectionRuleRecord } from '../../model/records';
import { nodeRecord } from '../support/task';

const MAX_TURN_MS = 200;
/** Turns of the event loop during half a second. There was none while it worked itself. */
const LEAST_TURNS = 5;
/** CPU milliseconds of this thread, without those of the threads that it starts. */
const cpuMs = (): number => Number(readFileSync('/proc/self/schedstat', 'utf8').split(' ')[0]) / 1e6;
async function turnsOf(work: () => Promise<unknown>): Promise<{ readonly longest: number; readonly turns: number }> {
  let [longest, turns, before] = [0, -1, cpuMs()];
  const turn = (): void => {
    const now = cpuMs();
    longest = Math.max(longest, now - before);
    turns++;
    before = now;
  };
  const timer = setInterval(turn, 1);
  await work();
  turn();
  clearInterval(timer);
  return { longest, turns };
}

const effects = { log: silentLog, call: async () => {} };
const draftWith = (text: string) => draftOf(nodeRecord({}), [], { interfaces: [{ name: text, mac_address: '' }], disks: [] }, {});
const inspect = (regex: string, text: string, loop?: readonly unknown[]) =>
  applyRules(
    [
      {
        uuid: 'the-rule',
        priority: 0,
        phase: 'main',
        sensitive: false,
        actions: [],
        conditions: [
          { op: 'contains', args: { value: '{inventory[interfaces][0][name]}', regex }, ...(loop ? { loop, multiple: 'all' } : {}) },
        ],
      },
    ],
    draftWith(text),
    { 'inspection_rules.mask_secrets': 'never' },
    effects,
  );

const BACKTRACKING: readonly (readonly [what: string, regex: string, text: string])[] = [
  ['nested repetitions', '^(a+)+$', `${'a'.repeat(40)}b`],
  ['alternatives that overlap', '^(a|aa)+$', `${'a'.repeat(60)}b`],
  ['a repeated wildcard', '.*a.*b.*c.*d$', 'abc'.repeat(20_000)],
  ['a repeated back reference', '^(?P<x>a+)(?P=x)+b$', 'a'.repeat(50_000)],
  ['groups that take long to compile', `^(a+)+${'x?'.repeat(1500)}$`, `${'a'.repeat(40)}b`],
];
it.each(BACKTRACKING)('%s end at the time limit, and leave the event loop free', async (_, regex, text) => {
  const work = () => expect(inspect(regex, text)).rejects.toThrow('takes too long');
  const { longest, turns } = await turnsOf(work);
  expect(longest).toBeLessThan(MAX_TURN_MS);
  expect(turns).toBeGreaterThanOrEqual(LEAST_TURNS);
  await inspect('^a', text);
});

it.each([
  ['10001 characters', 'a'.repeat(10_001), 'more than 10000 characters'],
  ['101 nested groups', `${'('.repeat(101)}a${')+'.repeat(101)}`, 'more than 100 groups'],
  ['a syntax that JavaScript lacks', '(?>a)', 'Invalid group'],
])('an expression of %s is refused', async (_, regex, message) => {
  await expect(inspect(regex, 'a')).rejects.toThrow(message);
});

it('a rule of the introspection service leaves the event loop free', async () => {
  const rule = {
    uuid: 'the-rule',
    scope: null,
    conditions: [{ op: 'matches', field: 'name', value: '(a+)+', multiple: 'any' }],
    actions: [],
  };
  const rules = [rule] as unknown as readonly IntrospectionRuleRecord[];
  const work = () =>
    expect(applyIntrospectionRules(rules, draftWith(''), { name: `${'a'.repeat(40)}b` }, effects)).rejects.toThrow('takes too long');
  const { longest, turns } = await turnsOf(work);
  expect(longest).toBeLessThan(MAX_TURN_MS);
  expect(turns).toBeGreaterThanOrEqual(LEAST_TURNS);
});

it('thousands of tests in a loop, which take a millisecond each, leave the event loop free', async () => {
  const loop = Array.from({ length: 1000 }, (_, at) => at);
  expect((await turnsOf(() => inspect('(a*b)?c{item}|a$', 'a'.repeat(200), loop))).longest).toBeLessThan(MAX_TURN_MS);
});

it('a long text that needs a linear scan is tested in full', async () => {
  const text = `${'a'.repeat(4_000_000)}b`;
  expect((await turnsOf(() => inspect('b$', text))).longest).toBeLessThan(MAX_TURN_MS);
});
