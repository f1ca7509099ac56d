/** Every function of the driver with every odd behaviour of a BMC: it works as with a correct one, or as the row says. */
import { redfishManagement } from '../../../drivers/redfish/steps/management';
import { redfishPower } from '../../../drivers/redfish/power';
import type { Power } from '../../../drivers/interfaces';
import { createRedfishPool } from '../../../wire/redfish';
import { BEHAVIOURS } from '../../support/odd-bmc/behaviours';
import { oddBmc } from '../../support/odd-bmc/odd-bmc';
import { OPERATIONS } from '../../support/odd-bmc/operations';
import { bmcTask } from '../bmc-task';
import { setPower } from '../../support/power';

/** Behaviour → operation → how its outcome differs from that with a correct BMC. */
const DIFFERENT: Readonly<Record<string, Readonly<Record<string, (usual: never) => unknown>>>> = {
  'shows no power state for a while after each change': { manage: (usual: object) => ({ ...usual, power: null }) },
  // There is no GracefulRestart among its reset types.
  'lists the values of a reset in its ActionInfo': {
    power: (usual: object) => ({ ...usual, acted: ['on', 'off', 'on', 'soft', 'on', 'off'] }),
  },
  'tells no architecture': { inspection: (usual: { cpu: object }) => ({ ...usual, cpu: { ...usual.cpu, architecture: '' } }) },
  'has no usable network interface': {
    manage: (usual: object) => ({ ...usual, macs: [] }),
    inspection: (usual: object) => ({ ...usual, interfaces: [], hooks: ['architecture'] }),
  },
};

async function outcome(behaviour: string, operation: string): Promise<unknown> {
  const { bmc, url, close } = await oddBmc(BEHAVIOURS[behaviour]!);
  const redfish = createRedfishPool();
  try {
    const { task } = bmcTask({
      node: {
        driver: 'redfish',
        driver_info: { redfish_address: url, redfish_username: 'admin', redfish_password: 'password', redfish_verify_ca: false },
      },
      driver: { power: redfishPower, management: redfishManagement },
      options: { 'redfish.read_timeout': 5 },
      connections: { redfish },
    });
    Object.defineProperty(task, 'power', { value: (target: Power) => setPower(redfishPower, task, target) });
    const result = await OPERATIONS[operation]!(task, bmc).catch(
      (error: unknown) => `${(error as Error).name}: ${(error as Error).message}`,
    );
    // The ports differ.
    return JSON.parse(JSON.stringify(result).replace(/127\.0\.0\.1:\d+/g, 'BMC')) as unknown;
  } finally {
    await redfish.close();
    await close();
  }
}

const usual = new Map<string, Promise<unknown>>();
const usualOf = (operation: string): Promise<unknown> => {
  if (!usual.has(operation)) usual.set(operation, outcome('nothing odd', operation));
  return usual.get(operation)!;
};
const only = (process.env['ODD'] ?? '').split(',').filter((word) => word !== '');
const names = Object.keys(BEHAVIOURS).filter(
  (name) => name !== 'nothing odd' && (only.length === 0 || only.some((candidate) => name.includes(candidate))),
);

describe.each(names)('a BMC that %s', (behaviour) => {
  it.each(Object.keys(OPERATIONS))('%s', async (operation) => {
    const usually = (await usualOf(operation)) as never;
    expect(await outcome(behaviour, operation)).toEqual(DIFFERENT[behaviour]?.[operation]?.(usually) ?? usually);
  });
});
