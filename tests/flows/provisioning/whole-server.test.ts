/**
 * The whole server over HTTP, with simulated machines behind Redfish: successful deployments, and each bad input that a deployment can
 * meet.
 */
import { startWholeServer, type WholeServer } from '../../support/whole-server';
import { useDatabase } from '../../support/database';

const database = useDatabase();
let whole: WholeServer;

beforeAll(async () => {
  whole = await startWholeServer(database.connection(), {
    machines: 15,
    options: { 'conductor.check_provision_state_interval': 1, 'redfish.connection_attempts': 1, 'redfish.connection_retry_interval': 0 },
  });
});
afterAll(() => whole.close(), 30_000);

/** Each has a machine of its own. They mostly wait, so all run at the same time, and each test waits for its own. */
const flows: (readonly [name: string, run: () => Promise<void>])[] = [];
const flow = (name: string, run: () => Promise<void>): void => void flows.push([name, run]);

let next = 0;
/** A machine of its own for each test, enrolled and brought to `state`. */
async function machineIn(
  state: 'enroll' | 'manageable' | 'available',
  more: Readonly<Record<string, unknown>> = {},
): Promise<{ uuid: string; machine: WholeServer['fleet']['machines'][number] }> {
  const machine = whole.fleet.machines[next++]!;
  const uuid = await whole.enrol(machine, { automated_clean: false, ...more });
  if (state !== 'enroll') {
    await whole.order(uuid, 'manage');
    await whole.reach(uuid, 'manageable');
  }
  if (state === 'available') {
    await whole.order(uuid, 'provide');
    await whole.reach(uuid, 'available');
  }
  return { uuid, machine };
}
const set = async (uuid: string, path: string, value: unknown): Promise<void> => {
  const answer = await whole.call('PATCH', `/v1/nodes/${uuid}`, [{ op: 'add', path, value }]);
  expect(answer).toMatchObject({ status: 200 });
};

