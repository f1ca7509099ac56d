/** The switches of [ironic_networking]switch_config_file: sections `[switch:NAME]`, with Ironic's keys. */
import { parseVlans } from './vlans';

export interface SwitchSettings {
  readonly name: string;
  /** A name of [ironic_networking]enabled_switch_drivers. */
  readonly driver: string;
  /** Lower case. Ports name their switch by this address or by `name`. */
  readonly mac: string;
  /** Absent: [ironic_networking]allowed_vlans. */
  readonly allowedVlans?: readonly number[] | undefined;
  /** The device's settings, with the keys of networking-generic-switch. */
  readonly device: Readonly<Record<string, string>>;
}

const REQUIRED = ['driver_type', 'device_type', 'address', 'username', 'mac_address'];
/** Ironic's key → the key of networking-generic-switch. Its own keys (`ngs_…`) and `use_keys` pass unchanged. */
const DEVICE_KEYS: Readonly<Record<string, string>> = {
  address: 'ip',
  device_type: 'device_type',
  username: 'username',
  password: 'password',
  key_file: 'key_file',
  enable_secret: 'secret',
  port: 'port',
  mac_address: 'ngs_mac_address',
  native_vlan: 'ngs_port_native_vlan',
  persist: 'ngs_save_configuration',
  use_keys: 'use_keys',
};
/** One session for all changes of a switch. Changes go into its permanent configuration only if the operator sets `persist`. */
const DEVICE_DEFAULTS = { ngs_save_configuration: 'False', ngs_ssh_reuse_connection: 'True' };

function deviceOf(given: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const entries = Object.entries(given).flatMap(([key, value]) => {
    const name = Object.hasOwn(DEVICE_KEYS, key) ? DEVICE_KEYS[key]! : key.startsWith('ngs_') ? key : undefined;
    return name === undefined ? [] : [[name, value] as const];
  });
  const keys = given['key_file'] === undefined ? {} : { use_keys: 'True' };
  return { ...DEVICE_DEFAULTS, ...keys, ...Object.fromEntries(entries) };
}

/** @throws Error that names the switch and what it lacks */
export function switchesIn(
  values: readonly { readonly section: string; readonly key: string; readonly value: string }[],
): readonly SwitchSettings[] {
  const sections = new Map<string, Record<string, string>>();
  for (const { section, key, value } of values) {
    if (!section.startsWith('switch:')) continue;
    const name = section.slice('switch:'.length);
    sections.set(name, { ...sections.get(name), [key]: value });
  }
  return [...sections].map(([name, given]) => {
    const missing = REQUIRED.filter((key) => given[key] === undefined);
    const errors = [
      ...(missing.length === 0 ? [] : [`missing required fields: ${missing.join(', ')}`]),
      ...(given['password'] === undefined && given['key_file'] === undefined ? ["must specify either 'password' or 'key_file'"] : []),
    ];
    if (errors.length > 0) throw new Error(`Invalid configuration for switch '${name}': ${errors.join('; ')}`);
    const { allowed_vlans: allowed } = given;
    return {
      name,
      driver: given['driver_type']!,
      mac: given['mac_address']!.toLowerCase(),
      allowedVlans: allowed === undefined ? undefined : parseVlans(allowed),
      device: deviceOf(given),
    };
  });
}
