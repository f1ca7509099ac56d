/**
 * A log file of fake steps and power requests, for tests that kill conductors and count executions. With [fake]step_log set, every fake
 * step and power request writes a line before and after. Two further steps are offered then, one of which must never run twice.
 */
import { randomUUID } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { pause } from './delay';
import { type Interface, type Interfaces, type Power, type PowerInterface, type Step, type Task, done } from '../interfaces';

/** A line of the file. Lines are appended whole, so their order is that of the events, whichever process wrote them. @internal */
export interface FakeEvent {
  readonly phase: 'begin' | 'end';
  readonly node: string;
  /** `vendor.count_step`, or `power` with the request: `power rebooting`. */
  readonly what: string;
  /** Unique for each execution. */
  readonly run: string;
  /** The step's argument of this name, which identifies the flow. */
  readonly token?: unknown;
  /** Fencing number of the reservation under which it ran. */
  readonly fence: number;
  readonly host: string | null;
  readonly pid: number;
  /** Milliseconds since 1970. */
  readonly at: number;
}

const vending = pause('fake.vendor_delay');
const token = { token: { description: 'Goes into the log of steps, so that its executions can be told apart.' } };
const count = (name: string, resumable: boolean): Step => ({
  step: name,
  priority: { clean: 0, deploy: 0, service: 0 },
  args: token,
  requiresRamdisk: false,
  resumable,
  run: async (task) => {
    await vending(task);
    return done;
  },
});
/** The first step is not resumable, so it must never run twice. */
const COUNTING: readonly Step[] = [count('count_step', false), count('count_resumable', true)];

type LogPower = <T>(task: Task, order: Power, work: () => Promise<T>) => Promise<T>;
const loggedPower = (power: PowerInterface, logged: LogPower): PowerInterface => {
  const { on, off, softOff, reset, softReset } = power as Required<PowerInterface>;
  return {
    ...power,
    on: (task) => logged(task, 'power on', () => on(task)),
    off: (task) => logged(task, 'power off', () => off(task)),
    softOff: (task) => logged(task, 'soft power off', () => softOff(task)),
    reset: (task) => logged(task, 'rebooting', () => reset(task)),
    softReset: (task, mustStayOn) => logged(task, 'soft rebooting', () => softReset(task, mustStayOn)),
  };
};

/** The same interfaces; with a file, the fake ones write to it. */
export function withStepLog(interfaces: Interfaces, file: string | null): Interfaces {
  if (file === null) return interfaces;
  const logged = async <T>(task: Task, what: string, label: unknown, work: () => Promise<T>): Promise<T> => {
    const { uuid: node, lock_fence: fence, reservation: host } = task.node;
    const event = { node, what, run: randomUUID(), token: label, fence, host, pid: process.pid };
    const write = (phase: FakeEvent['phase']): void =>
      appendFileSync(file, `${JSON.stringify({ phase, ...event, at: task.clock.now() } satisfies FakeEvent)}\n`);
    write('begin');
    const result = await work();
    write('end');
    return result;
  };
  const loggedSteps = <T extends Interface>(owner: string, value: T, more: readonly Step[] = []): T => ({
    ...value,
    steps: [...(value.steps ?? []), ...more].map((step) => ({
      ...step,
      run: (task: Task, args: Readonly<Record<string, unknown>>) =>
        logged(task, `${owner}.${step.step}`, args['token'], () => step.run(task, args)),
    })),
  });
  const { bios, deploy, firmware, power, vendor } = interfaces;
  const { fake } = power;
  return {
    ...interfaces,
    bios: { ...bios, fake: loggedSteps('bios', bios.fake!) },
    deploy: { ...deploy, fake: loggedSteps('deploy', deploy.fake!) },
    firmware: { ...firmware, fake: loggedSteps('firmware', firmware.fake!) },
    vendor: { ...vendor, fake: loggedSteps('vendor', vendor.fake!, COUNTING) },
    power: { ...power, fake: loggedPower(fake!, (task, order, work) => logged(task, `power ${order}`, undefined, work)) },
  };
}
