/** A machine that is reset while its agent runs a step: the step fails when the agent should have been heard of, not at the end of the wait. */
import { setTimeout as delay } from 'node:timers/promises';
import { requestText } from '../../support/request';
import { useDatabase } from '../../support/database';
import { startWholeServer, type WholeServer } from '../../support/whole-server';
import { until } from '../../support/until';
import { timeoutSignal } from '../../../wire/timeout-signal';

const database = useDatabase();
let whole: WholeServer;
beforeAll(async () => {
  whole = await startWholeServer(database.connection(), {
    machines: 4,
    options: { 'api.ramdisk_heartbeat_timeout': 2, 'conductor.check_provision_state_interval': 1, 'snapshot.check_interval': 1 },
  });
});
afterAll(() => whole.close(), 30_000);

type Machine = WholeServer['fleet']['machines'][number];
let next = 0;
async function availableNode(): Promise<{ readonly uuid: string; readonly machine: Machine }> {
  const machine = whole.fleet.machines[next++]!;
  const uuid = await whole.enrol(machine, { automated_clean: false, resource_class: 'small' });
  await whole.order(uuid, 'manage');
  await whole.reach(uuid, 'manageable');
  await whole.order(uuid, 'provide');
  await whole.reach(uuid, 'available');
  return { uuid, machine };
}
const show = async (uuid: string) => (await whole.call('GET', `/v1/nodes/${uuid}`)).body;
/** Waits until the agent runs the step. */
const runs = (uuid: string, kind: 'deploy' | 'service', step: string) =>
  until('the step runs', async () => {
    const node = await show(uuid);
    return (
      ['wait call-back', 'service wait'].includes(String(node['provision_state'])) &&
      node['reservation'] === null &&
      (node[`${kind}_step`] as { readonly step?: string }).step === step
    );
  });
async function deploying() {
  const { uuid, machine } = await availableNode();
  machine.control.behave({ stepMs: 3_600_000 });
  expect(await whole.call('PATCH', `/v1/nodes/${uuid}`, [{ op: 'add', path: '/instance_info', value: whole.deployable() }])).toMatchObject({
    status: 200,
  });
  await whole.order(uuid, 'active');
  await runs(uuid, 'deploy', 'write_image');
  return { uuid, machine };
}
/** The second text: a heartbeat was being answered when the machine was reset, which ends the step too. */
const TEXT = /The machine booted again while the step ran, and its agent does not answer|Failed to connect to the agent running on node/;

it.each([
  ['and hangs in its ramdisk', { neverCalls: true }],
  ['and starts an agent without its token', {}],
])('a deployment fails whose machine is reset %s', async (_, behaviour) => {
  const { uuid, machine } = await deploying();
  machine.control.behave(behaviour);
  await machine.control.act('reset');
  await until('the deployment fails', async () => (await show(uuid))['provision_state'] === 'deploy failed');
  const { last_error: error } = await show(uuid);
  expect(error).toMatch(TEXT);
  expect(error).toContain('Deploy step deploy.write_image failed: ');
  expect(error).toMatch(/last boot requests: .*HTTP at/);
});

it('a snapshot fails whose machine is reset', async () => {
  const { uuid, machine } = await availableNode();
  expect(await whole.call('PATCH', `/v1/nodes/${uuid}`, [{ op: 'add', path: '/instance_info', value: whole.deployable() }])).toMatchObject({
    status: 200,
  });
  await whole.order(uuid, 'active');
  await whole.reach(uuid, 'active');
  machine.control.behave({ stepMs: 3_600_000 });
  const { body } = await whole.call('POST', `/v1/nodes/${uuid}/snapshots`, {});
  await runs(uuid, 'service', 'snapshot');
  // The order to boot from the network was for one boot.
  machine.control.setBoot({ device: 'pxe', persistent: true, mode: null });
  machine.control.behave({ neverCalls: true });
  await machine.control.act('reset');
  await until(
    'the snapshot fails',
    async () => (await whole.call('GET', `/v1/snapshots/${String(body['uuid'])}`)).body['state'] === 'failed',
  );
  expect((await show(uuid))['last_error']).toMatch(TEXT);
});

it('a boot request of another machine ends nothing while the agent answers', async () => {
  const { uuid, machine } = await deploying();
  const url = `${whole.server.bootUrl!}/boot.ipxe?mac=${machine.macs[0]!}`;
  const forged = await requestText(url, 'GET', { headers: {}, signal: timeoutSignal(10_000) });
  expect(forged.status).toBe(200);
  // The request is recorded after three seconds, and the agent is asked each second.
  await delay(8000);
  expect((await show(uuid))['provision_state']).toBe('wait call-back');
});
