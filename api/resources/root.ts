/** The root documents: the versions of the API, and the resources of /v1. */
import { LRUCache } from 'lru-cache';
import type { Document } from '../schema/document';
import { linksTo } from '../pipeline/present';
import type { SomeHandlers } from '../pipeline/handler';

const versionOf = (base: string, { min, max }: Document): object => ({
  id: 'v1',
  links: [{ href: `${base}/v1/`, rel: 'self' }],
  status: 'CURRENT',
  min_version: `1.${min}`,
  version: `1.${max}`,
});
interface ListedResource {
  readonly name: string;
  readonly since: number;
}
/**
 * The resources that `GET /v1` lists (x-listed), in its order. Further versions (oddities.ts) do not count: 1.1 does not list
 * `continue_inspection`.
 */
const listedIn = ({ paths }: Document): readonly ListedResource[] =>
  paths
    .flatMap(({ operations }) => [...operations.values()])
    .filter(({ listed }) => listed !== null)
    .sort((a, b) => a.listed! - b.listed!)
    .map(({ path, gate }) => ({ name: path.split('/')[2]!, since: gate.since }));

const rootOf = (base: string, document: Document): object => ({
  name: 'OpenStack Ironic API',
  description: 'Ironic is an OpenStack project which enables the provision and management of baremetal machines.',
  default_version: versionOf(base, document),
  versions: [versionOf(base, document)],
});
function v1Of(base: string, minor: number, document: Document): object {
  const listed = listedIn(document);
  const links = (resources: readonly ListedResource[]) =>
    Object.fromEntries(resources.map(({ name }) => [name, linksTo(base, `${name}/`)]));
  return {
    id: 'v1',
    links: [
      { href: `${base}/v1/`, rel: 'self' },
      { href: 'https://docs.openstack.org//ironic/latest/contributor//webapi.html', rel: 'describedby', type: 'text/html' },
    ],
    media_types: { base: 'application/json', type: 'application/vnd.openstack.ironic.v1+json' },
    ...links(listed.filter(({ since }) => since === 1)),
    version: versionOf(base, document),
    ...links(listed.filter(({ since }) => since > 1 && since <= minor)),
  };
}

/** Serialised documents by version and base URL. Callers choose the base by their Host header, so the cache is bounded. */
const cache = new WeakMap<Document, LRUCache<string, string>>();
function cached(document: Document, key: string, make: () => object): string {
  let texts = cache.get(document);
  if (!texts) cache.set(document, (texts = new LRUCache<string, string>({ max: 500 })));
  let text = texts.get(key);
  if (text === undefined) texts.set(key, (text = JSON.stringify(make())));
  return text;
}

export const rootHandlers = {
  showRoot: async ({ base }, { document }) => ({ status: 200, text: cached(document, base, () => rootOf(base, document)) }),
  showVersion: async ({ base, minor }, { document }) => ({
    status: 200,
    text: cached(document, `${minor} ${base}`, () => v1Of(base, minor, document)),
  }),
} satisfies SomeHandlers;
