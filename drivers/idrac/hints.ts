/** What an operator must know of an iDRAC or its machine when it refuses something: its own words do not tell it. */
import { Fault } from '../../model/errors';
import { RedfishError } from '../../wire/redfish';
import type { Task } from '../interfaces';
import { systemOf, type SystemView } from '../redfish/target';

/**
 * Runs `work`. A DriverOperationError gets a hint behind its message.
 * @param find reads the hint after the failure; undefined: there is none. The error stays as it is where nothing can be read
 */
export async function withHint<T>(
  task: Task,
  work: () => Promise<T>,
  find: (system: SystemView) => Promise<string | undefined>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    task.signal.throwIfAborted();
    if (!(error instanceof Fault) || error.name !== 'DriverOperationError') throw error;
    const hint = await systemOf(task)
      .then(find)
      .catch((reading: unknown) => {
        task.signal.throwIfAborted();
        if (!(reading instanceof RedfishError || reading instanceof Fault)) throw reading;
        return undefined;
      });
    if (hint === undefined) throw error;
    throw new Fault('DriverOperationError', { message: `${error.message} (${hint})` }, { cause: error });
  }
}
