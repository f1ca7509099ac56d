/** Inspection rules: the real Ironic and our server apply the same rules to the same machine, and must make the same node. */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JsonObject } from '../../../model/records';
import { startBoth, type Both } from '../both';
import { AGENT_ONLY, bringToInspectWait, call, postCallback, type Inspected, type Recorded } from './inspected';

jest.setTimeout(300_000);
const MACHINE = JSON.parse(readFileSync(join(__dirname, 'inventories/two-sockets.json'), 'utf8')) as Recorded;
const step = (op: string, args: JsonObject, more: JsonObject = {}): JsonObject => ({ op, args, ...more });

/** Conditions, each in its own rule, which notes in `extra` that the condition held. */
const CONDITIONS: readonly JsonObject[] = [
  step('eq', { values: ['{inventory[cpu][count]}', '96'] }),
  step('eq', { values: ['{inventory[cpu][count]}', 96], force_strings: true }),
  step('eq', { values: [1, 1, 2] }),
  step('!eq', { values: [1, 2] }),
  step('!eq', { values: ['{node.driver}', 'fake-hardware'] }),
  step('lt', { values: [1, 2, 3] }),
  step('gt', { values: [3, 2, 2] }),
  step('!gt', { values: [2, 2] }),
  step('is-empty', { value: '{inventory[nothing]}' }),
  step('is-empty', { value: '{inventory[cpu][flags]}' }),
  step('is-empty', { value: [] }),
  step('is-none', { value: null }),
  step('is-true', { value: 'yes' }),
  step('is-false', { value: 0 }),
  step('in-net', { address: '{inventory[bmc_address]}', subnet: '192.0.2.0/24' }),
  step('in-net', { address: '2001:db8::1', subnet: '192.0.2.0/24' }),
  step('matches', { value: '{inventory[system_vendor][product_name]}', regex: 'PowerEdge R[0-9]+' }),
  step('matches', { value: '{inventory[system_vendor][product_name]}', regex: 'PowerEdge' }),
  step('contains', { value: '{inventory[cpu][model_name]}', regex: 'Gold' }),
  step('one-of', { value: '{inventory[boot][current_boot_mode]}', values: ['uefi', 'bios'] }),
  step('eq', { values: ['{item[tran]}', 'sas'] }, { loop: [{ tran: 'sata' }, { tran: 'sas' }] }),
  step('eq', { values: ['{item[tran]}', 'sas'] }, { loop: [{ tran: 'sata' }, { tran: 'sas' }], multiple: 'all' }),
  step('eq', { values: ['{item}', 'b'] }, { loop: ['a', 'b'], multiple: 'last' }),
  step('eq', { values: ['{item}', 'b'] }, { loop: ['a', 'b'], multiple: 'first' }),
];
/**
 * Actions, in descending order of priority. (While secrets are masked, the reference cannot store a list in the plugin data that a rule
 * extends, and unsets nothing there.)
 */
const ACTIONS: readonly JsonObject[] = [
  step('set-attribute', { path: 'extra/vendor', value: '{inventory[system_vendor][manufacturer]}' }),
  step('set-attribute', { path: 'description', value: 'serial {inventory[system_vendor][serial_number]}' }),
  step('set-attribute', { path: 'resource_class', value: 'baremetal-{inventory[cpu][count]}' }),
  step('set-attribute', { path: 'extra/{item}', value: '{item}' }, { loop: ['x', 'y'] }),
  step('set-attribute', { path: 'driver_info/ipmi_address', value: '{inventory[bmc_address]}' }),
  step('extend-attribute', { path: 'extra/list', value: 'one' }),
  step('extend-attribute', { path: 'extra/list', value: 'one', unique: true }),
  step('extend-attribute', { path: 'extra/list', value: 'two' }),
  step('set-attribute', { path: 'extra/gone', value: 1 }),
  step('del-attribute', { path: 'extra/gone' }),
  step('set-capability', { name: 'sockets', value: '{inventory[cpu][socket_count]}' }),
  step('set-capability', { name: 'gone', value: '1' }),
  step('unset-capability', { name: 'gone' }),
  step('add-trait', { name: 'CUSTOM_GOLD' }),
  step('add-trait', { name: 'CUSTOM_GONE' }),
  step('remove-trait', { name: 'CUSTOM_GONE' }),
  step('set-plugin-data', { path: 'rule_seen', value: '{plugin_data[boot_interface]}' }),
  step('set-plugin-data', { path: 'secret', value: '{plugin_data[bmc_password]}' }),
  step('log', { msg: 'seen {node.uuid}', level: 'debug' }),
];

let both: Both;
beforeAll(async () => {
  both = await startBoth(AGENT_ONLY);
});
afterAll(() => both?.stop());

/** Inspects the machine with these rules on both servers. @returns the results, the real Ironic's first */
async function inspectWith(rules: readonly JsonObject[]): Promise<readonly Inspected[]> {
  const uuid = randomUUID();
  return Promise.all(
    [both.reference, both.ours].map(async (server) => {
      for (const rule of rules) await call(server, 'POST', '/inspection_rules', rule);
      await bringToInspectWait(server, uuid, MACHINE);
      return postCallback(server, uuid, { ...MACHINE.callback, bmc_password: 'hush' });
    }),
  );
}

it('both servers apply the same conditions and actions of inspection rules alike', async () => {
  const [theirs, ours] = await inspectWith([
    ...CONDITIONS.map((condition, at) => ({
      priority: at,
      conditions: [condition],
      actions: [step('set-attribute', { path: `extra/held${at}`, value: condition })],
    })),
    ...ACTIONS.map((action, at) => ({ priority: 1000 - at, conditions: [], actions: [action], sensitive: at % 2 === 1 })),
  ]);
  expect(ours).toEqual(theirs);
  expect(theirs!.node['provision_state']).toBe('manageable');
});
