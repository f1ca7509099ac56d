/** driver_info of nodes with a Redfish service: its keys, their values, and requests to the service. */
import { isIPv6 } from 'node:net';
import { access } from 'node:fs/promises';
import { retry } from '../../model/clock';
import { invalidParameter, Fault } from '../../model/errors';
import { canonicalHost } from '../../model/idents';
import { isObject } from '../../model/json';
import type { JsonObject, NodeRecord } from '../../model/records';
import { str, toBoolean } from '../../model/python';
import {
  RedfishError,
  hasMessage,
  isStatus,
  linkOf,
  member,
  memberPaths,
  readResource,
  rootPath,
  type RedfishAnswer,
  type RequestDetails,
  type SendRedfishRequest,
  type RedfishMethod,
  type RedfishResource,
  type RedfishTarget,
} from '../../wire/redfish';
import { textOf } from '../common/info-text';
import type { Property, Task } from '../interfaces';
import { withoutEndSlashes } from '../../wire/urls';

export const REDFISH_PROPERTIES: Readonly<Record<string, Property>> = {
  redfish_address: {
    description:
      'The URL address to the Redfish controller. It must include the authority portion of the URL. If the scheme is missing, https is assumed. For example: https://mgmt.vendor.com. If a path is added, it will be used as the API endpoint root_prefix. Required',
    required: true,
  },
  redfish_system_id: {
    description:
      'The canonical path to the ComputerSystem resource that the driver will interact with. It should include the root service, version and the unique resource path to a ComputerSystem within the same authority as the redfish_address property. For example: /redfish/v1/Systems/1. This property is only required if target BMC manages more than one ComputerSystem. Otherwise ironic will pick the only available ComputerSystem automatically.',
  },
  redfish_username: {
    description:
      "User account with admin/server-profile access privilege. Although this property is not mandatory it's highly recommended to set a username. Optional",
  },
  redfish_password: {
    description: "User account password. Although this property is not mandatory, it's highly recommended to set a password. Optional",
    secret: true,
  },
  redfish_verify_ca: {
    description:
      "Either a Boolean value, a path to a CA_BUNDLE file or directory with certificates of trusted CAs. If set to True the driver will verify the host certificates; if False the driver will ignore verifying the SSL certificate. If it's a path the driver will use the specified certificate or one of the certificates in the directory. Defaults to True. Optional",
  },
  redfish_auth_type: {
    description:
      'Redfish HTTP client authentication method. Can be "basic", "session" or "auto". If not set, the default value is taken from Ironic configuration as ``[redfish]auth_type`` option.',
  },
  firmware_update_unresponsive_bmc_wait: {
    description:
      'Number of seconds to wait to avoid the BMC becoming unresponsive during firmware updates. If not set, the default value is taken from the Ironic configuration ``firmware_update_wait_unresponsive_bmc`` in the ``[redfish]`` section.',
  },
  redfish_tls_minimum_version: {
    description:
      'Minimum TLS protocol version for connections to the Redfish BMC. Can be "1.1", "1.2", or "1.3". If not set, the default value is taken from Ironic configuration as ``[redfish]tls_minimum_version`` option.',
  },
  redfish_tls_ciphers: {
    description:
      'OpenSSL cipher list to use for connections to the Redfish BMC. If not set, the default value is taken from Ironic configuration as ``[redfish]tls_ciphers`` option.',
  },
};

