/** Reservations of nodes: locks, fencing, heartbeats at a reserved node, foreign agents, and restarts in the middle. */
import { randomUUID } from 'node:crypto';
import { Fault } from '../../../model/errors';
import type { NodeChanges } from '../../../model/records';
import { agentToken } from '../../support/agent-token';
import { AGENT_URL, gate, type Started } from '../../support/conductor';
import { newMachine } from '../../support/machine';
import { settled } from '../../support/settled';
import { useConductor } from '../../support/use-conductor';
import { until } from '../../support/until';

const { clock, database, start } = useConductor();
/** Waits until the machine has received this order. Then the work that sent it holds the node. */
async function waitForOrder(value: Started, what: string): Promise<void> {
  await until(what, () => value.machine.orders.includes(what));
}
const erase = [{ interface: 'deploy', step: 'erase', priority: 10 }];

describe('locks', () => {
  it('show the holder of a node, refuse other requests with 409, and end with the work', async () => {
    const one = await start();
    const { conductor, machine, enrol, node } = one;
    const { uuid } = await enrol({ provision_state: 'manageable' });
    const stuck = gate();
    machine.stuck.set('prepareCleaning', stuck.passed);
    await conductor.provision(uuid, 'provide', {});
    await waitForOrder(one, 'prepareCleaning');
    expect((await node(uuid)).reservation).toBe('here');
    const text = `Node ${uuid} is locked by host here, please retry after the current operation is completed.`;
    await expect(conductor.setPower(uuid, 'power on')).rejects.toMatchObject({ status: 409, message: text });
    await expect(conductor.updateNode(uuid, { description: 'x' }, false)).rejects.toThrow(text);
    await expect(conductor.deleteNode(uuid)).rejects.toThrow(text);
    // Although the verb is impossible in this state (400), the reservation counts first: 409.
    await expect(conductor.provision(uuid, 'inspect', {})).rejects.toThrow(text);
    stuck.open();
    await conductor.idle();
    expect((await node(uuid)).reservation).toBeNull();
  });

  it('wake waiting requests as soon as they are released', async () => {
    const one = await start({ options: { 'conductor.node_locked_retry_interval': 1000 } });
    const { conductor, machine, enrol, node } = one;
    const { uuid } = await enrol({ provision_state: 'manageable' });
    const stuck = gate();
    machine.stuck.set('prepareCleaning', stuck.passed);
    await conductor.provision(uuid, 'provide', {});
    await waitForOrder(one, 'prepareCleaning');
    const waits = conductor.setMaintenance(uuid, true, 'soon');
    stuck.open();
    await waits;
    expect(await node(uuid)).toMatchObject({ maintenance: true, maintenance_reason: 'soon', provision_state: 'clean wait' });
  });

  it('are not taken for a caller that disconnects while it waits', async () => {
    const one = await start({ options: { 'conductor.node_locked_retry_interval': 1000 } });
    const { conductor, machine, enrol, node } = one;
    const { uuid } = await enrol({ provision_state: 'manageable' });
    const stuck = gate();
    machine.stuck.set('prepareCleaning', stuck.passed);
    await conductor.provision(uuid, 'provide', {});
    await waitForOrder(one, 'prepareCleaning');
    const caller = new AbortController();
    const waits = conductor.perform('setTraits', [uuid, { replace: ['CUSTOM_LATE'] }], undefined, caller.signal);
    const refused = expect(waits).rejects.toMatchObject({ status: 503, message: 'The caller is gone.' });
    caller.abort();
    stuck.open();
    await refused;
    await conductor.idle();
    expect((await node(uuid)).traits).toEqual([]);
  });

  it('that a verb makes end even if the response of the database is lost', async () => {
    const { conductor, enrol, node } = await start();
    const { uuid } = await enrol({ provision_state: 'manageable' });
    const { nodes } = database.store();
    const reserve = nodes.reserveUnchanged.bind(nodes);
    jest.spyOn(nodes, 'reserveUnchanged').mockImplementationOnce(async (...given) => {
      await reserve(...given);
      throw new Fault('TemporaryFailure', { message: 'the connection broke' });
    });
    await expect(conductor.provision(uuid, 'provide', {})).rejects.toMatchObject({ name: 'TemporaryFailure' });
    // As after any event whose flow did not begin, the recovery continues the flow.
    expect(await node(uuid)).toMatchObject({ provision_state: 'cleaning', reservation: null });
  });

  it('of another host stay when the response to a verb of this one is lost', async () => {
    const { conductor, enrol, node } = await start();
    const { uuid } = await enrol({ provision_state: 'manageable' });
    const { nodes } = database.store();
    jest.spyOn(nodes, 'reserveUnchanged').mockImplementationOnce(async () => {
      await nodes.reserve(uuid, 'another');
      throw new Fault('TemporaryFailure', { message: 'the connection broke' });
    });
    await expect(conductor.provision(uuid, 'provide', {})).rejects.toMatchObject({ name: 'TemporaryFailure' });
    expect(await node(uuid)).toMatchObject({ provision_state: 'manageable', reservation: 'another' });
    await nodes.release(uuid, (await node(uuid)).lock_fence);
  });

  it('that another conductor has taken over prevent writes by the former holder', async () => {
    const one = await start();
    const { conductor, machine, enrol, node, store, complaints } = one;
    const { uuid } = await enrol({ provision_state: 'available' });
    const stuck = gate();
    machine.stuck.set('prepare', stuck.passed);
    machine.broken.set('prepare', new Error('late'));
    await conductor.provision(uuid, 'active', {});
    await waitForOrder(one, 'prepare');
    await database.query('UPDATE nodes SET reservation = NULL WHERE uuid = $1', [uuid]);
    const taken = await store.nodes.reserve(uuid, 'there');
    stuck.open();
    await conductor.idle();
    expect(await node(uuid)).toMatchObject({ provision_state: 'deploying', reservation: 'there', last_error: null });
    expect(complaints.join()).toContain('the node is left as it is');
    await store.nodes.release(uuid, taken.lock_fence);
  });

  it('that nobody holds, or that a dead host held, are ended, and the flows of their nodes continue', async () => {
    const { conductor, machine, enrol, node, store } = await start({ machine: newMachine({ ramdisk: false }) });
    const mine = await enrol({ provision_state: 'verifying', target_provision_state: 'manageable' });
    const theirs = await enrol({ provision_state: 'deleting', target_provision_state: 'available', target_power_state: 'power off' });
    const living = await enrol();
    await store.nodes.reserve(mine.uuid, 'here');
    await store.nodes.reserve(theirs.uuid, 'gone');
    await store.conductors.register({ hostname: 'lives', conductor_group: '', drivers: {}, address: null, instance: 'i' }, null);
    await store.nodes.reserve(living.uuid, 'lives');
    await clock.advance(12);
    await settled(conductor);
    expect(await node(mine.uuid)).toMatchObject({ provision_state: 'manageable', reservation: null });
    expect(await node(theirs.uuid)).toMatchObject({ provision_state: 'available', reservation: null, target_power_state: null });
    expect(machine.orders).toContain('tearDown');
    expect((await node(living.uuid)).reservation).toBe('lives');
  });
});

