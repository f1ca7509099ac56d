/**
 * The burn-in that driver_info asks for: ironic-python-agent's names, defaults and units, which are those of stress-ng(1), fio(1) and gpu-burn.
 */
import { isObject } from '../json';
import type { JsonObject } from '../records';
import { shortened } from '../text';
import { AgentError } from './errors';

/** What an agent can do. */
export interface BurnInLimits {
  readonly workers: number;
  readonly loops: number;
  readonly seconds: number;
  /** Paths of files and folders, and the name of a group. */
  readonly path: RegExp;
  readonly group: RegExp;
}
const DAY = 86_400;
/** Absolute, without `.` and `..`. */
const PATH = /^(?:\/(?!\.{1,2}(?:\/|$))[\w.+-]{1,64}){1,16}$/;
/** Our agent: its timers wait 24 days, and paths may be words of a program's command line. */
export const OUR_LIMITS: BurnInLimits = { workers: 4096, loops: 1000, seconds: 24 * DAY, path: PATH, group: /^[\w.-]{1,100}$/ };
/** Any agent: stress-ng and fio take larger numbers and other paths. */
const ANY_TEXT = /^\P{Cc}{1,1000}$/u;
export const ANY_LIMITS: BurnInLimits = {
  workers: 2 ** 31 - 1,
  loops: 2 ** 31 - 1,
  seconds: 10 * 365 * DAY,
  path: ANY_TEXT,
  group: ANY_TEXT,
};

export interface CpuBurnIn {
  /** 0: one for each processor. */
  readonly workers: number;
  readonly seconds: number;
  /** The file in the ramdisk that gets the result; undefined: none. */
  readonly outputFile: string | undefined;
}
export interface MemoryBurnIn extends CpuBurnIn {
  /** Of all workers. A part of the memory that is available, or bytes. */
  readonly memory: { readonly part: number } | { readonly bytes: number };
}
export interface DiskBurnIn {
  readonly loops: number;
  /** 0: until the loops are done. Otherwise the loops do not count. */
  readonly seconds: number;
  readonly outputFile: string | undefined;
  /** Whether the disks test themselves afterwards. */
  readonly smartTest: boolean;
}
export type NetworkRole = 'writer' | 'reader';
export interface NetworkBurnIn {
  /** Of each direction. */
  readonly seconds: number;
  readonly outputFile: string | undefined;
  /** A partner that driver_info names, or a place where partners find each other. */
  readonly partner: { readonly role: NetworkRole; readonly host: string } | { readonly backendUrl: string; readonly group: string };
  /** Seconds to wait for the partner. */
  readonly patience: number;
}
interface GpuBurnIn {
  readonly folder: string;
  readonly seconds: number;
  /** As gpu-burn takes it: `95%`, or MB. */
  readonly memory: string;
  /** 0: any number of GPUs. */
  readonly count: number;
}

/** Without the value of a URL, which may have a password. */
const refusal = (name: string, value: unknown, wanted: string): AgentError => {
  const got = name.endsWith('_url') ? '' : `, not ${shortened(JSON.stringify(value), 100)}`;
  return new AgentError('InvalidCommandParamsError', `driver_info/${name} must be ${wanted}${got}`);
};

/** Of one driver_info. Absent and null members have the default. */
function reader(info: JsonObject, limits: BurnInLimits) {
  const given = <Value>(name: string, otherwise: Value, read: (value: unknown) => Value | undefined, wanted: string): Value => {
    const value = info[name] ?? undefined;
    if (value === undefined) return otherwise;
    const found = read(value);
    if (found === undefined) throw refusal(name, value, wanted);
    return found;
  };
  return {
    count: (name: string, otherwise: number): number =>
      given(name, otherwise, (value) => integerIn(value, 0, limits.workers), `a number from 0 to ${limits.workers}`),
    seconds: (name: string, otherwise: number, least: 0 | 1): number =>
      given(
        name,
        otherwise,
        (value) => durationIn(value, least, limits.seconds),
        `a time from ${least} to ${limits.seconds} seconds, as 600, 10m, 2h or 1d`,
      ),
    file: (name: string): string | undefined =>
      given<string | undefined>(
        name,
        undefined,
        (value) => (isFile(value, limits.path) ? value : undefined),
        'the path of a file, such as /var/log/burnin.cpu',
      ),
    flag: (name: string): boolean => given<boolean>(name, false, flagIn, 'true or false'),
    text: (name: string, otherwise: string, pattern: RegExp, wanted: string): string =>
      given(name, otherwise, (value) => (typeof value === 'string' && pattern.test(value) ? value : undefined), wanted),
    given,
  };
}

function integerIn(value: unknown, least: number, most: number): number | undefined {
  const number = typeof value === 'string' && /^\d{1,12}$/.test(value) ? Number(value) : value;
  return Number.isSafeInteger(number) && (number as number) >= least && (number as number) <= most ? (number as number) : undefined;
}
const UNITS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: DAY, w: 7 * DAY, y: 365 * DAY };
function durationIn(value: unknown, least: number, most: number): number | undefined {
  const [, digits, unit] = /^(\d{1,9})([smhdwy]?)$/.exec(String(value)) ?? [];
  return digits === undefined ? undefined : integerIn(Number(digits) * UNITS[unit || 's']!, least, most);
}
const SIZES: Readonly<Record<string, number>> = { b: 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40 };
function memoryIn(value: unknown): MemoryBurnIn['memory'] | undefined {
  const [, percent] = /^(\d{1,3})%$/.exec(String(value)) ?? [];
  if (percent !== undefined) return Number(percent) >= 1 && Number(percent) <= 100 ? { part: Number(percent) / 100 } : undefined;
  const [, digits, unit] = /^(\d{1,15})([bkmgt]?)$/i.exec(String(value)) ?? [];
  const bytes = digits === undefined ? undefined : integerIn(Number(digits) * SIZES[(unit || 'b').toLowerCase()]!, 4096, 2 ** 52);
  return bytes === undefined ? undefined : { bytes };
}
/** The values that oslo.utils takes for a truth value, which clients of the command line send as texts. */
const FLAGS: Readonly<Record<string, boolean>> = { true: true, false: false, '1': true, '0': false, yes: true, no: false };
function flagIn(value: unknown): boolean | undefined {
  const name = String(value).toLowerCase();
  return Object.hasOwn(FLAGS, name) ? FLAGS[name] : undefined;
}
/** Without `..`, and not one of devices or of the kernel: a result must not overwrite a disk. */
const isFile = (value: unknown, path: RegExp): value is string =>
  typeof value === 'string' && path.test(value) && !/(?:^|\/)\.{1,2}(?:\/|$)/.test(value) && !/^\/(?:dev|proc|sys)(?:\/|$)/.test(value);
