/**
 * The rules by which observations of machines become alerts (docs/health.md): the built-in table, the check of the site's rules, and their
 * evaluation. Pure: the caller stores what follows.
 */
import { defined, isObject } from '../json';
import { storable } from '../text';
import { SEVERITIES, type AlertKey, type AlertSource, type EndedAlert, type NewAlert, type Severity } from './health-alerts';

/** The kinds of parts. Sensors of other kinds are `other`. */
const KINDS = ['fan', 'temperature', 'power', 'drive', 'memory', 'processor', 'voltage', 'current', 'battery', 'machine', 'other'] as const;
export type SignalKind = (typeof KINDS)[number];
export const kindOf = (word: string): SignalKind => KINDS.find((kind) => kind === word) ?? 'other';

/** What a BMC or a record of hardware says of a part, in words that IPMI and Redfish share. */
const SIGNAL_STATES = {
  warning: 'beyond a non-critical threshold (IPMI), or the health Warning (Redfish)',
  critical: 'beyond a critical or non-recoverable threshold (IPMI), or the health Critical (Redfish)',
  failed: 'the BMC says that the part has failed',
  'predicted failure': 'the BMC expects the part to fail',
  'redundancy lost': 'no other part can take over',
  'redundancy degraded': 'fewer other parts can take over than usual',
  'input lost': 'the power supply has no input, or one out of range',
  'correctable errors': 'errors that were corrected, such as those of ECC memory',
  'uncorrectable errors': 'errors that were not corrected',
  'thermal trip': 'the part switched itself off because it was too hot',
  vanished: 'the part was there before',
} as const;
export type SignalState = keyof typeof SIGNAL_STATES;

const MAX_SUBJECT = 100;
/** The text as the database keeps it: an alert is known by its subject, also after it was read again. */
export const subjectText = (text: string): string => storable(text.slice(0, MAX_SUBJECT));

/** One observation of a part of a machine. */
export interface Signal {
  readonly source: RuleSource;
  readonly kind: SignalKind;
  /** What it is about, such as `fan 3`. */
  readonly subject: string;
  /** Empty: nothing is wrong. */
  readonly states: readonly SignalState[];
  readonly value?: number | undefined;
  /** One of UNITS. */
  readonly unit?: string | undefined;
  /** Further values of the part, each in another unit. */
  readonly more?: readonly SignalValue[] | undefined;
}
interface SignalValue {
  readonly value: number;
  readonly unit?: string | undefined;
}

/** Sources whose alerts follow from rules. Those of the others are alerts already. */
const RULE_SOURCES = ['sensor', 'system', 'log', 'event', 'hardware', 'smart'] as const satisfies readonly AlertSource[];
export type RuleSource = (typeof RULE_SOURCES)[number];
/** Units of sensors, as in the metric baremetal_sensor_reading, and what disks count. */
const UNITS = [
  'celsius',
  'fahrenheit',
  'volts',
  'amperes',
  'watts',
  'rpm',
  'percent',
  'cfm',
  'reallocated sectors',
  'pending sectors',
] as const;
type Unit = (typeof UNITS)[number];

export interface HealthRule {
  readonly name: string;
  readonly sources: readonly RuleSource[];
  /** Empty: all kinds. */
  readonly kinds: readonly SignalKind[];
  /** It matches a part with one of these states … */
  readonly states: readonly SignalState[];
  /** … or with a value above or below a limit, in this unit. */
  readonly above?: number | undefined;
  readonly below?: number | undefined;
  readonly unit?: Unit | undefined;
  /** The beginning of the subject; absent: any subject. */
  readonly subject?: string | undefined;
  readonly severity: Severity;
  /** After how many matching observations in a row the alert is raised, and after how many others it is cleared. */
  readonly raise: number;
  readonly clear: number;
  /** It says nothing about a machine that is off. */
  readonly onlyOn: boolean;
  /** `{subject}`, `{state}` and `{value}` are replaced. */
  readonly text: string;
}

