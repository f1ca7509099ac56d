/** The root documents: the versions of the API, and the resources of /v1. */
import { open } from '../../model/versions';
import type { Document } from '../schema/document';
import { linksTo } from '../resource/links';
import type { Handlers } from '../resource/handler';

const versionOf = (base: string, { min, max }: Document): object => ({
  id: 'v1',
  links: [{ href: `${base}/v1/`, rel: 'self' }],
  status: 'CURRENT',
  min_version: `1.${min}`,
  version: `1.${max}`,
});
/** Resources of every version, and those that came later. `continue_inspection` is not listed at 1.1, although it is there. */
const ALWAYS = ['chassis', 'nodes', 'ports', 'drivers'];
const LATER: Readonly<Record<string, number>> = {
  portgroups: 23,
  volume: 32,
  lookup: 22,
  heartbeat: 22,
  conductors: 49,
  allocations: 52,
  events: 54,
  deploy_templates: 55,
  shards: 82,
  runbooks: 92,
  inspection_rules: 96,
  continue_inspection: 84,
};

const rootOf = (base: string, document: Document): object => ({
  name: 'OpenStack Ironic API',
  description: 'Ironic is an OpenStack project which enables the provision and management of baremetal machines.',
  default_version: versionOf(base, document),
  versions: [versionOf(base, document)],
});
function v1Of(base: string, minor: number, document: Document): object {
  const links = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, linksTo(base, `${name}/`)]));
  return {
    id: 'v1',
    links: [
      { href: `${base}/v1/`, rel: 'self' },
      { href: 'https://docs.openstack.org//ironic/latest/contributor//webapi.html', rel: 'describedby', type: 'text/html' },
    ],
    media_types: { base: 'application/json', type: 'application/vnd.openstack.ironic.v1+json' },
    ...links(ALWAYS),
    version: versionOf(base, document),
    ...links(Object.keys(LATER).filter((name) => open({ since: LATER[name]! }, minor))),
  };
}

/** Serialised documents by version and base URL. Callers choose the base by their Host header, so the cache is bounded. */
const MOST_CACHED = 500;
const cache = new WeakMap<Document, Map<string, string>>();
function cached(document: Document, key: string, make: () => object): string {
  let texts = cache.get(document);
  if (!texts) cache.set(document, (texts = new Map<string, string>()));
  const known = texts.get(key);
  if (known !== undefined) return known;
  if (texts.size >= MOST_CACHED) texts.clear();
  const text = JSON.stringify(make());
  texts.set(key, text);
  return text;
}

export const rootHandlers: Handlers = {
  showRoot: async ({ base }, { document }) => ({ status: 200, text: cached(document, base, () => rootOf(base, document)) }),
  showVersion: async ({ base, minor }, { document }) => ({
    status: 200,
    text: cached(document, `${minor} ${base}`, () => v1Of(base, minor, document)),
  }),
};
