/**
 * The real Ironic and our server run the same operations of the hardware type idrac on two equal simulated Dell machines. Afterwards the
 * nodes, the machines, and what the iDRACs were asked to change are compared.
 */
import { randomBytes } from 'node:crypto';
import type { Server } from 'node:http';
import { systemClock } from '../../../model/clock';
import { silentLog } from '../../../model/log';
import type { JsonObject } from '../../../model/records';
import { startFleet, type Fleet, type FleetMachine } from '../../../simulator/fleet/fleet';
import { startBoth, type Both } from '../both';
import { alike, ask } from '../compare';
import { send } from '../requests/steps';
import { IDRAC_INTERFACES, closed, driverInfo, jsonAt, noting, rest, serving, urlOf, type Change } from './dell-sides';

jest.setTimeout(900_000);
/** The seed of a machine with two disks for the system and twelve for data. */
const SEED = 12;
const NAME = 'sim-0';
let files: Server;
let both: Both;
interface Side {
  readonly url: string;
  readonly fleet: Fleet;
  readonly machine: FleetMachine;
  readonly proxy: Server;
  /** What the iDRAC was asked to change: METHOD PATH, with the body. */
  readonly changes: Change[];
}
/** The real Ironic's side, and ours. */
const sides: Side[] = [];

beforeAll(async () => {
  files = await serving('no image that anybody boots');
  both = await startBoth(
    {
      DEFAULT: IDRAC_INTERFACES,
      conductor: { verify_step_priority_override: 'management.clear_job_queue:90' },
      redfish: { raid_config_status_interval: '1', post_boot_retry_delay: '1' },
      drac: { query_raid_config_job_status_interval: '1' },
    },
    { reference: { deploy: { http_url: urlOf(files) } }, ours: { boot: { http_host: '127.0.0.1', http_port: '0', tftp: 'false' } } },
  );
  for (const url of [both.reference, both.ours]) {
    const parts = { host: '127.0.0.1', log: silentLog, clock: systemClock, random: randomBytes };
    const fleet = await startFleet({
      ...parts,
      count: 1,
      seed: SEED,
      bootUrl: urlOf(files),
      taskMs: 500,
      behaviour: { bootMs: 50 },
      maker: () => ({ personality: 'dell-idrac9' }),
      // The real one tries for half a minute before it counts the iDRAC as gone, and wants that twice.
      faults: () => ({ restart: 90_000 }),
    });
    const machine = fleet.machines[0]!;
    const changes: Change[] = [];
    sides.push({ url, fleet, machine, changes, proxy: await noting(machine.redfish.address, changes) });
  }
});
afterAll(async () => {
  await both?.stop();
  for (const { fleet, proxy } of sides) {
    await closed(proxy);
    await fleet.close();
  }
  await closed(files);
});

const NODE = ['provision_state', 'last_error', 'maintenance', 'fault'] as const;
const byPath = (a: readonly [string, unknown], b: readonly [string, unknown]): number => a[0].localeCompare(b[0]);
/** @param only of the changes that the iDRAC was asked for */
async function seen(side: Side, only: RegExp, node: JsonObject): Promise<JsonObject> {
  const { volumes, bios } = side.machine.control.hardware.snapshot() as JsonObject & { readonly bios?: { readonly current: unknown } };
  return alike({
    node: Object.fromEntries(NODE.map((name) => [name, node[name]])),
    raid: { ...(node['raid_config'] as object), last_updated: undefined },
    machine: { volumes, settings: bios?.current, on: side.machine.control.isOn() },
    // A change that is refused at first, for its ETag or without a session, is asked for again.
    changes: [...new Map(side.changes.filter(([name]) => only.test(name)).map((change) => [JSON.stringify(change), change])).values()].sort(
      byPath,
    ),
  }) as JsonObject;
}
type Call = (side: Side) => readonly [method: string, path: string, body?: unknown];
/** Sends the same requests to both sides, and checks that both are equal. @returns the common result */
async function same(only: RegExp, ...calls: readonly Call[]): Promise<JsonObject> {
  return compared(only, calls);
}
async function compared(only: RegExp, calls: readonly Call[], waiting = false): Promise<JsonObject> {
  const [theirs, ours] = await Promise.all(
    sides.map(async (side) => {
      side.changes.length = 0;
      const answers: unknown[] = [];
      let node: JsonObject = {};
      for (const call of calls) {
        const [method, path, body] = call(side);
        const answer = await ask(side.url, send(method, `/v1/nodes${path}`, body));
        const { error_message: error } = (answer.body.startsWith('{') ? JSON.parse(answer.body) : {}) as { error_message?: string };
        answers.push({ status: answer.status, error: error && alike(JSON.parse(error)) });
        node = await rest(side.url, NAME, waiting);
      }
      return { answers, ...(await seen(side, only, node)) };
    }),
  );
  expect(ours).toEqual(theirs);
  return theirs!;
}
const provision =
  (target: string, more: object = {}): Call =>
  () => ['PUT', `/${NAME}/states/provision`, { target, ...more }];
