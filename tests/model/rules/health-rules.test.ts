/** The rules of health: what is refused, when alerts are raised and cleared, and how long nodes may be on the way. */
import type { AlertKey } from '../../../model/rules/health-alerts';
import { hardwareSignals } from '../../../model/rules/health-hardware';
import {
  BUILT_IN_RULES,
  healthRules,
  judged,
  observed,
  takeOpen,
  type HealthRule,
  type Signal,
  type SignalState,
  type Standings,
} from '../../../model/rules/health-rules';
import { overTime, timeLimits, type Stays } from '../../../model/rules/time-limits';

const NODE = { uuid: 'n', isOn: true };
const fan = (states: readonly SignalState[], more: Partial<Signal> = {}): Signal => ({
  source: 'sensor',
  kind: 'fan',
  subject: 'fan 3',
  states,
  ...more,
});
const rulesWith = (...given: readonly object[]): readonly HealthRule[] => healthRules(given);

describe('the rules of a site', () => {
  const good = { name: 'hot', kinds: ['temperature'], above: 60, unit: 'celsius', severity: 'warning' };
  it.each<[string, unknown, string]>([
    ['no list', { rules: 1 }, 'it must contain a list of rules'],
    ['no object', ['x'], 'rule 1: it is not an object'],
    ['a bad name', [{ ...good, name: 'Hot Spot' }], 'rule 1 (Hot Spot): name is lower-case'],
    ['an unknown member', [{ ...good, colour: 'red' }], 'unknown member colour'],
    ['an unknown kind', [{ ...good, kinds: ['fans'] }], 'kinds: unknown word "fans": use fan, temperature'],
    ['an unknown state', [{ ...good, states: ['bad'] }], 'states: unknown word "bad"'],
    ['an unknown source', [{ ...good, sources: ['sel'] }], 'sources: unknown word "sel"'],
    ['an unknown severity', [{ ...good, severity: 'info' }], 'severity: unknown word "info"'],
    ['no severity', [{ ...good, severity: undefined }], 'severity is needed'],
    ['nothing to match', [{ name: 'x', severity: 'warning' }], 'it needs states, above or below'],
    ['a text as a limit', [{ ...good, above: '60' }], 'above is a number'],
    ['a limit without a unit', [{ ...good, unit: undefined }], 'above and below need a unit'],
    ['a unit without a limit', [{ ...good, above: undefined, states: ['warning'] }], 'unit needs above or below'],
    [
      'a limit that no sensor exceeds',
      [{ ...good, above: 5000 }],
      'no sensor measures more than 1000 celsius, so that the rule never matches',
    ],
    ['a limit that all exceed', [{ ...good, above: -300 }], 'every value is above -300 celsius, so that the rule always matches'],
    ['limits that cover all', [{ ...good, above: 10, below: 20 }], 'above is less than below'],
    ['a limit of a source without values', [{ ...good, sources: ['log'] }], 'above and below need the source sensor'],
    ['no observation', [{ ...good, raise: 0 }], 'raise is a whole number of observations, from 1 to 1000'],
    ['half an observation', [{ ...good, clear: 1.5 }], 'clear is a whole number'],
    [
      'a count of single observations',
      [{ name: 'x', sources: ['hardware'], states: ['vanished'], severity: 'warning', raise: 2 }],
      'single observations',
    ],
    [
      'a state of another source',
      [{ name: 'x', states: ['vanished'], severity: 'warning' }],
      'the state vanished needs the source hardware',
    ],
    [
      'a kind of another source',
      [{ name: 'x', sources: ['system'], kinds: ['fan'], states: ['critical'], severity: 'warning' }],
      'only the kinds machine, memory, processor',
    ],
    [
      'machine as a kind of sensors',
      [{ name: 'x', kinds: ['machine'], states: ['critical'], severity: 'warning' }],
      'the kind machine needs the source system',
    ],
    ['control characters', [{ ...good, text: 'a\u001b[31m' }], 'text is a text of at most 255 characters'],
    ['a rule twice', [good, good], 'rule 2 (hot): another rule has this name'],
    ['an unknown rule to disable', [{ name: 'nothing', disabled: true }], 'there is no built-in rule nothing to disable'],
    ['too many', Array.from({ length: 201 }, () => good), 'it has more than 200 rules'],
  ])('are refused: %s', (_, given, text) => expect(() => healthRules(given)).toThrow(text));

  it('replace a built-in rule member by member, disable one, and add others', () => {
    const rules = rulesWith({ name: 'fan_failed', raise: 3 }, { name: 'fan_warning', disabled: true }, good);
    const builtIn = BUILT_IN_RULES.find(({ name }) => name === 'fan_failed')!;
    expect(rules.find(({ name }) => name === 'fan_failed')).toEqual({ ...builtIn, raise: 3 });
    expect(rules.some(({ name }) => name === 'fan_warning')).toBe(false);
    expect(rules.find(({ name }) => name === 'hot')).toMatchObject({ sources: ['sensor'], above: 60, unit: 'celsius', raise: 1, clear: 2 });
    expect(rules).toHaveLength(BUILT_IN_RULES.length);
  });
  it('keep built-in rules that only a value matches', () => {
    expect(rulesWith({ name: 'fan_stopped', raise: 5 }).find(({ name }) => name === 'fan_stopped')).toMatchObject({
      below: 1,
      unit: 'rpm',
      raise: 5,
    });
  });
});

