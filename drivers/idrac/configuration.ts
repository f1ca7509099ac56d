/** The system configuration of Dell machines, which an iDRAC exports and imports as a file. */
import { retry, waitUntil } from '../../model/clock';
import { RedfishError, hasMessage, listOf, member, textOf, type RedfishResource } from '../../wire/redfish';
import type { Task } from '../interfaces';
import type { SystemView } from '../redfish/target';
import { startedJob, untilOver } from './jobs';
import { missing } from './manager';

/** Where an action of the manager is; its name begins with the version of the schema. Throws RedfishError. */
function actionTarget(manager: RedfishResource, action: string): string {
  const actions = member(manager.body, 'Actions', 'Oem');
  const name = Object.keys(typeof actions === 'object' && actions !== null ? actions : {}).find((key) => key.endsWith(action));
  const target = name === undefined ? undefined : textOf(member(actions, name, 'target'));
  if (target === undefined) throw missing(`Actions/Oem/${action}`, manager);
  return target;
}

/** The iDRAC has configuration that a restart of the machine applies, or runs another job. */
const PENDING = 'LC068';
const BUSY = 'RAC0679';
const TRIES = 35;
const PAUSE_MS = 15_000;
const JOB_MS = 600_000;
const POWER_TRIES = 20;

/** Switches the machine, and waits until it has the state. Throws RedfishError, Fault. */
async function becomes(task: Task, state: 'power on' | 'power off'): Promise<void> {
  const { power } = task.driver;
  await (state === 'power on' ? power.on : power.off)?.(task);
  const isThere = async (): Promise<boolean> => (await power.get(task)) === state;
  if (!(await waitUntil(task, isThere, (checks) => (checks < POWER_TRIES ? PAUSE_MS : undefined))))
    throw new RedfishError('task', `the machine does not become ${state}`);
}

/**
 * Imports a configuration. If older configuration waits for a restart of the machine, restarts it, and leaves its power as it was.
 * @param xml without white space between its elements, which fails the job
 * @throws RedfishError; Fault of the machine's power
 */
export async function importConfiguration(task: Task, { ask }: SystemView, manager: RedfishResource, xml: string): Promise<void> {
  const target = actionTarget(manager, '#OemManager.ImportSystemConfiguration');
  let before: 'power on' | 'power off' | null | undefined;
  const send = async (): Promise<void> => {
    const answer = await ask('POST', target, { body: { ShareParameters: { Target: ['ALL'] }, ImportBuffer: xml } });
    if (answer.status === 202) await untilOver(task, ask, startedJob(answer, target), JOB_MS);
  };
  await retry(task, send, async (error, attempt) => {
    const isPending = hasMessage(error, PENDING);
    if ((!isPending && !hasMessage(error, BUSY)) || attempt > TRIES) return undefined;
    if (isPending && before === undefined) {
      task.log.warn('The iDRAC has configuration that waits for a restart: the machine is restarted');
      before = await task.driver.power.get(task);
      if (before !== 'power off') await becomes(task, 'power off');
      await becomes(task, 'power on');
    }
    return PAUSE_MS;
  });
  if (before === 'power off') await becomes(task, 'power off');
}

/** Component → its attributes. */
type Configuration = ReadonlyMap<string, ReadonlyMap<string, unknown>>;
const MAX_COMPONENTS = 200;
const MAX_ATTRIBUTES = 5000;
/** Exports the configuration of the network cards. Throws RedfishError. */
export async function exportNicConfiguration(task: Task, { ask }: SystemView, manager: RedfishResource): Promise<Configuration> {
  const target = actionTarget(manager, '#OemManager.ExportSystemConfiguration');
  const body = { ShareParameters: { Target: ['NIC'] }, ExportFormat: 'JSON', ExportUse: 'Default', IncludeInExport: 'Default' };
  const begun = await ask('POST', target, { body });
  const answer = begun.status === 202 ? await untilOver(task, ask, startedJob(begun, target), JOB_MS) : begun;
  const components = member(answer?.body, 'SystemConfiguration', 'Components');
  if (!Array.isArray(components)) throw new RedfishError('protocol', 'Failed to get system configuration from response');
  return new Map(
    listOf(components)
      .slice(0, MAX_COMPONENTS)
      .map((component) => [
        textOf(member(component, 'FQDD')) ?? '',
        new Map(
          listOf(member(component, 'Attributes'))
            .slice(0, MAX_ATTRIBUTES)
            .map((attribute) => [textOf(member(attribute, 'Name')) ?? '', member(attribute, 'Value')]),
        ),
      ]),
  );
}
