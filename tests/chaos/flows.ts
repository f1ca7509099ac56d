/** The orders that the load gives to nodes, by their provision state. */
import type { Chance } from './chance';

/** An accepted order, which must end. */
export interface Order {
  readonly verb: string;
  readonly to: string;
  readonly body: Readonly<Record<string, unknown>>;
  /** Steps that may run once: when one is cut off, the order may fail. */
  readonly once: readonly string[];
  /** Steps that must have run when the order is done. */
  readonly counted: readonly string[];
  /** It waits for an agent at some time. */
  readonly agent?: boolean;
}
type Steps = readonly Readonly<Record<string, unknown>>[];
interface Made {
  readonly steps: Steps;
  readonly once: readonly string[];
  readonly counted: readonly string[];
}

/** A few steps of all kinds. @param risky also steps that may run only once */
function stepsOf(chance: Chance, risky: boolean, more: Readonly<Record<string, unknown>> = {}): Made {
  const once: string[] = [];
  const counted: string[] = [];
  const step = (owner: string, name: string, args: object = {}) => ({ interface: owner, step: name, args, ...more });
  const count = (name: string, list: string[]) => () => {
    const token = chance.uuid();
    list.push(token);
    return step('vendor', name, { token });
  };
  const kinds = [
    count('count_resumable', counted),
    () => step('power', 'wait', { seconds: 1 }),
    () => step('power', 'reboot'),
    () => step('power', 'power_on'),
    ...(risky ? [count('count_step', once)] : []),
  ];
  // A deployment's list may have a step only once: no two of a kind.
  const steps = chance
    .shuffled(kinds)
    .slice(0, chance.between(1, 3))
    .map((make) => make());
  return { steps, once, counted: [...counted, ...once] };
}
const plain = (verb: string, to: string, body: object = {}) => ({ verb, to, body: { target: verb, ...body }, once: [], counted: [] });
const listed = (verb: string, to: string, key: string, { steps, ...made }: Made): Order => ({
  verb,
  to,
  body: { target: verb, [key]: steps, ...(verb === 'active' || verb === 'rebuild' ? {} : { disable_ramdisk: true }) },
  ...made,
});
const AGENT_STEP = [{ interface: 'vendor', step: 'trigger_servicewait' }];

/** State → the possible orders. An order that is listed twice is twice as likely. */
const NEXT: Readonly<Record<string, readonly ((chance: Chance) => Order)[]>> = {
  enroll: [() => plain('manage', 'manageable')],
  manageable: [
    () => plain('provide', 'available'),
    () => plain('provide', 'available'),
    () => plain('inspect', 'manageable'),
    () => plain('adopt', 'active'),
    (chance) => listed('clean', 'manageable', 'clean_steps', stepsOf(chance, true)),
    (chance) => listed('clean', 'manageable', 'clean_steps', stepsOf(chance, false)),
  ],
  available: [
    (chance) => listed('active', 'active', 'deploy_steps', stepsOf(chance, false, { priority: 50 })),
    (chance) => listed('active', 'active', 'deploy_steps', stepsOf(chance, false, { priority: 150 })),
    () => plain('active', 'active'),
    (chance) => listed('active', 'active', 'deploy_steps', stepsOf(chance, true, { priority: 50 })),
    () => plain('manage', 'manageable'),
  ],
  active: [
    () => plain('deleted', 'available'),
    () => plain('deleted', 'available'),
    (chance) => listed('rebuild', 'active', 'deploy_steps', stepsOf(chance, false, { priority: 50 })),
    () => plain('rescue', 'rescue', { rescue_password: 'password' }),
    (chance) => listed('service', 'active', 'service_steps', stepsOf(chance, true)),
    (chance) => listed('service', 'active', 'service_steps', stepsOf(chance, false)),
    () => ({ ...plain('service', 'active', { service_steps: AGENT_STEP }), once: ['agent'], agent: true }),
  ],
  rescue: [() => plain('unrescue', 'active'), () => plain('deleted', 'available')],
  // States after a step that was cut off and cannot run again; they are no defect of ours.
  'clean failed': [() => plain('manage', 'manageable')],
  'deploy failed': [() => plain('deleted', 'available'), () => plain('active', 'active')],
  'service failed': [() => plain('deleted', 'available'), () => plain('abort', 'active')],
};
export const nextOrder = (chance: Chance, state: string): Order => chance.pick(NEXT[state]!)(chance);
export const knows = (state: string): boolean => Object.hasOwn(NEXT, state);