it('the built-in rules have unique names, and would be accepted as rules of a site', () => {
  expect(new Set(BUILT_IN_RULES.map(({ name }) => name)).size).toBe(BUILT_IN_RULES.length);
  for (const { onlyOn, kinds, states, ...rule } of BUILT_IN_RULES)
    expect(() =>
      healthRules([{ ...rule, only_on: onlyOn, ...(kinds.length === 0 ? {} : { kinds }), ...(states.length === 0 ? {} : { states }) }]),
    ).not.toThrow();
});

describe('alerts', () => {
  const rules = rulesWith({ name: 'fan_failed', raise: 2, clear: 3 });
  const rounds = (standings: Standings, all: readonly (readonly SignalState[])[], node = NODE) =>
    all.map((states) => {
      const { raised, cleared } = observed(rules, standings, node, [fan(states)]);
      return [...raised.map(({ rule }) => `+${rule}`), ...cleared.map(({ rule }) => `-${rule}`)].join();
    });
  it('are raised after N matching observations in a row, and cleared after M others', () => {
    const standings: Standings = new Map();
    expect(rounds(standings, [['critical'], [], ['critical'], ['critical'], ['critical']])).toEqual(['', '', '', '+fan_failed', '']);
    expect(rounds(standings, [[], [], ['critical'], [], [], []])).toEqual(['', '', '', '', '', '-fan_failed']);
    expect(standings.size).toBe(0);
  });
  it('have the subject, the state and the value in their text', () => {
    const { raised } = observed(rulesWith(), new Map(), NODE, [fan(['critical'], { value: 240.123, unit: 'rpm' })]);
    expect(raised).toEqual([
      {
        node_uuid: 'n',
        source: 'sensor',
        rule: 'fan_failed',
        subject: 'fan 3',
        severity: 'critical',
        text: 'fan 3 has failed or is too slow (critical, 240.12 rpm)',
        until: null,
        reported_by: null,
      },
    ]);
  });
  it('put the names of parts into their text as they are', () => {
    const { raised } = observed(rulesWith(), new Map(), NODE, [fan(['critical'], { subject: '$& {state}' })]);
    expect(raised[0]!.text).toContain('$& ');
  });
  it('follow from values beyond limits, in the unit of the rule alone', () => {
    const hot = rulesWith({ name: 'hot', kinds: ['temperature'], above: 60, unit: 'celsius', severity: 'warning' });
    const at = (value: number, unit: string) =>
      observed(hot, new Map(), NODE, [{ source: 'sensor', kind: 'temperature', subject: 't', states: [], value, unit }]).raised.map(
        ({ rule }) => rule,
      );
    expect([at(61, 'celsius'), at(60, 'celsius'), at(140, 'fahrenheit')]).toEqual([['hot'], [], []]);
  });
  it('are neither raised nor cleared while the machine is off, if the rule needs it on', () => {
    const standings: Standings = new Map();
    expect(rounds(standings, [['critical'], ['critical']], { uuid: 'n', isOn: false })).toEqual(['', '']);
    expect(rounds(standings, [['critical'], ['critical']])).toEqual(['', '+fan_failed']);
    expect(rounds(standings, [[], [], [], []], { uuid: 'n', isOn: false })).toEqual(['', '', '', '']);
    expect(rounds(standings, [[], [], []])).toEqual(['', '', '-fan_failed']);
  });
  it('that are open in the database are not raised again, and are cleared', () => {
    const standings: Standings = new Map();
    const key: AlertKey = { node_uuid: 'n', source: 'sensor', rule: 'fan_failed', subject: 'fan 3' };
    takeOpen(healthRules([]), standings, [key]);
    expect(rounds(standings, [['critical'], ['critical'], []])).toEqual(['', '', '']);
    takeOpen(healthRules([]), standings, [key]);
    expect(rounds(standings, [[], []])).toEqual(['', '-fan_failed']);
    // Cleared by hand, while the cause lasts.
    takeOpen(healthRules([]), standings, [key]);
    expect(rounds(standings, [['critical'], ['critical']])).toEqual(['', '']);
    takeOpen(healthRules([]), standings, []);
    expect(rounds(standings, [['critical']])).toEqual(['+fan_failed']);
  });
  it('take memory only for parts that are not well', () => {
    const standings: Standings = new Map();
    const signals = Array.from({ length: 500 }, (_, n) => fan([], { subject: `fan ${n}` }));
    observed(rulesWith(), standings, NODE, signals);
    expect(standings.size).toBe(0);
  });
});