const BMC: readonly RuleSource[] = ['sensor', 'log', 'event'];
const BMC_AND_SYSTEM: readonly RuleSource[] = ['sensor', 'system', 'log', 'event'];
const BMC_AND_SMART: readonly RuleSource[] = ['sensor', 'log', 'event', 'smart'];
type Given = Pick<HealthRule, 'name' | 'severity' | 'states' | 'text'> & Partial<HealthRule>;
const row = (given: Given): HealthRule => ({ sources: BMC, kinds: [], raise: 1, clear: 2, onlyOn: false, ...given });

/**
 * The built-in rules. BMCs have their own hysteresis for states, so that one observation is enough where a part has failed; a site that wants
 * more writes a rule of the same name.
 *
 * @internal
 */
// One row per line, so that the columns are easy to read.
// prettier-ignore
export const BUILT_IN_RULES: readonly HealthRule[] = [
  row({ name: 'fan_failed', kinds: ['fan'], states: ['critical', 'failed'], severity: 'critical', onlyOn: true, text: '{subject} has failed or is too slow ({state}{value})' }),
  row({ name: 'fan_stopped', sources: ['sensor'], kinds: ['fan'], states: [], below: 1, unit: 'rpm', severity: 'critical', raise: 2, onlyOn: true, text: '{subject} does not turn' }),
  row({ name: 'fan_warning', kinds: ['fan'], states: ['warning', 'predicted failure'], severity: 'warning', raise: 2, onlyOn: true, text: '{subject} is not well ({state}{value})' }),
  row({ name: 'power_supply_failed', kinds: ['power'], states: ['critical', 'failed'], severity: 'critical', text: '{subject} has failed ({state})' }),
  row({ name: 'power_supply_warning', kinds: ['power'], states: ['warning', 'predicted failure'], severity: 'warning', text: '{subject} is not well ({state})' }),
  row({ name: 'power_input_lost', kinds: ['power'], states: ['input lost'], severity: 'warning', text: '{subject} has no input' }),
  row({ name: 'redundancy_lost', states: ['redundancy lost'], severity: 'warning', text: '{subject} is not redundant any more' }),
  row({ name: 'redundancy_degraded', states: ['redundancy degraded'], severity: 'warning', text: '{subject} is less redundant than usual' }),
  row({ name: 'drive_failed', sources: BMC_AND_SMART, kinds: ['drive'], states: ['critical', 'failed'], severity: 'critical', text: '{subject} has failed ({state})' }),
  row({ name: 'drive_failing', sources: BMC_AND_SMART, kinds: ['drive'], states: ['warning', 'predicted failure'], severity: 'warning', text: '{subject} may fail soon ({state})' }),
  row({ name: 'drive_worn', sources: ['sensor', 'smart'], kinds: ['drive'], states: [], below: 10, unit: 'percent', severity: 'warning', text: '{subject} is worn: little of its life is left{value}' }),
  row({ name: 'drive_pending', sources: ['smart'], kinds: ['drive'], states: [], above: 0, unit: 'pending sectors', severity: 'warning', raise: 2, text: '{subject} has sectors that it cannot read{value}' }),
  row({ name: 'drive_reallocated', sources: ['smart'], kinds: ['drive'], states: [], above: 100, unit: 'reallocated sectors', severity: 'warning', text: '{subject} has replaced many of its sectors{value}' }),
  row({ name: 'drive_hot', sources: ['smart'], kinds: ['temperature'], states: ['critical', 'warning'], above: 70, unit: 'celsius', severity: 'warning', raise: 3, clear: 3, text: '{subject} is too hot{value}' }),
  row({ name: 'temperature_critical', kinds: ['temperature'], states: ['critical', 'thermal trip'], severity: 'critical', raise: 2, onlyOn: true, text: '{subject} is too hot or too cold ({state}{value})' }),
  row({ name: 'temperature_warning', kinds: ['temperature'], states: ['warning'], severity: 'warning', raise: 3, clear: 3, onlyOn: true, text: '{subject} is outside of its usual range ({state}{value})' }),
  row({ name: 'memory_failed', sources: BMC_AND_SYSTEM, kinds: ['memory'], states: ['uncorrectable errors', 'critical', 'failed'], severity: 'critical', text: '{subject} has failed ({state})' }),
  row({ name: 'memory_errors', sources: BMC_AND_SYSTEM, kinds: ['memory'], states: ['correctable errors', 'warning', 'predicted failure'], severity: 'warning', text: '{subject} has errors ({state})' }),
  row({ name: 'processor_failed', sources: BMC_AND_SYSTEM, kinds: ['processor'], states: ['uncorrectable errors', 'critical', 'failed', 'thermal trip'], severity: 'critical', text: '{subject} has failed ({state})' }),
  row({ name: 'processor_warning', sources: BMC_AND_SYSTEM, kinds: ['processor'], states: ['correctable errors', 'warning', 'predicted failure'], severity: 'warning', raise: 2, text: '{subject} is not well ({state})' }),
  row({ name: 'voltage_critical', kinds: ['voltage', 'current'], states: ['critical'], severity: 'critical', raise: 2, onlyOn: true, text: '{subject} is out of range ({state}{value})' }),
  row({ name: 'battery_low', kinds: ['battery'], states: ['failed', 'predicted failure', 'critical', 'warning'], severity: 'warning', text: '{subject} is low or has failed ({state})' }),
  row({ name: 'other_failed', kinds: ['other'], states: ['critical', 'failed', 'uncorrectable errors'], severity: 'critical', text: '{subject} has failed ({state})' }),
  row({ name: 'machine_critical', sources: ['system'], kinds: ['machine'], states: ['critical'], severity: 'critical', text: 'the BMC reports that {subject} is critical' }),
  row({ name: 'machine_warning', sources: ['system'], kinds: ['machine'], states: ['warning'], severity: 'warning', raise: 2, text: 'the BMC reports a warning about {subject}' }),
  row({ name: 'drive_lost', sources: ['hardware'], kinds: ['drive'], states: ['vanished'], severity: 'critical', clear: 1, text: '{subject} is not there any more' }),
  row({ name: 'memory_lost', sources: ['hardware'], kinds: ['memory'], states: ['vanished'], severity: 'critical', clear: 1, text: '{subject} is not there any more' }),
];

