/** The requests that both servers get, generated from openapi.yaml's rows and from tables of valid and invalid values. */
import type { Argument } from '../../../api/schema/document';
import { around, at, document, get, MAX, type Step } from './steps';
import { allocationGroups } from './requests-allocations';
import { volumeGroups } from './requests-volumes';
import { HARDWARE_GROUPS } from './requests-hardware';
import { templateGroups } from './requests-templates';
import { inspectionRuleGroups } from './requests-inspection-rules';
import { provisioningGroups } from './requests-provisioning';
import { PORTGROUP_GROUPS } from './requests-portgroups';
import { inspectionGroups } from './requests-inspection';
import { fieldGroups } from './requests-fields';
import { stateGroups } from './requests-states';
import { OLDER_PATH_GROUPS } from './requests-older-paths';
import { setup, MAC, NOBODY, NODE, PORT, SECOND } from './requests-world';

const escape = encodeURIComponent;

const negotiation = (): Step[] => {
  const versions = [
    'latest',
    'LATEST',
    '1',
    '1.0',
    '1.1',
    '1.116',
    '2.0',
    '0.9',
    'abc',
    '1.x',
    '1.1.1',
    '',
    ' 1.50 ',
    '1.050',
    'v1.1',
    '1.50,1.60',
    '-1.5',
    null,
  ];
  const common = [
    'baremetal 1.50',
    'baremetal latest',
    'compute 2.1',
    'compute 2.1, baremetal 1.30',
    'baremetal 9',
    'baremetal',
    'BareMetal 1.4',
    'baremetal 1.200',
  ];
  return ['/', '/v1', '/v1/nodes', '/v1/nosuch', '/v2/', '/nodes'].flatMap((path): Step[] => [
    ...versions.map((version) => ({ method: 'GET', path, version })),
    ...common.map((value) => ({ method: 'GET', path, version: null, headers: { 'OpenStack-API-Version': value } })),
    { method: 'GET', path, version: '1.40', headers: { 'OpenStack-API-Version': 'baremetal 1.50' } },
    { method: 'GET', path, version: '1.40', headers: { Accept: '*/*' } },
  ]);
};

/** Complete resources, at every version. */
const everyVersion = (): Step[] =>
  Array.from({ length: MAX }, (_, index) => index + 1).flatMap((minor) =>
    [
      '/v1',
      `/v1/nodes/${NODE}`,
      `/v1/nodes/${SECOND}/states`,
      `/v1/ports/${PORT}`,
      '/v1/drivers/fake-hardware',
      '/v1/conductors',
      `/v1/nodes/${NODE}/traits`,
      `/v1/nodes/${NODE}/inventory`,
    ].map((path) => get(path, minor)),
  );

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];
/** Paths that Ironic does not have (the stream of events, for one, has no end). */
const isOurs = (path: string): boolean =>
  /^\/v1\/(?:openapi\.json|docs|events|hardware|images|state_counts)|\/(?:readiness|sensors)$|\/hardware(?:$|\/)/.test(path);
/** The reference closes the connection there, without an answer. */
const SILENT = /^\/v1\/nodes\/[^/]+\/children$/;
/** Every path with every method, with bodies that no operation accepts, so that nothing changes. */
const routing = (): Step[] => {
  const idents: Readonly<Record<string, readonly string[]>> = {
    node_ident: [NODE, 'nobody', NOBODY, 'a b', 'one.json'],
    port_ident: [PORT, 'nobody', NOBODY, MAC],
    driver_name: ['fake-hardware', 'nobody'],
    hostname: ['nobody', 'a:b'],
    trait: ['CUSTOM_NONE'],
    setting_name: ['x'],
    indicator: ['led'],
    method: ['x'],
  };
  const filled = (path: string): string[] => {
    const name = /\{(\w+)\}/.exec(path)?.[1];
    // Other parameters are tested in files of their own.
    return name ? (idents[name] ?? []).flatMap((ident) => filled(path.replace(`{${name}}`, escape(ident)))) : [path];
  };
  const paths = document.paths.flatMap(({ path }) => (isOurs(path) ? [] : filled(path))).filter((path) => !SILENT.test(path));
  const odd = [
    '/',
    '/v1/',
    '/v1/nodes/',
    '/nodes',
    `/nodes/${NODE}/`,
    '/v1/nodes/one.json',
    '/v1/nodes.json',
    '/v1/nosuch',
    '/v1/nodes/ports',
    '/v1/nodes/one/uuid',
    '/v1/nodes/one/nosuch',
    '/v1/ports/eth0/address',
    '/v1/drivers/fake-hardware/name',
    '/v1/nodes/detail/x',
    '/v1/x/y/z',
  ];
  const harmless: Readonly<Record<string, unknown>> = { POST: { nosuch: 1 }, PUT: { nosuch: 1 }, PATCH: [{ op: 'nosuch' }] };
  // Without deletions that would succeed: the requests for fields, below, need these rows.
  const isSpared = (method: string, path: string): boolean =>
    method === 'DELETE' && new RegExp(`/(nodes/(${NODE}|one)(\\.json)?/?(maintenance|traits|vmedia)?|ports/${PORT})$`).test(path);
  return [...paths, ...odd].flatMap((path) =>
    METHODS.filter((method) => !isSpared(method, path)).flatMap((method) =>
      [1, 36, 95, MAX].map((minor) => ({ method, path, version: at(minor), ...(method in harmless ? { body: harmless[method] } : {}) })),
    ),
  );
};

