/** Capabilities: what a machine can (properties.capabilities, `a:b,c:d`) and what an instance wants (instance_info.capabilities, an object). */
import { Fault } from '../../model/errors';
import type { NodeRecord } from '../../model/records';

type Capabilities = Readonly<Record<string, string>>;

/** The capabilities that are understood here, with the values that they may have. */
const VALUES: Readonly<Record<string, readonly string[]>> = {
  boot_mode: ['bios', 'uefi'],
  secure_boot: ['true', 'false'],
  disk_label: ['msdos', 'gpt'],
};

/** `a:b,c:d`; pieces that are not key:value are passed over, as Ironic does. */
export function machineCapabilities(node: NodeRecord): Capabilities {
  const text = node.properties['capabilities'];
  if (typeof text !== 'string') return {};
  const pairs = text.split(',').map((pair) => pair.split(':').map((part) => part.trim()));
  return Object.fromEntries(pairs.filter((pair) => pair.length === 2 && pair[0] && pair[1]) as [string, string][]);
}

/** An object, or the JSON text of one. Throws InvalidParameterValue for anything else. */
export function instanceCapabilities(node: NodeRecord): Capabilities {
  const given = node.instance_info['capabilities'] ?? {};
  const value = typeof given === 'string' ? parsed(given) : given;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new Fault('InvalidParameterValue', {
      message: `Error parsing capabilities from Node ${node.uuid} instance_info field. A dictionary or a "jsonified" dictionary is expected.`,
    });
  }
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, String(one)]));
}

/** Throws InvalidParameterValue when one that is understood here has a value that is not. */
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

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The machine's capabilities with one set: what was there keeps its place. Throws InvalidParameterValue for what is no text. */
export function withCapability(capabilities: unknown, name: string, value: string): string {
  const given = capabilities ?? '';
  if (typeof given !== 'string') throw new Fault('InvalidParameterValue', { message: `Invalid capabilities: ${JSON.stringify(given)}` });
  const pairs = given.split(',').filter((pair) => pair.includes(':'));
  const at = pairs.findIndex((pair) => pair.split(':')[0] === name);
  return (at < 0 ? [...pairs, `${name}:${value}`] : pairs.with(at, `${name}:${value}`)).join(',');
}
