/** The life of a node on a machine of each maker: as with a standard machine, or it stops where the table says. */
import { PERSONALITIES, type PersonalityName } from '../../../simulator/redfish/makers/personalities';
import { useDatabase } from '../../support/database';
import { IDRAC, STOPS } from '../../support/pages/maker-lives';
import { startWholeServer, type WholeServer } from '../../support/whole-server';

const NAMES = Object.keys(PERSONALITIES) as readonly PersonalityName[];
/** How many lives there are at once. Most of their time is the pauses between reads of a BMC. */
const TOGETHER = 28;

const database = useDatabase();
let whole: WholeServer;
beforeAll(async () => {
  whole = await startWholeServer(database.connection(), {
    machines: NAMES.length * 2,
    maker: (index) => ({ personality: NAMES[index % NAMES.length] }),
    options: {
      'DEFAULT.enabled_hardware_types': ['redfish', 'idrac'],
      'DEFAULT.enabled_boot_interfaces': ['ipxe', 'redfish-virtual-media', 'idrac-redfish-virtual-media'],
      'DEFAULT.enabled_inspect_interfaces': ['agent', 'redfish'],
      'DEFAULT.enabled_bios_interfaces': ['redfish', 'no-bios'],
      'redfish.connection_retry_interval': 0,
      'redfish.firmware_update_status_interval': 1,
      'agent.command_wait_interval': 1,
      // A machine that does not do what it accepted ends its life soon.
      'redfish.boot_mode_config_timeout': 5,
      'conductor.power_state_change_timeout': 30,
      'conductor.check_provision_state_interval': 2,
      'conductor.deploy_callback_timeout': 120,
      'conductor.clean_callback_timeout': 120,
      'conductor.inspect_wait_timeout': 120,
    },
  });
}, 60_000);
afterAll(() => whole.close(), 60_000);

type Step = readonly [name: string, run: (uuid: string) => Promise<unknown>];
const order =
  (verb: string, state: string, more: Readonly<Record<string, unknown>> = {}) =>
  async (uuid: string) => {
    await whole.order(uuid, verb, more);
    await whole.reach(uuid, state);
  };
const replace = (path: string, value: unknown) => async (uuid: string) => {
  const answer = await whole.call('PATCH', `/v1/nodes/${uuid}`, [{ op: 'add', path, value }]);
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body));
};
const deploy = async (uuid: string): Promise<void> => {
  await replace('/instance_info', whole.deployable())(uuid);
  await order('active', 'active')(uuid);
};
const hasSetting = (name: string, value: string) => async (uuid: string) => {
  const { body } = await whole.call('GET', `/v1/nodes/${uuid}/bios/${name}`);
  expect((body[name] as { readonly value?: unknown } | undefined)?.value).toBe(value);
};
/** A setting's name, which one maker writes with an ending. */
const settingOf = (name: PersonalityName): string =>
  (PERSONALITIES[name].habits as readonly string[]).includes('bios-names-suffixed') ? 'Hyperthreading_009F' : 'Hyperthreading';
const hasBios = (name: PersonalityName): boolean => !(PERSONALITIES[name].habits as readonly string[]).includes('bios-absent');

const LIVES: Readonly<Record<string, (name: PersonalityName) => readonly Step[]>> = {
  network: (name) => [
    ['manage', order('manage', 'manageable')],
    ['inspect by Redfish', order('inspect', 'manageable')],
    ['choose the agent', replace('/inspect_interface', 'agent')],
    ['inspect by the agent', order('inspect', 'manageable')],
    ...(hasBios(name)
      ? ([
          [
            'set a BIOS setting',
            order('clean', 'manageable', {
              clean_steps: [
                { interface: 'bios', step: 'apply_configuration', args: { settings: [{ name: settingOf(name), value: 'Disabled' }] } },
              ],
            }),
          ],
          ['show the BIOS setting', hasSetting(settingOf(name), 'Disabled')],
        ] as const)
      : []),
    ['provide', order('provide', 'available')],
    ['deploy', deploy],
    ['undeploy', order('deleted', 'available')],
  ],
  media: () => [
    ['manage', order('manage', 'manageable')],
    ['provide', order('provide', 'available')],
    ['deploy', deploy],
    ['undeploy', order('deleted', 'available')],
  ],
};
async function live(life: string, name: PersonalityName): Promise<readonly [step: string, reason: string] | undefined> {
  const machine = whole.fleet.machines[NAMES.indexOf(name) + (life === 'media' ? NAMES.length : 0)]!;
  const isIdrac = life === 'media' && IDRAC.includes(name);
  const uuid = await whole.enrol(machine, {
    ...(isIdrac && { driver: 'idrac' }),
    boot_interface: life !== 'media' ? 'ipxe' : isIdrac ? 'idrac-redfish-virtual-media' : 'redfish-virtual-media',
    inspect_interface: isIdrac ? 'agent' : 'redfish',
    bios_interface: hasBios(name) ? 'redfish' : 'no-bios',
    // A boot image for UEFI needs a boot loader, which this server does not have.
    ...(life === 'media' && { properties: { capabilities: 'boot_mode:bios' } }),
  });
  for (const [step, run] of LIVES[life]!(name)) {
    try {
      await run(uuid);
    } catch (error) {
      return [step, (error as Error).message];
    }
  }
  return undefined;
}

it('each maker', async () => {
  const queue = NAMES.flatMap((name) => Object.keys(LIVES).map((life) => [life, name] as const)).values();
  const stops: Record<string, readonly [string, string]> = {};
  const worker = async (): Promise<void> => {
    for (const [life, name] of queue) {
      const stop = await live(life, name);
      if (stop) stops[`${name} ${life}`] = stop;
    }
  };
  await Promise.all(Array.from({ length: TOGETHER }, worker));
  const expected = Object.fromEntries(
    Object.entries(STOPS).map(([name, { step, reason }]) => [`${name} media`, [step, expect.stringMatching(reason)]]),
  );
  expect(stops).toEqual(expected);
}, 900_000);