flow('steps that need no ramdisk run before it boots, and later ones after that', async () => {
  const { uuid } = await machineIn('manageable');
  const steps = [
    { interface: 'power', step: 'power_off', on_failure: 'retry(2, 1)' },
    { interface: 'power', step: 'wait', args: { seconds: 1 } },
    { interface: 'power', step: 'power_on', confirm: 'Is the cable in port 2?' },
    { interface: 'power', step: 'reboot', when: [{ field: 'resource_class', op: 'eq', value: 'other' }] },
    { interface: 'deploy', step: 'erase_devices_metadata', timeout: 600 },
  ];
  await set(uuid, '/resource_class', 'small');
  const refused = async (more: object): Promise<string> => {
    const answer = await whole.call('PUT', `/v1/nodes/${uuid}/states/provision`, {
      target: 'clean',
      clean_steps: [{ ...steps[0], ...more }],
    });
    expect(answer.status).toBe(400);
    return JSON.stringify(answer.body);
  };
  expect(await refused({ timeout: 'soon' })).toContain('Invalid clean_steps: [0].timeout: this is not a whole number of seconds');
  expect(await refused({ when: [{ field: 'inventory.colour', op: 'eq', value: 1 }] })).toContain('[0].when[0].field: there is no field');
  // Ironic's text: it names none of the members that Ironic does not have.
  const unknown = await refused({ colour: 'red' });
  expect(unknown).toContain("Additional properties are not allowed ('colour' was unexpected)");
  expect(unknown).not.toMatch(/confirm|on_failure: /);
  await whole.order(uuid, 'clean', { clean_steps: steps });
  await whole.reach(uuid, 'clean hold');
  expect(await whole.call('GET', `/v1/nodes/${uuid}/readiness`)).toMatchObject({
    body: {
      steps: [
        { step: 'power.power_off', state: 'done' },
        { step: 'power.wait', state: 'done' },
        { step: 'power.power_on', state: 'waiting', note: 'waits for an operator: Is the cable in port 2?' },
        { step: 'power.reboot', state: 'next' },
        { step: 'deploy.erase_devices_metadata', state: 'next' },
      ],
    },
  });
  const looks = async (): Promise<unknown> => (await whole.call('GET', `/v1/nodes/${uuid}`)).body['driver_internal_info'];
  expect(await looks()).toMatchObject({ ramdisk_boot: 'later' });
  expect(await looks()).not.toHaveProperty('agent_url');
  await whole.order(uuid, 'unhold');
  await whole.reach(uuid, 'manageable');
  await database.eventsReadable();
  const { body } = await whole.call('GET', `/v1/events?node=${uuid}&limit=500`);
  const payloads = (body['events'] as readonly { readonly kind: string; readonly payload: Readonly<Record<string, unknown>> }[])
    .filter(({ kind }) => kind === 'step' || kind === 'progress')
    .map(({ payload }) => payload)
    .filter(({ step }) => step !== undefined)
    .map(({ step, result }) => (result === undefined ? step : `${step as string} ${result as string}`));
  expect([...new Set(payloads)]).toEqual([
    'power.power_off',
    'power.wait',
    'power.power_on',
    'power.reboot skipped',
    'deploy.erase_devices_metadata',
  ]);
});
flow('runbooks, deploy templates and deploy steps have controls too', async () => {
  const { uuid } = await machineIn('manageable');
  const reboot = { interface: 'power', step: 'power_on', args: {} };
  const controls = { on_failure: 'continue', when: [{ field: 'traits', op: 'eq', value: 'CUSTOM_CONTROLS' }] };
  const runbook = { name: 'CUSTOM_CONTROLS', steps: [{ ...reboot, order: 1, ...controls }] };
  expect(await whole.call('POST', '/v1/runbooks', { ...runbook, steps: [{ ...runbook.steps[0], on_failure: 'retry' }] })).toMatchObject({
    status: 400,
    body: { error_message: expect.stringContaining('steps[0].on_failure: this is not abort') as unknown },
  });
  expect(await whole.call('POST', '/v1/runbooks', runbook)).toMatchObject({ status: 201, body: { steps: [controls] } });
  const timed = [{ op: 'add', path: '/steps/0/timeout', value: 60 }];
  expect(await whole.call('PATCH', '/v1/runbooks/CUSTOM_CONTROLS', timed)).toMatchObject({
    status: 200,
    body: { steps: [{ timeout: 60 }] },
  });
  const template = { name: 'CUSTOM_CONTROLS', steps: [{ ...reboot, priority: 150, ...controls, confirm: 'Deploy?' }] };
  expect(await whole.call('POST', '/v1/deploy_templates', template)).toMatchObject({
    status: 201,
    body: { steps: [{ confirm: 'Deploy?' }] },
  });

  await whole.call('PUT', `/v1/nodes/${uuid}/traits/CUSTOM_CONTROLS`);
  await whole.call('PUT', '/v1/runbooks/CUSTOM_CONTROLS/traits/CUSTOM_CONTROLS');
  await whole.order(uuid, 'clean', { runbook: 'CUSTOM_CONTROLS' });
  await whole.reach(uuid, 'manageable');
  await whole.order(uuid, 'provide');
  await whole.reach(uuid, 'available');
  await set(uuid, '/instance_info', whole.deployable({ traits: ['CUSTOM_CONTROLS'] }));
  await whole.order(uuid, 'active', {
    deploy_steps: [
      { interface: 'power', step: 'reboot', args: {}, priority: 140, when: [{ field: 'traits', op: '!eq', value: 'CUSTOM_CONTROLS' }] },
    ],
  });
  await whole.reach(uuid, 'deploy hold');
  expect(await whole.call('GET', `/v1/nodes/${uuid}`)).toMatchObject({
    body: { deploy_step: { confirm: 'Deploy?', waits_for: 'operator' } },
  });
  await whole.order(uuid, 'unhold');
  await whole.reach(uuid, 'active');
});
flow('a machine goes from enroll to active, through a rebuild and back to available', async () => {
  const { uuid, machine } = await machineIn('manageable', { automated_clean: true });
  await whole.order(uuid, 'inspect');
  await whole.reach(uuid, 'manageable');
  expect(await whole.call('GET', `/v1/nodes/${uuid}/inventory`)).toMatchObject({
    status: 200,
    body: { inventory: { cpu: { count: machine.control.description.cpus, architecture: 'x86_64' } } },
  });
  await whole.order(uuid, 'provide');
  await whole.reach(uuid, 'available');
  await set(uuid, '/instance_info', whole.deployable());
  await whole.order(uuid, 'active', { configdrive: { meta_data: { name: 'first' } } });
  await whole.reach(uuid, 'active');
  expect(machine.control.content('/dev/sda')).toMatchObject({ sha256: whole.image.sha256 });
  await whole.order(uuid, 'rebuild');
  expect(await whole.reach(uuid, 'active')).toMatchObject({
    power_state: 'power on',
    last_error: null,
    instance_info: { image_source: whole.image.url },
  });
  await whole.order(uuid, 'deleted');
  expect(await whole.reach(uuid, 'available')).toMatchObject({ power_state: 'power off', instance_info: {}, target_provision_state: null });
  expect(machine.control.content('/dev/sda')).toBeUndefined();
});

