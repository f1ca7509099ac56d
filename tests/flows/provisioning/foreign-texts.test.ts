/** Texts of machines and servers that the database refuses, in the errors of flows: each flow ends with its reason. */
import { FLOWS } from '../../../conductor/flows';
import { failed } from '../../../drivers/interfaces';
import type { NodeChanges } from '../../../model/records';
import type { Started } from '../../support/conductor';
import { newMachine, type Machine } from '../../support/machine';
import { like } from '../../support/expect';
import { useConductor } from '../../support/use-conductor';

const { after, database, start } = useConductor();
const REFUSED = 'no \0 \ud800 such \udfff file\0';
const SHOWN = /no \ufffd \ufffd such \ufffd file/;

interface Case {
  readonly name: string;
  readonly from: NodeChanges;
  readonly verb: string;
  readonly args?: Parameters<Started['conductor']['provision']>[2];
  readonly machine?: Partial<Machine>;
  readonly breaks?: readonly string[];
  readonly beats?: number;
  readonly ends: string;
}
const manageable: NodeChanges = { provision_state: 'manageable' };
const active: NodeChanges = { provision_state: 'active', instance_info: { image_source: 'x' } };
const eraser = [{ interface: 'deploy', step: 'erase', priority: 10 }];
const service = { service_steps: [{ interface: 'deploy', step: 'burnin_cpu' }] };
const CASES: readonly Case[] = [
  { name: 'a BMC, at verification', from: {}, verb: 'manage', breaks: ['get power'], ends: 'enroll' },
  { name: 'a BMC, at inspection', from: manageable, verb: 'inspect', breaks: ['get power'], ends: 'inspect failed' },
  { name: 'an image, at deployment', from: { provision_state: 'available' }, verb: 'active', breaks: ['prepare'], ends: 'deploy failed' },
  {
    name: 'an image and its clean-up',
    from: { provision_state: 'available' },
    verb: 'active',
    breaks: ['prepare', 'cleanUp'],
    ends: 'deploy failed',
  },
  { name: 'a BMC, in a step', from: { provision_state: 'available' }, verb: 'active', breaks: ['power on'], ends: 'deploy failed' },
  {
    name: 'an agent, in a step of a deployment',
    from: { provision_state: 'available' },
    verb: 'active',
    machine: { stepOutcome: failed(REFUSED) },
    beats: 2,
    ends: 'deploy failed',
  },
  {
    name: 'an agent that is asked for its steps',
    from: manageable,
    verb: 'provide',
    breaks: ['agentSteps'],
    beats: 1,
    ends: 'clean failed',
  },
  {
    name: 'an agent, in a step of a cleaning',
    from: manageable,
    verb: 'clean',
    args: { clean_steps: [{ interface: 'deploy', step: 'erase' }] },
    machine: { agentSteps: eraser, stepOutcome: failed(REFUSED) },
    beats: 2,
    ends: 'clean failed',
  },
  { name: 'a network, at the end of an instance', from: active, verb: 'deleted', breaks: ['tearDown'], ends: 'error' },
  {
    name: 'a rescue system',
    from: { ...active, power_state: 'power on' },
    verb: 'rescue',
    args: { rescue_password: 'secret' },
    breaks: ['rescue'],
    ends: 'rescue failed',
  },
  {
    name: 'an instance after a rescue',
    from: { ...active, provision_state: 'rescue' },
    verb: 'unrescue',
    breaks: ['unrescue'],
    ends: 'unrescue failed',
  },
  { name: 'a ramdisk for servicing', from: active, verb: 'service', args: service, breaks: ['prepareService'], ends: 'service failed' },
  { name: 'an adoption', from: manageable, verb: 'adopt', breaks: ['prepare'], ends: 'adopt failed' },
];

async function run({ from, verb, args = {}, machine: parts = {}, breaks = [], beats = 0 }: Case, error: Error) {
  const machine = newMachine(parts);
  const started = await start({ machine });
  const { conductor, enrol, speak } = started;
  const { uuid } = await enrol(from);
  for (const what of breaks) machine.broken.set(what, error);
  await conductor.provision(uuid, verb, args);
  await conductor.idle();
  for (let beat = 0; beat < beats; beat++) {
    await speak(uuid);
    await conductor.idle();
  }
  return { ...started, uuid };
}