/** scheme://[user@]host[:port][/path]: an IPv6 address in brackets, or a registered name (RFC 3986 §3.2). */
const ADDRESS = /^https?:\/\/(?:[^@/?#\s]*@)?(?:\[[0-9a-f:.]+\]|[a-z0-9._~-]+)(?::\d{1,5})?(?:[/?#]\S*)?$/i;
const AUTH_TYPES = ['basic', 'session', 'auto'] as const;
const TLS_VERSIONS = { '1.1': 'TLSv1.1', '1.2': 'TLSv1.2', '1.3': 'TLSv1.3' } as const;

/** The service's URL without user, query and fragment. */
function addressOf(node: NodeRecord): string {
  const given = node.driver_info['redfish_address'];
  const full = typeof given !== 'string' || given.includes('://') ? given : `https://${isIPv6(given) ? `[${given}]` : given}`;
  if (typeof full === 'string' && ADDRESS.test(full) && URL.canParse(full)) {
    const { origin, pathname } = new URL(full);
    return `${origin}${withoutEndSlashes(pathname)}`;
  }
  throw invalidParameter(`Invalid Redfish address ${str(full)} set in driver_info/redfish_address on node ${node.uuid}`);
}

/** Host and port of the service, however its address is written: see HardwareType.bmcOf. */
export function redfishBmcOf({ redfish_address: address }: JsonObject): string | undefined {
  if (typeof address !== 'string') return undefined;
  const url = address.includes('://') ? address : `https://${isIPv6(address) ? `[${address}]` : address}`;
  if (!URL.canParse(url)) return address.toLowerCase();
  const { hostname, port } = new URL(url);
  return `${canonicalHost(hostname) ?? hostname} ${port}`;
}

/** The sources of a service's settings. */
type SettingsSource = Pick<Task, 'node' | 'options'>;

async function verifyCaOf({ node, options }: SettingsSource): Promise<boolean | string> {
  const { redfish_verify_ca: setting = true } = node.driver_info;
  const value = setting === true || setting === null ? (options['redfish.verify_ca'] ?? setting) : setting;
  if (typeof value === 'boolean') return value;
  const known =
    typeof value === 'string'
      ? (toBoolean(value) ??
        (await access(value).then(
          () => value,
          () => undefined,
        )))
      : undefined;
  if (known === undefined)
    throw invalidParameter(
      `Invalid value type set in driver_info/redfish_verify_ca on node ${node.uuid}. The value should be a Boolean or the path to a file/directory, not "${str(value)}"`,
    );
  return known;
}

/** One of the allowed words. Without the key: the option. Null: neither is set. */
function wordOf<T extends string>(node: NodeRecord, key: string, option: string | null, words: readonly T[], listed: string): T | null {
  const setting = node.driver_info[key];
  const value = setting === undefined ? option : setting;
  if (setting === undefined && value === null) return null;
  const word = words.find((candidate) => candidate === value);
  if (word) return word;
  throw invalidParameter(
    `Invalid value "${str(value)}" set in driver_info/${key} on node ${node.uuid}. The value should be one of ${listed}.`,
  );
}

interface RedfishSystem {
  readonly target: RedfishTarget;
  /** Path of the ComputerSystem; undefined: the service's only system. */
  readonly system: string | undefined;
}
/** The service and system that a node's driver_info names. Throws Fault MissingParameterValue, InvalidParameterValue. */
export async function redfishSystem({ node, options }: SettingsSource): Promise<RedfishSystem> {
  const given = (key: string): unknown => node.driver_info[key] ?? undefined;
  if (!given('redfish_address'))
    throw new Fault('MissingParameterValue', {
      message: `Missing the following Redfish properties in node ${node.uuid} driver_info: ['redfish_address']`,
    });
  const address = addressOf(node);
  const id = given('redfish_system_id') ?? '';
  if (typeof id !== 'string')
    throw invalidParameter(
      `Invalid value "${str(id)}" set in driver_info/redfish_system_id on node ${node.uuid}. The value should be a path (string) to the resource that the driver will interact with. For example: /redfish/v1/Systems/1`,
    );
  const verifyCa = await verifyCaOf({ node, options });
  const authType = wordOf(node, 'redfish_auth_type', options['redfish.auth_type'], AUTH_TYPES, '"basic", "session" or "auto"') ?? 'auto';
  const versions = Object.keys(TLS_VERSIONS) as (keyof typeof TLS_VERSIONS)[];
  const version = wordOf(node, 'redfish_tls_minimum_version', options['redfish.tls_minimum_version'], versions, '"1.1", "1.2", or "1.3"');
  const textIfGiven = (key: string): string | undefined => (given(key) === undefined ? undefined : textOf(node, key));
  const ciphers = textIfGiven('redfish_tls_ciphers') ?? options['redfish.tls_ciphers'];
  const [username, password] = [textIfGiven('redfish_username'), textIfGiven('redfish_password')];
  return {
    system: id === '' ? undefined : encodeURI(id.startsWith('/') ? id : `/${id}`),
    target: {
      address,
      authType,
      verifyCa,
      username,
      password,
      tls:
        version || ciphers !== null
          ? { minVersion: version ? TLS_VERSIONS[version] : undefined, ciphers: ciphers ?? undefined }
          : undefined,
    },
  };
}

/** Whether to repeat a request: it may succeed soon, and does no harm if it was processed already. */
const mayRepeat = (error: RedfishError, method: RedfishMethod): boolean =>
  error.kind === 'unreachable' ||
  (error.retryAfterMs !== undefined && (error.status === 429 || error.status === 503)) ||
  (method === 'GET' && (error.kind === 'interrupted' || (error.status ?? 0) >= 500));

/** Messages of services that are busy or not ready for a moment. They have done nothing, so any request may be repeated. */
const PASSING: readonly { readonly message: string; readonly maker?: RegExp }[] = [
  { message: 'SYS518' },
  { message: 'InvalidOperationForSystemState', maker: /\biLO\b/i },
  { message: 'ServiceTemporarilyUnavailable' },
  { message: 'ServiceShuttingDown' },
];
/** Whether the service refused a request for the moment only. */
export const isPassing = (error: unknown): error is RedfishError =>
  isStatus(error) && PASSING.some(({ message, maker }) => hasMessage(error, message) && (maker?.test(error.messageIds.join(' ')) ?? true));
/** How often a request that is refused for the moment is repeated, and the milliseconds before: sushy's values. */
export const PASSING_TRIES = 10;
export const PASSING_PAUSE = 3000;

/**
 * One request to the node's service, repeated as [redfish]connection_attempts says, after the delay that the service gives, if any.
 * Throws the last attempt's RedfishError.
 */
async function redfishRequest(
  task: Task,
  target: RedfishTarget,
  method: RedfishMethod,
  path: string,
  { impatient, timeoutMs: own, ...more }: RequestDetails = {},
): Promise<RedfishAnswer> {
  const { options, signal, connections } = task;
  const timeoutMs = own ?? options['redfish.read_timeout'] * 1000;
  let [attempts, passing] = [0, 0];
  return retry(
    task,
    () => connections.redfish.request(target, method, path, { ...more, timeoutMs, signal }),
    (error) => {
      if (!(error instanceof RedfishError)) return undefined;
      if (isPassing(error) && !impatient && passing++ < PASSING_TRIES) return error.retryAfterMs ?? PASSING_PAUSE;
      if (++attempts >= options['redfish.connection_attempts'] || !mayRepeat(error, method)) return undefined;
      return Math.max(error.retryAfterMs ?? options['redfish.connection_retry_interval'] * 1000, 100);
    },
  );
}
/** `redfishRequest` for the helpers of wire/redfish: `collection(redfishRequester(task, target), path)`. */
export const redfishRequester =
  (task: Task, target: RedfishTarget): SendRedfishRequest =>
  (method, path, more) =>
    redfishRequest(task, target, method, path, more);

/** Kinds that mean that the service could not be reached, whatever was requested. */
const NO_CONNECTION: readonly string[] = ['unreachable', 'untrusted', 'interrupted'];
/** A hint for the operator, appended to the message. */
function hint(error: RedfishError): string {
  if (error.kind === 'untrusted') return ' (redfish_verify_ca in driver_info, or [redfish]verify_ca, says whom to trust)';
  if (hasMessage(error, 'PasswordChangeRequired'))
    return ' (the BMC demands a new password for this account before it does anything else: change it there, then in redfish_password of driver_info)';
  if (isStatus(error, 401)) return ' (the service does not take redfish_username and redfish_password of driver_info)';
  return '';
}
/** The Fault of a RedfishError for clients: a sentence with the node in it, status 500. Other errors are returned as they are. */
export function redfishFault(task: Task, error: unknown, doing?: string): unknown {
  if (!(error instanceof RedfishError)) return error;
  const { uuid } = task.node;
  const what = doing === undefined ? '' : `Redfish exception occurred. Error: ${doing} failed for node ${uuid}. Error: `;
  const start = NO_CONNECTION.includes(error.kind) ? `Redfish connection failed for node ${uuid}: ` : what;
  return new Fault('DriverOperationError', { message: `${start}${error.message}${hint(error)}` }, { cause: error });
}

/** The node's ComputerSystem as the service describes it now, and the function for further requests. */
export interface SystemView extends RedfishResource {
  readonly target: RedfishTarget;
  readonly ask: SendRedfishRequest;
}
/** Systems that are no host: baseboards of GPUs, and cards with a processor of their own (NVIDIA). */
const NO_HOST = /^(?:HGX_.*|DPU.*|MGX_NVSwitch_.*)$/i;
const lastName = (path: string): string => withoutEndSlashes(path).split('/').at(-1) ?? '';
async function onlySystem(ask: SendRedfishRequest, target: RedfishTarget): Promise<string> {
  const root = await ask('GET', rootPath(target));
  const systems = linkOf(member(root.body, 'Systems'));
  if (systems === undefined) throw new RedfishError('protocol', `${target.address} names no systems in its service root`);
  const all = await memberPaths(ask, systems);
  const hosts = all.filter((path) => !NO_HOST.test(lastName(path)));
  const [path, ...others] = hosts.length > 0 ? hosts : all;
  if (path === undefined || others.length > 0)
    throw new RedfishError('protocol', 'Failed at determining default for "ComputerSystem": System count is not exactly one');
  return path;
}
/** @throws Fault of driver_info; RedfishError */
export async function systemOf(task: Task): Promise<SystemView> {
  const { target, system } = await redfishSystem(task);
  const ask = redfishRequester(task, target);
  const path = system ?? (await onlySystem(ask, target));
  try {
    const resource = await readResource(ask, path);
    // An empty answer would pass for a machine without parts.
    if (!isObject(resource.body)) throw new RedfishError('protocol', `${target.address} answered for ${path} with no JSON object`);
    return { target, ask, ...resource };
  } catch (error) {
    if (!isStatus(error, 404)) throw error;
    const message = `Redfish exception occurred. Error: Resource ${new URL(path, target.address).href} not found`;
    throw new RedfishError('status', message, { status: 404, cause: error });
  }
}
/**
 * Runs `work` on the node's system. A RedfishError becomes a Fault (status 500), whose sentence names what was being done.
 * Code without a system uses `redfishSystem`, `redfishRequester`, and `redfishFault` for the errors.
 */
export async function onSystem<T>(task: Task, doing: string | undefined, work: (system: SystemView) => Promise<T>): Promise<T> {
  try {
    return await work(await systemOf(task));
  } catch (error) {
    throw redfishFault(task, error, doing);
  }
}
