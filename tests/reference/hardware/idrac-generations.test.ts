/**
 * The real Ironic and our server run the same operations on equal simulated Dell machines of each generation: with the hardware type idrac
 * on an iDRAC 8 and an iDRAC 10, and with redfish on all four. What the clients are told and what becomes of the machines is compared.
 */
import { randomBytes } from 'node:crypto';
import type { Server } from 'node:http';
import { systemClock } from '../../../model/clock';
import { silentLog } from '../../../model/log';
import type { JsonObject } from '../../../model/records';
import { startFleet, type Fleet, type FleetMachine } from '../../../simulator/fleet/fleet';
import type { PersonalityName } from '../../../simulator/redfish/makers/personalities';
import { startBoth, type Both } from '../both';
import { alike, ask } from '../compare';
import { get, send } from '../requests/steps';
import { IDRAC_INTERFACES, closed, driverInfo, noting, rest, serving, urlOf, type Change } from './dell-sides';

jest.setTimeout(900_000);
/** The seed of a machine with two disks for the system and twelve for data. */
const SEED = 12;
type Driver = 'idrac' | 'redfish';
const MACHINES: readonly (readonly [driver: Driver, personality: PersonalityName])[] = [
  ['idrac', 'dell-idrac8'],
  ['idrac', 'dell-idrac10'],
  ['redfish', 'dell-idrac8'],
  ['redfish', 'dell-idrac9-5'],
  ['redfish', 'dell-idrac9'],
  ['redfish', 'dell-idrac10'],
];
const nameOf = (index: number): string => `dell-${index}`;

let files: Server;
let both: Both;
interface Side {
  readonly url: string;
  readonly machine: FleetMachine;
  readonly proxy: Server;
  readonly changes: Change[];
}
const fleets: Fleet[] = [];
/** For each machine the real Ironic's side, and ours. */
const sides: Side[][] = MACHINES.map(() => []);

beforeAll(async () => {
  files = await serving('no image that anybody boots');
  const withRedfish = (name: keyof typeof IDRAC_INTERFACES): string => `${IDRAC_INTERFACES[name]},redfish`;
  both = await startBoth(
    {
      DEFAULT: {
        ...IDRAC_INTERFACES,
        enabled_hardware_types: 'idrac,redfish',
        enabled_bios_interfaces: withRedfish('enabled_bios_interfaces'),
        enabled_boot_interfaces: `${IDRAC_INTERFACES.enabled_boot_interfaces},redfish-virtual-media`,
        enabled_inspect_interfaces: withRedfish('enabled_inspect_interfaces'),
        enabled_management_interfaces: withRedfish('enabled_management_interfaces'),
        enabled_power_interfaces: withRedfish('enabled_power_interfaces'),
        enabled_raid_interfaces: withRedfish('enabled_raid_interfaces'),
        enabled_vendor_interfaces: withRedfish('enabled_vendor_interfaces'),
      },
      redfish: { post_boot_retry_delay: '1', boot_mode_config_timeout: '60' },
    },
    { reference: { deploy: { http_url: urlOf(files) } }, ours: { boot: { http_host: '127.0.0.1', http_port: '0', tftp: 'false' } } },
  );
  for (const url of [both.reference, both.ours]) {
    const fleet = await startFleet({
      host: '127.0.0.1',
      log: silentLog,
      clock: systemClock,
      random: randomBytes,
      count: MACHINES.length,
      seed: SEED,
      bootUrl: urlOf(files),
      taskMs: 500,
      behaviour: { bootMs: 50 },
      maker: (index) => ({ personality: MACHINES[index]![1] }),
    });
    fleets.push(fleet);
    for (const [index, machine] of fleet.machines.entries()) {
      const changes: Change[] = [];
      sides[index]!.push({ url, machine, changes, proxy: await noting(machine.redfish.address, changes) });
    }
  }
});
afterAll(async () => {
  await both?.stop();
  for (const { proxy } of sides.flat()) await closed(proxy);
  for (const fleet of fleets) await fleet.close();
  await closed(files);
});

