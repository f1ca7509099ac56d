/** How the conductor composes orders from the few that a power interface has. */
import { canOrder, waitFor } from '../../../conductor/core/power';
import type { Power, PowerInterface } from '../../../drivers/interfaces';
import { setPower } from '../../support/power';
import { testTask } from '../../support/task';

type Order = 'on' | 'off' | 'softOff' | 'reset';
/** An interface with these orders. The machine is off at once. */
function powerOf(
  orders: readonly Order[],
  more: Partial<PowerInterface> = {},
): { readonly power: PowerInterface; readonly sent: string[] } {
  const sent: string[] = [];
  const each = Object.fromEntries(orders.map((order) => [order, async () => void sent.push(order)]));
  const get: PowerInterface['get'] = async () => {
    sent.push('get');
    return 'power off';
  };
  return { power: { get, ...each, ...more }, sent };
}
const ALL: readonly Order[] = ['on', 'off', 'softOff', 'reset'];
const softReset = (restarts: boolean): Partial<PowerInterface> => ({ softReset: async () => restarts });

it.each<[Power, boolean, readonly Order[], Partial<PowerInterface>, readonly string[]]>([
  ['power on', false, ALL, {}, ['on']],
  ['power off', false, ALL, {}, ['off']],
  ['soft power off', false, ALL, {}, ['softOff']],
  ['rebooting', false, ALL, {}, ['off', 'get', 'on']],
  ['rebooting', false, ['on', 'off'], {}, ['off', 'get', 'on']],
  ['rebooting', true, ALL, {}, ['reset']],
  ['rebooting', false, ['reset'], { rebootsByReset: true }, ['reset']],
  ['soft rebooting', false, ALL, {}, ['softOff', 'get', 'on']],
  ['soft rebooting', false, ALL, softReset(false), ['softOff', 'get', 'on']],
  ['soft rebooting', false, ALL, softReset(true), []],
  ['soft rebooting', true, ALL, softReset(true), []],
])('"%s" of a machine that must stay on = %s, with %j and %j', async (target, staysOn, orders, more, expected) => {
  const { power, sent } = powerOf(orders, more);
  expect(canOrder(power, target)).toBe(true);
  await setPower(power, testTask({ node: { disable_power_off: staysOn } }).task, target);
  expect(sent).toEqual(expected);
});

it.each<[Power, boolean, readonly Order[], Partial<PowerInterface>]>([
  ['power off', false, ['reset'], {}],
  ['soft power off', false, ['on', 'off'], {}],
  ['rebooting', false, ['off'], {}],
  ['rebooting', true, ['on', 'off'], {}],
  ['soft rebooting', true, ALL, {}],
  ['soft rebooting', true, ALL, softReset(false)],
])(
  '"%s" of a machine that must stay on = %s is refused with only %j and %j, and nothing is sent',
  async (target, staysOn, orders, more) => {
    const { power, sent } = powerOf(orders, more);
    const refused = { name: 'PowerStateFailure', message: `Failed to set node power state to ${target}.` };
    await expect(setPower(power, testTask({ node: { disable_power_off: staysOn } }).task, target)).rejects.toMatchObject(refused);
    expect(sent).toEqual([]);
  },
);

it.each<[Power, readonly Order[], boolean]>([
  ['power on', ['off'], false],
  ['rebooting', ['on'], false],
  ['rebooting', ['reset'], true],
  ['soft rebooting', ['on', 'off'], false],
  ['soft rebooting', ['on', 'softOff'], true],
])('canOrder "%s" with %j is %s', (target, orders, expected) => {
  expect(canOrder(powerOf(orders).power, target)).toBe(expected);
});

describe('an order that has no effect', () => {
  const slow = (states: readonly ('power on' | 'power off' | null)[]) => {
    const { power, sent } = powerOf(ALL);
    let reads = 0;
    const get: PowerInterface['get'] = async () => states[Math.min(reads++, states.length - 1)]!;
    const made = testTask({ driver: { power: { ...power, get } } });
    return { task: made.task, again: async () => void sent.push('again'), sent };
  };
  it('is sent again once, when half of the time has passed', async () => {
    const { task, again, sent } = slow(['power off']);
    await expect(waitFor(task, 'power on', 60, again)).rejects.toMatchObject({ name: 'PowerStateFailure' });
    expect(sent).toEqual(['again']);
  });
  it.each<[string, readonly ('power on' | 'power off' | null)[]]>([
    ['a machine that goes on in time', ['power off', 'power off', 'power on']],
    ['a BMC that shows no state', [null]],
  ])('is not sent again to %s', async (_, states) => {
    const { task, again, sent } = slow(states);
    await waitFor(task, 'power on', 60, again).catch(() => {});
    expect(sent).toEqual([]);
  });
  it('may be refused the second time', async () => {
    const { task } = slow([...Array.from({ length: 25 }, () => 'power off' as const), 'power on']);
    await waitFor(task, 'power on', 60, () => Promise.reject(new Error('already on')));
  });
});
