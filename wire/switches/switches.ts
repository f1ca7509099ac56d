/** The switches of the configuration, by MAC address or name, and the changes of their ports. */
import type { SwitchSettings } from './config';
import type { DeviceChange, SwitchWorker } from './worker';

export interface PortVlans {
  readonly mode: 'access' | 'trunk' | 'hybrid';
  readonly nativeVlan: number | null;
  readonly allowedVlans: readonly number[];
  /** The port's VLAN before an update and after a reset. */
  readonly defaultVlan: number | null;
}
export interface Switches {
  /** @throws SwitchError */
  update(switchId: string, port: string, vlans: PortVlans, signal: AbortSignal): Promise<void>;
  /** @throws SwitchError */
  reset(switchId: string, port: string, vlans: PortVlans, signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}
/** The message says why a port was not changed. */
export class SwitchError extends Error {}

/** A driver makes one change. Ironic's name → driver. */
export type SwitchDrivers = Readonly<Record<string, Pick<SwitchWorker, 'change'>>>;
export const noopSwitchDriver: Pick<SwitchWorker, 'change'> = { change: async () => {} };

/**
 * Port names become parts of command lines of the switch: one word, or a kind and a number. No word begins with a hyphen, which options and
 * further commands of ovs-vsctl do.
 */
const PORT = /^[\w./:@+][\w./:@+-]*(?: [\w./:@+][\w./:@+-]*)?$/;
const MAX_PORT = 128;

function check(port: string, { mode, nativeVlan, allowedVlans }: PortVlans, permitted: readonly number[] | null, name: string): number {
  if (port.length > MAX_PORT || !PORT.test(port))
    throw new SwitchError(`${JSON.stringify(port.slice(0, MAX_PORT))} is not the name of a switch port`);
  if (!['access', 'trunk'].includes(mode)) throw new SwitchError('mode must be one of: access, trunk');
  if (nativeVlan === null || nativeVlan < 1 || nativeVlan > 4094)
    throw new SwitchError('native_vlan must be an integer between 1 and 4094');
  const refused = permitted === null ? [] : [nativeVlan, ...allowedVlans].filter((vlan) => !permitted.includes(vlan));
  if (refused.length > 0)
    throw new SwitchError(
      `VLANs [${refused.join(', ')}] are not allowed for update_port on switch ${name}. Allowed VLANs: [${permitted!.join(', ')}]`,
    );
  return nativeVlan;
}

/**
 * @param permitted [ironic_networking]allowed_vlans; null: all
 * @param close ends what the drivers use
 */
export function createSwitches(
  settings: readonly SwitchSettings[],
  permitted: readonly number[] | null,
  drivers: SwitchDrivers,
  close: () => Promise<void>,
): Switches {
  const change = async (
    operation: DeviceChange['operation'],
    switchId: string,
    port: string,
    vlans: PortVlans,
    signal: AbortSignal,
  ): Promise<void> => {
    const wanted = switchId.toLowerCase();
    const one = settings.find(({ mac }) => mac === wanted) ?? settings.find(({ name }) => name === switchId);
    const driver = one && Object.hasOwn(drivers, one.driver) ? drivers[one.driver] : undefined;
    if (one === undefined || driver === undefined)
      throw new SwitchError(`Switch ${switchId.slice(0, 128)} could not be found or is not supported by any configured switch driver.`);
    const nativeVlan = check(port, vlans, operation === 'reset' ? null : (one.allowedVlans ?? permitted), one.name);
    const { allowedVlans, defaultVlan } = vlans;
    await driver
      .change({ switch: one.name, operation, port, native_vlan: nativeVlan, trunk_vlans: allowedVlans, default_vlan: defaultVlan }, signal)
      .catch((error: unknown) => {
        signal.throwIfAborted();
        throw new SwitchError(`Failed to configure network port: ${(error as Error).message}`, { cause: error });
      });
  };
  return {
    update: (switchId, port, vlans, signal) => change('update', switchId, port, vlans, signal),
    reset: (switchId, port, vlans, signal) => change('reset', switchId, port, vlans, signal),
    close,
  };
}