// ---- the site's rules
const MAX_RULES = 200;
const MAX_SAMPLES = 1000;
const MAX_TEXT = 255;
const MEMBERS = [
  'name',
  'sources',
  'kinds',
  'states',
  'above',
  'below',
  'unit',
  'subject',
  'severity',
  'raise',
  'clear',
  'only_on',
  'text',
  'disabled',
];
/** What sensors can measure; limits beyond it never match. */
const RANGES: Readonly<Record<Unit, readonly [least: number, most: number]>> = {
  celsius: [-273.15, 1000],
  fahrenheit: [-459.67, 2000],
  volts: [-1000, 1000],
  amperes: [0, 10_000],
  watts: [0, 1_000_000],
  rpm: [0, 1_000_000],
  percent: [0, 100],
  cfm: [0, 100_000],
  'reallocated sectors': [0, 1_000_000_000],
  'pending sectors': [0, 1_000_000_000],
};
/** Sources that see part of the kinds and states, or only have single observations; and the units of those with values. */
interface SourceRow {
  readonly kinds?: readonly SignalKind[];
  readonly states?: readonly SignalState[];
  readonly units?: readonly Unit[];
  /** Parts are observed again and again, so that observations are counted. */
  readonly counted?: true;
}
const SECTORS: readonly Unit[] = ['reallocated sectors', 'pending sectors'];
const SOURCES: Readonly<Record<RuleSource, SourceRow>> = {
  sensor: { units: UNITS.filter((unit) => !SECTORS.includes(unit)), counted: true },
  system: { kinds: ['machine', 'memory', 'processor'], states: ['warning', 'critical'], counted: true },
  log: {},
  event: {},
  hardware: { states: ['vanished'] },
  smart: {
    kinds: ['drive', 'temperature'],
    states: ['warning', 'critical', 'failed', 'predicted failure'],
    units: ['celsius', 'percent', ...SECTORS],
    counted: true,
  },
};

