/** Capabilities: the machine's (properties.capabilities, `a:b,c:d`) and the instance's requests (instance_info.capabilities, an object). */
import { Fault } from '../../model/errors';
import { isObject } from '../../model/json';
import { JSON_LIMITS, parseSmallJson } from '../../wire/bounded-json';
import type { NodeRecord } from '../../model/records';

type Capabilities = Readonly<Record<string, string>>;

/** The capabilities that are checked, with their allowed values. */
const VALUES: Readonly<Record<string, readonly string[]>> = {
  boot_mode: ['bios', 'uefi'],
  secure_boot: ['true', 'false'],
  disk_label: ['msdos', 'gpt'],
};

/** `a:b,c:d`; pieces that are not key:value are ignored, as in Ironic. */
export function machineCapabilities(node: NodeRecord): Capabilities {
  const text = node.properties['capabilities'];
  if (typeof text !== 'string') return {};
  const pairs = text.split(',').map((pair) => pair.split(':').map((part) => part.trim()));
  return Object.fromEntries(pairs.filter((pair) => pair.length === 2 && pair[0] && pair[1]) as [string, string][]);
}

/** An object, or its JSON text. Throws InvalidParameterValue for anything else. */
export function instanceCapabilities(node: NodeRecord): Capabilities {
  const capabilities = node.instance_info['capabilities'] ?? {};
  const value = typeof capabilities === 'string' ? parsed(capabilities) : capabilities;
  if (!isObject(value)) {
    throw new Fault('InvalidParameterValue', {
      message: `Error parsing capabilities from Node ${node.uuid} instance_info field. A dictionary or a "jsonified" dictionary is expected.`,
    });
  }
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, String(entry)]));
}

/** Throws InvalidParameterValue when a known capability has an invalid value. */
export function validateCapabilities(node: NodeRecord): void {
  const places = [
    ['properties/capabilities', machineCapabilities(node)],
    ["instance_info['capabilities']", instanceCapabilities(node)],
  ] as const;
  for (const [name, valid] of Object.entries(VALUES)) {
    for (const [place, capabilities] of places) {
      const value = capabilities[name];
      if (!value || valid.includes(value)) continue;
      throw new Fault('InvalidParameterValue', {
        message: `The parameter '${name}' from ${place} has an invalid value: '${value}'. Acceptable values are: ${valid.join(', ')}.`,
      });
    }
  }
}

/** Maximum nesting depth of capabilities that are given as JSON text. */
const MAX_DEPTH = 8;
function parsed(text: string): unknown {
  try {
    return parseSmallJson(Buffer.from(text), { ...JSON_LIMITS.request, depth: MAX_DEPTH });
  } catch {
    return undefined;
  }
}

/** Sets one of the machine's capabilities; an existing one keeps its position. Throws InvalidParameterValue when they are not a text. */
export function withCapability(capabilities: unknown, name: string, value: string): string {
  const current = capabilities ?? '';
  if (typeof current !== 'string')
    throw new Fault('InvalidParameterValue', { message: `Invalid capabilities: ${JSON.stringify(current)}` });
  const pairs = current.split(',').filter((pair) => pair.includes(':'));
  const at = pairs.findIndex((pair) => pair.split(':')[0] === name);
  return (at < 0 ? [...pairs, `${name}:${value}`] : pairs.with(at, `${name}:${value}`)).join(',');
}
