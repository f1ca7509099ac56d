/** Finds what tells of a site in the resources of a service, by rules of its own: not those of the program that replaces it. */
import type { RecordedResource } from '../../../wire/redfish/recorded-tree';

const PLACEHOLDER = /^(?:n\/?a|none|null|unknown|not .*|to be filled.*|default.*|(.)\1*|[0.:-]+)$/i;
const ORDINARY = new Set(['root', 'admin', 'administrator', 'operator', 'user', 'localhost']);
const MAC = /\b[0-9a-f]{2}(?:[:-][0-9a-f]{2}){5}\b/gi;
const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi;
/** End of a property's name, in small letters → whether its values tell of the site. */
const NAMED = /(?:serialnumber|servicetag|assettag|uuid|guid|wwn|durablename|hostname|fqdn|username|password|licensekey|token|secret)$/;

export function strings(value: unknown, name = ''): readonly (readonly [name: string, text: string])[] {
  if (typeof value === 'string') return [[name, value]];
  if (Array.isArray(value)) return value.flatMap((item) => strings(item, name));
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([below, item]) => [['', below] as const, ...strings(item, below)]);
}
/** What must not be in a recording of these resources, in small letters. */
export function tellingValues(resources: readonly RecordedResource[]): ReadonlySet<string> {
  const found = new Set<string>();
  for (const { path, body } of resources)
    for (const [name, text] of [['', path] as const, ...strings(body)]) {
      const value = text.trim().toLowerCase();
      for (const [mac] of value.matchAll(MAC)) if (!PLACEHOLDER.test(mac)) found.add(mac).add(mac.replace(/[:-]/g, ''));
      for (const [uuid] of value.matchAll(UUID)) if (!PLACEHOLDER.test(uuid)) found.add(uuid);
      const isNamed = NAMED.test(name.toLowerCase()) && !name.includes('@');
      if (isNamed && value.length >= 5 && /\d/.test(value) && !PLACEHOLDER.test(value) && !ORDINARY.has(value)) found.add(value);
      if (/address$/i.test(name) && /^\d{1,3}(?:\.\d{1,3}){3}$/.test(value) && !/^(?:0|127|255)\./.test(value)) found.add(value);
    }
  return found;
}