function wordsOf<Word extends string>(member: string, given: unknown, known: readonly Word[]): readonly Word[] {
  if (!Array.isArray(given) || given.length === 0) throw new Error(`${member} is a list of ${known.join(', ')}`);
  return (given as readonly unknown[]).map((word) => {
    const found = known.find((candidate) => candidate === word);
    if (found === undefined) throw new Error(`${member}: unknown word ${JSON.stringify(word).slice(0, MAX_TEXT)}: use ${known.join(', ')}`);
    return found;
  });
}
const textOf = (member: string, given: unknown): string => {
  if (typeof given !== 'string' || given.trim() === '' || given.length > MAX_TEXT || /\p{Cc}/u.test(given))
    throw new Error(`${member} is a text of at most ${MAX_TEXT} characters, without control characters`);
  return given;
};
const numberOf = (member: string, given: unknown): number => {
  if (typeof given !== 'number' || !Number.isFinite(given)) throw new Error(`${member} is a number`);
  return given;
};
const countOf = (member: string, given: unknown): number => {
  if (typeof given !== 'number' || !Number.isInteger(given) || given < 1 || given > MAX_SAMPLES)
    throw new Error(`${member} is a whole number of observations, from 1 to ${MAX_SAMPLES}`);
  return given;
};
const ifGiven = <T>(given: unknown, read: (value: unknown) => T): T | undefined => (given === undefined ? undefined : read(given));

/** Refuses limits that no value, or every value, is beyond. */
function checkLimits({ above, below, unit, kinds, sources }: HealthRule): void {
  if (above === undefined && below === undefined) {
    if (unit !== undefined) throw new Error('unit needs above or below');
    return;
  }
  if (unit === undefined) throw new Error(`above and below need a unit: one of ${UNITS.join(', ')}`);
  if (!sources.some((source) => SOURCES[source].units))
    throw new Error('above and below need the source sensor or smart: the others have no values');
  if (!sources.some((source) => SOURCES[source].units?.includes(unit)))
    throw new Error(
      `the unit ${unit} needs the source ${RULE_SOURCES.filter((source) => SOURCES[source].units?.includes(unit)).join(' or ')}`,
    );
  if (kinds.includes('machine')) throw new Error('above and below cannot match the kind machine, which has no value');
  const [least, most] = RANGES[unit];
  if (above !== undefined && above >= most)
    throw new Error(`above: no sensor measures more than ${most} ${unit}, so that the rule never matches`);
  if (below !== undefined && below <= least)
    throw new Error(`below: no sensor measures less than ${least} ${unit}, so that the rule never matches`);
  if (above !== undefined && above < least)
    throw new Error(`above: every value is above ${above} ${unit}, so that the rule always matches`);
  if (below !== undefined && below > most) throw new Error(`below: every value is below ${below} ${unit}, so that the rule always matches`);
  if (above !== undefined && below !== undefined && above < below)
    throw new Error('above is less than below: every value matches, which is no rule');
}
/** What the states of these sources and kinds can be. */
function checkStates({ states, sources, kinds, raise, clear, above, below }: HealthRule): void {
  const has = (source: RuleSource): boolean => sources.includes(source);
  if (states.includes('vanished') && !has('hardware')) throw new Error('the state vanished needs the source hardware');
  if (kinds.length > 0 && kinds.every((kind) => kind === 'machine') && !has('system'))
    throw new Error('the kind machine needs the source system');
  const [only] = sources;
  if (sources.length === 1 && only !== undefined) {
    const row = SOURCES[only];
    const seen = row.states;
    const isLimit = row.units !== undefined && (above !== undefined || below !== undefined);
    if (only === 'hardware' && states.some((state) => state !== 'vanished'))
      throw new Error('the source hardware has only the state vanished');
    if (row.kinds && kinds.length > 0 && !kinds.some((kind) => row.kinds!.includes(kind)))
      throw new Error(`the source ${only} has only the kinds ${row.kinds.join(', ')}`);
    if (seen && !isLimit && !states.some((state) => seen.includes(state)))
      throw new Error(`the source ${only} has only the states ${seen.join(', ').replace(/, (?=[^,]*$)/, ' and ')}`);
  }
  if (!sources.some((source) => SOURCES[source].counted) && (raise > 1 || clear > 1))
    throw new Error('the sources log, event and hardware have single observations: raise and clear are 1');
}