const HOST = /^(?!-)[A-Za-z0-9.:_%-]{1,253}$/;

export function readCpuBurnIn(info: JsonObject, limits = OUR_LIMITS): CpuBurnIn {
  const { count, seconds, file } = reader(info, limits);
  return {
    workers: count('agent_burnin_cpu_cpu', 0),
    seconds: seconds('agent_burnin_cpu_timeout', DAY, 1),
    outputFile: file('agent_burnin_cpu_outputfile'),
  };
}
export function readMemoryBurnIn(info: JsonObject, limits = OUR_LIMITS): MemoryBurnIn {
  const { count, seconds, file, given } = reader(info, limits);
  return {
    workers: count('agent_burnin_vm_vm', 0),
    seconds: seconds('agent_burnin_vm_timeout', DAY, 1),
    outputFile: file('agent_burnin_vm_outputfile'),
    memory: given('agent_burnin_vm_vm-bytes', { part: 0.98 }, memoryIn, 'a part of the memory or a size, as 98%, 512M or 4G'),
  };
}
export function readDiskBurnIn(info: JsonObject, limits = OUR_LIMITS): DiskBurnIn {
  const { given, seconds, file, flag } = reader(info, limits);
  return {
    loops: given('agent_burnin_fio_disk_loops', 4, (value) => integerIn(value, 1, limits.loops), `a number from 1 to ${limits.loops}`),
    seconds: seconds('agent_burnin_fio_disk_runtime', 0, 0),
    outputFile: file('agent_burnin_fio_disk_outputfile'),
    smartTest: flag('agent_burnin_fio_disk_smart_test'),
  };
}
/** Throws CleaningError, in ironic-python-agent's words, if no partner can be known. */
export function readNetworkBurnIn(info: JsonObject, limits = OUR_LIMITS): NetworkBurnIn {
  const { seconds, file, given, text } = reader(info, limits);
  const name = 'agent_burnin_fio_network_config';
  const config = given<JsonObject>(name, {}, (value) => (isObject(value) ? value : undefined), 'an object with role and partner');
  const isStatic = Object.keys(config).length > 0;
  return {
    seconds: seconds('agent_burnin_fio_network_runtime', 21_600, 1),
    outputFile: file('agent_burnin_fio_network_outputfile'),
    patience: seconds('agent_burnin_fio_network_pairing_timeout', isStatic ? STATIC_PATIENCE : 900, 1),
    partner: isStatic ? staticPartner(name, config) : dynamicPartner(text, limits),
  };
}
/** Seconds. Machines that begin together reach the step minutes apart. ironic-python-agent's writer waits without an end. */
const STATIC_PATIENCE = 3600;
const cleaning = (details: string): AgentError => new AgentError('CleaningError', details);
function staticPartner(name: string, { role, partner }: JsonObject): NetworkBurnIn['partner'] {
  if (role !== 'writer' && role !== 'reader')
    throw cleaning(
      `fio (network) found an unknown role: ${shortened(typeof role === 'string' ? role : JSON.stringify(role ?? 'None'), 100)}`,
    );
  if (partner === undefined || partner === null || partner === '') throw cleaning('fio (network) failed to find partner');
  if (typeof partner !== 'string' || !HOST.test(partner)) throw refusal(`${name}/partner`, partner, 'a host name or an address');
  return { role, host: partner };
}
function dynamicPartner(text: ReturnType<typeof reader>['text'], { group: pattern }: BurnInLimits): NetworkBurnIn['partner'] {
  const name = 'agent_burnin_fio_network_pairing_backend_url';
  const backendUrl = text(name, '', /^[\x21-\x7e]{1,1000}$/, 'a URL');
  if (backendUrl === '') throw cleaning(`fio (network): dynamic pairing config is missing ${name}`);
  const group = text(
    'agent_burnin_fio_network_pairing_group_name',
    'ironic.network-burnin',
    pattern,
    'a name of letters, digits, dots, _ and -',
  );
  return { backendUrl, group };
}
export function readGpuBurnIn(info: JsonObject, limits = OUR_LIMITS): GpuBurnIn {
  const { count, seconds, given, text } = reader(info, limits);
  const memory = (value: unknown): string | undefined => (/^\d{1,9}%?$/.test(String(value)) ? String(value) : undefined);
  return {
    folder: text('agent_burnin_gpu_install_dir', '/opt/gpu-burn', limits.path, 'the path of a folder'),
    seconds: seconds('agent_burnin_gpu_timeout', DAY, 1),
    memory: given('agent_burnin_gpu_memory', '95%', memory, 'a part of the memory or MB, as 95% or 4096'),
    count: count('agent_burnin_gpu_count', 0),
  };
}