/** Valid and invalid values of an argument. */
function valuesFor({ name, kind }: Argument): readonly string[] {
  const special: Readonly<Record<string, readonly string[]>> = {
    provision_state: ['enroll', 'nosuch'],
    fault: ['power failure', 'nosuch'],
    sort_key: ['uuid', 'nosuch', 'driver_info', 'extra', 'links', 'created_at'],
    sort_dir: ['desc', 'up'],
    fields: ['uuid', 'uuid,nosuch', 'links', ''],
    conductor: ['real-ironic', 'nosuch'],
    limit: ['1', '0', '-1', 'x', '', '1000000'],
    marker: [NODE, PORT, NOBODY, 'zz'],
    type: ['dynamic', 'classic', 'nosuch'],
    driver: ['fake-hardware', 'nosuch'],
    chassis_uuid: [NOBODY, 'zz'],
    parent_node: [NODE, 'zz'],
    addresses: [MAC, 'zz', `zz,${MAC}`, ''],
  };
  const byKind: Readonly<Record<string, readonly string[]>> = {
    boolean: ['true', 'False', 'ON', '0', 'zz', ''],
    integer: ['1', '0', '-1', 'x', ''],
    uuid: [NODE, NOBODY, 'zz', NODE.replaceAll('-', '')],
    ident: [NODE, 'one', 'nobody', 'a b'],
    mac: [MAC, MAC.toUpperCase(), 'zz'],
    names: ['left', 'left,right', ''],
    string: ['big', 'second', ''],
  };
  return special[name] ?? byKind[kind] ?? ['x'];
}
const queries = (): Step[] =>
  document.paths.flatMap(({ path, operations }) => {
    const operation = operations.get('GET');
    if (isOurs(path)) return [];
    const real = path
      .replace('{node_ident}', NODE)
      .replace('{port_ident}', PORT)
      .replace('{driver_name}', 'fake-hardware')
      .replace('{hostname}', 'real-ironic')
      .replace(/\{\w+\}/g, NOBODY);
    const known = operation?.arguments.filter(({ from }) => from === 'query') ?? [];
    return known.flatMap((argument) =>
      around(argument.gate.since).flatMap((minor) =>
        valuesFor(argument).map((value) => get(`${real}?${argument.name}=${escape(value)}`, Math.max(minor, operation!.gate.since))),
      ),
    );
  });
const combinations = (): Step[] =>
  [
    '/v1/nodes?limit=1',
    '/v1/nodes?limit=1&detail=true',
    '/v1/nodes?limit=1&fields=uuid,name&maintenance=false&associated=False',
    '/v1/nodes?limit=1&maintenance=false&retired=false',
    `/v1/nodes?limit=1&marker=${NODE}&sort_dir=desc`,
    `/v1/nodes?limit=1&marker=${NODE}&sort_key=name`,
    '/v1/nodes?detail=true&fields=uuid',
    '/v1/nodes?nosuch=1',
    '/v1/nodes?nosuch=1&other=2',
    '/v1/nodes?limit=1&limit=2',
    '/v1/nodes?fields=uuid&fields=name',
    '/v1/nodes/detail?limit=1',
    '/v1/nodes/detail?limit=1&sort_key=created_at',
    '/v1/nodes/detail?fields=uuid',
    `/v1/nodes?instance_uuid=${NOBODY}&limit=1`,
    '/v1/ports?limit=1',
    '/v1/ports?limit=1&detail=true',
    '/v1/ports?limit=1&fields=uuid,node_uuid',
    '/v1/ports/detail?limit=1&sort_key=address&sort_dir=desc',
    `/v1/ports?node=one&address=${MAC}`,
    '/v1/ports?node=one&shard=left',
    '/v1/ports?conductor_groups=a&node=one',
    `/v1/nodes/${NODE}/ports?limit=1`,
    `/v1/nodes/${SECOND}/ports/detail?limit=1`,
    '/v1/drivers?detail=true',
    '/v1/drivers?fields=name,hosts',
    '/v1/drivers?fields=name&detail=true',
    '/v1/conductors?limit=1',
    '/v1/conductors?limit=1&detail=true',
    '/v1/conductors?fields=hostname,alive',
    '/v1/conductors?marker=real-ironic',
    '/v1/conductors?detail=true&fields=alive',
    '/v1/nodes/validate?node=one',
    '/v1/nodes/validate',
    `/v1/nodes/validate?node_uuid=${NODE}&node=nobody`,
  ].flatMap((path) => [get(path), get(path, 96)]);

/** Groups of requests, in the order in which they are sent; later ones use what earlier ones left. */
export const GROUPS: Readonly<Record<string, () => readonly Step[]>> = {
  setup: () => setup,
  negotiation,
  everyVersion,
  routing,
  queries,
  combinations,
  ...fieldGroups,
  ...stateGroups,
  ...OLDER_PATH_GROUPS,
  ...volumeGroups,

  ...HARDWARE_GROUPS,

  ...templateGroups,
  ...inspectionRuleGroups,

  ...provisioningGroups,
  ...PORTGROUP_GROUPS,

  ...inspectionGroups,

  ...allocationGroups,
};