/** One rule of the site; with `disabled: true`, the name of a built-in rule that does not apply. @throws Error that says what is wrong */
function ruleOf(given: unknown): HealthRule | string {
  if (!isObject(given)) throw new Error('it is not an object');
  const unknown = Object.keys(given).find((member) => !MEMBERS.includes(member));
  if (unknown !== undefined) throw new Error(`unknown member ${unknown.slice(0, MAX_TEXT)}: use ${MEMBERS.join(', ')}`);
  const { name, disabled } = given;
  if (typeof name !== 'string' || !/^[a-z][a-z0-9_]{0,62}$/.test(name))
    throw new Error('name is lower-case letters, digits and underscores, and begins with a letter');
  const builtIn = BUILT_IN_RULES.find((rule) => rule.name === name);
  if (disabled === true) {
    if (!builtIn) throw new Error(`there is no built-in rule ${name} to disable`);
    return name;
  }
  if (disabled !== undefined && disabled !== false) throw new Error('disabled is true or false');
  const only = given['only_on'];
  if (only !== undefined && typeof only !== 'boolean') throw new Error('only_on is true or false');
  const limits = given['above'] !== undefined || given['below'] !== undefined;
  const merged: Partial<HealthRule> = {
    ...builtIn,
    ...defined({
      sources: ifGiven(given['sources'], (value) => wordsOf('sources', value, RULE_SOURCES)),
      kinds: ifGiven(given['kinds'], (value) => wordsOf('kinds', value, KINDS)),
      states: ifGiven(given['states'], (value) => wordsOf('states', value, Object.keys(SIGNAL_STATES) as SignalState[])),
      above: ifGiven(given['above'], (value) => numberOf('above', value)),
      below: ifGiven(given['below'], (value) => numberOf('below', value)),
      unit: ifGiven(given['unit'], (value) => wordsOf('unit', [value], UNITS)[0]!),
      subject: ifGiven(given['subject'], (value) => textOf('subject', value)),
      severity: ifGiven(given['severity'], (value) => wordsOf('severity', [value], SEVERITIES)[0]!),
      raise: ifGiven(given['raise'], (value) => countOf('raise', value)),
      clear: ifGiven(given['clear'], (value) => countOf('clear', value)),
      onlyOn: only,
      text: ifGiven(given['text'], (value) => textOf('text', value)),
    }),
  };
  const { severity, text, states = [] } = merged;
  if (severity === undefined) throw new Error(`severity is needed: ${SEVERITIES.join(' or ')}`);
  if (states.length === 0 && !limits && builtIn?.states.length !== 0)
    throw new Error('it needs states, above or below: it matches nothing');
  const isCounted = (merged.sources ?? ['sensor']).some((source) => SOURCES[source].counted);
  const rule = row({
    ...(isCounted ? {} : { clear: 1 }),
    ...merged,
    name,
    severity,
    states,
    text: text ?? '{subject}: {state}{value}',
    sources: merged.sources ?? ['sensor'],
  });
  checkLimits(rule);
  checkStates(rule);
  return rule;
}

/**
 * All rules: the built-in ones, with those of the site, which replace built-in ones of the same name member by member.
 * @throws Error that names the rule and what is wrong with it
 */
export function healthRules(given: unknown): readonly HealthRule[] {
  if (!Array.isArray(given)) throw new Error('it must contain a list of rules');
  if (given.length > MAX_RULES) throw new Error(`it has more than ${MAX_RULES} rules`);
  const rules = new Map(BUILT_IN_RULES.map((rule) => [rule.name, rule]));
  const seen = new Set<string>();
  for (const [at, item] of (given as readonly unknown[]).entries()) {
    const name = isObject(item) && typeof item['name'] === 'string' ? ` (${item['name'].slice(0, MAX_TEXT)})` : '';
    try {
      const rule = ruleOf(item);
      const key = typeof rule === 'string' ? rule : rule.name;
      if (seen.has(key)) throw new Error('another rule has this name');
      seen.add(key);
      if (typeof rule === 'string') rules.delete(rule);
      else rules.set(key, rule);
    } catch (error) {
      throw new Error(`rule ${at + 1}${name}: ${(error as Error).message}`, { cause: error });
    }
  }
  return [...rules.values()];
}

