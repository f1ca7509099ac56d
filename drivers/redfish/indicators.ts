/** Indicators of machines with a Redfish service: those of the chassis, the system and its drives. */
import { Fault } from '../../model/errors';
import { linkOf, linkedCollection, listOf, member, patchResource, readResource, textOf } from '../../wire/redfish';
import { RedfishError, isStatus, type SendRedfishRequest, type RedfishResource } from '../../wire/redfish';
import type { IndicatorTable, Indicators, Task } from '../interfaces';
import { onSystem, type SystemView } from './target';

/** IndicatorLED → the API's state. */
const LED: Readonly<Record<string, string>> = { Lit: 'on', Off: 'off', Blinking: 'blinking', Unknown: 'unknown' };
const LED_NAMES: Readonly<Record<string, string>> = { on: 'Lit', off: 'Off', blinking: 'Blinking' };
/** LocationIndicatorActive replaces IndicatorLED in newer schemas. It only knows on and off. */
const hasLocation = ({ body }: RedfishResource): boolean => typeof member(body, 'LocationIndicatorActive') === 'boolean';
const ledOf = ({ body }: RedfishResource): string | undefined => {
  const led = textOf(member(body, 'IndicatorLED'));
  return led !== undefined && Object.hasOwn(LED, led) ? LED[led] : undefined;
};
const stateOf = (resource: RedfishResource): string | undefined =>
  ledOf(resource) ?? (hasLocation(resource) ? (member(resource.body, 'LocationIndicatorActive') === true ? 'on' : 'off') : undefined);

interface Lamp {
  readonly name: string;
  readonly resource: RedfishResource;
}
const idOf = ({ body, path }: RedfishResource): string => textOf(member(body, 'Id')) ?? path;
const uuidOf = (resource: RedfishResource): string => textOf(member(resource.body, 'UUID')) ?? idOf(resource);

/** More than a machine has; further links are ignored. */
const MAX_LINKS = 200;
async function linked(ask: SendRedfishRequest, list: unknown): Promise<readonly RedfishResource[]> {
  const paths = listOf(list)
    .map(linkOf)
    .filter((path) => path !== undefined)
    .slice(0, MAX_LINKS);
  const found: RedfishResource[] = [];
  for (const path of paths)
    await readResource(ask, path).then(
      (resource) => found.push(resource),
      (error: unknown) => {
        if (!isStatus(error, 404)) throw error;
      },
    );
  return found;
}
/** Component → its indicators. */
const LAMPS: Readonly<Record<string, (system: SystemView) => Promise<readonly Lamp[]>>> = {
  chassis: async ({ ask, body }) =>
    (await linked(ask, member(body, 'Links', 'Chassis'))).map((resource) => ({ name: uuidOf(resource), resource })),
  system: async (system) => [{ name: uuidOf(system), resource: system }],
  disk: async (system) => {
    const found: Lamp[] = [];
    for (const storage of (await linkedCollection(system.ask, system, 'Storage')) ?? [])
      for (const drive of await linked(system.ask, member(storage.body, 'Drives')))
        found.push({ name: `${idOf(storage)}:${idOf(drive)}`, resource: drive });
    return found;
  },
};
async function lampOf(task: Task, system: SystemView, component: string, indicator: string): Promise<RedfishResource> {
  const lamps = Object.hasOwn(LAMPS, component) ? await LAMPS[component]!(system) : [];
  const lamp = lamps.find(({ name, resource }) => name === indicator && stateOf(resource) !== undefined);
  if (lamp) return lamp.resource;
  throw new Fault('MissingParameterValue', {
    message: `Unknown indicator ${indicator} for component ${component} of node ${task.node.uuid}`,
  });
}

export const redfishIndicators: Indicators = {
  supported: (task) =>
    onSystem(task, undefined, async (system) => {
      const table: Record<string, IndicatorTable[string]> = {};
      for (const [component, find] of Object.entries(LAMPS)) {
        // An error at one component does not hide the others.
        const lamps = await find(system).catch((error: unknown) => {
          if (!(error instanceof RedfishError)) throw error;
          task.log.debug(`Indicators of ${component} are not available`, { reason: error.message });
          return [];
        });
        const shown = lamps.filter(({ resource }) => stateOf(resource) !== undefined);
        if (shown.length === 0) continue;
        table[component] = Object.fromEntries(
          shown.map(({ name, resource }) => [
            name,
            { readonly: false, states: ledOf(resource) === undefined ? ['off', 'on'] : ['blinking', 'off', 'on'] },
          ]),
        );
      }
      return table;
    }),
  get: (task, component, indicator) =>
    onSystem(task, `Redfish get ${component} indicator ${indicator} state`, async (system) =>
      stateOf(await lampOf(task, system, component, indicator))!,
    ),
  set: (task, component, indicator, state) =>
    onSystem(task, `Redfish set ${component} indicator ${indicator} state ${state}`, async (system) => {
      const lamp = await lampOf(task, system, component, indicator);
      const led = ledOf(lamp) !== undefined;
      if (!Object.hasOwn(LED_NAMES, state) || (!led && state === 'blinking'))
        throw new Fault('InvalidParameterValue', { message: `Invalid indicator state ${state} for ${indicator}` });
      await patchResource(system.ask, lamp, led ? { IndicatorLED: LED_NAMES[state] } : { LocationIndicatorActive: state === 'on' });
    }),
};
