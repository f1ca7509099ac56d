/** Checks and converts the arguments of paths, queries and bodies. The messages are Ironic's. */
import { Fault, type FaultName, invalid, invalidParameter } from '../../model/errors';
import { isLogicalName, isMac, isUuid } from '../../model/idents';
import { withoutSecrets } from '../../model/masks';
import { isStorable } from '../../model/text';
import { BOOLEAN_WORDS, repr, str, toBoolean, toInteger, typeName } from '../../model/python';
import { isGateOpen } from '../../model/versions';
import type { Argument, ArgumentKind, Operation } from './document';
import type { GateRefusal } from './oddities';
import { Refusal } from '../http/errors';

export type Arguments = Readonly<Record<string, unknown>>;

/** What the caller sent, without secrets. */
const quoted = (value: unknown): string => str(withoutSecrets(value));

/** A boolean that clients may write as text. */
export function booleanOf(name: string, value: unknown): boolean {
  const boolean = toBoolean(value);
  if (boolean === undefined)
    throw invalidParameter(`Invalid ${name}: Unrecognized value '${str(value)}', acceptable values are: ${BOOLEAN_WORDS}`);
  return boolean;
}
export function uuidOf(name: string, value: unknown): string {
  if (!isUuid(value)) throw invalidParameter(`Expected UUID for ${name}: ${quoted(value)}`);
  return value;
}
export function macOf(name: string, value: unknown): string {
  if (!isMac(value)) throw invalidParameter(`Expected valid MAC address for ${name}: ${quoted(value)}`);
  return value.toLowerCase();
}
/** The members of a body that are texts. Texts inside of objects are stored as they are. */
export function storableOf(name: string, value: string): string {
  if (!isStorable(value)) throw invalid(`A value cannot be stored: ${name} has the character U+0000 or half of a surrogate pair.`);
  return value;
}
function stringOf(name: string, value: unknown): string {
  if (typeof value !== 'string') throw invalidParameter(`Expected string for ${name}: ${quoted(value)}`);
  return value;
}
function hostPort(name: string, value: unknown): string {
  const text = stringOf(name, value);
  // host, host:port, [v6] or [v6]:port. Several colons without brackets are an IPv6 address.
  const [host, port] = text.startsWith('[') ? text.slice(1).split(/\]:?/) : text.split(':').length === 2 ? text.split(':') : [text];
  if (port && toInteger(port) === undefined) throw invalidParameter(`${name}: invalid literal for int() with base 10: ${repr(port)}`);
  if (!host) throw invalidParameter(`Missing host in ${name}`);
  return text;
}
const PYTHON_TYPES: Readonly<Record<string, string>> = { object: 'dict', string: 'str', array: 'list' };
function typesOf(name: string, value: unknown, types: readonly string[]): unknown {
  const names = types.map((type) => PYTHON_TYPES[type]!);
  if (!names.includes(typeName(value)))
    throw invalidParameter(
      `Expected types ${['NoneType', ...names].map((item) => `<class '${item}'>`).join(', ')} for ${name}: ${quoted(value)}`,
    );
  return value;
}

/** A check with the error message of a JSON schema. */
const strict =
  (fits: (value: unknown) => boolean, format: string, lead = '') =>
  (_name: string, value: unknown): unknown => {
    const wrong = typeof value !== 'string' ? `is not of type 'string'` : fits(value) ? undefined : `is not a '${format}'`;
    if (wrong !== undefined) throw invalidParameter(`Schema error: ${lead && `${repr(value)} ${lead}`}${repr(value)} ${wrong}`);
    return value;
  };

const CHECKS: Readonly<Record<ArgumentKind, (name: string, value: unknown, argument: Argument) => unknown>> = {
  string: stringOf,
  boolean: booleanOf,
  uuid: uuidOf,
  mac: macOf,
  integer: (name, value) => {
    const number = toInteger(value);
    if (number === undefined) throw invalidParameter(`Expected an integer for ${name}: ${quoted(value)}`);
    return number;
  },
  ident: (name, value) => {
    if (!isLogicalName(value) && !isUuid(value)) throw invalidParameter(`Expected UUID or name for ${name}: ${quoted(value)}`);
    return value;
  },
  name: (name, value) => {
    if (!isLogicalName(value)) throw invalidParameter(`Expected name for ${name}: ${quoted(value)}`);
    return value;
  },
  names: (name, value) => {
    if (Array.isArray(value)) return value.map((item) => stringOf(name, item));
    const words = stringOf(name, value)
      .split(',')
      .map((word) => word.trim().toLowerCase());
    return [...new Set(words.filter(Boolean))];
  },
  'host-port': hostPort,
  'strict-uuid': strict(isUuid, 'uuid'),
  'strict-mac': strict(isMac, 'mac-address'),
  'strict-ident': strict(
    (value) => isLogicalName(value) || isUuid(value),
    'uuid',
    'is not valid under any of the given schemas. Possible root cause: ',
  ),
  types: (name, value, { schema }) => typesOf(name, value, schema['x-types'] as string[]),
};

const FAULT_NAMES: Readonly<Record<number, FaultName>> = { 404: 'NotFound', 405: 'MethodNotAllowed', 406: 'NotAcceptable' };
/** Throws the error of a closed gate. `value`: the client's value, for the message. */
export function refuseByGate(below: GateRefusal, since: number, value?: unknown): never {
  if (typeof below === 'number') throw new Refusal(below);
  if (typeof below === 'string') throw new Refusal(404);
  const [status, sentence] = below;
  const message = sentence.replace('{since}', `1.${since}`).replace('{value}', str(value));
  throw new Fault(FAULT_NAMES[status] ?? 'Invalid', { message });
}

/**
 * @param given path parameters, query and body members by name; a repeated name has a list
 * @returns a value for each argument that was given or has a default; null stays null
 */
export function parseArguments({ arguments: known }: Operation, given: Readonly<Record<string, unknown>>): Arguments {
  const unexpected = Object.keys(given).filter((name) => !known.some((argument) => argument.name === name));
  if (unexpected.length > 0) throw invalidParameter(`Unexpected arguments: ${unexpected.join(', ')}`);
  const values: Record<string, unknown> = {};
  for (const argument of known) {
    const { name, required, kind, schema } = argument;
    if (!Object.hasOwn(given, name)) {
      if (required) throw new Fault('MissingParameterValue', { message: `Missing mandatory parameter: ${argument.label}` });
      if (schema['default'] !== undefined) values[name] = schema['default'];
    } else if (given[name] === null) values[name] = null;
    else values[name] = CHECKS[kind](argument.label, given[name], argument);
  }
  return values;
}

/** Refuses arguments newer than the request, in the order of their declaration. */
export function refuseNewer(
  { arguments: known }: Operation,
  given: Readonly<Record<string, unknown>>,
  values: Arguments,
  minor: number,
): void {
  for (const { name, gate, below } of known)
    if (below !== 'handler' && Object.hasOwn(given, name) && given[name] !== null && !isGateOpen(gate, minor))
      refuseByGate(below, gate.since, values[name]);
}