// ---- evaluation
interface Match {
  /** The state or the limit by which the rule matches. */
  readonly state: string;
  readonly by: SignalValue | undefined;
}
function matchOf(rule: HealthRule, { states, value, unit, more = [] }: Signal): Match | undefined {
  const own = value === undefined ? [] : [{ value, unit }];
  const state = states.find((candidate) => rule.states.includes(candidate));
  const of = rule.unit === undefined ? undefined : [...own, ...more].find((known) => known.unit === rule.unit);
  if (state !== undefined) return { state, by: of ?? own[0] };
  if (!of) return undefined;
  if (rule.above !== undefined && of.value > rule.above) return { state: `above ${rule.above}`, by: of };
  return rule.below !== undefined && of.value < rule.below ? { state: `below ${rule.below}`, by: of } : undefined;
}
const concerns = ({ sources, kinds, subject }: HealthRule, signal: Signal): boolean =>
  sources.includes(signal.source) &&
  (kinds.length === 0 || kinds.includes(signal.kind)) &&
  (subject === undefined || signal.subject.startsWith(subject));

const shownValue = (by: SignalValue | undefined): string =>
  by === undefined ? '' : `, ${Number(by.value.toFixed(2))}${by.unit === undefined ? '' : ` ${by.unit}`}`;
const textFor = ({ text }: HealthRule, signal: Signal, { state, by }: Match): string =>
  text
    .replaceAll('{subject}', () => signal.subject)
    .replaceAll('{state}', () => state)
    .replaceAll('{value}', () => shownValue(by));

/** How a part stands with a rule. Only of parts that match, matched lately, or have an open alert. */
interface Standing {
  /** Matching observations in a row; then others in a row, while the alert is open. */
  bad: number;
  good: number;
  isOpen: boolean;
  /** Undefined: the alert was open before this process counted, and its rule has several kinds. */
  kind: SignalKind | undefined;
}
/** By node, and by source, rule and subject. */
export type Standings = Map<string, Map<string, Standing>>;
const keyText = ({ source, rule, subject }: Omit<AlertKey, 'node_uuid'>): string => `${source}\0${rule}\0${subject}`;

/**
 * Takes over which alerts are open. What was counted before stays.
 * @param open those of all nodes, or of `only`
 */
export function takeOpen(rules: readonly HealthRule[], standings: Standings, open: readonly AlertKey[], only?: string): void {
  const keys = new Map<string, Map<string, AlertKey>>();
  for (const key of open) {
    const ofNode = keys.get(key.node_uuid);
    if (ofNode) ofNode.set(keyText(key), key);
    else keys.set(key.node_uuid, new Map([[keyText(key), key]]));
  }
  for (const [uuid, ofNode] of standings) {
    if (only !== undefined && uuid !== only) continue;
    for (const [key, standing] of ofNode) {
      standing.isOpen = keys.get(uuid)?.delete(key) ?? false;
      if (!standing.isOpen && standing.bad === 0) ofNode.delete(key);
    }
    if (ofNode.size === 0) standings.delete(uuid);
  }
  for (const [uuid, missing] of keys) {
    if (missing.size === 0) continue;
    const ofNode = standings.get(uuid) ?? new Map<string, Standing>();
    standings.set(uuid, ofNode);
    for (const [name, { rule }] of missing) {
      const kinds = rules.find((known) => known.name === rule)?.kinds ?? [];
      ofNode.set(name, { bad: 0, good: 0, isOpen: true, kind: kinds.length === 1 ? kinds[0] : undefined });
    }
  }
}

