/** The history that flows write: errors with their type and state, the beginning and end of steps, and the effect of the options. */
import type { Options } from '../../../config/options';
import type { NodeChanges } from '../../../model/records';
import type { Started } from '../../support/conductor';
import { newMachine, type Machine } from '../../support/machine';
import { useConductor } from '../../support/use-conductor';

const { start: startWith } = useConductor();
const start = (machine: Machine, options: Partial<Options> = {}): Promise<Started> => startWith({ machine, options });

const down = new Error('the BMC does not answer');
type Verb = readonly [from: NodeChanges, verb: string, args?: Parameters<Started['conductor']['provision']>[2]];

/** `severity event_type state: event` of each entry. */
async function entries({ store }: Started, uuid: string): Promise<readonly string[]> {
  const all = await store.history.list({ where: { node_uuid: uuid } });
  return all.map(({ severity, event_type: type, state, event }) => `${severity} ${type} ${state}: ${event}`.replaceAll(uuid, 'X'));
}

it.each<[string, Partial<Machine>, string, Verb, readonly RegExp[]]>([
  [
    'verification',
    {},
    'get power',
    [{ provision_state: 'enroll' }, 'manage'],
    [/^ERROR verify verifying: Failed to get power state for node X/],
  ],
  [
    'inspection',
    {},
    'inspect',
    [{ provision_state: 'manageable' }, 'inspect'],
    [/^ERROR introspection inspecting: the BMC does not answer$/],
  ],
  ['adoption', {}, 'prepare', [{ provision_state: 'manageable' }, 'adopt'], [/^ERROR adoption adopting: Error while attempting to adopt/]],
  [
    'deployment',
    {},
    'prepare',
    [{ provision_state: 'available' }, 'active'],
    [/^ERROR deploying deploying: Failed to prepare to deploy: /],
  ],
  ['tear-down', {}, 'tearDown', [{ provision_state: 'active' }, 'deleted'], [/^ERROR unprovision deleting: Failed to tear down: /]],
  [
    'rescue',
    {},
    'rescue',
    [{ provision_state: 'active' }, 'rescue', { rescue_password: 'x' }],
    [/^ERROR rescue rescuing: Failed to rescue: /],
  ],
  ['unrescue', {}, 'unrescue', [{ provision_state: 'rescue' }, 'unrescue'], [/^ERROR rescue unrescuing: Failed to unrescue: /]],
  [
    'step of a deployment',
    { ramdisk: false },
    'step deploy.write_image',
    [{ provision_state: 'available' }, 'active'],
    [
      /^INFO deployment_start deploying: Starting deployment with steps=\[\{'step': 'deploy', 'priority': 100, 'abortable': True, 'argsinfo': None, 'interface': 'deploy'\}, /,
      /^ERROR deployment_end deploying: Deployment aborted at step 'write_image' with steps=\[/,
      /^ERROR deploying deploying: Deploy step deploy\.write_image failed: the BMC does not answer\.$/,
    ],
  ],
])('records a failed %s', async (_, machine, broken, [from, verb, args = {}], expected) => {
  const all = await start(newMachine({ ...machine, broken: new Map([[broken, down]]) }));
  const { uuid } = await all.enrol(from);
  await all.conductor.provision(uuid, verb, args);
  await all.conductor.idle();
  expect(await entries(all, uuid)).toEqual(expected.map((text) => expect.stringMatching(text) as unknown));
});

it('records manual and automated cleaning without secrets', async () => {
  const machine = newMachine({ ramdisk: false });
  const all = await start(machine);
  machine.broken.clear();
  (machine as { steps: Machine['steps'] }).steps = [
    {
      step: 'flash',
      priority: { clean: 5 },
      args: { password: { description: 'Secret' } },
      run: async () => ({ kind: 'done' }),
    },
  ];
  const { uuid } = await all.enrol({ provision_state: 'manageable' });
  await all.conductor.provision(uuid, 'clean', { clean_steps: [{ interface: 'vendor', step: 'flash', args: { password: 'hidden' } }] });
  await all.conductor.idle();
  await all.conductor.provision(uuid, 'provide', {});
  await all.conductor.idle();
  const own =
    "{'step': 'flash', 'priority': 5, 'abortable': False, 'argsinfo': {'password': {'description': 'Secret'}}, 'interface': 'vendor', 'requires_ramdisk': True}";
  expect(await entries(all, uuid)).toEqual([
    "INFO manual_cleaning_start cleaning: Starting manual cleaning with steps=[{'interface': 'vendor', 'step': 'flash', 'args': {'password': '******'}, 'abortable': False, 'priority': 5}]",
    'INFO manual_cleaning_end cleaning: Manual Cleaning completed successfully with steps=[]',
    `INFO automated_cleaning_start cleaning: Starting automated cleaning with steps=[${own}]`,
    'INFO automated_cleaning_end cleaning: Automated Cleaning completed successfully with steps=[]',
  ]);
});

it('records a failed power change and an abort', async () => {
  const machine = newMachine({ broken: new Map([['power on', down]]) });
  const all = await start(machine);
  const { uuid } = await all.enrol({ provision_state: 'active', power_state: 'power off' });
  await all.conductor.setPower(uuid, 'power on');
  await all.conductor.idle();
  machine.broken.clear();
  await all.conductor.provision(uuid, 'rescue', { rescue_password: 'x' });
  await all.conductor.idle();
  await all.conductor.provision(uuid, 'abort', {});
  await all.conductor.idle();
  expect(await entries(all, uuid)).toEqual([
    "ERROR UNKNOWN active: Failed to change power state to 'power on' by 'power on': the BMC does not answer",
    'INFO rescue rescue failed: By request, the rescue operation was aborted.',
  ]);
});

it.each([
  [{ 'conductor.node_history': false }, []],
  [{ 'conductor.record_step_flows_in_history': false }, ['ERROR']],
])('records only what the options allow: %j', async (options, severities) => {
  const all = await start(newMachine({ ramdisk: false, broken: new Map([['step deploy.deploy', down]]) }), options);
  const { uuid } = await all.enrol({ provision_state: 'available' });
  await all.conductor.provision(uuid, 'active', {});
  await all.conductor.idle();
  expect((await all.node(uuid)).last_error).toMatch(/the BMC does not answer/);
  expect((await entries(all, uuid)).map((entry) => entry.split(' ')[0])).toEqual(severities);
});
