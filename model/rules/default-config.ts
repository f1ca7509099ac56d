/** Default configs: how those of a resource class, of properties and of a node are merged, and what differs on the machine. Pure. */
import { isObject, type Json, type JsonObject } from '../json';
import { MASK, maskSecrets } from '../masks';
import { str } from '../python';
import type { BiosSettingRecord, DefaultConfigRecord, FirmwareComponentRecord, NodeRecord } from '../records';
import { portNamed, type NetworkPort } from './network-ports';

/** An item of a list whose items have a name: lists of several default configs are merged by it. */
interface MergedItem {
  readonly name: string;
  readonly value: JsonObject;
  /** `resource class gold`, `property rack=r12`, `node` */
  readonly origin: string;
}
interface MergedArgument {
  readonly value: Json;
  readonly origin: string;
  /** Of a list whose items have names. */
  readonly items?: readonly MergedItem[];
}
export interface MergedStep {
  readonly interface: string;
  readonly step: string;
  readonly priority?: { readonly value: number; readonly origin: string };
  readonly args: ReadonlyMap<string, MergedArgument>;
}

/** The scopes, the weakest first. The place of a scope decides which value wins. */
const SCOPES: readonly {
  readonly has: (config: DefaultConfigRecord) => boolean;
  readonly origin: (config: DefaultConfigRecord) => string;
}[] = [
  { has: ({ resource_class: own }) => own !== null, origin: ({ resource_class: own }) => `resource class ${own!}` },
  { has: ({ property }) => property !== null, origin: ({ property, value }) => `property ${property!}=${value!}` },
  { has: ({ node_uuid: node }) => node !== null, origin: () => 'node' },
];
const rankOf = (config: DefaultConfigRecord): number => SCOPES.findIndex(({ has }) => has(config));
const originOf = (config: DefaultConfigRecord): string => SCOPES[rankOf(config)]!.origin(config);
/** Several properties: in the order of their names. */
const inOrder = (configs: readonly DefaultConfigRecord[]): readonly DefaultConfigRecord[] =>
  [...configs].sort((a, b) => rankOf(a) - rankOf(b) || ((a.property ?? '') < (b.property ?? '') ? -1 : 1));

/** Members that name the items of a list: of BIOS settings, and of firmware. */
const NAMES = ['name', 'component'] as const;
function itemsOf(value: Json, origin: string): readonly MergedItem[] | undefined {
  if (!Array.isArray(value) || value.length === 0 || !value.every(isObject)) return undefined;
  const member = NAMES.find((name) => value.every((item: JsonObject) => typeof item[name] === 'string'));
  return member && value.map((item: JsonObject) => ({ name: item[member] as string, value: item, origin }));
}
function withArgument(before: MergedArgument | undefined, value: Json, origin: string): MergedArgument {
  const items = itemsOf(value, origin);
  if (!items) return { value, origin };
  const byName = new Map([...(before?.items ?? []), ...items].map((item) => [item.name, item]));
  const merged = [...byName.values()];
  const origins = [...new Set(merged.map((item) => item.origin))];
  return { value: merged.map((item) => item.value), origin: origins.join(', '), items: merged };
}

/** The default config of a node: that of the stronger scope wins, for each argument and each named item of a list. */
export function mergedDefaults(configs: readonly DefaultConfigRecord[]): readonly MergedStep[] {
  const steps = new Map<string, MergedStep>();
  for (const config of inOrder(configs)) {
    const origin = originOf(config);
    for (const { interface: owner, step, args, priority } of config.steps) {
      const id = `${owner}.${step}`;
      const before = steps.get(id);
      const merged = new Map(before?.args);
      for (const [name, value] of Object.entries(args)) merged.set(name, withArgument(merged.get(name), value, origin));
      const rank = priority === undefined ? before?.priority : { value: priority, origin };
      steps.set(id, { interface: owner, step, args: merged, ...(rank ? { priority: rank } : {}) });
    }
  }
  return [...steps.values()];
}

/** What was last read of the machine. */
export interface MachineFacts {
  readonly bios: readonly Pick<BiosSettingRecord, 'attribute_type' | 'name' | 'value'>[];
  readonly firmware: readonly Pick<FirmwareComponentRecord, 'component' | 'current_version'>[];
  readonly networkPorts: readonly NetworkPort[];
  readonly raidConfig: NodeRecord['raid_config'];
}
type State = 'equal' | 'differs' | 'unknown' | 'not compared';
interface Compared {
  readonly now: Json;
  readonly state: State;
}

