import { randomUUID } from 'node:crypto';
import type { NodeChanges } from '../../../model/records';
import { useApi } from '../../support/api';

const api = useApi();
const step = (name: string, order: number) => ({ interface: 'bios', step: name, args: { a: order }, order });

async function made(
  traits: readonly string[],
  node: NodeChanges = { provision_state: 'manageable' },
  changes: object = {},
): Promise<string> {
  const { nodes, runbooks } = api.database.store();
  const { uuid } = await nodes.create({ uuid: randomUUID(), driver: 'fake-hardware', traits, ...node });
  const name = `CUSTOM_${randomUUID().replaceAll('-', '').toUpperCase()}`;
  await runbooks.create({ uuid: randomUUID(), name, steps: [step('second', 2), step('first', 1)], traits: ['CUSTOM_A'], ...changes });
  return `${uuid} ${name}`;
}
const provision = (uuid: string, body: object, minor: number) => api.ask('PUT', `/v1/nodes/${uuid}/states/provision`, minor, { body });

it.each([
  ['clean', 'manageable', 112],
  ['service', 'active', 112],
] as const)('%s runs the steps of the runbook by their order', async (target, state, minor) => {
  const [uuid, name] = (await made(['CUSTOM_A'], { provision_state: state }, { disable_ramdisk: true })).split(' ') as [string, string];
  expect((await provision(uuid, { target, runbook: name }, minor)).status).toBe(202);
  expect(api.conductor.calls.at(-1)).toEqual({
    name: 'provision',
    arguments: [uuid, target, { [`${target}_steps`]: [step('first', 1), step('second', 2)], disable_ramdisk: true }],
  });
});

it('before 1.112, a trait with the name of the runbook approves it for a node', async () => {
  const [uuid, name] = (await made(['CUSTOM_A'])).split(' ') as [string, string];
  expect((await provision(uuid, { target: 'clean', runbook: name }, 111)).fault).toBe(
    `This runbook has not been approved for use on this node ${uuid}. Please ask an administrator to add it to your node traits.`,
  );
  await api.database.store().nodes.update(uuid, { traits: [name] });
  expect((await provision(uuid, { target: 'clean', runbook: name }, 111)).status).toBe(202);
});

it.each<[string, object, object, string, number, number, RegExp]>([
  ['without traits', { target: 'clean' }, { traits: [] }, 'manageable', 112, 400, /^Runbook \S+ has no traits configured\./],
  [
    'not approved',
    { target: 'clean' },
    { traits: ['CUSTOM_C', 'CUSTOM_B'] },
    'manageable',
    112,
    400,
    /traits \['CUSTOM_B', 'CUSTOM_C'\]\./,
  ],
  [
    'with steps',
    { target: 'clean', clean_steps: [step('x', 1)] },
    {},
    'manageable',
    112,
    400,
    /^Please provide either "clean_steps" or a runbook/,
  ],
  ['with steps', { target: 'service', service_steps: [step('x', 1)] }, {}, 'active', 112, 400, /^Please provide either "service_steps"/],
  ['API version too old', { target: 'clean' }, {}, 'manageable', 91, 406, /^Request not acceptable\.$/],
  [
    'API version too old for service',
    { target: 'service' },
    { name: 'CUSTOM_A' },
    'active',
    107,
    406,
    /^disable_ramdisk is not acceptable/,
  ],
  [
    'another verb',
    { target: 'provide' },
    {},
    'manageable',
    112,
    400,
    /^disable_ramdisk is supported only with manual cleaning or servicing$/,
  ],
])('refuses a runbook: %s', async (_, body, changes, state, minor, status, text) => {
  const node = { provision_state: state } as NodeChanges;
  const [uuid, name] = (await made(['CUSTOM_A'], node, changes)).split(' ') as [string, string];
  const runbook = (changes as { name?: string }).name ?? name;
  const { status: got, fault } = await provision(uuid, { ...body, runbook }, minor);
  expect([got, fault]).toEqual([status, expect.stringMatching(text)]);
  expect(api.conductor.calls.filter(({ arguments: [called] }) => called === uuid)).toEqual([]);
});
