/** Step update_nvidia_nic_firmware_settings: changes settings in the firmware of network cards. */
import { AgentError } from '../../model/agent/errors';
import { reasonOf } from '../../model/errors';
import { isObject, objectOf } from '../../model/json';
import type { JsonObject } from '../../model/records';
import type { Machine } from '../machine';
import type { Run } from '../system/run';
import { type Card, cardOf, checkTools, findCards, queryCard, resetCard, toolOf } from './nvidia-devices';

const [MAX_SETTINGS, MAX_NAME] = [100, 100];
const invalid = (details: string): AgentError => new AgentError('InvalidFirmwareSettingsConfig', details);

/** PCI device ID → its settings. */
function settingsFor(cards: readonly Card[], given: unknown): ReadonlyMap<string, JsonObject> {
  if (!Array.isArray(given) || given.length > MAX_SETTINGS)
    throw invalid(`The settings must be  list of settings, ${JSON.stringify(given)?.slice(0, 300)}`);
  const found = new Map<string, JsonObject>();
  for (const setting of given as readonly unknown[]) {
    const id = objectOf(setting)['deviceID'];
    if (typeof id !== 'string' || id === '') throw invalid('There is no deviceID provided for this settings');
    for (const part of ['globalConfig', 'function0Config', 'function1Config']) checkPart(part, objectOf(setting)[part]);
    if (!cards.some(({ device }) => device === id)) continue;
    if (found.has(id)) throw new AgentError('DuplicateDeviceID', `duplicate settings for device ID ${id} `);
    found.set(id, setting as JsonObject);
  }
  return found;
}
/** What goes to a program's command line: names and values in the alphabet of mstconfig. */
function checkPart(part: string, given: unknown): void {
  if (given === undefined || given === null) return;
  if (!isObject(given)) throw invalid(`${part} must be an object`);
  for (const [name, value] of Object.entries(given)) {
    if (!NAME.test(name) || name.length > MAX_NAME)
      throw invalid(`${part} has the name ${JSON.stringify(name.slice(0, 100))}, which no setting has`);
    const isValue = typeof value === 'boolean' || Number.isSafeInteger(value) || (typeof value === 'string' && VALUE.test(value));
    if (!isValue) throw invalid(`${part}.${name} must be a number, a word, or true or false`);
  }
}
/** `NAME`, `NAME[3]` or `NAME[3..5]`. */
const NAME = /^(\w+)(?:\[(\d{1,6})(?:\.\.(\d{1,6}))?\])?$/;
const VALUE = /^[\w.,:+-]{1,200}$/;
/** As Python writes it, which mstconfig reads. */
const written = (value: unknown): string => (typeof value === 'boolean' ? (value ? 'True' : 'False') : String(value));

interface Change {
  readonly card: Card;
  readonly settings: JsonObject;
}
/** What each function gets: a card's settings once, those of a function with it. */
async function changesOf(tool: Run, cards: readonly Card[], wanted: ReadonlyMap<string, JsonObject>) {
  const seen = new Set<string>();
  const changes: Change[] = [];
  const resets: Card[] = [];
  for (const card of cards) {
    const setting = wanted.get(card.device);
    if (!setting) continue;
    const isNew = !seen.has(cardOf(card));
    seen.add(cardOf(card));
    if (isNew) {
      const { version, running } = await queryCard(tool, card.address);
      if (running !== undefined && running !== version) resets.push(card);
    }
    const part = card.address.endsWith('0') ? 'function0Config' : 'function1Config';
    const settings = { ...(isNew ? objectOf(setting['globalConfig']) : {}), ...objectOf(setting[part]) };
    if (Object.keys(settings).length > 0) changes.push({ card, settings });
  }
  return { changes, resets };
}

/** Name → value. @param output of `mstconfig q` */
function configurationIn(output: string): ReadonlyMap<string, string> {
  const lines = output.split('\n').filter((line) => line !== '');
  const start = lines.findIndex((line) => line.includes('Configurations:'));
  const words = lines.slice(start < 0 ? lines.length : start + 1).map((line) => line.trim().split(/\s+/));
  return new Map(words.flatMap(([name, value]) => (name === undefined || value === undefined ? [] : [[name, value] as const])));
}
const plainName = (name: string): string => NAME.exec(name)?.[1] ?? name;

/** Whether the firmware knows the setting: of a list, the places that it has. */
function isKnown(name: string, configuration: ReadonlyMap<string, string>): boolean {
  const [, plain, first, last] = NAME.exec(name) ?? [];
  const value = configuration.get(plain ?? name);
  if (value === undefined || first === undefined) return value !== undefined;
  const [, least, most] = /^Array\[(\d+)\.\.(\d+)\]/.exec(value) ?? [];
  const isIn = (index: number): boolean => least !== undefined && index >= Number(least) && index < Number(most);
  return isIn(Number(first)) && (last === undefined || (isIn(Number(last)) && Number(first) < Number(last)));
}

async function checkChange(tool: Run, { card: { address }, settings }: Change): Promise<void> {
  const configuration = configurationIn(await tool('mstconfig', ['-d', address, 'q']));
  const known = await tool('mstconfig', ['-d', address, 'i']);
  for (const name of Object.keys(settings)) {
    if (!known.includes(plainName(name)))
      throw new AgentError(
        'UnSupportedConfigByMstflintPackage',
        `Configuraiton: ${name} is not supported by mstconfig, please update to the latest mstflint package.`,
      );
    if (!isKnown(name, configuration))
      throw new AgentError('UnSupportedConfigByFW', `Configuraiton ${name} for device ${address} is not supported with current fw`);
  }
}
/** Whether the card has another value. Values such as `True(1)` are compared by what they contain. */
function differs(name: string, value: unknown, configuration: ReadonlyMap<string, string>): boolean {
  if (name.includes('[')) return true;
  const now = configuration.get(name) ?? '';
  const number = (text: string): number | undefined => (/^[+-]?\d+$/.test(text) ? Number(text) : undefined);
  const wanted = typeof value === 'boolean' ? Number(value) : number(String(value));
  const current = number(now);
  if (wanted !== undefined && current !== undefined) return wanted !== current;
  return !now.toLowerCase().includes(written(value).toLowerCase());
}
async function makeChange(tool: Run, { card: { address }, settings }: Change): Promise<JsonObject | undefined> {
  const configuration = configurationIn(await tool('mstconfig', ['-d', address, 'q']));
  const words = Object.entries(settings).flatMap(([name, value]) =>
    differs(name, value, configuration) ? [`${name}=${written(value)}`] : [],
  );
  if (words.length === 0) return undefined;
  await tool('mstconfig', ['-d', address, '-y', 'set', ...words]);
  return { card: address, set: words };
}

/** @returns the settings that were changed @throws AgentError, before a setting is changed, for one that a card does not have */
export async function updateSettings(machine: Machine, { settings: given }: JsonObject): Promise<JsonObject> {
  if (!Array.isArray(given)) settingsFor([], given);
  const tool = toolOf(machine);
  await checkTools(tool);
  const cards = await findCards(tool);
  const { changes, resets } = await changesOf(tool, cards, settingsFor(cards, given));
  for (const { address } of resets)
    await resetCard(tool, address).catch((error: unknown) => machine.log.error(`Failed to reset device ${address} ${reasonOf(error)}`));
  for (const change of changes) await checkChange(tool, change);
  const changed: JsonObject[] = [];
  for (const change of changes) {
    const made = await makeChange(tool, change);
    if (made) changed.push(made);
  }
  return { changed };
}
