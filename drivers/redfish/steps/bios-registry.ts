/** The attribute registry of a BIOS (DSP0266 §10.4), found by the name that the Bios resource gives, and cached. */
import { LRUCache } from 'lru-cache';
import { RedfishError, isStatus, linkOf, listOf, member, memberPaths, rootPath, textOf } from '../../../wire/redfish';
import type { BiosAttributeRegistry, KeyedCache, Task } from '../../interfaces';
import { registryOf } from './bios-settings';
import type { SystemView } from '../target';

/** A cache by service and registry name. @param most entries; one takes some hundred KiB, and each BMC has its own entry */
export function createRegistryCache(most = 64): KeyedCache<BiosAttributeRegistry> {
  const registries = new LRUCache<string, BiosAttributeRegistry>({ max: most });
  return { get: (key) => registries.get(key), put: (key, registry) => void registries.set(key, registry) };
}

const EMPTY: BiosAttributeRegistry = new Map();
/** Registry files that are opened before the registry counts as missing: services list dozens of message registries too. */
const MAX_FILES = 100;

/** The registry's path, in English if available; undefined: not on this service. */
function placeOf(file: unknown): string | undefined {
  const locations = listOf(member(file, 'Location')).flatMap((item) => {
    const [language, uri] = [textOf(member(item, 'Language')), textOf(member(item, 'Uri'))];
    return language !== undefined && uri !== undefined ? [{ language: language.toLowerCase(), uri }] : [];
  });
  const english = locations.find(({ language }) => language === 'en' || language.startsWith('en-'));
  return (english ?? locations.find(({ language }) => language === 'default'))?.uri;
}

async function findRegistry({ ask, target }: Pick<SystemView, 'ask' | 'target'>, name: string): Promise<BiosAttributeRegistry | undefined> {
  const root = await ask('GET', rootPath(target));
  const registries = linkOf(member(root.body, 'Registries'));
  if (registries === undefined) return undefined;
  const paths = await memberPaths(ask, registries);
  // The file usually has the registry's name, and is then opened first.
  const likely = (path: string): boolean => path.includes(name);
  /** Files of another name that may hold the registry: in some services (sushy-tools) only the registry itself has the name. */
  const others: string[] = [];
  for (const path of [...paths.filter(likely), ...paths.filter((path) => !likely(path))].slice(0, MAX_FILES)) {
    const { body } = await ask('GET', path);
    const names = [member(body, 'Registry'), member(body, 'Id')];
    const place = placeOf(body);
    if (place === undefined) continue;
    if (names.includes(name)) return registryOf((await ask('GET', place)).body);
    if (names.some((candidate) => /attribute|bios/i.test(String(candidate)))) others.push(place);
  }
  for (const place of others) {
    const { body } = await ask('GET', place);
    if (member(body, 'Id') === name) return registryOf(body);
  }
  return undefined;
}

/** The attribute registry of the BIOS; empty when the service has none. Throws RedfishError when the service cannot be reached. */
export async function attributeRegistry(task: Task, system: SystemView, bios: unknown): Promise<BiosAttributeRegistry> {
  const name = textOf(member(bios, 'AttributeRegistry'));
  if (name === undefined) return EMPTY;
  const key = JSON.stringify([system.target.address, name]);
  const cache = task.connections.biosRegistries;
  const known = cache?.get(key);
  if (known) return known;
  try {
    const found = (await findRegistry(system, name)) ?? EMPTY;
    cache?.put(key, found);
    return found;
  } catch (error) {
    if (!isStatus(error) && !(error instanceof RedfishError && error.kind === 'protocol')) throw error;
    task.log.info('cannot get the BIOS attribute registry', { registry: name.slice(0, 200), reason: error.message });
    return EMPTY;
  }
}
