/** Steps: which are offered, in which order they run, and the effect of a client's list. */
import {
  allowedSteps,
  argumentsOf,
  automatedSteps,
  checkArguments,
  checkRequestedSteps,
  cleanPriorities,
  deploySteps,
  inOrder,
  manualSteps,
  offeredSteps,
  stepId,
  type RequestedStep,
} from '../../../conductor/steps/steps';
import { savedList } from '../../../conductor/steps/step-position';
import type { JsonObject } from '../../../model/records';
import { done, type Driver, type PlannedStep } from '../../../drivers/interfaces';
import { conductorOptions } from '../../support/conductor';
import { interfacesOf, newMachine } from '../../support/machine';
import { errorWith } from '../../support/expect';
import { testTask } from '../../support/task';

type Checking = Parameters<typeof manualSteps>[3];
const at = (id: string, priority: number, more: Partial<PlannedStep> = {}): PlannedStep => {
  const [owner, step] = id.split('.') as [string, string];
  return { interface: owner, step, priority, ...more };
};
const ids = (steps: readonly PlannedStep[]): readonly string[] => steps.map(stepId);

it.each<['clean' | 'deploy' | 'verify', readonly PlannedStep[], readonly string[]]>([
  ['clean', [at('raid.a', 10), at('deploy.b', 20)], ['deploy.b', 'raid.a']],
  [
    'clean',
    ['raid', 'bios', 'deploy', 'firmware', 'management', 'power', 'vendor'].map((item) => at(`${item}.x`, 5)),
    ['vendor.x', 'power.x', 'management.x', 'firmware.x', 'deploy.x', 'bios.x', 'raid.x'],
  ],
  ['deploy', [at('deploy.b', 5), at('deploy.a', 5)], ['deploy.b', 'deploy.a']],
  ['verify', [at('boot.x', 1), at('inspect.x', 1), at('power.x', 1)], ['power.x', 'inspect.x', 'boot.x']],
])('orders %s steps by priority, then by interface, then as they are given', (kind, steps, order) => {
  expect(ids(inOrder(kind, steps))).toEqual(order);
});

const driver = (): Driver => {
  const machine = newMachine({
    steps: [
      { step: 'beep', priority: { clean: 1, deploy: 0 }, requiresRamdisk: false, run: async () => done },
      { step: 'quiet', priority: { service: 3 }, run: async () => done },
    ],
  });
  const interfaces = interfacesOf(machine);
  return Object.fromEntries(
    Object.entries(interfaces).map(([kind, named]) => [kind, (named as Record<string, unknown>).test]),
  ) as unknown as Driver;
};

it("offers the steps of the driver and of the agent, and prefers the driver's", () => {
  const fromAgent = [at('deploy.write_image', 0), at('deploy.erase_devices', 10)];
  expect(ids(offeredSteps(driver(), 'clean', fromAgent))).toEqual(['vendor.beep', 'deploy.write_image', 'deploy.erase_devices']);
  const deploy = offeredSteps(driver(), 'deploy', fromAgent);
  expect(ids(deploy)).toEqual(['vendor.beep', 'deploy.deploy', 'deploy.write_image', 'deploy.boot_instance', 'deploy.erase_devices']);
  // The driver's own step wins over the agent's of the same name.
  expect(deploy.find(({ step }) => step === 'write_image')!.priority).toBe(80);
  expect(offeredSteps(driver(), 'clean')[0]).toEqual({
    interface: 'vendor',
    step: 'beep',
    priority: 1,
    argsinfo: null,
    abortable: false,
    requires_ramdisk: false,
  });
});

it('knows the arguments that the driver adds to a step of the agent, and saves the step without them', () => {
  const own = driver();
  const agentArguments = { 'deploy.shred': { passes: { description: 'How often', type: 'integer' as const } } };
  const adding: Driver = { ...own, deploy: { ...own.deploy, agentArguments } };
  const shred = at('deploy.shred', 10);
  const offer = (step: PlannedStep): PlannedStep =>
    offeredSteps(adding, 'clean', [step]).find((found) => stepId(found) === 'deploy.shred')!;
  const speed = { description: 'How fast' };
  expect(argumentsOf(offer({ ...shred, argsinfo: { speed } }))).toEqual({ passes: { description: 'How often' }, speed });
  expect(savedList('clean', [offer(shred)], 0)).toEqual({ clean_steps: [shred], clean_step_index: 0 });
});

it('checks an argument beside the others of its step', () => {
  const own = driver();
  const problem = (value: unknown, { zeros }: object & { zeros?: unknown }) => (value === 0 && zeros === false ? 'is wrong' : undefined);
  const agentArguments = { 'deploy.shred': { passes: { description: '', problem }, zeros: { description: '' } } };
  const adding: Driver = { ...own, deploy: { ...own.deploy, agentArguments } };
  const check = (args: JsonObject): void =>
    checkArguments({ driver: adding, node: testTask().task.node }, 'clean', [{ interface: 'deploy', step: 'shred', args }]);
  check({ passes: 0 });
  expect(() => check({ passes: 0, zeros: false })).toThrow(/^the argument passes of clean step .* is wrong$/);
});