it.each(CASES.map((row) => [row.name, row] as const))('%s: an error with U+0000 and lone surrogates ends the flow', async (_, row) => {
  const { uuid, node } = await run(row, new Error(REFUSED));
  expect(await node(uuid)).toMatchObject({ provision_state: row.ends, last_error: like(SHOWN), reservation: null });
  const [entry] = (await database.store().history.list({ where: { node_uuid: uuid } })).filter(({ severity }) => severity === 'ERROR');
  expect(entry!.event).toMatch(SHOWN);
});

it('a request of power with such an error leaves no pending power change', async () => {
  const { conductor, enrol, node, machine } = await start();
  const { uuid } = await enrol(active);
  machine.broken.set('power on', new Error(REFUSED));
  await conductor.setPower(uuid, 'power on');
  await conductor.idle();
  expect(await node(uuid)).toMatchObject({ target_power_state: null, last_error: like(SHOWN), reservation: null });
});

it('steps whose arguments have U+0000 run, and can be seen as events', async () => {
  const ran: unknown[] = [];
  const step = {
    step: 'say',
    priority: { deploy: 0 },
    args: { word: { description: 'A word.' } },
    run: async (_: unknown, args: unknown) => {
      ran.push(args);
      return failed(REFUSED);
    },
  };
  const row: Case = {
    name: '',
    from: { provision_state: 'available' },
    verb: 'active',
    args: { deploy_steps: [{ interface: 'vendor', step: 'say', args: { word: 'a\0b' }, priority: 200 }] },
    machine: { steps: [step] },
    ends: 'deploy failed',
  };
  const { uuid, node } = await run(row, new Error());
  expect(ran).toHaveLength(1);
  expect(await node(uuid)).toMatchObject({ provision_state: 'deploy failed', last_error: like(SHOWN) });
});

it('the end of a long error is kept with its beginning', async () => {
  const long = `It failed. ${'x'.repeat(200_000)} The disk is full.`;
  const { uuid, node } = await run(CASES[0]!, new Error(long));
  const { last_error: error } = await node(uuid);
  expect(error).toMatch(/It failed\. x{1000}[^]* \[…\] x[^]* The disk is full\.$/);
  expect(error!.length).toBeLessThanOrEqual(65_535);
});