it('accepts an inventory that arrives before the conductor has released the node', async () => {
  const one = await start({ options: { 'conductor.node_locked_retry_interval': 1000 } });
  const { conductor, machine, enrol, node } = one;
  const { uuid } = await enrol({ provision_state: 'manageable' });
  const booting = gate();
  machine.stuck.set('power on', booting.passed);
  await conductor.provision(uuid, 'inspect', {});
  await waitForOrder(one, 'power on');
  const inventory = { interfaces: [{ name: 'eth0', mac_address: '52:54:00:00:00:01' }], cpu: { architecture: 'x86_64' } };
  const answer = conductor.continueInspection({ macs: [], bmcAddresses: ['192.0.2.9'] }, inventory, {});
  booting.open();
  expect((await answer).uuid).toBe(uuid);
  await conductor.idle();
  expect((await node(uuid)).provision_state).toBe('manageable');
});

describe('heartbeats', () => {
  const waiting: NodeChanges = { provision_state: 'clean wait', target_provision_state: 'available' };

  it('at a reserved node are remembered, and handled when the node is released', async () => {
    const one = await start({ machine: newMachine({ agentSteps: erase }) });
    const { conductor, machine, enrol, node, speak } = one;
    const { uuid } = await enrol(waiting);
    const starting = gate();
    machine.stuck.set('step deploy.erase', starting.passed);
    await speak(uuid);
    await waitForOrder(one, 'step deploy.erase');
    // The agent is done before the conductor has written down that it waits for it.
    expect(await node(uuid)).toMatchObject({ provision_state: 'cleaning', reservation: 'here' });
    await speak(uuid);
    await speak(uuid);
    starting.open();
    await settled(conductor);
    expect(machine.orders.filter((what) => what === 'outcome of erase')).toHaveLength(1);
    expect((await node(uuid)).provision_state).toBe('available');
  });

  it('at a reserved node are handled once the database answers again', async () => {
    const one = await start({ machine: newMachine({ agentSteps: erase }) });
    const { conductor, machine, enrol, node, speak } = one;
    const { uuid } = await enrol(waiting);
    const starting = gate();
    machine.stuck.set('step deploy.erase', starting.passed);
    await speak(uuid);
    await waitForOrder(one, 'step deploy.erase');
    await speak(uuid);
    const away = jest.spyOn(database.store().nodes, 'reserve');
    away.mockRejectedValueOnce(new Fault('TemporaryFailure', { message: 'away' }));
    starting.open();
    await settled(conductor);
    expect(away).toHaveBeenCalledTimes(2);
    away.mockRestore();
    expect((await node(uuid)).provision_state).toBe('available');
  });

  it('at a reserved node are handled once a worker is free, if none was free at the release', async () => {
    const one = await start({ machine: newMachine({ agentSteps: erase }), options: { 'conductor.workers_pool_size': 1 } });
    const { conductor, machine, enrol, node, speak, complaints } = one;
    const { uuid } = await enrol(waiting);
    const starting = gate();
    machine.stuck.set('step deploy.erase', starting.passed);
    await speak(uuid);
    await waitForOrder(one, 'step deploy.erase');
    await speak(uuid);
    // The only worker is free a moment after its node is.
    starting.open();
    await settled(conductor);
    expect(complaints.join()).toContain('lack of free conductor workers');
    expect((await node(uuid)).provision_state).toBe('available');
  });

  it('at a reservation that nobody or another host holds are handled after its end', async () => {
    const { conductor, enrol, node, speak, store } = await start({ machine: newMachine({ agentSteps: erase }) });
    await store.conductors.register({ hostname: 'lives', conductor_group: '', drivers: {}, address: null, instance: 'i' }, null);
    for (const host of ['here', 'lives']) {
      // A known agent: a new one would be told to repeat its heartbeat later.
      const { uuid } = await enrol({ ...waiting, driver_internal_info: { agent_url: AGENT_URL } });
      // The state that a database leaves when it goes away right after a reservation.
      const { lock_fence: fence } = await store.nodes.reserve(uuid, host);
      await speak(uuid);
      await clock.advance(3);
      await settled(conductor);
      expect((await node(uuid)).provision_state).toBe('clean wait');
      await store.nodes.release(uuid, fence);
      await clock.advance(2);
      await settled(conductor);
      expect((await node(uuid)).driver_internal_info['clean_steps']).toBeDefined();
    }
  });

  it('that arrive at the same time have their effect once', async () => {
    const { conductor, machine, enrol, node, speak, store } = await start({ machine: newMachine({ agentSteps: erase }) });
    const { uuid } = await enrol(waiting);
    const token = await agentToken(store, uuid);
    // The end of cleaning forgets the token: a heartbeat that is still on its way would be refused.
    const starting = gate();
    machine.stuck.set('step deploy.erase', starting.passed);
    await Promise.all(Array.from({ length: 5 }, () => speak(uuid, token)));
    starting.open();
    await settled(conductor);
    expect(machine.orders.filter((what) => what === 'step deploy.erase')).toHaveLength(1);
    expect((await node(uuid)).provision_state).toMatch(/^(available|clean wait)$/);
  });

  it('from another process are checked with the stored record only', async () => {
    const { conductor, enrol } = await start();
    const { uuid } = await enrol({ provision_state: 'clean wait', driver_internal_info: { agent_secret_token: 'secret' } });
    const record = { ...(await database.store().nodes.findAgent(uuid)), driver_internal_info: { agent_secret_token: 'forged' } };
    const beat = { callbackUrl: AGENT_URL, agentToken: 'forged', agentVersion: '11.0' };
    await expect(conductor.heartbeat(uuid, beat, { record })).rejects.toThrow('Invalid or missing agent token received.');
  });

  it('require the token, which is given only once', async () => {
    const { conductor, enrol, node, store } = await start({ machine: newMachine({ agentSteps: erase }) });
    const { uuid } = await enrol(waiting);
    const both = await Promise.all([agentToken(store, uuid), agentToken(store, uuid)]);
    const token = both.find((candidate) => candidate !== '******')!;
    expect(both.filter((candidate) => candidate === '******')).toHaveLength(1);
    expect(token).toMatch(/^[\w-]{43}$/);
    const beat = { callbackUrl: AGENT_URL, agentVersion: '1', agentToken: token };
    const refused = async (changes: object, text: string): Promise<void> => {
      await expect(conductor.heartbeat(uuid, { ...beat, ...changes })).rejects.toMatchObject({ status: 400, message: text });
    };
    await refused({ agentToken: undefined }, 'Agent token is required for heartbeat processing.');
    await refused({ agentToken: 'x' }, 'Invalid or missing agent token received.');
    await refused({ agentToken: `${token}x` }, 'Invalid or missing agent token received.');
    await refused(
      { agentVersion: undefined },
      'Agent did not transmit a version, and a version is required. Please update the agent being used.',
    );
    await refused({ agentStatus: 'well' }, 'Agent status is invalid. Valid states are start,end,error.');
    expect((await node(uuid)).driver_internal_info.agent_url).toBeUndefined();
    await conductor.heartbeat(uuid, { ...beat, agentVerifyCa: 'PEM' });
    await settled(conductor);
    await refused({ callbackUrl: 'http://192.0.2.66:9999' }, 'Detected change in ramdisk provided "callback_url"');
    await expect(conductor.heartbeat(randomUUID(), beat)).rejects.toMatchObject({ status: 404 });
  });

  it('require TLS with [agent]require_tls, and the same certificate each time', async () => {
    const { conductor, enrol, store } = await start({ options: { 'agent.require_tls': true } });
    const { uuid } = await enrol({ ...waiting, provision_state: 'cleaning' });
    const token = await agentToken(store, uuid);
    const beat = { agentVersion: '1', agentToken: token, callbackUrl: 'https://192.0.2.50:9999' };
    await expect(conductor.heartbeat(uuid, { ...beat, callbackUrl: AGENT_URL })).rejects.toThrow('TLS is required by configuration');
    await conductor.heartbeat(uuid, { ...beat, agentVerifyCa: 'PEM\n' });
    await conductor.heartbeat(uuid, { ...beat, agentVerifyCa: 'PEM' });
    await expect(conductor.heartbeat(uuid, { ...beat, agentVerifyCa: 'OTHER' })).rejects.toThrow(
      'Detected change in ramdisk provided "agent_verify_ca"',
    );
  });

  it.each<[NodeChanges, boolean]>([
    [{ provision_state: 'cleaning', target_provision_state: 'available' }, true],
    [{ provision_state: 'inspect wait' }, false],
    [{ provision_state: 'active' }, false],
    [{ ...waiting, maintenance: true }, true],
  ])('for a node with %j are recorded (%s), and have no other effect', async (from, recorded) => {
    const { conductor, machine, enrol, node, speak, store } = await start();
    const { uuid } = await enrol(from);
    // The node is reserved: otherwise the recovery would treat it as abandoned.
    const { lock_fence: fence } = await store.nodes.reserve(uuid, 'there');
    await store.nodes.mergeInternal(uuid, { agent_url: AGENT_URL });
    await speak(uuid);
    await settled(conductor);
    await store.nodes.release(uuid, fence);
    expect(machine.orders).toEqual([]);
    const { provision_state: state, driver_internal_info: internal } = await node(uuid);
    expect([state, internal.agent_last_heartbeat !== undefined]).toEqual([from.provision_state, recorded]);
  });

  it('in maintenance fail the flow if allow_provisioning_in_maintenance is off', async () => {
    const { conductor, enrol, node, speak } = await start({ options: { 'conductor.allow_provisioning_in_maintenance': false } });
    const { uuid } = await enrol({ ...waiting, maintenance: true });
    await speak(uuid);
    await conductor.idle();
    expect(await node(uuid)).toMatchObject({
      provision_state: 'clean failed',
      last_error: 'Cleaning aborted as node is in maintenance mode',
    });
  });

  it('get 409 while another host has reserved the node', async () => {
    const { conductor, enrol, store } = await start();
    const { uuid } = await enrol(waiting);
    const token = await agentToken(store, uuid);
    const { lock_fence: fence } = await store.nodes.reserve(uuid, 'there');
    await store.conductors.register({ hostname: 'there', conductor_group: '', drivers: {}, address: null, instance: 'i' }, null);
    await expect(conductor.heartbeat(uuid, { callbackUrl: AGENT_URL, agentVersion: '1', agentToken: token })).rejects.toMatchObject({
      status: 409,
    });
    await store.nodes.release(uuid, fence);
  });

  it('lead to another question for the steps if the agent was busy before', async () => {
    const { conductor, machine, enrol, node, speak } = await start({ machine: newMachine({ agentSteps: undefined }) });
    const { uuid } = await enrol(waiting);
    await speak(uuid);
    await conductor.idle();
    expect(await node(uuid)).toMatchObject({ provision_state: 'clean wait', clean_step: {} });
    machine.agentSteps = [];
    await speak(uuid);
    await conductor.idle();
    expect((await node(uuid)).provision_state).toBe('available');
  });
});

