/** The step that sets the modes of network ports (Ethernet, FibreChannel, …), and the reading of these modes. */
import { Fault } from '../../../model/errors';
import {
  askedPorts,
  portNamed,
  portsProblem,
  storable,
  storedPorts,
  type NetworkPort,
  type PortMode,
} from '../../../model/rules/network-ports';
import type { JsonObject } from '../../../model/records';
import {
  RedfishError,
  followTask,
  member,
  messagesOf,
  patchResource,
  readLinked,
  readResource,
  textOf,
  type RedfishResource,
} from '../../../wire/redfish';
import { done, type Outcome, type Step, type Task } from '../../interfaces';
import { networkPortsOf, type FoundPort } from '../network-ports';
import { onSystem, systemOf, type SystemView } from '../target';
import { afterRestart, appliedAt, applyTime, progressBefore, restart, settingsErrors, waiting, type BootSeen } from './after-restart';

const DOING = 'Redfish configure_network_adapters';
/** driver_internal_info: modes were sent, and take effect when the machine starts. */
const STATE = 'redfish_network_state';
interface RequestedPort extends PortMode {
  readonly path: string;
  readonly property: string;
  /** When settings of the port were last applied before the request. */
  readonly settings_time: string | null;
}
interface RequestedPorts extends BootSeen {
  readonly ports: readonly RequestedPort[];
}
const requested = ({ node }: Task): RequestedPorts | undefined => node.driver_internal_info[STATE] as RequestedPorts | undefined;

export const networkPorts = (task: Task): Promise<readonly NetworkPort[]> =>
  onSystem(task, undefined, (system) => networkPortsOf(task, system));
/** Default configs are checked against the stored ports. */
const store = (task: Task, ports: readonly NetworkPort[]): Promise<void> =>
  task.saveInternal({ network_ports: storable(ports) }, 'with next');

function checkArguments({ ports }: JsonObject): readonly PortMode[] {
  const result = askedPorts(ports);
  if ('problem' in result) throw new Fault('InvalidParameterValue', { message: result.problem });
  return result.asked;
}

/** A port with the resource that takes its mode: the settings resource, or the port itself where there is none. */
interface PortView {
  readonly port: RequestedPort;
  readonly resource: RedfishResource;
  readonly settings: RedfishResource;
}
const modeIn = ({ body }: RedfishResource, { property }: RequestedPort): string | undefined => textOf(member(body, property));
async function viewOf({ ask }: SystemView, { name, mode }: PortMode, { path, property }: FoundPort): Promise<PortView> {
  const resource = await readResource(ask, path);
  const settings = (await readLinked(ask, resource, '@Redfish.Settings', 'SettingsObject')) ?? resource;
  return { port: { name, mode, path, property, settings_time: appliedAt(resource.body) }, resource, settings };
}
/** The mode is there, and no pending change would replace it. */
const isInPlace = ({ port, resource, settings }: PortView): boolean =>
  modeIn(resource, port) === port.mode && [port.mode, undefined].includes(modeIn(settings, port));

const MAX_TASK_MS = 120_000;
const RESET_REQUIRED = /(?:Reset|Reboot)Required$/;
/** @returns whether the service says that the mode takes effect when the machine starts */
async function send(task: Task, { ask }: SystemView, { port, resource, settings }: PortView, mode: string): Promise<boolean> {
  const isDeferred = settings !== resource;
  const answer = await patchResource(ask, settings, {
    [port.property]: mode,
    ...(isDeferred ? { '@Redfish.SettingsApplyTime': applyTime(resource.body) } : {}),
  });
  if (isDeferred) return true;
  const { body } = await followTask(ask, answer, { ...task, timeoutMs: MAX_TASK_MS });
  return messagesOf(member(body, '@Message.ExtendedInfo')).some(({ id }) => RESET_REQUIRED.test(id ?? ''));
}
/** Sends all modes. When the service refuses one, those that it has taken are set back. */
async function sendAll(task: Task, system: SystemView, views: readonly PortView[]): Promise<boolean> {
  let isDeferred = false;
  for (const [at, view] of views.entries()) {
    try {
      isDeferred = (await send(task, system, view, view.port.mode)) || isDeferred;
    } catch (error) {
      if (!(error instanceof RedfishError)) throw error;
      for (const earlier of views.slice(0, at)) await setBack(task, system, earlier);
      throw new RedfishError('protocol', `the port ${view.port.name} cannot be set to ${view.port.mode}: ${error.message}`, {
        cause: error,
      });
    }
  }
  return isDeferred;
}
async function setBack(task: Task, system: SystemView, view: PortView): Promise<void> {
  const before = modeIn(view.settings, view.port) ?? modeIn(view.resource, view.port);
  try {
    const settings = await readResource(system.ask, view.settings.path);
    if (before !== undefined)
      await send(task, system, { ...view, settings: view.settings === view.resource ? view.resource : settings }, before);
  } catch (error) {
    if (!(error instanceof RedfishError)) throw error;
    task.log.warn('the mode of a network port could not be set back', { port: view.port.name, reason: error.message });
  }
}

