/** …/management/inject_nmi and indicators. The client waits for the BMC. */
import type { IndicatorTable } from '../../drivers/interfaces';
import { Fault } from '../../model/errors';
import type { Context } from '../core/context';
import { withTask } from '../core/task';
import type { NodeTask } from '../core/node-task';
import { validateInterface } from '../core/validate';

/** @param extension Ironic's name of the missing feature, which clients know */
const unsupported = ({ node }: NodeTask, extension: string): Fault =>
  new Fault('UnsupportedDriverExtension', { driver: node.driver, extension });

export async function injectNmi(context: Context, uuid: string): Promise<void> {
  await withTask(context, uuid, { purpose: 'inject nmi', retry: true }, async (task) => {
    await validateInterface(task, 'management');
    const { management } = task.driver;
    if (!management.injectNmi) throw unsupported(task, 'inject_nmi');
    await management.injectNmi(task);
  });
}

export async function listIndicators(context: Context, uuid: string): Promise<IndicatorTable> {
  return withTask(context, uuid, { purpose: 'getting supported indicators', lock: 'shared' }, async (task) => {
    const { indicators } = task.driver.management;
    if (!indicators) throw unsupported(task, 'get_supported_indicators');
    return indicators.supported(task);
  });
}

export async function getIndicator(context: Context, uuid: string, component: string, indicator: string): Promise<string> {
  return withTask(context, uuid, { purpose: 'getting indicators states', retry: true }, async (task) => {
    await validateInterface(task, 'management');
    const { indicators } = task.driver.management;
    if (!indicators) throw unsupported(task, 'get_indicator_state');
    return indicators.get(task, component, indicator);
  });
}

export async function setIndicator(context: Context, uuid: string, component: string, indicator: string, state: string): Promise<void> {
  await withTask(context, uuid, { purpose: 'setting indicator state', retry: true }, async (task) => {
    await validateInterface(task, 'management');
    const { indicators } = task.driver.management;
    if (!indicators?.set) throw unsupported(task, 'set_indicator_state');
    await indicators.set(task, component, indicator, state);
  });
}
