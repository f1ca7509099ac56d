/** The root documents: which versions there are, and what is below /v1. */
import { open } from '../../model/versions';
import type { Document } from '../schema/document';
import { linksTo } from '../resource/links';
import type { Handlers } from '../resource/routes';

const versionOf = (base: string, { min, max }: Document): object => ({
  id: 'v1',
  links: [{ href: `${base}/v1/`, rel: 'self' }],
  status: 'CURRENT',
  min_version: `1.${min}`,
  version: `1.${max}`,
});
/** Collections that every version has, and those that came later (continue_inspection at 1.1 is not told). */
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

export const rootHandlers: Handlers = {
  showRoot: async ({ base }, { document }) => ({
    status: 200,
    body: {
      name: 'OpenStack Ironic API',
      description: 'Ironic is an OpenStack project which enables the provision and management of baremetal machines.',
      default_version: versionOf(base, document),
      versions: [versionOf(base, document)],
    },
  }),
  showVersion: async ({ base, minor }, { document }) => {
    const links = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, linksTo(base, `${name}/`)]));
    return {
      status: 200,
      body: {
        id: 'v1',
        links: [
          { href: `${base}/v1/`, rel: 'self' },
          { href: 'https://docs.openstack.org//ironic/latest/contributor//webapi.html', rel: 'describedby', type: 'text/html' },
        ],
        media_types: { base: 'application/json', type: 'application/vnd.openstack.ironic.v1+json' },
        ...links(ALWAYS),
        version: versionOf(base, document),
        ...links(Object.keys(LATER).filter((name) => open({ since: LATER[name]! }, minor))),
      },
    };
  },
};