describe('a failure that cannot be written', () => {
  /** Makes the writes of this text fail, as a constraint or a trigger does. */
  async function refusing(text: string): Promise<void> {
    await database.query(`ALTER TABLE nodes ADD CONSTRAINT refused CHECK (coalesce(last_error, '') NOT LIKE '%${text}%')`);
  }
  afterEach(() => database.query('ALTER TABLE nodes DROP CONSTRAINT IF EXISTS refused'));

  it.each(CASES.map((row) => [row.name, row] as const))('%s: the flow ends with a reduced reason, and the log says so', async (_, row) => {
    await refusing('\u00fcber');
    const machine = row.machine?.stepOutcome ? { ...row, machine: { ...row.machine, stepOutcome: failed('\u00fcber all') } } : row;
    const { uuid, node, complaints } = await run(machine, new Error('\u00fcber all'));
    expect(await node(uuid)).toMatchObject({
      provision_state: row.ends,
      last_error: like(/\?ber all.* \(The rest of this failure cannot be written: .*refused/),
      reservation: null,
    });
    expect(complaints.join('\n')).toMatch(new RegExp(`the failure of node ${uuid} cannot be written .*\\?ber all`));
  });

  it('changes that cannot be written do not keep the reservation', async () => {
    const { conductor, enrol, node, complaints } = await start();
    const { uuid } = await enrol({ ...manageable, boot_mode: 'uefi' });
    await database.query(`ALTER TABLE nodes ADD CONSTRAINT refused CHECK (boot_mode <> 'bad')`);
    const begin = FLOWS.verify.begin.bind(FLOWS.verify);
    const poisoned = jest.spyOn(FLOWS.verify, 'begin').mockImplementation(async (task) => {
      task.note({ boot_mode: 'bad' });
      return begin(task);
    });
    try {
      await database.query(`UPDATE nodes SET provision_state = 'enroll'`);
      await conductor.provision(uuid, 'manage', {});
      await conductor.idle();
    } finally {
      poisoned.mockRestore();
    }
    expect(await node(uuid)).toMatchObject({
      provision_state: 'enroll',
      boot_mode: 'uefi',
      last_error: like(/refused/),
      reservation: null,
    });
    expect(complaints.join('\n')).toMatch(/cannot be written/);
  });

  it('changes that only the release would write are dropped', async () => {
    const { conductor, enrol, node, speak, complaints } = await start();
    const { uuid } = await enrol({ provision_state: 'available' });
    await conductor.provision(uuid, 'active', {});
    await conductor.idle();
    await database.query(`ALTER TABLE nodes ADD CONSTRAINT refused CHECK (boot_mode <> 'bad')`);
    const poisoned = jest.spyOn(FLOWS.deploy.waiting!, 'wake').mockImplementation(async (task) => task.note({ boot_mode: 'bad' }));
    try {
      await speak(uuid);
      await conductor.idle();
    } finally {
      poisoned.mockRestore();
    }
    expect(await node(uuid)).toMatchObject({ provision_state: 'wait call-back', boot_mode: null, reservation: null });
    expect(complaints.join('\n')).toContain(`changes of node ${uuid} are dropped`);
  });

  it('an unexpected error while a node waits ends its flow', async () => {
    const { conductor, enrol, node, speak } = await start();
    const { uuid } = await enrol({ provision_state: 'available' });
    await conductor.provision(uuid, 'active', {});
    await conductor.idle();
    expect(await node(uuid)).toMatchObject({ provision_state: 'wait call-back' });
    const broken = jest.spyOn(FLOWS.deploy.waiting!, 'wake').mockRejectedValue(new TypeError('a mistake'));
    try {
      await speak(uuid);
      await conductor.idle();
    } finally {
      broken.mockRestore();
    }
    expect(await node(uuid)).toMatchObject({ provision_state: 'deploy failed', last_error: like(/a mistake/), reservation: null });
  });
});

it('a clean-up after an abort that fails is not repeated', async () => {
  const { conductor, enrol, node, complaints } = await start();
  const { uuid } = await enrol({ provision_state: 'available' });
  await conductor.provision(uuid, 'active', {});
  await conductor.idle();
  const broken = jest.spyOn(FLOWS.deploy.afterAbort!, 'work').mockImplementation(async (task) => {
    task.note({ boot_mode: 'of an unfinished clean-up' });
    throw new TypeError(REFUSED);
  });
  try {
    await conductor.provision(uuid, 'abort', {});
    await conductor.idle();
    await after(300, async () => (await node(uuid)).driver_internal_info['abort_unfinished'] === undefined);
    expect(broken).toHaveBeenCalledTimes(1);
  } finally {
    broken.mockRestore();
  }
  const last_error = like(/^Cleaning up after the abort failed: no such file$/);
  expect(await node(uuid)).toMatchObject({ provision_state: 'deploy failed', boot_mode: null, last_error, reservation: null });
  expect(complaints.join('\n')).toContain('cleaning up after an abort failed');
});

it('a clock that was decades off does not make the history fail', async () => {
  const machine = newMachine();
  machine.broken.set('prepare', new Error('no'));
  const { conductor, enrol, node } = await start({ machine });
  const { uuid } = await enrol({ provision_state: 'available' });
  await database.query(
    "CREATE FUNCTION aged() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.provision_updated_at := '1900-01-01'; RETURN NEW; END $$",
  );
  await database.query('CREATE TRIGGER aged BEFORE UPDATE ON nodes FOR EACH ROW EXECUTE FUNCTION aged()');
  try {
    await conductor.provision(uuid, 'active', {});
    await conductor.idle();
    await conductor.provision(uuid, 'active', {});
    await conductor.idle();
  } finally {
    await database.query('DROP FUNCTION aged CASCADE');
  }
  expect(await node(uuid)).toMatchObject({ provision_state: 'deploy failed', last_error: 'Failed to prepare to deploy: no' });
});

it('recovery ends a flow whose error the database refuses', async () => {
  const machine = newMachine();
  machine.broken.set('prepare', new Error(REFUSED));
  const { enrol, node } = await start({ machine });
  const { uuid } = await enrol({ provision_state: 'deploying', target_provision_state: 'active' });
  await after(300, async () => (await node(uuid)).provision_state === 'deploy failed');
  expect(await node(uuid)).toMatchObject({ last_error: like(SHOWN) });
});