const UNKNOWN: Compared = { now: null, state: 'unknown' };
const verdict = (isSame: boolean, now: Json): Compared => ({ now, state: isSame ? 'equal' : 'differs' });
/** Services show some values as texts, and tables store them as such. */
const plain = (type: string | null | undefined, value: Json): string => {
  const text = str(value);
  if (type === 'Boolean' || typeof value === 'boolean') return text.toLowerCase();
  return type === 'Integer' ? String(Number(text)) : text;
};
function biosCompared({ name, value: { value } }: MergedItem, { bios }: MachineFacts): Compared {
  const found = bios.find((setting) => setting.name === name);
  // The value of a password is never shown. A setting that this BIOS does not have cannot be applied.
  if (!found || found.attribute_type === 'Password' || found.value === null) return UNKNOWN;
  const type = found.attribute_type ?? (typeof value === 'boolean' ? 'Boolean' : null);
  return verdict(plain(type, found.value) === plain(type, value), found.value);
}
function firmwareCompared({ name, value: { version } }: MergedItem, { firmware }: MachineFacts): Compared {
  const found = firmware.find(({ component }) => component === name);
  return !found || typeof version !== 'string' ? UNKNOWN : verdict(found.current_version === version, found.current_version);
}
function portCompared({ name, value: { mode } }: MergedItem, { networkPorts }: MachineFacts): Compared {
  const found = portNamed(networkPorts, name);
  return found ? verdict(found.mode === mode, found.mode) : UNKNOWN;
}

const disksOf = (config: Json): readonly JsonObject[] => {
  const disks = isObject(config) ? config['logical_disks'] : undefined;
  return Array.isArray(disks) ? disks.filter(isObject) : [];
};
/** GiB by which the size of a volume may differ from what was asked: controllers round. */
const isSize = (now: Json, asked: Json): boolean =>
  asked === 'MAX' || asked === undefined || Math.abs(Number(now) - Number(asked)) <= Math.max(1, Number(asked) * 0.02);
const isDisk = (now: JsonObject, asked: JsonObject): boolean =>
  now['raid_level'] === asked['raid_level'] &&
  isSize(now['size_gb'], asked['size_gb']) &&
  (asked['volume_name'] === undefined || [now['name'], now['volume_name']].includes(asked['volume_name']));
function raidCompared(asked: Json, { raidConfig }: MachineFacts): Compared {
  const now = disksOf(raidConfig);
  const left = [...now];
  const isThere = disksOf(asked).every((disk) => {
    const at = left.findIndex((candidate) => isDisk(candidate, disk));
    if (at >= 0) left.splice(at, 1);
    return at >= 0;
  });
  const shown = now.map(({ raid_level: level, size_gb: size, name }) => ({ raid_level: level, size_gb: size, name: name ?? null }));
  return verdict(isThere && left.length === 0, shown);
}

export const NETWORK_STEP = 'management.configure_network_adapters';
/**
 * The steps whose arguments are compared with the machine: `interface.step` → the argument, and what it is about. In the order in which they
 * bring a machine back: new firmware may have other settings, and settings decide which ports and disks there are.
 */
const COMPARED: Readonly<
  Record<
    string,
    {
      readonly argument: string;
      /** The beginning of a sentence about differences. */
      readonly differs: string;
      /** What differs, in a sentence: `setting`. */
      readonly noun: string;
      /** The member of an item that is the wanted value. */
      readonly member?: string;
      readonly ofItem?: (item: MergedItem, facts: MachineFacts) => Compared;
      readonly ofValue?: (value: Json, facts: MachineFacts) => Compared;
    }
  >
> = {
  'firmware.update': {
    argument: 'settings',
    differs: 'firmware differs',
    noun: 'component',
    member: 'version',
    ofItem: firmwareCompared,
  },
  'bios.apply_configuration': { argument: 'settings', differs: 'BIOS differs', noun: 'setting', member: 'value', ofItem: biosCompared },
  [NETWORK_STEP]: { argument: 'ports', differs: 'NIC ports differ', noun: 'port', member: 'mode', ofItem: portCompared },
  'raid.apply_configuration': { argument: 'raid_config', differs: 'RAID differs', noun: 'configuration', ofValue: raidCompared },
};
export const idOf = ({ interface: owner, step }: Pick<MergedStep, 'interface' | 'step'>): string => `${owner}.${step}`;

/** Whether the machine is compared with the arguments of this step. */
export const isCompared = (step: MergedStep): boolean => Object.hasOwn(COMPARED, idOf(step));
const ORDER = Object.keys(COMPARED);
/** In the order in which they bring a machine back. */
export const inOrderOfUse = (steps: readonly MergedStep[]): readonly MergedStep[] =>
  [...steps].sort((a, b) => ORDER.indexOf(idOf(a)) - ORDER.indexOf(idOf(b)));

/** One default value of a node, as clients see it. */
export interface DefaultRow extends Compared {
  readonly step: string;
  readonly argument: string;
  readonly value: Json;
  readonly origin: string;
}
/** `isRead`: the machine was asked, and all that is compared comes from it. */
export interface DefaultValues {
  readonly rows: readonly DefaultRow[];
  readonly isRead: boolean;
}
function rowsOfStep(merged: MergedStep, facts: MachineFacts): readonly DefaultRow[] {
  const step = idOf(merged);
  const own = Object.hasOwn(COMPARED, step) ? COMPARED[step] : undefined;
  const row = (argument: string, value: Json, origin: string, { now, state }: Compared = { now: null, state: 'not compared' }) => ({
    step,
    argument,
    value,
    origin,
    now,
    state,
  });
  const rows = [...merged.args].flatMap(([name, { value, origin, items }]) => {
    const compared = own?.argument === name ? own : undefined;
    if (!items) return [row(name, value, origin, compared?.ofValue?.(value, facts))];
    return items.map((item) => row(`${name}[${item.name}]`, item.value, item.origin, compared?.ofItem?.(item, facts)));
  });
  const rank = merged.priority;
  return rank ? [row('priority', rank.value, rank.origin), ...rows] : rows;
}
/** All default values of a node with their origins, and the machine's values. Not masked. */
export const defaultRows = (merged: readonly MergedStep[], facts: MachineFacts): readonly DefaultRow[] =>
  merged.flatMap((step) => rowsOfStep(step, facts));