/** The ports that do not have their mode now. */
async function unapplied({ ask }: SystemView, ports: readonly RequestedPort[]) {
  const left: { readonly port: RequestedPort; readonly resource: RedfishResource }[] = [];
  for (const port of ports) {
    const resource = await readResource(ask, port.path);
    if (modeIn(resource, port) !== port.mode) left.push({ port, resource });
  }
  return left;
}

const run = (task: Task, args: JsonObject): Promise<Outcome> =>
  onSystem(task, DOING, async (system) => {
    const asked = checkArguments(args);
    const before = requested(task);
    // A conductor that died began this step. A second restart does no harm, but is not needed when the modes are there already.
    if (before) return (await unapplied(system, before.ports)).length > 0 ? restart(task, STATE, before) : waiting(task);
    const ports = await networkPortsOf(task, system);
    await store(task, ports);
    const problem = portsProblem(asked, [ports]);
    if (problem !== undefined)
      throw new Fault('InvalidParameterValue', { message: `${DOING} failed for node ${task.node.uuid}: ${problem}` });
    const views: PortView[] = [];
    for (const one of asked) views.push(await viewOf(system, one, portNamed(ports, one.name)!));
    const changing = views.filter((view) => !isInPlace(view));
    const isDeferred = await sendAll(task, system, changing);
    const all = views.map(({ port }) => port);
    const left = await unapplied(system, all);
    if (left.length === 0 && !isDeferred) {
      await storeModes(task, all);
      return done;
    }
    const state: RequestedPorts = { ports: all, ...progressBefore(system) };
    return restart(task, STATE, state);
  });

async function storeModes(task: Task, ports: readonly PortMode[]): Promise<void> {
  const known = storedPorts(task.node.driver_internal_info['network_ports']);
  const now = (port: NetworkPort): string => ports.find(({ name }) => port.names.includes(name))?.mode ?? port.mode;
  await store(
    task,
    known.map((port) => ({ ...port, mode: now(port) })),
  );
}

async function poll(task: Task): Promise<Outcome> {
  const state = requested(task);
  if (!state) return done;
  const outcome = await afterRestart(task, STATE, state, 'configure_network_adapters', async () => {
    const system = await systemOf(task);
    const left = await unapplied(system, state.ports);
    const words = left.map(({ port, resource }) => `${port.name} is ${modeIn(resource, port) ?? 'unknown'}, not ${port.mode}`);
    return {
      system,
      isApplied: left.length === 0,
      left: left.length === 0 ? undefined : `Network ports are not as requested: ${words.join(', ')}.`,
      errors: left.flatMap(({ port, resource }) => settingsErrors(resource.body, port.settings_time)),
    };
  });
  if (outcome.kind === 'done') await storeModes(task, state.ports);
  return outcome;
}

export const configureNetworkAdapters: Step = {
  step: 'configure_network_adapters',
  priority: { clean: 0, deploy: 0, service: 0 },
  requiresRamdisk: false,
  resumable: true,
  args: {
    ports: {
      description: 'A list of network ports, each with a "name" and a "mode", such as Ethernet or FibreChannel',
      required: true,
      type: 'list',
    },
  },
  checkArguments: (args) => void checkArguments(args),
  run,
  poll,
  pollAtHeartbeat: true,
};
