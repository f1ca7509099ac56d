/** The configuration of a switch port: from a network (`access/native_vlan=100`), or from a node's port (`extra.switchport`). */
import { Fault } from '../../model/errors';
import { isObject } from '../../model/json';
import { repr } from '../../model/python';
import type { JsonObject } from '../../model/records';
import { parseVlans } from '../../wire/switches/vlans';

const MODES = ['access', 'trunk', 'hybrid'] as const;
type Mode = (typeof MODES)[number];
export interface SwitchPort {
  readonly mode: Mode;
  readonly nativeVlan: number | null;
  readonly allowedVlans: readonly number[] | null;
}
const isMode = (value: unknown): value is Mode => MODES.includes(value as Mode);
const TUPLE = `(${MODES.map((mode) => repr(mode)).join(', ')})`;

function integer(text: string): number {
  if (!/^[+-]?\d{1,9}$/.test(text)) throw new Error(`invalid literal for int() with base 10: ${repr(text)}`);
  return Number(text);
}

function parse(value: string): SwitchPort {
  const [mode = '', ...parts] = value.split('/').map((part) => part.trim());
  if (mode === '') throw new Error('mode is empty');
  if (!isMode(mode)) throw new Error(`mode must be one of ${TUPLE}, got '${mode}'`);
  if (parts.length === 0) throw new Error('expected at least mode/native_vlan=N');
  const keys = new Map(
    parts.map((part): [string, string] => {
      const at = part.indexOf('=');
      if (at < 0) throw new Error(`expected key=value, got '${part}'`);
      return [part.slice(0, at).trim(), part.slice(at + 1).trim()];
    }),
  );
  const [native, allowed] = [keys.get('native_vlan'), keys.get('allowed_vlans')];
  return {
    mode,
    nativeVlan: native === undefined ? null : integer(native),
    allowedVlans: allowed === undefined ? null : parseVlans(allowed),
  };
}

/** @throws InvalidParameterValue */
export function switchPortOfNetwork(value: string, network: string): SwitchPort {
  try {
    return parse(value);
  } catch (error) {
    const message =
      `Invalid ${network} network value '${value}'. Expected: {access|trunk|hybrid}/native_vlan=VLAN_ID[/allowed_vlans=V1,V2,Vn-Vm,...]. ` +
      `Error: ${(error as Error).message}`;
    throw new Fault('InvalidParameterValue', { message }, { cause: error });
  }
}

const isVlan = (value: unknown): value is number => typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= 4094;

const filled = (given: unknown): JsonObject | undefined => (isObject(given) && Object.keys(given).length > 0 ? given : undefined);
/** The error of a value that is neither empty nor an object; undefined: none. */
export const shapeProblem = (given: unknown): string | undefined =>
  !given || (typeof given === 'object' && Object.keys(given).length === 0) || filled(given) !== undefined
    ? undefined
    : `${repr(given)} is not of type 'object'`;
/** The `switchport` of a port's `extra`; undefined: it has none. */
export const switchportOf = ({ extra }: { readonly extra: JsonObject }): JsonObject | undefined => filled(extra['switchport']);
/** The `lag` of a portgroup's `extra`; undefined: it has none. */
export const lagOf = ({ extra }: { readonly extra: JsonObject }): JsonObject | undefined => filled(extra['lag']);

/** Undefined: `switchport` has no mode. @throws InvalidParameterValue */
export function switchPortOfPort(switchport: JsonObject | undefined): SwitchPort | undefined {
  const { mode, native_vlan: native = null, allowed_vlans: allowed = null } = switchport ?? {};
  if (!mode) return undefined;
  if (!isMode(mode))
    throw new Fault('InvalidParameterValue', { message: `Invalid switchport mode ${repr(mode)}. Must be one of ${TUPLE}.` });
  if (native !== null && !Number.isInteger(native)) {
    const message = `native_vlan must be an integer, got ${typeof native === 'string' ? 'str' : typeof native}.`;
    throw new Fault('InvalidParameterValue', { message });
  }
  return { mode, nativeVlan: native as number | null, allowedVlans: Array.isArray(allowed) ? allowed.filter(isVlan) : null };
}

/** Whether it has the VLANs that its mode needs. */
export const isComplete = (port: SwitchPort | undefined): port is SwitchPort =>
  port !== undefined && (port.mode === 'access' ? port.nativeVlan !== null : port.allowedVlans !== null);

/** The checks that the schemas of `switchport` and `lag` share. */
function vlansProblem({ mode, native_vlan: native, allowed_vlans: allowed, mtu }: JsonObject): string | undefined {
  if (!isMode(mode)) return `${repr(mode)} is not one of ${repr([...MODES])}`;
  if (native !== undefined && !isVlan(native)) return `${repr(native)} is not a VLAN from 1 to 4094`;
  if (mode === 'access' && allowed !== undefined) return 'allowed_vlans is not for the mode access';
  if (mode !== 'access' && (!Array.isArray(allowed) || allowed.length === 0)) return "'allowed_vlans' is a required property";
  if (Array.isArray(allowed) && (allowed.length > 100 || !allowed.every(isVlan) || new Set(allowed).size < allowed.length))
    return 'allowed_vlans is not a list of up to 100 different VLANs from 1 to 4094';
  if (mtu !== undefined && (typeof mtu !== 'number' || !Number.isInteger(mtu) || mtu > 9216)) return `${repr(mtu)} is not a valid mtu`;
  return undefined;
}
function membersProblem(given: JsonObject, required: readonly string[], optional: readonly string[]): string | undefined {
  const unknown = Object.keys(given).find((name) => !required.includes(name) && !optional.includes(name));
  if (unknown !== undefined) return `Additional properties are not allowed (${repr(unknown)} was unexpected)`;
  const missing = required.find((name) => given[name] === undefined);
  return missing === undefined ? undefined : `${repr(missing)} is a required property`;
}

/** Checks a `switchport` as its JSON schema does. @returns the first error */
export function switchportProblem(switchport: JsonObject): string | undefined {
  const { lag_name: lag } = switchport;
  const problem = membersProblem(switchport, ['mode', 'native_vlan'], ['allowed_vlans', 'lag_name', 'mtu']) ?? vlansProblem(switchport);
  if (problem !== undefined) return problem;
  return lag !== undefined && (typeof lag !== 'string' || lag.length > 255) ? `${repr(lag)} is not a valid lag_name` : undefined;
}

const AGGREGATION_MODES = ['lacp', 'static'];
/** Checks a portgroup's `lag` as its JSON schema does. @returns the first error */
export function lagProblem(lag: JsonObject): string | undefined {
  const { aggregation_mode: mode } = lag;
  const problem = membersProblem(lag, ['mode', 'aggregation_mode'], ['native_vlan', 'allowed_vlans', 'mtu']) ?? vlansProblem(lag);
  if (problem !== undefined) return problem;
  return AGGREGATION_MODES.includes(String(mode)) ? undefined : `${repr(mode)} is not one of ${repr(AGGREGATION_MODES)}`;
}
