/** driver_info of nodes with an IPMI BMC: its keys, their values, and commands to the BMC. */
import { retry } from '../../model/clock';
import { invalidParameter, Fault } from '../../model/errors';
import { canonicalHost } from '../../model/idents';
import type { JsonObject, NodeRecord } from '../../model/records';
import { str, toBoolean, toInteger } from '../../model/python';
import { IpmiError, type IpmiTarget } from '../../wire/ipmi/client';
import type { Bridge } from '../../wire/ipmi/session';
import { CHASSIS_CONTROL, COMMANDS, PRIVILEGE, mayPass, type CommandCode } from '../../wire/ipmi/constants';
import type { SendCommand } from '../../wire/ipmi/record-access';
import { textOf } from '../common/info-text';
import type { Property, Task } from '../interfaces';

const bridged = (what: string, when: string): string => `${what} for bridged request. Required only if ipmi_bridging is set to ${when}.`;
export const IPMI_PROPERTIES: Readonly<Record<string, Property>> = {
  ipmi_address: { description: 'IP address or hostname of the node. Required.', required: true },
  ipmi_password: { description: 'password. Optional.', secret: true },
  ipmi_hex_kg_key: {
    description: 'Kg key for IPMIv2 authentication. The key is expected in hexadecimal format. Optional.',
    secret: true,
  },
  ipmi_port: { description: 'remote IPMI RMCP port. Optional.' },
  ipmi_priv_level: {
    description: 'privilege level; default is ADMINISTRATOR. One of ADMINISTRATOR, CALLBACK, OPERATOR, USER. Optional.',
  },
  ipmi_username: { description: 'username; default is NULL user. Optional.' },
  ipmi_bridging: { description: 'bridging_type; default is "no". One of "single", "dual", "no". Optional.' },
  ipmi_transit_channel: { description: bridged('transit channel', '"dual"') },
  ipmi_transit_address: { description: bridged('transit address', '"dual"') },
  ipmi_target_channel: { description: bridged('destination channel', '"single" or "dual"') },
  ipmi_target_address: { description: bridged('destination address', '"single" or "dual"') },
  ipmi_local_address: {
    description: 'local IPMB address for bridged requests. Used only if ipmi_bridging is set to "single" or "dual". Optional.',
  },
  ipmi_protocol_version: {
    description: 'the version of the IPMI protocol; default is "2.0". One of "1.5", "2.0". Optional.',
  },
  ipmi_force_boot_device: {
    description:
      'Whether Ironic should specify the boot device to the BMC each time the server is turned on, eg. because the BMC is not capable of remembering the selected boot device across power cycles; default value is False. Optional.',
  },
  ipmi_disable_boot_timeout: {
    description:
      'By default ironic will send a raw IPMI command to disable the 60 second timeout for booting. Setting this option to False will NOT send that command on this node. The [ipmi]disable_boot_timeout will be used if this option is not set. Optional.',
  },
  ipmi_cipher_suite: {
    description:
      'The number of a cipher suite to use. Only 3 (AES-128 with SHA1) or 17 (AES-128 with SHA256) should ever be used; 17 is preferred. The default value depends on the ipmitool version, some recent versions have switched from 3 to 17.',
  },
};

/** See HardwareType.bmcOf. */
export function ipmiBmcOf({ ipmi_address: address, ipmi_port: port }: JsonObject): string | undefined {
  if (typeof address !== 'string') return undefined;
  return `${canonicalHost(address) ?? address.toLowerCase()} ${typeof port === 'number' || typeof port === 'string' ? port : ''}`;
}

const PRIVILEGES = Object.keys(PRIVILEGE).sort() as (keyof typeof PRIVILEGE)[];
/** The keys that each kind of bridging requires. */
const BRIDGING: Readonly<Record<string, readonly string[]>> = {
  single: ['ipmi_target_channel', 'ipmi_target_address'],
  dual: ['ipmi_target_channel', 'ipmi_target_address', 'ipmi_transit_channel', 'ipmi_transit_address'],
  no: [],
};
const DEFAULT_PORT = 623;
/** ipmitool's own choice: the better suite, if the BMC offers it. */
const DEFAULT_CIPHER_SUITES: readonly number[] = [17, 3];
/** The BMC's own address on its IPMB (§5.5). */
const LOCAL_ADDRESS = 0x20;