/** A row as clients see it: without secrets. */
export function maskedDefault({ value, now, ...row }: DefaultRow): DefaultRow {
  const [name = ''] = row.argument.split('[');
  const shownNow = isObject(value) && now !== null ? maskSecrets({ name: value['name'], value: now })['value'] : now;
  return { ...row, value: maskSecrets({ [name]: value })[name], now: shownNow };
}

const sourceOf = (origin: string): string => `the default of ${origin === 'node' ? 'the node' : origin}`;
/** What the differences between the machine and its default config are, in a sentence for each part and origin. */
export function differencesText(rows: readonly DefaultRow[]): readonly string[] {
  return Object.entries(COMPARED).flatMap(([id, { differs, noun, member }]) => {
    const differing = rows.filter(({ step, state }) => step === id && state === 'differs').map(maskedDefault);
    return [...new Set(differing.map(({ origin }) => origin))].map((origin) => {
      const own = differing.filter((row) => row.origin === origin);
      if (member === undefined) return `${differs} from ${sourceOf(origin)}`;
      const shown = own.slice(0, MAX_SHOWN).map(({ argument, value, now }) => {
        const name = argument.slice(argument.indexOf('[') + 1, -1);
        return `${name} is ${str(now)}, not ${str(isObject(value) ? value[member] : value)}`;
      });
      const more = own.length > MAX_SHOWN ? `, and ${own.length - MAX_SHOWN} more` : '';
      return `${differs} from ${sourceOf(origin)} in ${own.length} ${noun}${own.length === 1 ? '' : 's'}: ${shown.join(', ')}${more}`;
    });
  });
}
const MAX_SHOWN = 10;

/** The arguments with which a step brings the machine back: only what differs. Undefined: nothing does, or the step is not compared. */
export function argumentsToBringBack(merged: MergedStep, facts: MachineFacts): JsonObject | undefined {
  const id = idOf(merged);
  const own = Object.hasOwn(COMPARED, id) ? COMPARED[id] : undefined;
  const argument = own && merged.args.get(own.argument);
  if (!own || !argument) return undefined;
  const others = [...merged.args].filter(([name]) => name !== own.argument).map(([name, { value }]) => [name, value] as const);
  const back = (value: Json): JsonObject => ({ ...Object.fromEntries(others), [own.argument]: runnable(id, own.argument, value) });
  if (own.ofValue) return own.ofValue(argument.value, facts).state === 'differs' ? back(argument.value) : undefined;
  const differing = (argument.items ?? []).filter((item) => own.ofItem!(item, facts).state === 'differs');
  return differing.length > 0 ? back(differing.map(({ value }) => value)) : undefined;
}

/** Members that only default configs have: the step does not know them. */
const EXTRA_MEMBERS: Readonly<Record<string, string>> = { 'firmware.update settings': 'version' };
/** An argument as the step takes it. */
export function runnable(step: string, argument: string, value: Json): Json {
  const extra = EXTRA_MEMBERS[`${step} ${argument}`];
  if (extra === undefined || !Array.isArray(value)) return value;
  return value.map((item: Json) => (isObject(item) ? Object.fromEntries(Object.entries(item).filter(([name]) => name !== extra)) : item));
}

/** Texts in an argument, at any depth. */
function* textsIn(value: Json): Generator<string> {
  if (typeof value === 'string') yield value;
  else if (typeof value === 'object' && value !== null) for (const item of Object.values(value)) yield* textsIn(item);
}
/** What is wrong with the steps of a default config beyond their schema, with the name of the field; undefined: nothing. */
export function stepsProblem(
  steps: readonly { readonly interface: string; readonly step: string; readonly args?: JsonObject }[],
): string | undefined {
  const seen = new Set<string>();
  for (const [at, step] of steps.entries()) {
    const id = idOf(step);
    if (seen.has(id)) return `steps[${at}].step: ${id} is in the list twice`;
    seen.add(id);
    for (const [name, value] of Object.entries(step.args ?? {})) {
      const place = `steps[${at}].args.${name}`;
      if ([...textsIn(value)].includes(MASK)) return `${place}: ${MASK} stands for a secret, and cannot be stored`;
      const member = EXTRA_MEMBERS[`${id} ${name}`];
      const items = Array.isArray(value) ? value : [];
      const without = member === undefined ? -1 : items.findIndex((item: Json) => isObject(item) && typeof item[member] !== 'string');
      if (without >= 0) return `${place}[${without}].${member!}: a text is needed, with which the machine is compared`;
    }
  }
  return undefined;
}
