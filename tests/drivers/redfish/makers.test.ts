/** Every function of the driver with every habit and machine of a maker: it works as with a standard service, or as the row says. */
import { redfishManagement } from '../../../drivers/redfish/steps/management';
import { redfishPower } from '../../../drivers/redfish/power';
import type { Power } from '../../../drivers/interfaces';
import { HABITS, type HabitName } from '../../../simulator/redfish/makers/habits';
import { PERSONALITIES, personalityOf, type MakerChoice, type PersonalityName } from '../../../simulator/redfish/makers/personalities';
import { createRedfishPool } from '../../../wire/redfish';
import { obeyPower, testBmc } from '../../simulator/redfish-bmc';
import { MANUFACTURER, PRODUCT, describeMachine } from '../../../simulator/hardware/description';
import { OPERATIONS } from '../../support/odd-bmc/operations';
import { setPower } from '../../support/power';
import { bmcTask } from '../bmc-task';

type Differences = Readonly<Record<string, (usual: never) => unknown>>;
const fails = (words: string) => (): unknown => expect.stringContaining(words);
const everywhere = (outcome: () => unknown): Differences =>
  Object.fromEntries(Object.keys(OPERATIONS).map((operation) => [operation, outcome]));
const anything = (): unknown => expect.anything();
const reading = (identity: string, more: object): unknown => expect.objectContaining({ identity, ...more });
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
  // The URL of this test is by http. tests/drivers/redfish/oem-media.test.ts has the others.
  'media-https-only': { media: fails('takes virtual media by ') },
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
  'nics-absent': {
    manage: (usual: object) => ({ ...usual, macs: [] }),
    inspection: (usual: object) => ({ ...usual, interfaces: [], hooks: ['architecture'] }),
  },
  'bios-absent': {
    manage: (usual: object) => ({ ...usual, settings: 'not supported' }),
    bios: fails('Redfish BIOS apply configuration failed for node'),
  },
  'power-and-thermal-absent': {
    // The successors' resources have other names, and no range for what they measure.
    sensors: (usual: object) => ({
      ...usual,
      Fan: { 'Fan1@sim-0': reading('Fan1', { reading: 0 }), 'Fan2@sim-0': reading('Fan2', { reading: 0 }) },
      Power: { 'PSU1:PowerSubsystem@sim-0': expect.objectContaining({ power_capacity_watts: 750, health: 'OK' }) as unknown },
      Temperature: {
        'CPU1Temp@sim-0': reading('CPU1Temp', { reading_celsius: null }),
        'InletTemp@sim-0': reading('InletTemp', { reading_celsius: 21 }),
      },
    }),
  },
  // The hardware type idrac sets the virtual CD as the first boot device.
  'cd-is-physical': { 'boot device': (usual: { second: object }) => ({ ...usual, second: { ...usual.second, device: 'none' } }) },
  'dell-names': {
    inspection: (usual: { interfaces: readonly object[] }) => ({
      ...usual,
      interfaces: usual.interfaces.map((found, index) => ({ ...found, name: `NIC.Integrated.1-${index + 1}-1` })),
    }),
  },
  // The BIOS has settings for each port, too.
  'dell-pxe-attributes': { manage: (usual: { settings: number }) => ({ ...usual, settings: usual.settings + 11 }) },
};
/** The same for the machines of makers, beside what their habits change. */
const OF_MACHINES: Differences = {
  manage: (usual: object) => ({ ...usual, vendor: expect.any(String) as unknown }),
};
const OF_MACHINE: { readonly [name in PersonalityName]?: Differences } = {
  // The reboot finds the machine off, since its first start is lost, and this BMC refuses to switch it off again.
  'dell-idrac9-5': { power: (usual: { acted: readonly string[] }) => ({ ...usual, acted: usual.acted.slice(1) }) },
};
const expectedWith = (habits: readonly HabitName[], operation: string, usually: unknown): unknown =>
  habits.reduce((value, habit) => DIFFERENT[habit]?.[operation]?.(value as never) ?? value, usually);

async function outcome(choice: MakerChoice, operation: string): Promise<unknown> {
  const personality = choice.personality && personalityOf(choice.personality);
  const description = describeMachine(0, '127.0.0.1');
  const bmc = await testBmc(
    personality ? { ...description, manufacturer: personality.manufacturer, product: personality.model } : description,
    choice,
  );
  obeyPower(bmc);
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
    const names: readonly (readonly [RegExp, string])[] = [
      [/127\.0\.0\.1:\d+/g, 'BMC'],
      ...(personality
        ? ([
            [new RegExp(`@(?:${personality.ids.system}|${personality.ids.chassis})"`, 'g'), '@sim-0"'],
            [new RegExp(`"${personality.manufacturer}"`, 'g'), JSON.stringify(MANUFACTURER)],
            [new RegExp(`"${personality.model}"`, 'g'), JSON.stringify(PRODUCT)],
          ] as const)
        : []),
    ];
    return JSON.parse(names.reduce((text, [own, name]) => text.replace(own, name), JSON.stringify(result))) as unknown;
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
    const usually = await usualOf(operation);
    expect(await outcome({ habits: [habit] }, operation)).toEqual(expectedWith([habit], operation, usually));
  });
});

describe.each((Object.keys(PERSONALITIES) as PersonalityName[]).filter(isWanted))('machine %s', (personality) => {
  it.each(Object.keys(OPERATIONS))('%s', async (operation) => {
    const usually = expectedWith(personalityOf(personality).habits, operation, await usualOf(operation));
    const expected = [OF_MACHINES, OF_MACHINE[personality] ?? {}].reduce(
      (value, table) => table[operation]?.(value as never) ?? value,
      usually,
    );
    expect(await outcome({ personality }, operation)).toEqual(expected);
  });
});
