/** Inspection rules: replacement fields, conditions, actions on a draft. Expected values are those of Ironic 39 unless said otherwise. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ApiCall } from '../../conductor/inspection/rules/actions';
import { readBuiltInRules } from '../../conductor/inspection/rules/built-in';
import { callApi } from '../../conductor/inspection/rules/call';
import { applyRules } from '../../conductor/inspection/rules/engine';
import { format, FormatError } from '../../conductor/inspection/rules/format';
import { changesOf, draftOf } from '../../conductor/inspection/rules/rule';
import { systemClock } from '../../model/clock';
import { silentLog } from '../../model/log';
import type { RuleStep, InspectionRule } from '../../model/rules/inspection-rules';
import { nodeRecord, portRecord } from '../support/task';
import { startTlsServer } from '../support/fakes/tls-server';

const N = 'inventory[cpu]';
const names = {
  node: { name: 'n1', driver_info: { a: 'b' } },
  inventory: { cpu: { count: 4, load: 1.5, big: 1234567, flags: ['x', 'y'], name: 'abc', on: true, none: null, list: [1] } },
  item: "it's",
};
it.each([
  ['', ''],
  ['plain', 'plain'],
  ['{node.name}', 'n1'],
  ['{node.driver_info[a]}-{item}', "b-it's"],
  ['{inventory[cpu][count]}', '4'],
  ['{inventory[cpu][flags][1]}', 'y'],
  ['{inventory[cpu][list]}', '[1]'],
  [`{${N}[count]:04d}`, '0004'],
  [`{${N}[count]:>6}`, '     4'],
  [`{${N}[count]:#010b}`, '0b00000100'],
  [`{${N}[count]:=+5}`, '+   4'],
  [`{${N}[count]:.2f}`, '4.00'],
  [`{${N}[count]:e}`, '4.000000e+00'],
  [`{${N}[count]:.0%}`, '400%'],
  [`{${N}[load]:08.3f}`, '0001.500'],
  [`{${N}[load]:.0f}`, '2'],
  [`{${N}[load]:g}`, '1.5'],
  [`{${N}[big]:,}`, '1,234,567'],
  [`{${N}[big]:_x}`, '12_d687'],
  [`{${N}[big]:,.1f}`, '1,234,567.0'],
  [`{${N}[big]:.3g}`, '1.23e+06'],
  [`{${N}[load]:#g}`, '1.50000'],
  [`{${N}[load]:10}`, '       1.5'],
  [`{${N}[name]:*^7}`, '**abc**'],
  [`{${N}[name]:.2}`, 'ab'],
  [`{${N}[name]:05}`, 'abc00'],
  [`{${N}[name]!r:>8}`, "   'abc'"],
  [`{${N}[name][1]}`, 'b'],
  [`{${N}[on]:5}`, '    1'],
  [`{${N}[count]!s:04}`, '4000'],
  [`{${N}[list]:}`, '[1]'],
  [`{${N}[load]:d}`, 'wrong'],
  [`{${N}[name]:5d}`, 'wrong'],
  [`{${N}[name]:=5}`, 'wrong'],
  [`{${N}[count]:.2}`, 'wrong'],
  [`{${N}[count]:s}`, 'wrong'],
  [`{${N}[none]:5}`, 'wrong'],
  [`{${N}[list]:5}`, 'wrong'],
  [`{${N}[count]:999999999999}`, 'wrong'],
  [`{${N}[name][3]}`, 'wrong'],
  ['{item!r}', '"it\'s"'],
  ['{{x}}', '{x}'],
  ['{nothing}', 'missing'],
  ['{inventory[disk]}', 'missing'],
  ['{inventory[cpu][flags][2]}', 'wrong'],
  ['{inventory[cpu][flags][x]}', 'wrong'],
  ['{inventory[cpu][count][x]}', 'wrong'],
  ['{inventory.cpu}', 'wrong'],
  ['{node.nothing}', 'wrong'],
  ['{node.constructor}', 'wrong'],
  ['{inventory[constructor]}', 'missing'],
  ['{', 'wrong'],
  ['a}', 'wrong'],
  ['{}', 'wrong'],
])('the template %s gives %s', (template, expected) => {
  let got: string;
  try {
    got = format(template, names, ['node'], (value) => value);
  } catch (error) {
    got = (error as FormatError).kind;
  }
  expect(got).toBe(expected);
});

const PORT = 'cccccccc-0000-4000-8000-000000000001';
const node = nodeRecord({
  properties: { memory_mb: 4, capabilities: 'a:1' },
  driver_info: { ipmi_password: 'hush' },
  traits: ['CUSTOM_A'],
});
const port = portRecord({ uuid: PORT, extra: { list: [1] } });
const inventory = {
  cpu: { count: 8, flags: ['vmx'] },
  bmc_address: '192.0.2.7',
  boot: null,
  bmc_password: 'hush',
  hostname: '{node.name}',
};
const rule = (conditions: readonly RuleStep[], actions: readonly RuleStep[], more: Partial<InspectionRule> = {}): InspectionRule => ({
  uuid: 'the-rule',
  priority: 0,
  phase: 'main',
  sensitive: false,
  conditions,
  actions,
  ...more,
});
async function apply(rules: readonly InspectionRule[], mask = 'always', calls: ApiCall[] = [], said: string[] = []) {
  const draft = draftOf(node, [port], inventory as never, { seen: { a: [1] }, password: 'hush' });
  const log = { ...silentLog, info: (text: string) => said.push(text) };
  const call = (what: ApiCall): Promise<void> => {
    calls.push(what);
    return what.url.includes('down') ? Promise.reject(new Error('nobody is there')) : Promise.resolve();
  };
  await applyRules(rules, draft, { 'inspection_rules.mask_secrets': mask }, { log, call });
  return { node: changesOf(node, draft.node), port: changesOf(port, draft.ports[0]!), pluginData: draft.pluginData };
}
const mark: RuleStep = { op: 'set-attribute', args: { path: 'extra/met', value: true } };
const met = async (condition: RuleStep): Promise<unknown> => (await apply([rule([condition], [mark])])).node.extra !== undefined;

it.each<[string, unknown, boolean | string, object?]>([
  ['eq', { values: ['{inventory[cpu][count]}', '8'] }, true],
  ['eq', { values: ['{inventory[cpu][count]}', 8] }, false],
  ['!eq', { values: [1, 2] }, true],
  ['eq', { values: [1, true] }, true],
  ['eq', { values: [{ a: [1] }, { a: [1] }] }, true],
  ['eq', { values: [1] }, true],
  ['eq', { values: [1, 1, 2] }, false],
  ['eq', [[1, 1]], true],
  ['eq', { values: 5 }, "Expected list for 'values', got: int"],
  ['lt', { values: [1, 2, 3] }, true],
  ['lt', { values: [1, 2, 2] }, false],
  ['lt', { values: ['B', 'a'] }, true],
  [
    'lt',
    {
      values: [
        [1, 2],
        [1, 3],
      ],
    },
    true,
  ],
  ['gt', { values: [2, 1] }, true],
  ['gt', { values: [2, 'a'] }, "'>' not supported between instances of 'int' and 'str'"],
  ['lt', { values: [null, 1] }, "'<' not supported between instances of 'NoneType' and 'int'"],
  ['is-empty', { value: '{inventory[nothing]}' }, true],
  ['is-empty', { value: '{inventory[boot]}' }, true],
  ['is-empty', { value: '{inventory[cpu][flags]}' }, false],
  ['is-empty', { value: [] }, true],
  ['in-net', { address: '{inventory[bmc_address]}', subnet: '192.0.2.0/24' }, true],
  ['in-net', { address: '192.0.3.1', subnet: '192.0.2.9/255.255.255.0' }, false],
  ['in-net', { address: '2001:db8::1', subnet: '192.0.2.0/24' }, false],
  ['in-net', { address: '2001:db8::1', subnet: '2001:db8::/32' }, true],
  ['in-net', { address: '10.9.9.9', subnet: '10.0.0.0/0.255.255.255' }, true],
  ['in-net', { address: '::ffff:10.0.0.1', subnet: '10.0.0.0/8' }, false],
  ['in-net', { address: '::ffff:10.0.0.1', subnet: '::ffff:10.0.0.0/104' }, true],
  ['in-net', { address: 'x', subnet: '192.0.2.0/24' }, 'failed to detect a valid IP address'],
  ['in-net', { address: '192.0.2.1', subnet: '192.0.2.0/33' }, 'invalid value: invalid IPNetwork'],
  ['matches', { value: '{node.name}', regex: 'n[0-9]' }, true],
  ['matches', { value: 'n12', regex: 'n[0-9]' }, false],
  ['matches', { value: 'axx', regex: 'a|b' }, true],
  ['matches', { value: 'N1', regex: '(?i)n(?P<x>1)' }, true],
  ['contains', { value: 'xn1x', regex: 'n[0-9]' }, true],
  ['contains', { value: 'x', regex: '(' }, 'invalid regular expression'],
  // Python's syntax.
  ['matches', { value: 'abab', regex: '(?P<x>ab)(?P=x)' }, true],
  ['contains', { value: 'ab', regex: '(?<=a)b(?!c)' }, true],
  ['contains', { value: 'x\ny', regex: '\\Ay' }, false],
  ['contains', { value: 'x\ny', regex: '(?m)^y$' }, true],
  ['contains', { value: 'x\ny', regex: '(?m)\\Ay' }, false],
  ['contains', { value: 'x\ny', regex: '(?m)x\\Z' }, false],
  ['contains', { value: 'X\ny', regex: '(?ais)x.y\\Z' }, true],
  ['contains', { value: '\\A', regex: '^\\\\A' }, true],
  ['contains', { value: 'x', regex: `(?:${'(?:x|y)'.repeat(300)}|x)` }, true],
  ['contains', { value: `${'a'.repeat(40)}b`, regex: '^(a+)+$' }, 'takes too long'],
  ['one-of', { value: '{inventory[cpu][count]}', values: ['8', '9'] }, true],
  ['one-of', { value: 'x', values: 'axb' }, true],
  ['one-of', { value: 'x' }, false],
  ['is-none', { value: null }, true],
  ['is-none', { value: '{inventory[boot]}' }, false],
  ['is-true', { value: 'YES' }, true],
  ['is-true', { value: '1' }, false],
  ['is-true', { value: 1 }, true],
  ['is-false', { value: null }, true],
  ['is-false', { value: 'no' }, true],
  ['eq', { values: ['{item}', 2] }, true, { loop: [1, 2] }],
  ['eq', { values: ['{item}', 2] }, false, { loop: [1, 2], multiple: 'all' }],
  ['eq', { values: ['{item}', 2] }, true, { loop: [1, 2], multiple: 'last' }],
  ['eq', { values: ['{item}', 1] }, false, { loop: [1, 2], multiple: 'last' }],
  ['eq', { values: ['{item}', 2] }, true, { loop: [1, 2], multiple: 'first' }],
  ['eq', { values: ['{item[a]}', 'b'] }, true, { loop: { a: 'b' } }],
  ['eq', { values: ['{item}', 'n1'] }, true, { loop: ['{node.name}'] }],
  ['eq', { values: ['{inventory[nothing]}', '{inventory[nothing]}'] }, true],
  ['is-empty', { value: '{item}' }, true, { loop: ['{inventory[nothing]}'] }],
])('the condition %s with %j gives %s (%j)', async (op, args, expected, more = {}) => {
  const condition = { op, args, ...more } as RuleStep;
  if (typeof expected === 'string') await expect(met(condition)).rejects.toThrow(expected);
  else expect(await met(condition)).toBe(expected);
});

it.each<[string, unknown, object | string, object?]>([
  ['set-attribute', { path: 'extra/a/b', value: '{node.name}' }, { node: { extra: { a: { b: 'n1' } } } }],
  [
    'set-attribute',
    { path: 'driver_info.ipmi_address', value: '{inventory[bmc_address]}' },
    { node: { driver_info: { ipmi_address: '192.0.2.7' } } },
  ],
  ['set-attribute', { path: 'description', value: '{inventory[bmc_password]}' }, { node: { description: '***' } }],
  ['set-attribute', { path: 'resource_class', value: null }, { node: {} }],
  ['set-attribute', { path: 'automated_clean', value: 'yes' }, { node: { automated_clean: true } }],
  [
    'set-attribute',
    { path: 'provision_state', value: 'active' },
    "Failed to set attribute provision_state with value active: 'provision_state' cannot be set",
  ],
  ['set-attribute', { path: 'name/x', value: 1 }, "'name' has no members"],
  ['set-attribute', { path: 'extra', value: 5 }, 'an object is needed, not 5'],
  ['set-attribute', { path: 'properties/memory_mb/x', value: 5 }, "'memory_mb' is not an object"],
  [
    'set-attribute',
    { path: 'extra/{item[k]}', value: '{item[v]}' },
    { node: { extra: { a: '1', b: '2' } } },
    {
      loop: [
        { k: 'a', v: 1 },
        { k: 'b', v: 2 },
      ],
    },
  ],
  [
    'set-attribute',
    { path: '{item[path]}', value: '{item[value]}' },
    { node: { driver_info: { ipmi_address: '192.0.2.7', cpus: '0008' } } },
    {
      loop: [
        { path: 'driver_info/ipmi_address', value: '{inventory[bmc_address]}' },
        { path: 'driver_info/cpus', value: '{inventory[cpu][count]:04d}' },
      ],
    },
  ],
  [
    'set-attribute',
    { path: 'driver_info/ipmi_password', value: '{item[value]}' },
    { node: { driver_info: { ipmi_password: '***' } } },
    { loop: { value: '{inventory[bmc_password]}' } },
  ],
  [
    'set-attribute',
    { path: 'extra/x', value: '{item}' },
    { node: { extra: { x: "{'a': ['8']}" } } },
    { loop: [{ a: ['{inventory[cpu][count]}'] }] },
  ],
  ['set-attribute', { path: 'extra/x', value: '{item}' }, { node: { extra: { x: '{node.name}' } } }, { loop: ['{inventory[hostname]}'] }],
  [
    'set-attribute',
    { path: 'driver_info/ipmi_address', value: '{inventory[nothing]}' },
    "set-attribute: the fields of '{inventory[nothing]}' cannot be filled in: 'nothing' is not there",
  ],
  ['set-attribute', { path: 'extra/x', value: '{item[v]}' }, "'nothing' is not there", { loop: [{ v: '{inventory[nothing]}' }] }],
  ['extend-attribute', { path: 'extra/list', value: 'x' }, { node: { extra: { list: ['x'] } } }],
  ['extend-attribute', { path: 'properties/memory_mb', value: 'x' }, 'Cannot extend non-list attribute properties/memory_mb with value x'],
  ['del-attribute', { path: 'properties/memory_mb' }, { node: { properties: { capabilities: 'a:1' } } }],
  ['del-attribute', { path: 'properties/nothing' }, "Failed to delete attribute at properties/nothing: 'nothing'"],
  ['del-attribute', { path: 'name' }, 'cannot be removed by a rule'],
  ['set-capability', { name: 'b', value: '{inventory[cpu][count]}' }, { node: { properties: { capabilities: 'a:1,b:8' } } }],
  ['unset-capability', { name: 'a' }, { node: { properties: { capabilities: '' } } }],
  ['add-trait', { name: 'CUSTOM_B' }, { node: { traits: ['CUSTOM_A', 'CUSTOM_B'] } }],
  ['add-trait', { name: 'b' }, 'Failed to add new trait b'],
  ['remove-trait', { name: 'CUSTOM_A' }, { node: { traits: [] } }],
  ['remove-trait', { name: 'CUSTOM_X' }, { node: {} }],
  ['set-plugin-data', { path: 'x.y', value: '{plugin_data[password]}' }, { pluginData: { x: { y: '***' } } }],
  ['set-plugin-data', { path: '__proto__.y', value: 1 }, { node: {} }],
  ['extend-plugin-data', { path: 'seen.a', value: 1, unique: true }, { pluginData: { seen: { a: [1] } } }],
  ['extend-plugin-data', { path: 'seen.a', value: 1 }, { pluginData: { seen: { a: [1, 1] } } }],
  ['unset-plugin-data', { path: 'seen.a' }, { pluginData: { password: 'hush' } }],
  ['unset-plugin-data', { path: 'no.thing' }, { node: {} }],
  ['set-port-attribute', { port_id: PORT, path: 'extra/x', value: 1 }, { port: { extra: { list: [1], x: 1 } } }],
  ['extend-port-attribute', { port_id: PORT, path: 'extra/list', value: 2 }, { port: { extra: { list: [1, 2] } } }],
  ['del-port-attribute', { port_id: PORT, path: 'extra/list' }, { port: { extra: {} } }],
  ['set-port-attribute', { port_id: 'x', path: 'extra/x', value: 1 }, 'Port x could not be found'],
  ['log', { msg: '{node.name}', level: 'loud' }, 'Invalid log level: loud'],
  ['fail', { msg: 'not such a machine' }, 'Failed to inspect hardware. Reason: not such a machine (inspection rule the-rule)'],
  ['api-call', { url: 'http://down', timeout: 1 }, 'Request to http://down failed: nobody is there'],
  ['api-call', { url: 'http://x', timeout: 0 }, 'timeout must be greater than zero'],
])('the action %s with %j gives %j', async (op, args, expected, more = {}) => {
  const one = rule([], [{ op, args, ...more } as RuleStep]);
  if (typeof expected === 'string') await expect(apply([one])).rejects.toThrow(expected);
  else expect(await apply([one])).toMatchObject(expected);
  expect(Object.getPrototypeOf({})).not.toHaveProperty('y');
});

it('runs rules by descending priority, and only those whose conditions are all true', async () => {
  const say = (value: string): RuleStep => ({ op: 'extend-attribute', args: { path: 'extra/order', value } });
  const no: RuleStep = { op: 'eq', args: { values: [1, 2] } };
  const yes: RuleStep = { op: 'eq', args: { values: [1, 1] } };
  const { node: changed } = await apply([
    rule([], [say('low')], { priority: 1 }),
    rule([yes, no], [say('never')], { priority: 5 }),
    rule([yes, yes], [say('high')], { priority: 9 }),
  ]);
  expect(changed.extra).toEqual({ order: ['high', 'low'] });
});

it.each([
  ['always', true, '***'],
  ['sensitive', false, '***'],
  ['sensitive', true, 'hush'],
  ['never', false, 'hush'],
] as const)('with mask_secrets = %s and sensitive = %s a rule reads a password as %s', async (mask, sensitive, expected) => {
  const one = rule([], [{ op: 'set-attribute', args: { path: 'extra/x', value: '{inventory[bmc_password]}' } }], { sensitive });
  expect((await apply([one], mask)).node.extra).toEqual({ x: expected });
});

it('api-call sends the request with its defaults, and log writes the message', async () => {
  const calls: ApiCall[] = [];
  const said: string[] = [];
  const steps: RuleStep[] = [
    { op: 'api-call', args: { url: 'http://x/{node.name}', headers: { a: 1 }, retries: 0 } },
    { op: 'log', args: { msg: 'seen {node.name}' } },
  ];
  await apply([rule([], steps)], 'always', calls, said);
  expect(calls).toEqual([{ url: 'http://x/n1', headers: { a: '1' }, proxies: {}, timeoutSeconds: 5, retries: 0, backoffFactor: 0.3 }]);
  expect(said).toContain('seen n1');
});

it('api-call verifies certificates as [DEFAULT]webserver_verify_ca says', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'bloomery-rules-'));
  const secure = await startTlsServer(join(folder, 'web.pem'), (_, response) => response.end());
  const call = (verifyCa: string): Promise<void> =>
    callApi(
      { url: secure.url, headers: {}, proxies: {}, timeoutSeconds: 60, retries: 0, backoffFactor: 0 },
      {
        clock: systemClock,
        signal: new AbortController().signal,
        options: { 'DEFAULT.webserver_verify_ca': verifyCa, 'DEFAULT.webserver_tls_minimum_version': '1.3' },
      },
    );
  await expect(call('True')).rejects.toThrow(/self-signed certificate/);
  await call(secure.ca);
  await secure.close();
  await rm(folder, { recursive: true });
});

describe('built-in rules', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'bloomery-rules-'));
  });
  afterAll(() => rm(folder, { recursive: true }));
  it.each<[string, string | RegExp]>([
    ['- actions: [{op: log, args: {msg: x}}]\n  priority: 20000\n', '00000000-0000-0000-0000-000000000000'],
    ['a: 1', /must contain a list of rules/],
    ['- actions: []', /rule 1: it has no actions/],
    ['- 5', /rule 1: it is not an object/],
    ['- actions: [{op: log, args: {}}]', /missing required argument\(s\): msg/],
    ['- actions: [{op: nope, args: {}}]', /unknown op nope in actions/],
    ['- {actions: [{op: log, args: [x]}], phase: late}', /Invalid phase: late/],
    ['[', /built-in.yaml: /],
  ])('are read, or refused with a reason: %j', async (text, expected) => {
    const path = join(folder, 'built-in.yaml');
    await writeFile(path, text);
    if (typeof expected === 'string') expect((await readBuiltInRules(path))[0]!.uuid).toBe(expected);
    else await expect(readBuiltInRules(path)).rejects.toThrow(expected);
  });
  it('are empty without a file, and an error if the file does not exist', async () => {
    expect(await readBuiltInRules(null)).toEqual([]);
    await expect(readBuiltInRules(join(folder, 'no'))).rejects.toThrow(/\[inspection_rules\]built_in_rules: .*no: .*ENOENT/);
  });
});