const provision = (target: string, more: object = {}) => ['PUT', '/states/provision', { target, ...more }] as const;
const clean = (step: string, args?: object, more: object = { disable_ramdisk: true }) => {
  const [kind, name] = step.split('.') as [string, string];
  return provision('clean', { clean_steps: [{ interface: kind, step: name, ...(args && { args }) }], ...more });
};
type Call = readonly [method: string, path: string, body?: unknown];
interface Operation {
  readonly calls: readonly Call[];
  /** What clients read afterwards. */
  readonly reads?: string;
  readonly waiting?: true;
}
const media = { device_type: 'CDROM', image_url: 'http://127.0.0.1:1/tool.iso' };
const device = (boot_device: string, persistent: boolean): Operation => ({
  calls: [['PUT', '/management/boot_device', { boot_device, persistent }]],
  reads: '/management/boot_device',
});
const MANAGE: Operation = { calls: [provision('manage')] };
const INSPECT: Operation = { calls: [provision('inspect')], reads: '/inventory' };
const BIOS: Operation = { calls: [clean('bios.apply_configuration', { settings: [{ name: 'PowerProfile', value: 'Performance' }] })] };
const BOOT: Readonly<Record<string, Operation>> = {
  'boot the virtual CD': { calls: [clean('management.set_bmc_clock', undefined, {})], waiting: true },
  'abort the boot': { calls: [provision('abort'), ['DELETE', '/maintenance'], provision('manage')] },
};
const OPERATIONS: Readonly<Record<Driver, Readonly<Record<string, Operation>>>> = {
  idrac: {
    manage: MANAGE,
    'clear the job queue': { calls: [clean('management.clear_job_queue')] },
    inspect: INSPECT,
    ...BOOT,
  },
  redfish: {
    manage: MANAGE,
    validate: { calls: [], reads: '/validate' },
    'power on': { calls: [['PUT', '/states/power', { target: 'power on' }]] },
    'power off': { calls: [['PUT', '/states/power', { target: 'power off' }]] },
    'boot the network once': device('pxe', false),
    'boot the disk always': device('disk', true),
    'boot the CD once': device('cdrom', false),
    'boot mode bios': { calls: [['PUT', '/states/boot_mode', { target: 'bios' }]], reads: '/states' },
    'boot mode uefi': { calls: [['PUT', '/states/boot_mode', { target: 'uefi' }]], reads: '/states' },
    'attach a medium': { calls: [['POST', '/vmedia', media]] },
    'detach the medium': { calls: [['DELETE', '/vmedia']] },
    'BIOS settings': BIOS,
    inspect: INSPECT,
    ...BOOT,
  },
};

const NODE = ['provision_state', 'last_error', 'maintenance', 'fault', 'power_state', 'boot_mode'] as const;
interface Seen {
  readonly answers: readonly { readonly status: number; readonly error: unknown }[];
  readonly node: JsonObject;
  readonly read: unknown;
  readonly machine: JsonObject;
}
/** Each server publishes its images at URLs of its own. */
const withoutUrls = (drives: unknown): unknown =>
  JSON.parse(
    JSON.stringify(drives ?? null, (name, value: unknown) => (name === 'url' ? new URL(String(value)).pathname.split('.').at(-1) : value)),
  );
async function seen({ url, machine }: Side, name: string, { calls, reads, waiting }: Operation): Promise<Seen> {
  const answers: Seen['answers'][number][] = [];
  let node: JsonObject = {};
  for (const [method, path, body] of calls) {
    const answer = await ask(url, send(method, `/v1/nodes/${name}${path}`, body));
    const { error_message: error } = (answer.body.startsWith('{') ? JSON.parse(answer.body) : {}) as { error_message?: string };
    answers.push({ status: answer.status, error: error && alike(JSON.parse(error)) });
    node = await rest(url, name, waiting);
  }
  const read = reads === undefined ? null : alike(JSON.parse((await ask(url, get(`/v1/nodes/${name}${reads}`))).body));
  const { bios, media: drives } = machine.control.hardware.snapshot() as JsonObject & { readonly bios?: { readonly current: unknown } };
  return {
    answers,
    node: alike(Object.fromEntries(NODE.map((field) => [field, node[field]]))) as JsonObject,
    read,
    machine: {
      settings: bios?.current ?? null,
      media: withoutUrls(drives),
      boot: machine.control.snapshot().boot,
      on: machine.control.isOn(),
    },
  };
}