interface AlertChanges {
  readonly raised: readonly NewAlert[];
  readonly cleared: readonly EndedAlert[];
}
/** Which parts one reading found, so that alerts of others can end. */
export interface FoundParts {
  readonly source: RuleSource;
  readonly present: ReadonlySet<string>;
  /** Whether all parts of this kind were read; undefined: of all kinds. */
  readonly isRead: (kind: SignalKind | undefined) => boolean;
}
const GONE = 'the part is not there any more';
/** Alerts of parts that are not there count as observations without a problem. */
function endGone(
  rules: readonly HealthRule[],
  ofNode: Map<string, Standing>,
  uuid: string,
  { source: read, present, isRead }: FoundParts,
): readonly EndedAlert[] {
  const ended: EndedAlert[] = [];
  for (const [name, standing] of ofNode) {
    const [source, rule = '', subject = ''] = name.split('\0');
    if (source !== read || present.has(subject) || !isRead(standing.kind)) continue;
    standing.bad = 0;
    if (standing.isOpen && ++standing.good < (rules.find((known) => known.name === rule)?.clear ?? 1)) continue;
    if (standing.isOpen) ended.push({ node_uuid: uuid, source: read, rule, subject, reason: GONE });
    ofNode.delete(name);
  }
  return ended;
}
/**
 * What follows from observations of a node. Each part counts at most once a call for a rule. A machine that is off is not judged by rules
 * that need it on: nothing is raised, counted or cleared.
 */
export function observed(
  rules: readonly HealthRule[],
  standings: Standings,
  node: { readonly uuid: string; readonly isOn: boolean },
  signals: readonly Signal[],
  found?: FoundParts,
): AlertChanges {
  const raised: NewAlert[] = [];
  const cleared: EndedAlert[] = [];
  let ofNode = standings.get(node.uuid);
  for (const signal of signals)
    for (const rule of rules) {
      if (!concerns(rule, signal) || (rule.onlyOn && !node.isOn)) continue;
      const match = matchOf(rule, signal);
      if (match === undefined && ofNode === undefined) continue;
      const key: AlertKey = { node_uuid: node.uuid, source: signal.source, rule: rule.name, subject: signal.subject };
      const name = keyText(key);
      const known = ofNode?.get(name);
      if (match === undefined) {
        if (!known) continue;
        known.bad = 0;
        if (known.isOpen && ++known.good < rule.clear) continue;
        if (known.isOpen) cleared.push(key);
        ofNode!.delete(name);
        continue;
      }
      const standing = known ?? { bad: 0, good: 0, isOpen: false, kind: signal.kind };
      if (!known) {
        ofNode ??= new Map();
        standings.set(node.uuid, ofNode.set(name, standing));
      }
      standing.bad = Math.min(standing.bad + 1, MAX_SAMPLES);
      standing.good = 0;
      if (standing.isOpen || standing.bad < rule.raise) continue;
      standing.isOpen = true;
      const { severity } = rule;
      raised.push({ ...key, severity, text: textFor(rule, signal, match), until: null, reported_by: null });
    }
  // BMCs leave parts out while the machine is off.
  if (ofNode && found && node.isOn) cleared.push(...endGone(rules, ofNode, node.uuid, found));
  if (ofNode?.size === 0) standings.delete(node.uuid);
  return { raised, cleared };
}

/**
 * What follows from observations that are made once, such as entries of logs and changes of hardware: each raises or clears at once.
 * @returns no two alerts, and no two keys, that are equal
 */
export function judged(rules: readonly HealthRule[], uuid: string, signals: readonly Signal[]): AlertChanges {
  const raised = new Map<string, NewAlert>();
  const cleared = new Map<string, AlertKey>();
  for (const signal of signals)
    for (const rule of rules) {
      if (!concerns(rule, signal)) continue;
      const key: AlertKey = { node_uuid: uuid, source: signal.source, rule: rule.name, subject: signal.subject };
      const name = keyText(key);
      const match = matchOf(rule, signal);
      raised.delete(name);
      cleared.delete(name);
      if (match === undefined) cleared.set(name, key);
      else raised.set(name, { ...key, severity: rule.severity, text: textFor(rule, signal, match), until: null, reported_by: null });
    }
  return { raised: [...raised.values()], cleared: [...cleared.values()] };
}