const missing = (message: string): Fault => new Fault('MissingParameterValue', { message });
/** A list of words in Python's notation. */
const list = (words: readonly string[]): string => `[${words.map((word) => `'${word}'`).join(', ')}]`;

function portOf(value: unknown, key: string): number {
  const port = toInteger(value);
  if (port === undefined || port < 0 || port > 65535) throw invalidParameter(`${key} "${str(value)}" is not a valid port.`);
  return port;
}
/** JSON does not distinguish 2.0 from 2. */
const versionOf = (value: unknown): string => (value === 2 ? '2.0' : str(value));

/** A channel or an address as ipmitool accepts it: decimal, or hexadecimal with 0x. */
function byteOf(node: NodeRecord, key: string, most: number): number {
  const text = str(node.driver_info[key]).trim();
  const value = /^(0x[\da-f]{1,2}|\d{1,3})$/i.test(text) ? Number(text) : NaN;
  if (!(value <= most)) throw invalidParameter(`${key} "${text}" is not a number from 0 to ${most}, such as 7 or 0x07.`);
  return value;
}
/** The controller behind the BMC, if the node is bridged. */
function bridgeOf(node: NodeRecord, kind: string): Bridge | undefined {
  if (kind === 'no') return undefined;
  const hop = (name: 'transit' | 'target'): Bridge['hops'][number] => ({
    channel: byteOf(node, `ipmi_${name}_channel`, 0x0f),
    address: byteOf(node, `ipmi_${name}_address`, 0xff),
  });
  const local = node.driver_info['ipmi_local_address'] ?? undefined;
  return {
    hops: kind === 'dual' ? [hop('transit'), hop('target')] : [hop('target')],
    localAddress: local === undefined ? LOCAL_ADDRESS : byteOf(node, 'ipmi_local_address', 0xff),
  };
}

/**
 * The BMC in a node's driver_info.
 * @param suites cipher suites for nodes without their own: the first that the BMC accepts is used
 * @throws Fault MissingParameterValue, InvalidParameterValue
 */
export function ipmiTarget(node: NodeRecord, suites: readonly number[] = DEFAULT_CIPHER_SUITES): IpmiTarget {
  const given = (key: string): unknown => node.driver_info[key] ?? undefined;
  const address = given('ipmi_address');
  if (!address) throw missing(`Missing the following IPMI credentials in node's driver_info: ['ipmi_address'].`);
  const kg = given('ipmi_hex_kg_key') === undefined ? '' : str(given('ipmi_hex_kg_key'));
  if (kg.length % 2 !== 0) throw invalidParameter('Number of ipmi_hex_kg_key characters is not even');
  // As in Ironic, null is an explicit and invalid value of these keys.
  const orDefault = (key: string, standard: string): unknown => (Object.hasOwn(node.driver_info, key) ? node.driver_info[key] : standard);
  const version = versionOf(orDefault('ipmi_protocol_version', '2.0'));
  if (version !== '2.0' && version !== '1.5')
    throw invalidParameter(`Invalid IPMI protocol version value ${version}, the valid value can be one of 2.0, 1.5`);
  const suite = given('ipmi_cipher_suite');
  const cipherSuite = suite === undefined ? undefined : toInteger(suite);
  if (suite !== undefined && cipherSuite === undefined) throw invalidParameter(`Invalid cipher suite ${str(suite)}, expected a number`);
  if (suite !== undefined && version === '1.5') throw invalidParameter('Cipher suites cannot be used with IPMI 1.5');
  const terminal = given('ipmi_terminal_port');
  if (terminal !== undefined) portOf(terminal, 'ipmi_terminal_port');
  const port = portOf(given('ipmi_port') ?? DEFAULT_PORT, 'ipmi_port') || DEFAULT_PORT;
  const bridging = str(orDefault('ipmi_bridging', 'no'));
  const required = Object.hasOwn(BRIDGING, bridging) ? BRIDGING[bridging] : undefined;
  if (!required)
    throw invalidParameter(`Invalid value for ipmi_bridging: ${bridging}, the valid value can be one of: ${list(Object.keys(BRIDGING))}`);
  const absent = required.filter((key) => given(key) === undefined);
  if (absent.length > 0) throw missing(`${list(absent)} not provided`);
  const level = str(orDefault('ipmi_priv_level', 'ADMINISTRATOR'));
  const privilege = PRIVILEGES.find((candidate) => candidate === level);
  if (!privilege) throw invalidParameter(`Invalid privilege level value:${level}, the valid value can be one of ${PRIVILEGES.join(', ')}`);

  if (!/^[0-9a-f]*$/i.test(kg) || kg.length > 40) throw invalidParameter('ipmi_hex_kg_key is not at most 20 bytes in hexadecimal format.');
  const bridge = bridgeOf(node, bridging);
  return {
    address: str(address),
    port,
    username: textOf(node, 'ipmi_username'),
    password: textOf(node, 'ipmi_password'),
    version,
    privilege,
    cipherSuites: cipherSuite === undefined ? suites : [cipherSuite],
    bridge,
    kg: kg === '' ? undefined : Buffer.from(kg, 'hex'),
  };
}