const clean = (step: string, args?: object, more: object = { disable_ramdisk: true }): Call => {
  const [kind, name] = step.split('.') as [string, string];
  return provision('clean', { clean_steps: [{ interface: kind, step: name, ...(args && { args }) }], ...more });
};
const RESTING = { provision_state: 'manageable', last_error: null };

it('both servers enrol a Dell machine, and clear its job queue at the verification', async () => {
  const found = await same(
    /DeleteJobQueue/,
    ({ machine, proxy }) => [
      'POST',
      '',
      {
        name: NAME,
        driver: 'idrac',
        driver_info: driverInfo(machine, proxy, files),
      },
    ],
    provision('manage'),
  );
  expect(found).toMatchObject({ node: RESTING, changes: [[expect.stringContaining('DeleteJobQueue'), { JobID: 'JID_CLEARALL' }]] });
});
it('both servers clear the job queue in cleaning', async () => {
  const found = await same(/DeleteJobQueue/, clean('management.clear_job_queue'));
  expect(found).toMatchObject({ node: RESTING, changes: [[expect.stringContaining('DeleteJobQueue'), { JobID: 'JID_CLEARALL' }]] });
});
it('both servers create RAID volumes, and delete them, without a ramdisk', async () => {
  const disks = [{ size_gb: 100, raid_level: '1', is_root_volume: true, volume_name: 'root' }];
  const made = await same(
    /Volumes|DellRaidService/,
    () => ['PUT', `/${NAME}/states/raid`, { logical_disks: disks }],
    clean('raid.create_configuration'),
  );
  expect(made).toMatchObject({ node: RESTING, machine: { volumes: [expect.anything()] } });
  expect(await same(/Volumes|DellRaidService/, clean('raid.delete_configuration'))).toMatchObject({
    node: RESTING,
    machine: { volumes: [] },
  });
});
it('both servers apply BIOS settings', async () => {
  const settings = [{ name: 'PowerProfile', value: 'Performance' }];
  expect(await same(/Bios/, clean('bios.apply_configuration', { settings }))).toMatchObject({
    node: RESTING,
    machine: { settings: { PowerProfile: 'Performance' } },
  });
});
it('both servers inspect the machine, with its service tag and its switches', async () => {
  await same(/$^/, provision('inspect'));
  const [theirs, ours] = await Promise.all(sides.map((side) => jsonAt(side.url, `/v1/nodes/${NAME}/inventory`)));
  // The real one compares the boot mode with another spelling of it, and never finds the card that boots.
  const { boot, ...rest } = ours!['inventory'] as JsonObject & { readonly boot: JsonObject };
  expect(boot['pxe_interface']).toEqual(expect.stringMatching(/^52:/));
  expect({ ...rest, boot: { current_boot_mode: boot['current_boot_mode'] } }).toEqual(theirs!['inventory']);
  expect((ours!['plugin_data'] as JsonObject)['parsed_lldp']).toEqual((theirs!['plugin_data'] as JsonObject)['parsed_lldp']);
  expect(rest).toMatchObject({ system_vendor: { manufacturer: 'Dell Inc.' } });
});
it('both servers make the iDRAC boot the virtual CD by an import of its configuration', async () => {
  const found = await compared(/ImportSystemConfiguration/, [clean('management.set_bmc_clock', undefined, {})], true);
  expect(found).toMatchObject({
    node: { provision_state: 'clean wait' },
    changes: [[expect.stringContaining('ImportSystemConfiguration'), expect.objectContaining({ ShareParameters: { Target: ['ALL'] } })]],
  });
  await same(/$^/, provision('abort'));
  await same(/$^/, () => ['DELETE', `/${NAME}/maintenance`], provision('manage'));
});
it('both servers reset the iDRAC, and wait until it is ready', async () => {
  const found = await same(/iDRACReset|DeleteJobQueue/, clean('management.known_good_state'));
  expect(found).toMatchObject({ node: RESTING });
  // Sorted by their paths.
  expect((found['changes'] as [string][]).map(([name]) => name.split('.').at(-1))).toEqual(['iDRACReset', 'DeleteJobQueue']);
});
