/** The sections of a node's view: tables of the API's data about the node, besides its fields. */
import type { PagePolicy } from '../../model/rules/page-policies';
import type { JsonObject } from '../../model/json';
import { certifiedDisksOf } from '../lib/erasures';
import { differencesOf, neighboursOf, partsOf, validationsOf } from '../lib/inventory';
import { Scrolled, textOf, timeText, useApi } from './shared';

interface TableColumn {
  readonly title: string;
  /** The path of a member in the entry; dots separate nested members. */
  readonly path: string;
}
export interface Section {
  readonly title: string;
  readonly path: (uuid: string) => string;
  /** The rows of the table: the name of a member of the response, or a function that gets them from the response. */
  readonly list: string | ((response: JsonObject) => readonly JsonObject[]);
  readonly columns: readonly TableColumn[];
  /** The text in place of an empty table. */
  readonly none?: string;
  /** Absent: everyone who may see the node may read the section. */
  readonly policy?: PagePolicy;
}
const columns = (...names: readonly string[]): readonly TableColumn[] =>
  names.map((name) => {
    const [path = '', title = path.split('.').at(-1)!.replaceAll('_', ' ')] = name.split(':', 2);
    return { path, title };
  });
const inventory = (uuid: string): string => `v1/nodes/${uuid}/inventory`;
/** By the word in the URL. */
export const SECTIONS = {
  why: {
    policy: 'node:validate',
    title: 'Why',
    path: (uuid) => `v1/nodes/${uuid}/readiness`,
    list: 'checks',
    columns: columns('result', 'code:check', 'message', 'todo:what to do'),
  },
  steps: {
    policy: 'node:validate',
    title: 'Steps',
    path: (uuid) => `v1/nodes/${uuid}/readiness`,
    list: 'steps',
    columns: columns('step', 'state', 'note'),
    none: 'No steps run.',
  },
  defaults: {
    policy: 'node:default_config:get',
    title: 'Default config',
    path: (uuid) => `v1/nodes/${uuid}/default_config`,
    list: 'arguments',
    columns: columns('step', 'argument', 'value', 'origin', 'now:on the machine', 'state'),
    none: 'There is none: neither for its resource class, nor for its properties, nor for the node.',
  },
  history: {
    policy: 'node:history:get',
    title: 'History',
    path: (uuid: string) => `v1/nodes/${uuid}/history?detail=true`,
    list: 'history',
    columns: columns('created_at:time', 'severity', 'event_type:type', 'event', 'user', 'conductor'),
  },
  snapshots: {
    policy: 'snapshot:list',
    title: 'Snapshots',
    path: (uuid: string) => `v1/nodes/${uuid}/snapshots`,
    list: 'snapshots',
    columns: columns('created_at:time', 'uuid', 'description', 'state', 'progress', 'size', 'disk', 'last_error:error'),
  },
  erasures: {
    policy: 'erasure:list',
    title: 'Erasures',
    path: (uuid: string) => `v1/erasures?node=${uuid}&sort_dir=desc&fields=uuid,created_at,step,document`,
    list: certifiedDisksOf,
    columns: columns('created_at:time', 'disk', 'serial', 'what:method', 'proves', 'seconds', 'sample', 'by', 'uuid:certificate'),
    none: 'No disk of this node was erased with a certificate.',
  },
  ports: {
    title: 'Ports',
    path: (uuid: string) => `v1/nodes/${uuid}/ports/detail`,
    list: 'ports',
    columns: columns(
      'address',
      'name',
      'pxe_enabled:PXE',
      'physical_network',
      'local_link_connection.switch_info:switch',
      'local_link_connection.switch_id:switch ID',
      'local_link_connection.port_id:switch port',
      'vendor',
      'category',
    ),
  },
  inventory: {
    policy: 'node:inventory:get',
    title: 'Inventory',
    path: inventory,
    list: partsOf,
    columns: columns('part', 'name', 'details'),
  },
  lldp: {
    policy: 'node:inventory:get',
    title: 'LLDP',
    path: inventory,
    list: neighboursOf,
    columns: columns(
      'interface',
      'switch_system_name:switch',
      'switch_chassis_id:chassis',
      'switch_port_id:port',
      'switch_port_description:description',
      'switch_port_untagged_vlan_id:VLAN',
      'switch_mgmt_addresses:addresses',
    ),
  },
  changes: {
    policy: 'node:hardware:get',
    title: 'Hardware changes',
    path: (uuid: string) => `v1/nodes/${uuid}/hardware/changes`,
    list: 'changes',
    columns: columns('at:time', 'source:noticed by', 'kind', 'component', 'key', 'differences'),
    none: 'None: neither two inspections nor two records of a recorder on the running host differ.',
  },
  resident: {
    policy: 'node:resident_agent:get',
    title: 'Agent in the system',
    path: (uuid) => `v1/nodes/${uuid}/resident_agent`,
    list: (agent) => [agent],
    columns: columns('seen_at:registered', 'version', 'url', 'fingerprint', 'token.from:token from', 'token.made_at:token made'),
  },
  volumes: {
    title: 'Volumes',
    path: (uuid) => `v1/nodes/${uuid}/volume/targets?detail=true`,
    list: 'targets',
    columns: columns('boot_index', 'volume_type', 'volume_id'),
  },
  allocation: {
    title: 'Allocation',
    path: (uuid) => `v1/nodes/${uuid}/allocation`,
    list: (allocation) => [allocation],
    columns: columns('name', 'uuid', 'state', 'resource_class', 'traits', 'owner', 'last_error'),
  },
  interfaces: {
    policy: 'node:validate',
    title: 'Validation',
    path: (uuid) => `v1/nodes/${uuid}/validate`,
    list: validationsOf,
    columns: columns('interface', 'valid', 'reason'),
  },
} satisfies Readonly<Record<string, Section>>;
export type SectionId = keyof typeof SECTIONS;
/** The fields of a component before and after a hardware change. */
const Differences = ({ before, after }: JsonObject) => (
  <ul class="plain">
    {differencesOf(before, after).map(({ field, before: old, after: now }) => (
      <li key={field}>
        {field}: {old !== undefined && <del>{old}</del>} {now !== undefined && <ins>{now}</ins>}
      </li>
    ))}
  </ul>
);
/** Shows times in the browser's time zone. */
const cellText = (path: string, value: unknown): string =>
  (path === 'at' || path === 'created_at') && typeof value === 'string' ? timeText(value) : textOf(value);
const at = (value: unknown, path: string): unknown =>
  path
    .split('.')
    .reduce<unknown>((inner, name) => (typeof inner === 'object' && inner !== null ? (inner as JsonObject)[name] : undefined), value);
export function SectionView({ section, uuid, again }: { readonly section: Section; readonly uuid: string; readonly again: unknown }) {
  const { data, error } = useApi(section.path(uuid), again);
  if (error !== undefined) return <p>{error}</p>;
  if (data === undefined) return <p>Loading …</p>;
  const { columns: shown, list, title, none = 'None.' } = section;
  const entries = typeof list === 'string' ? ((data[list] as readonly JsonObject[] | undefined) ?? []) : list(data);
  if (entries.length === 0) return <p>{none}</p>;
  return (
    <Scrolled label={title}>
      <table>
        <thead>
          <tr>
            {shown.map((column) => (
              <th key={column.path} scope="col">
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {entries.map((entry, index) => (
            <tr key={index} class={textOf(entry['result'])}>
              {shown.map(({ path }) => (
                <td key={path}>{path === 'differences' ? <Differences {...entry} /> : cellText(path, at(entry, path))}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Scrolled>
  );
}
