/** Every function of the driver with every habit and machine of a maker: it works as with a standard service, or as the row says. */
import { redfishManagement } from '../../../drivers/redfish/steps/management';
import { redfishPower } from '../../../drivers/redfish/power';
import type { Power } from '../../../drivers/interfaces';
import { HABITS, type HabitName } from '../../../simulator/redfish/makers/habits';
import { PERSONALITIES, personalityOf, type MakerChoice, type PersonalityName } from '../../../simulator/redfish/makers/personalities';
import { createRedfishPool } from '../../../wire/redfish';
import { testBmc } from '../../simulator/redfish-bmc';
import { describeMachine } from '../../../simulator/hardware/description';
import { OPERATIONS } from '../../support/odd-bmc/operations';
import { setPower } from '../../support/power';
import { bmcTask } from '../bmc-task';

type Differences = Readonly<Record<string, (usual: never) => unknown>>;
const fails = (words: string) => (): unknown => expect.stringContaining(words);
const everywhere = (outcome: () => unknown): Differences =>
  Object.fromEntries(Object.keys(OPERATIONS).map((operation) => [operation, outcome]));
const anything = (): unknown => expect.anything();
/** Habit → operation → how its outcome differs from that with a standard service. */
const DIFFERENT: { readonly [name in HabitName]?: Differences } = {
  'password-change-required': everywhere(fails('the BMC demands a new password for this account')),
  'boot-not-kept': { 'boot device': fails('accepted, not kept by the service (Bloomery): Boot/BootSourceOverrideTarget was set to "Pxe"') },
  'bios-not-kept': {
    bios: () => ({
      outcome: {
        kind: 'failed',
        reason: expect.stringContaining("{'WatchdogMinutes': 7} are not updated. The service has accepted") as unknown,
      },
      value: 5,
    }),
  },
  'media-not-kept': { media: fails('is accepted, not kept by the service (Bloomery): Inserted was set to true and is false') },
  'media-https-only': { media: fails('takes virtual media by cifs, https only') },
  'media-of-fujitsu': { media: fails('takes virtual media by nfs, cifs, smb only') },
  'media-of-fujitsu-fts': { media: fails('takes virtual media by nfs, cifs, smb only') },
  'media-of-huawei': { media: fails('takes virtual media by nfs, cifs, https only') },
  'boot-mode-fixed': { manage: (usual: object) => ({ ...usual, mode: null }) },
  // The conductor, which is not part of this test, sends the order again.
  'power-on-not-kept': {
    power: (usual: { states: readonly boolean[]; acted: readonly string[] }) => ({
      states: [false, ...usual.states.slice(1)],
      acted: usual.acted.slice(1),
    }),
    firmware: anything,
    bios: anything,
    'network ports': anything,
  },
  'boot-once-only': {
    'boot device': (usual: { third: object; shown: object }) => ({
      ...usual,
      third: { ...usual.third, persistent: false },
      shown: { ...usual.shown, persistent: false },
    }),
  },
  // There is no GracefulRestart among its reset types.
  'reset-types-in-action-info': { power: (usual: object) => ({ ...usual, acted: ['on', 'off', 'on', 'soft', 'on', 'off'] }) },
  'instruction-set-absent': { inspection: (usual: { cpu: object }) => ({ ...usual, cpu: { ...usual.cpu, architecture: '' } }) },
};
/** The same for the machines of makers. */
const OF_MACHINES: Differences = {
  manage: (usual: object) => ({ ...usual, vendor: expect.any(String) as unknown }),
};

async function outcome(choice: MakerChoice, operation: string): Promise<unknown> {
  const bmc = await testBmc(describeMachine(0, '127.0.0.1'), choice);
  Object.assign(bmc.system, {
    act: async (action: (typeof bmc.acted)[number]) => {
      bmc.acted.push(action);
      if (action === 'off' || action === 'soft') bmc.on = false;
      else if (action !== 'diagnostic') {
        bmc.on = true;
        bmc.start();
      }
    },
  });
  const redfish = createRedfishPool();
  try {
    const { task } = bmcTask({
      node: {
        driver: 'redfish',
        driver_info: { redfish_address: bmc.url, redfish_username: 'admin', redfish_password: 'password', redfish_verify_ca: false },
      },
      driver: { power: redfishPower, management: redfishManagement },
      options: { 'redfish.read_timeout': 5 },
      connections: { redfish },
    });
    Object.defineProperty(task, 'power', { value: (target: Power) => setPower(redfishPower, task, target) });
    const result = await OPERATIONS[operation]!(task, bmc).catch(
      (error: unknown) => `${(error as Error).name}: ${(error as Error).message}`,
    );
    // The ports and the names of the machine differ.
    const { ids } = choice.personality ? personalityOf(choice.personality) : { ids: undefined };
    const ownNames = ids
      ? JSON.stringify(result).replace(new RegExp(`@(?:${ids.system}|${ids.chassis})"`, 'g'), '@sim-0"')
      : JSON.stringify(result);
    return JSON.parse(ownNames.replace(/127\.0\.0\.1:\d+/g, 'BMC')) as unknown;
  } finally {
    await redfish.close();
    await bmc.close();
  }
}

const usual = new Map<string, Promise<unknown>>();
const usualOf = (operation: string): Promise<unknown> => {
  if (!usual.has(operation)) usual.set(operation, outcome({}, operation));
  return usual.get(operation)!;
};
const only = (process.env['ODD'] ?? '').split(',').filter((word) => word !== '');
const isWanted = (name: string): boolean => only.length === 0 || only.some((word) => name.includes(word));

describe.each((Object.keys(HABITS) as HabitName[]).filter(isWanted))('habit %s', (habit) => {
  it.each(Object.keys(OPERATIONS))('%s', async (operation) => {
    const usually = (await usualOf(operation)) as never;
    expect(await outcome({ habits: [habit] }, operation)).toEqual(DIFFERENT[habit]?.[operation]?.(usually) ?? usually);
  });
});

describe.each((Object.keys(PERSONALITIES) as PersonalityName[]).filter(isWanted))('machine %s', (personality) => {
  it.each(Object.keys(OPERATIONS))('%s', async (operation) => {
    const usually = (await usualOf(operation)) as never;
    const expected = OF_MACHINES[operation]?.(usually) ?? usually;
    expect(await outcome({ personality }, operation)).toEqual(expected);
  });
});
