/** Why the firmware of a machine may have refused its boot loader: what the machine said on its console, or else its Secure Boot. */
import { plainConsoleText } from '../../model/rules/console-text';
import type { NodeTask } from '../core/node-task';

/** Bytes from the end of the console's log: a refusal is among the last lines. */
const TAIL = 8192;
/** What edk2, shim and GRUB say of a program without a valid signature. */
const REFUSALS = ['Access Denied', 'Security Violation', 'Security Policy Violation', 'Verification failed', 'bad shim signature'];

/** The last line that says so. @internal */
export const refusalIn = (text: string): string | undefined =>
  plainConsoleText(text)
    .split('\n')
    .findLast((line) => REFUSALS.some((refusal) => line.includes(refusal)))
    ?.trim();

/** Undefined: nothing is known. */
export async function refusedBoot({ context, node }: NodeTask): Promise<string | undefined> {
  const saved = await context.connections.consoleLogs?.read(node.uuid, undefined, TAIL).catch(() => undefined);
  const said = saved && refusalIn(saved.bytes.toString('latin1'));
  if (said !== undefined) return `the machine said "${said}"`;
  return node.secure_boot === true ? 'Secure Boot is on, and starts signed boot loaders only' : undefined;
}