type Bettered = (theirs: Seen) => Seen;
/** The real one refuses only when the machine is about to boot. */
const saysBefore: Bettered = (theirs) => {
  const { boot: _, deploy: __, ...rest } = theirs.read as JsonObject;
  const refused = { result: false, reason: expect.stringContaining('interface is not suitable for node') as unknown };
  return { ...theirs, read: { ...rest, boot: refused, deploy: refused } };
};
/** The real one compares the boot mode with another spelling of it, and never finds the card that boots. */
const findsTheCardThatBoots: Bettered = (theirs) => {
  const { inventory, plugin_data: data } = theirs.read as { readonly inventory: JsonObject; readonly plugin_data: JsonObject };
  const [first, ...others] = data['macs'] as readonly string[];
  const name = 'NIC.Integrated.1-1-1';
  const all = data['all_interfaces'] as Readonly<Record<string, JsonObject>>;
  expect(others.length).toBeGreaterThan(0);
  const card = { ...all[name], pxe_enabled: true };
  return {
    ...theirs,
    read: {
      inventory: { ...inventory, boot: { ...(inventory['boot'] as JsonObject), pxe_interface: first } },
      plugin_data: { ...data, macs: [first], all_interfaces: { ...all, [name]: card }, valid_interfaces: { [name]: card } },
    },
  };
};
/** This firmware accepts the first order and does nothing. The real one gives it once. */
const ordersAgain: Bettered = (theirs) => {
  expect(theirs.node).toMatchObject({
    power_state: 'power off',
    last_error: expect.stringContaining('Failed to set node power state') as unknown,
  });
  return {
    ...theirs,
    node: { ...theirs.node, power_state: 'power on', last_error: null },
    machine: { ...theirs.machine, on: true },
  };
};
/** Where ours does more than the real one: driver, personality, operation. All else is equal. */
const BETTER: Readonly<Record<string, Bettered>> = {
  'idrac dell-idrac8 inspect': findsTheCardThatBoots,
  'idrac dell-idrac10 inspect': findsTheCardThatBoots,
  'redfish dell-idrac8 validate': saysBefore,
  'redfish dell-idrac9-5 validate': saysBefore,
  'redfish dell-idrac10 validate': saysBefore,
  'redfish dell-idrac9-5 power on': ordersAgain,
};

type Result = readonly [operation: string, theirs: Seen, ours: Seen];
async function enrolled(index: number, driver: Driver): Promise<void> {
  const chosen = driver === 'redfish' ? { inspect_interface: 'redfish', boot_interface: 'redfish-virtual-media' } : {};
  await Promise.all(
    sides[index]!.map(async ({ url, machine, proxy }) => {
      const info = { driver_info: driverInfo(machine, proxy, files), properties: { vendor: 'Dell Inc.' } };
      const made = await ask(url, send('POST', '/v1/nodes', { name: nameOf(index), driver, ...info, ...chosen }));
      expect(made.status).toBe(201);
    }),
  );
}
async function results(index: number, driver: Driver): Promise<readonly Result[]> {
  await enrolled(index, driver);
  const found: Result[] = [];
  for (const [operation, what] of Object.entries(OPERATIONS[driver])) {
    const [theirs, ours] = await Promise.all(sides[index]!.map((side) => seen(side, nameOf(index), what)));
    found.push([operation, theirs!, ours!]);
  }
  return found;
}
/** All machines at once: most of the time is pauses between reads. */
let all: Promise<readonly PromiseSettledResult<readonly Result[]>[]> | undefined;
it.each(MACHINES.map(([driver, personality], index) => [driver, personality, index] as const))(
  'both servers do the same with %s on %s',
  async (driver, personality, index) => {
    all ??= Promise.allSettled(MACHINES.map(([one], at) => results(at, one)));
    const mine = (await all)[index]!;
    if (mine.status === 'rejected') throw mine.reason;
    const table = (choose: (result: Result) => unknown) => Object.fromEntries(mine.value.map((result) => [result[0], choose(result)]));
    const expected = table(([operation, theirs]) => (BETTER[`${driver} ${personality} ${operation}`] ?? ((same: Seen) => same))(theirs));
    expect(table(([, , ours]) => ours)).toEqual(expected);
  },
);