/** A boolean of driver_info in any of the usual spellings. Other values are false. */
export const flagOf = (node: NodeRecord, key: string, otherwise: boolean): boolean => {
  const value = node.driver_info[key];
  return value === undefined || value === null ? otherwise : (toBoolean(value) ?? false);
};

/** The node's BMC, with the conductor's cipher suites. Ironic's list has the preferred one at its end. */
export function targetOf({ node, options }: Task): IpmiTarget {
  const suites = options['ipmi.cipher_suite_versions'].map(Number).reverse();
  return suites.length === 0 ? ipmiTarget(node) : ipmiTarget(node, suites);
}

/**
 * Sends one command to the node's BMC. While the BMC is busy, repeats it every [ipmi]min_command_interval for [ipmi]command_retry_timeout.
 * @param what the command's name in errors
 * @throws Fault DriverOperationError, its cause an IpmiError
 */
export const ipmiCommand = (task: Task, what: string, code: CommandCode, ...data: readonly number[]): Promise<Buffer> =>
  asFault(what, ipmiRequest(task, code, data));

/** Turns an IpmiError into the Fault for clients. */
export async function asFault<T>(what: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof IpmiError)) throw error;
    throw new Fault('DriverOperationError', { message: `IPMI call failed: ${what}. Reason: ${error.message}` }, { cause: error });
  }
}

async function ipmiRequest(
  task: Task,
  code: CommandCode,
  data: readonly number[],
  { lun, controller }: { readonly lun?: number | undefined; readonly controller?: Bridge['hops'][number] | undefined } = {},
): Promise<Buffer> {
  const { clock, options, signal, connections } = task;
  const target = targetOf(task);
  const at = controller && !target.bridge ? { ...target, bridge: { hops: [controller], localAddress: LOCAL_ADDRESS } } : target;
  const deadline = clock.now() + options['ipmi.command_retry_timeout'] * 1000;
  const pause = options['ipmi.min_command_interval'] * 1000;
  return retry(
    task,
    () => connections.ipmi.request(at, code[0], code[1], Buffer.from(data), { timeoutMs: deadline - clock.now(), signal, lun }),
    (error) => {
      if (!(error instanceof IpmiError)) return undefined;
      const again = mayPass(error) || options['ipmi.additional_retryable_ipmi_errors'].some((text) => error.message.includes(text));
      return again && clock.now() + pause < deadline ? Math.max(pause, 100) : undefined;
    },
  );
}

/**
 * Sends commands to the node's BMC for the readers of wire/ipmi, which get refusals unchanged (IpmiError).
 * @param controller one behind the BMC; ignored when the node itself is bridged
 */
export const ipmiCommandSender =
  (task: Task, controller?: Bridge['hops'][number]): SendCommand =>
  (code, data, lun) =>
    ipmiRequest(task, code, data, { lun, controller });

/** Names of the Chassis Control actions in errors. */
const CONTROL_NAMES = { on: 'power on', off: 'power off', soft: 'power soft', reset: 'power reset', diagnostic: 'power diag' } as const;
export const chassisControl = async (task: Task, action: keyof typeof CONTROL_NAMES): Promise<void> => {
  await ipmiCommand(task, CONTROL_NAMES[action], COMMANDS.chassisControl, CHASSIS_CONTROL[action]);
};
