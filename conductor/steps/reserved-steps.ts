/**
 * Steps that the conductor runs itself, under the interface `power`. Under other interfaces Ironic accepts these names and drops the
 * steps; so does Bloomery.
 */
import { done, type Outcome, type PlannedStep, type Step, type StepKind, type Task, wait } from '../../drivers/interfaces';
import { Fault } from '../../model/errors';
import type { JsonObject } from '../../model/records';

/** The outcome of a step: a driver's, or `hold` until a client ends the hold. */
export type StepOutcome = Outcome | { readonly kind: 'hold' };
type ReservedStep = Omit<Step, 'run'> & { run(task: Task, args: JsonObject): Promise<StepOutcome> };

const step = (name: string, run: ReservedStep['run'], args: Step['args'] = {}): ReservedStep => ({
  step: name,
  priority: { clean: 0, deploy: 0, service: 0 },
  args,
  abortable: true,
  requiresRamdisk: false,
  resumable: true,
  run,
});
const power = (order: 'power on' | 'power off' | 'rebooting') => async (task: Task) => {
  await task.power(order);
  return done;
};

/** Seconds that a `wait` names, at most as many as `[conductor]max_conductor_wait_step_seconds`. */
function secondsOf({ options, log }: Task, given: unknown): number {
  const seconds = Number(given);
  if (!Number.isInteger(seconds) || seconds < 0)
    throw new Fault('InvalidParameterValue', { message: 'The argument seconds of step power.wait is not a whole number of seconds' });
  const most = options['conductor.max_conductor_wait_step_seconds'];
  if (seconds > most) log.warn(`A step asks for a wait of ${seconds} seconds: it is limited to ${most}`);
  return Math.min(seconds, most);
}

const RESERVED: readonly ReservedStep[] = [
  step('power_on', power('power on')),
  step('power_off', power('power off')),
  step('reboot', power('rebooting')),
  step('hold', async () => ({ kind: 'hold' })),
  step('wait', async (task, { seconds }) => (seconds === undefined ? wait : { kind: 'wait', pollEvery: secondsOf(task, seconds) }), {
    seconds: { description: 'How long to wait; without it: until the next heartbeat.', type: 'integer' },
  }),
];

type Named = Pick<PlannedStep, 'interface' | 'step'>;
const isReservedName = ({ step: name }: Named): boolean => RESERVED.some((candidate) => candidate.step === name);
/** A reserved name under an interface that it is not meant for. */
export const isDropped = (asked: Named): boolean => isReservedName(asked) && asked.interface !== 'power';
export const reservedStep = (asked: Named): ReservedStep | undefined =>
  asked.interface === 'power' ? RESERVED.find((candidate) => candidate.step === asked.step) : undefined;

/** A reserved step in the form that lists have, for checks and for the saved list. */
export const plannedReserved = (asked: Named, kind: StepKind): PlannedStep | undefined => {
  const found = reservedStep(asked);
  return (
    found && {
      interface: 'power',
      step: found.step,
      priority: found.priority[kind] ?? 0,
      argsinfo: found.args ?? null,
      abortable: true,
      requires_ramdisk: false,
    }
  );
};
