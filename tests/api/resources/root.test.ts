import { loadDocument } from '../../../api/schema/document';
import { useApi } from '../../support/api';
import { NEWEST } from '../../support/newest';

const api = useApi();
const { min, max } = loadDocument();

/** Ironic's resources in `GET /v1`, in its order, with the versions that introduced them. */
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
function expectedAt(minor: number): string {
  const base = api.url();
  const links = (names: readonly string[]) =>
    names.map((name): [string, object] => [
      name,
      [
        { href: `${base}/v1/${name}/`, rel: 'self' },
        { href: `${base}/${name}/`, rel: 'bookmark' },
      ],
    ]);
  const version = {
    id: 'v1',
    links: [{ href: `${base}/v1/`, rel: 'self' }],
    status: 'CURRENT',
    min_version: `1.${min}`,
    version: `1.${max}`,
  };
  return JSON.stringify({
    id: 'v1',
    links: [
      { href: `${base}/v1/`, rel: 'self' },
      { href: 'https://docs.openstack.org//ironic/latest/contributor//webapi.html', rel: 'describedby', type: 'text/html' },
    ],
    media_types: { base: 'application/json', type: 'application/vnd.openstack.ironic.v1+json' },
    ...Object.fromEntries(links(ALWAYS)),
    version,
    ...Object.fromEntries(links(Object.keys(LATER).filter((name) => minor >= LATER[name]!))),
  });
}

it('lists the resources of all 115 versions of Ironic 39, in its order, byte for byte', async () => {
  for (let minor = 1; minor <= NEWEST; minor++) expect((await api.ask('GET', '/v1', minor)).text).toBe(expectedAt(minor));
});