interface BadCase {
  readonly what: string;
  readonly info?: () => Readonly<Record<string, unknown>>;
  readonly properties?: Readonly<Record<string, unknown>>;
  readonly reason: RegExp;
}
const BAD: readonly BadCase[] = [
  { what: 'an image with a wrong checksum', info: () => ({ image_os_hash_value: '0'.repeat(64) }), reason: /checksum|hash/i },
  {
    what: 'an image that does not exist',
    info: () => ({ image_source: 'http://127.0.0.1:1/none.raw' }),
    reason: /127\.0\.0\.1:1\/none\.raw/,
  },
  {
    what: 'a root device hint that no disk matches',
    properties: { root_device: { serial: 'nowhere' } },
    reason: /root device|hints|disk/i,
  },
];
for (const { what, info, properties, reason } of BAD)
  flow(`a deployment ends in deploy failed because of ${what}, and succeeds after a correction`, async () => {
    const { uuid, machine } = await machineIn('available');
    if (properties) await set(uuid, '/properties', properties);
    await set(uuid, '/instance_info', whole.deployable(info?.()));
    await whole.order(uuid, 'active');
    const node = await whole.reach(uuid, 'deploy failed');
    expect(node['last_error']).toMatch(reason);
    expect(machine.control.content('/dev/sda')).toBeUndefined();
    if (properties) await set(uuid, '/properties', {});
    await set(uuid, '/instance_info', whole.deployable());
    await whole.order(uuid, 'active');
    await whole.reach(uuid, 'active');
  });

flow('a deployment is refused without a checksum before the machine is touched', async () => {
  const { uuid, machine } = await machineIn('available');
  await set(uuid, '/instance_info', { image_source: whole.image.url });
  const answer = await whole.call('PUT', `/v1/nodes/${uuid}/states/provision`, { target: 'active' });
  expect(answer.status).toBe(400);
  expect(await whole.reach(uuid, 'available')).toMatchObject({ reservation: null });
  expect(machine.control.isOn()).toBe(false);
});

flow('a machine that never calls back fails the deployment after the timeout, and the next try succeeds', async () => {
  const { uuid, machine } = await machineIn('available');
  await set(uuid, '/instance_info', whole.deployable());
  machine.control.behave({ neverCalls: true });
  await whole.order(uuid, 'active');
  await whole.reach(uuid, 'wait call-back');
  // The age counts from provision_updated_at: an hour ago by the database, instead of waiting one here.
  await database.query(`UPDATE nodes SET provision_updated_at = provision_updated_at - interval '1 hour' WHERE uuid = $1`, [uuid]);
  const node = await whole.reach(uuid, 'deploy failed');
  expect(node['last_error']).toMatch(/timeout/i);
  machine.control.behave({ neverCalls: false });
  await whole.order(uuid, 'active');
  await whole.reach(uuid, 'active');
});

flow('a BMC that cannot be reached leaves the node in enroll with the reason', async () => {
  const { uuid } = await machineIn('enroll', {
    driver_info: { redfish_address: 'http://127.0.0.1:1', redfish_system_id: '/redfish/v1/Systems/1' },
  });
  await whole.order(uuid, 'manage');
  await expect(whole.reach(uuid, 'manageable')).rejects.toThrow(/is enroll, not manageable: .*127\.0\.0\.1/s);
});