it("checks the node's settings for a step of the agent, and leaves the driver's own steps to the driver", () => {
  const own = driver();
  const adding: Driver = { ...own, deploy: { ...own.deploy, agentStepProblem: (_, { step }) => `driver_info/${step} must be x` } };
  const check = (id: string): void => checkArguments({ driver: adding, node: testTask().task.node }, 'clean', [at(id, 0)]);
  expect(() => check('deploy.shred')).toThrow('clean step deploy.shred: driver_info/shred must be x');
  check('vendor.beep');
});

it('automated cleaning orders steps by the priorities of driver, agent and operator', () => {
  const offered = [at('deploy.erase_devices', 10), at('deploy.erase_devices_metadata', 99), at('raid.create', 0), at('deploy.off', 5)];
  const overrides = cleanPriorities(
    conductorOptions({
      'deploy.erase_devices_priority': 0,
      'deploy.erase_devices_metadata_priority': null,
      'conductor.clean_step_priority_override': { 'raid.create': '120', 'deploy.off': 'x' },
    }),
  );
  expect(overrides).toEqual({ 'deploy.erase_devices': 0, 'raid.create': 120 });
  expect(ids(automatedSteps('clean', offered, overrides))).toEqual(['raid.create', 'deploy.erase_devices_metadata', 'deploy.off']);
});

it('manual cleaning has exactly the requested steps, with the properties that the driver declares', () => {
  const offered = [at('deploy.erase', 10, { abortable: true }), at('raid.create', 0, { argsinfo: { size: { description: 'How big' } } })];
  const asked = [
    { interface: 'raid', step: 'create', args: { size: 2 } },
    { interface: 'deploy', step: 'erase' },
  ];
  expect(manualSteps('clean', asked, offered, {})).toEqual([
    { ...asked[0], abortable: false, priority: 0 },
    { ...asked[1], abortable: true, priority: 10 },
  ]);
});

it('steps that the client requests replace or disable those of the driver', () => {
  const offered = [at('deploy.deploy', 100), at('deploy.write_image', 80), at('raid.apply', 0), at('bios.apply', 0)];
  const asked = [
    { interface: 'raid', step: 'apply', priority: 90, args: { raid_config: {} } },
    { interface: 'deploy', step: 'write_image', priority: 0, args: {} },
  ];
  expect(deploySteps(asked, offered)).toEqual([at('deploy.deploy', 100), at('raid.apply', 90, { args: { raid_config: {} } })]);
});

it.each<['clean' | 'deploy', RequestedStep, Checking, string | undefined]>([
  ['clean', { interface: 'raid', step: 'create', args: { size: 1 } }, {}, undefined],
  ['clean', { interface: 'x', step: 'y' }, { unknownLater: true }, undefined],
  ['clean', { interface: 'x', step: 'y' }, {}, "node does not support this clean step: {'interface': 'x', 'step': 'y'}"],
  [
    'clean',
    { interface: 'raid', step: 'create', args: { size: 1, colour: 'red' } },
    {},
    "clean step {'interface': 'raid', 'step': 'create', 'args': {'size': 1, 'colour': 'red'}, 'abortable': False, 'priority': 0} has these unexpected arguments: colour",
  ],
  [
    'clean',
    { interface: 'raid', step: 'create' },
    {},
    "clean step {'interface': 'raid', 'step': 'create', 'abortable': False, 'priority': 0} is missing these required arguments: size (How big)",
  ],
  [
    'clean',
    { interface: 'deploy', step: 'erase' },
    { withoutRamdisk: true },
    "clean step {'interface': 'deploy', 'step': 'erase'} requires booting a ramdisk",
  ],
  ['deploy', { interface: 'raid', step: 'create', priority: 0, args: {} }, {}, undefined],
  ['deploy', { interface: 'deploy', step: 'deploy', priority: 0, args: {} }, {}, undefined],
  [
    'deploy',
    { interface: 'deploy', step: 'deploy', priority: 50, args: {} },
    { prefix: 'No: ' },
    'No: deploy step deploy on interface deploy is a core step and cannot be overridden by user steps. It may be disabled by setting the priority to 0',
  ],
])('accepts or refuses the requested %s step %j (%j): %s', (kind, asked, checking, message) => {
  const offered = [
    at('deploy.deploy', 100),
    at('deploy.erase', 10, { requires_ramdisk: true }),
    at('raid.create', 0, { argsinfo: { size: { description: 'How big', required: true } } }),
  ];
  const check = (): void => checkRequestedSteps(kind, [asked], offered, checking);
  if (message === undefined) check();
  else expect(check).toThrow(errorWith({ status: 400, message }));
});

it.each<['clean' | 'deploy' | 'service', readonly string[], readonly string[]]>([
  ['clean', ['raid.create'], ['deploy.erase']],
  ['deploy', [], ['raid.create', 'deploy.erase']],
  ['service', ['deploy.erase', 'x.y'], ['raid.create']],
])('%s runs none of the disallowed steps %j', (kind, disallowed, left) => {
  const steps = [at('raid.create', 1), at('deploy.erase', 2)];
  const options = conductorOptions({ [`api.disallow_${kind}_steps`]: disallowed });
  expect(allowedSteps(options, kind, steps).map(stepId)).toEqual(left);
});
