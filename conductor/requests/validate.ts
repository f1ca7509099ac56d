/** GET …/validate. */
import { Fault, reasonOf } from '../../model/errors';
import { INTERFACE_KINDS } from '../../model/records';
import type { Validation } from '../core/call-types';
import type { Context } from '../core/context';
import { withTask } from '../core/task';
import { validateInterface } from '../core/validate';

/** GET …/validate: per interface kind, all but vendor. Nothing is reserved, nothing changed. */
export async function validateNode(context: Context, uuid: string): Promise<Readonly<Record<string, Validation>>> {
  return withTask(context, uuid, { purpose: 'driver interface validation', lock: 'shared' }, async (task) => {
    const answers: Record<string, Validation> = {};
    for (const kind of INTERFACE_KINDS.filter((one) => one !== 'vendor')) {
      try {
        await validateInterface(task, kind);
        answers[kind] = { result: true };
      } catch (error) {
        if (!(error instanceof Fault)) task.log.error(`validation of the ${kind} interface ended unexpectedly`, { error });
        answers[kind] = { result: false, reason: reasonOf(error) };
      }
    }
    return answers;
  });
}