flow('refuses heartbeats and lookups of a forged agent, and gives the token only once', async () => {
  const { uuid, machine } = await machineIn('available');
  await set(uuid, '/instance_info', whole.deployable());
  machine.control.behave({ neverCalls: true });
  await whole.order(uuid, 'active');
  await whole.reach(uuid, 'wait call-back');
  const beat = { callback_url: 'http://127.0.0.1:9', agent_version: '11.0', agent_token: 'guess' };
  expect(await whole.call('POST', `/v1/heartbeat/${uuid}`, beat)).toMatchObject({ status: 400 });
  expect(await whole.call('POST', '/v1/heartbeat/9cb3f4f8-28f1-4f23-a1a5-b0a9f1a3f4f4', beat)).toMatchObject({ status: 404 });
  expect(await whole.call('GET', '/v1/lookup?addresses=52:54:00:ff:ff:ff')).toMatchObject({ status: 404 });
  // The system that looks up would get the token, and lose its power: the next system would get none.
  await database.query(`UPDATE nodes SET target_power_state = 'power on' WHERE uuid = $1`, [uuid]);
  expect(await whole.call('GET', `/v1/lookup?node_uuid=${uuid}`)).toMatchObject({ status: 409 });
  await database.query(`UPDATE nodes SET target_power_state = NULL WHERE uuid = $1`, [uuid]);
  const first = await whole.call('GET', `/v1/lookup?node_uuid=${uuid}`);
  expect(first).toMatchObject({ status: 200, body: { config: { agent_token: expect.stringMatching(/^[\w-]{43}$/) as string } } });
  // A second lookup does not get the token.
  expect(await whole.call('GET', `/v1/lookup?addresses=${machine.macs[0]!}`)).toMatchObject({
    body: { config: { agent_token: '******' } },
  });
  expect(await whole.reach(uuid, 'wait call-back')).toMatchObject({ last_error: null });
});

flow('settings of a burn-in are checked before the machine is touched', async () => {
  const { uuid, machine } = await machineIn('manageable');
  const isOn = machine.control.isOn();
  const clean_steps = ['burnin_cpu', 'burnin_network'].map((step) => ({ interface: 'deploy', step }));
  await set(uuid, '/driver_info/agent_burnin_cpu_timeout', 'soon');
  const answer = await whole.call('PUT', `/v1/nodes/${uuid}/states/provision`, { target: 'clean', clean_steps });
  expect(answer.status).toBe(400);
  expect(JSON.stringify(answer.body)).toContain(
    `Cannot clean node ${uuid}: clean step deploy.burnin_cpu: driver_info/agent_burnin_cpu_timeout must be a time from 1 to`,
  );
  expect(JSON.stringify(answer.body)).toContain(
    'clean step deploy.burnin_network: fio (network): dynamic pairing config is missing agent_burnin_fio_network_pairing_backend_url',
  );
  const { body } = await whole.call('GET', `/v1/nodes/${uuid}`);
  expect(body).toMatchObject({ provision_state: 'manageable', reservation: null, last_error: null });
  expect(machine.control.isOn()).toBe(isOn);
});

const running = new Map<string, Promise<void>>();
beforeAll(() => {
  for (const [name, run] of flows) {
    const ended = run();
    // A failure belongs to the test that waits for it.
    ended.catch(() => {});
    running.set(name, ended);
  }
});
it.each(flows)('%s', (name) => running.get(name));

it('a deployment continues after a restart of the server', async () => {
  const { uuid, machine } = await machineIn('available');
  await set(uuid, '/instance_info', whole.deployable());
  machine.control.behave({ stepMs: 1000 });
  await whole.order(uuid, 'active');
  await whole.reach(uuid, 'wait call-back');
  await whole.restart();
  await whole.reach(uuid, 'active');
  expect(machine.control.content('/dev/sda')).toMatchObject({ sha256: whole.image.sha256 });
});