describe('a restart of the conductor', () => {
  /** Stops the conductor while the machine does not answer an order, then starts it again with a machine that answers. */
  async function restarted(
    from: NodeChanges,
    verb: string,
    stop: string,
    machine = newMachine({ ramdisk: false }),
  ): Promise<[Started, string]> {
    const one = await start({ machine });
    const { uuid } = await one.enrol(from);
    machine.stuck.set(stop, new Promise(() => {}));
    await one.conductor.provision(uuid, verb, { clean_steps: verb === 'clean' ? [{ interface: 'vendor', step: 'flash' }] : [] });
    await waitForOrder(one, stop);
    await one.conductor.stop();
    machine.stuck.clear();
    machine.orders.length = 0;
    const left = await one.node(uuid);
    expect(left.reservation).toBeNull();
    expect(left.last_error).toBeNull();
    const again = await start({ machine });
    await settled(again.conductor);
    return [again, uuid];
  }
  const flash = (resumable: boolean, machine = newMachine({ ramdisk: false })): typeof machine => {
    machine.steps = [
      {
        step: 'flash',
        priority: { clean: 5, deploy: 50 },
        requiresRamdisk: false,
        resumable,
        run: async (task) => {
          machine.orders.push('flash');
          const stuck = machine.stuck.get('flash');
          if (stuck)
            await Promise.race([
              stuck,
              new Promise((_, reject) => task.signal.addEventListener('abort', () => reject(task.signal.reason as Error), { once: true })),
            ]);
          return { kind: 'done' };
        },
      },
    ];
    return machine;
  };

  it.each<[string, NodeChanges, string, string, NodeChanges]>([
    ['deleting', { provision_state: 'active' }, 'deleted', 'tearDown', { provision_state: 'available', instance_info: {} }],
    ['cleaning, before its steps', { provision_state: 'manageable' }, 'provide', 'prepareCleaning', { provision_state: 'available' }],
    ['cleaning, after its steps', { provision_state: 'manageable' }, 'provide', 'tearDownCleaning', { provision_state: 'available' }],
    ['inspecting', { provision_state: 'manageable' }, 'inspect', 'inspect', { provision_state: 'manageable' }],
    ['deploying, before its steps', { provision_state: 'available' }, 'active', 'prepare', { provision_state: 'active' }],
    [
      'deploying, in a resumable step',
      { provision_state: 'available' },
      'active',
      'step deploy.boot_instance',
      { provision_state: 'active' },
    ],
    [
      'deploying, in a step that is not resumable',
      { provision_state: 'available' },
      'active',
      'step deploy.write_image',
      { provision_state: 'deploy failed', last_error: "The deploying state can't be resumed by conductor here. Moving to fail state." },
    ],
  ])('resumes or fails a flow that was interrupted when %s', async (_name, from, verb, stop, ends) => {
    const [again, uuid] = await restarted(from, verb, stop);
    expect(await again.node(uuid)).toMatchObject({ ...ends, reservation: null });
  });

  it.each([
    [true, 'provide', { provision_state: 'available', maintenance: false }],
    [false, 'provide', { provision_state: 'clean failed', maintenance: true, fault: 'clean failure' }],
    [true, 'clean', { provision_state: 'manageable' }],
    [false, 'clean', { provision_state: 'clean failed', target_provision_state: 'manageable' }],
  ])('resumes or fails a flow that was interrupted in a clean step (resumable: %s) of the verb %s', async (resumable, verb, ends) => {
    const [again, uuid] = await restarted({ provision_state: 'manageable' }, verb, 'flash', flash(resumable));
    expect(await again.node(uuid)).toMatchObject(ends);
  });

  it('resumes a flow that was interrupted when verifying', async () => {
    const [again, uuid] = await restarted({}, 'manage', 'verify', verifying());
    expect(await again.node(uuid)).toMatchObject({ provision_state: 'manageable' });
  });
  const verifying = (): ReturnType<typeof newMachine> => {
    const machine = flash(true);
    machine.steps = [
      {
        ...machine.steps[0]!,
        priority: { verify: 1 },
        run: async (task) => {
          machine.orders.push('verify');
          if (machine.stuck.has('verify'))
            await new Promise((_, reject) =>
              task.signal.addEventListener('abort', () => reject(task.signal.reason as Error), { once: true }),
            );
          return { kind: 'done' };
        },
      },
    ];
    return machine;
  };

  it('after a kill ends reservations and power changes, and leaves waiting nodes waiting', async () => {
    const store = database.store();
    const before = await start();
    const powering = await before.enrol({ provision_state: 'active', target_power_state: 'power off' });
    const waiting = await before.enrol({ provision_state: 'wait call-back', target_provision_state: 'active' });
    const rescuing = await before.enrol({ provision_state: 'rescuing', target_provision_state: 'rescue' });
    await store.nodes.reserve(powering.uuid, 'here');
    await store.nodes.reserve(rescuing.uuid, 'here');
    const { conductor, node } = await start();
    await settled(conductor);
    expect(await node(powering.uuid)).toMatchObject({
      reservation: null,
      target_power_state: null,
      last_error: 'Pending power operation was aborted due to conductor restart',
    });
    expect((await node(waiting.uuid)).provision_state).toBe('wait call-back');
    expect((await node(rescuing.uuid)).provision_state).toBe('rescue wait');
  });

  it('does not interrupt a step of the agent, whose status is asked at the next heartbeat', async () => {
    const machine = newMachine({ agentSteps: erase });
    const one = await start({ machine });
    const { uuid } = await one.enrol({ provision_state: 'clean wait', target_provision_state: 'available' });
    machine.stuck.set('step deploy.erase', new Promise(() => {}));
    const token = await one.speak(uuid);
    await waitForOrder(one, 'step deploy.erase');
    await one.conductor.stop();
    machine.stuck.clear();
    const again = await start({ machine });
    await settled(again.conductor);
    expect(await again.node(uuid)).toMatchObject({ provision_state: 'clean wait', clean_step: { step: 'erase' } });
    await again.speak(uuid, token);
    await again.conductor.idle();
    expect((await again.node(uuid)).provision_state).toBe('available');
  });

  it('begins with a stop: the conductor accepts no more work, and is shown as offline', async () => {
    const { conductor, enrol, store } = await start();
    const { uuid } = await enrol({ provision_state: 'manageable' });
    expect((await store.conductors.list(60))[0]).toMatchObject({ hostname: 'here', online: true });
    await conductor.stop();
    await expect(conductor.provision(uuid, 'provide', {})).rejects.toMatchObject({ status: 503 });
    await expect(conductor.setMaintenance(uuid, true)).rejects.toMatchObject({ status: 503 });
    expect((await store.conductors.list(60))[0]).toMatchObject({ hostname: 'here', online: false });
  });
});