it('a disk or a memory module that vanishes is an alert until it appears again', () => {
  const vanished = { kind: 'vanished', component: 'disk', key: 'S1', before: {}, after: null } as const;
  const rules = rulesWith();
  const gone = judged(rules, 'n', hardwareSignals([vanished, { ...vanished, component: 'memory_module', key: 'DIMM A1' }]));
  expect(gone.raised.map(({ rule, subject }) => [rule, subject])).toEqual([
    ['drive_lost', 'disk S1'],
    ['memory_lost', 'memory module DIMM A1'],
  ]);
  expect(judged(rules, 'n', hardwareSignals([{ ...vanished, component: 'pci_device' }]))).toEqual({ raised: [], cleared: [] });
  const back = judged(rules, 'n', hardwareSignals([{ ...vanished, kind: 'appeared' }]));
  expect([back.raised, back.cleared.map(({ rule, subject }) => [rule, subject])]).toEqual([[], [['drive_lost', 'disk S1']]]);
});

describe('time limits', () => {
  it.each([
    [{ deployment: '60' }, 'deployment is neither a flow (verify, deploy,'],
    [{ active: '60' }, 'active is neither a flow'],
    [{ deploy: 'soon' }, 'deploy needs seconds, from 1 to 31622400, not soon'],
    [{ deploy: '0' }, 'deploy needs seconds'],
  ])('refuse %j', (given, text) => expect(() => timeLimits(given as Readonly<Record<string, string>>)).toThrow(text));

  const at = (seconds: number): string => new Date(seconds * 1000).toISOString();
  const node = (state: 'deploying' | 'wait call-back' | 'cleaning', since: number, maintenance = false) => ({
    uuid: 'n',
    provision_state: state,
    provision_updated_at: at(since),
    maintenance,
  });
  it('count the whole flow, and raise one alert until it is over', () => {
    const limits = timeLimits({ deploy: '100', 'wait call-back': '1000' });
    const stays: Stays = new Map();
    const round = (nodes: readonly ReturnType<typeof node>[], now: number, open: readonly AlertKey[] = []) =>
      overTime(limits, stays, nodes, { isOwn: () => true, open, now: now * 1000 });
    expect(round([node('deploying', 0)], 60)).toEqual({ raised: [], cleared: [] });
    const { raised } = round([node('wait call-back', 90)], 120);
    expect(raised).toMatchObject([
      {
        source: 'state',
        rule: 'deploy',
        subject: 'deploy',
        severity: 'warning',
        text: expect.stringContaining('longer than 100 s') as unknown,
      },
    ]);
    expect(round([node('deploying', 130)], 180, raised)).toEqual({ raised: [], cleared: [] });
    expect(round([node('cleaning', 190)], 200, raised).cleared).toHaveLength(1);
    expect(stays.get('n')!.map(({ name }) => name)).toEqual(['clean', 'cleaning']);
    expect(round([], 240, raised).cleared).toHaveLength(1);
    expect(stays.size).toBe(0);
  });
  it('do not apply in maintenance, nor to nodes of other conductors', () => {
    const limits = timeLimits({ deploy: '100' });
    const nodes = [node('deploying', 0, true)];
    expect(overTime(limits, new Map(), nodes, { isOwn: () => true, open: [], now: 1e9 }).raised).toEqual([]);
    expect(overTime(limits, new Map(), [node('deploying', 0)], { isOwn: () => false, open: [], now: 1e9 }).raised).toEqual([]);
  });
});
