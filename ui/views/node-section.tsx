/** The sections of a node: what the API has about it besides its fields, as tables. */
import { differencesOf, neighboursOf, partsOf } from '../lib/inventory';
import { Scrolled, textOf, useApi, type Value } from './shared';

interface TableColumn {
  readonly title: string;
  /** A member, or members of members with dots between. */
  readonly path: string;
}
export interface Section {
  readonly id: string;
  readonly title: string;
  readonly path: (uuid: string) => string;
  /** The rows of the table: a member of the response, or what is found in it. Absent: the response is shown as it is. */
  readonly list?: string | ((response: Value) => readonly Value[]);
  readonly columns?: readonly TableColumn[];
  /** Absent: who sees the node may read it. */
  readonly policy?: string;
}
const columns = (...names: readonly string[]): readonly TableColumn[] =>
  names.map((name) => {
    const [path = '', title = path.split('.').at(-1)!.replaceAll('_', ' ')] = name.split(':', 2);
    return { path, title };
  });
const inventory = (uuid: string): string => `v1/nodes/${uuid}/inventory`;
export const SECTIONS: readonly Section[] = [
  {
    ...{ id: 'why', policy: 'node:validate' },
    title: 'Why',
    path: (uuid) => `v1/nodes/${uuid}/readiness`,
    list: 'checks',
    columns: columns('result', 'code:check', 'message', 'todo:what to do'),
  },
  {
    ...{
      policy: 'node:history:get',
      id: 'history',
      title: 'History',
      path: (uuid: string) => `v1/nodes/${uuid}/history?detail=true`,
      list: 'history',
    },
    columns: columns('created_at:time', 'severity', 'event_type:type', 'event', 'user', 'conductor'),
  },
  {
    ...{ id: 'ports', title: 'Ports', path: (uuid: string) => `v1/nodes/${uuid}/ports/detail`, list: 'ports' },
    columns: columns(
      ...[
        'address',
        'name',
        'pxe_enabled:PXE',
        'physical_network',
        'local_link_connection.switch_info:switch',
        'local_link_connection.switch_id:switch ID',
      ],
      ...['local_link_connection.port_id:switch port', 'vendor', 'category'],
    ),
  },
  {
    ...{ id: 'inventory', policy: 'node:inventory:get', title: 'Inventory', path: inventory, list: partsOf },
    columns: columns('part', 'name', 'details'),
  },
  {
    ...{ id: 'lldp', policy: 'node:inventory:get', title: 'LLDP neighbours', path: inventory, list: neighboursOf },
    columns: columns(
      ...['interface', 'switch_system_name:switch', 'switch_chassis_id:chassis', 'switch_port_id:port'],
      ...['switch_port_description:description', 'switch_port_untagged_vlan_id:VLAN', 'switch_mgmt_addresses:addresses'],
    ),
  },
  {
    ...{
      policy: 'node:hardware:get',
      id: 'changes',
      title: 'Hardware changes',
      path: (uuid: string) => `v1/nodes/${uuid}/hardware/changes`,
      list: 'changes',
    },
    columns: columns('at:time', 'kind', 'component', 'key', 'differences'),
  },
  {
    ...{ id: 'bios', policy: 'node:bios:get' },
    title: 'BIOS',
    path: (uuid) => `v1/nodes/${uuid}/bios?detail=true`,
    list: 'bios',
    columns: columns('name', 'value', 'attribute_type:type', 'allowable_values:allowed', 'read_only'),
  },
  {
    ...{ id: 'firmware', policy: 'node:firmware:get' },
    title: 'Firmware',
    path: (uuid) => `v1/nodes/${uuid}/firmware`,
    list: 'firmware',
    columns: columns('component', 'initial_version', 'current_version', 'last_version_flashed'),
  },
  {
    id: 'volumes',
    title: 'Volumes',
    path: (uuid) => `v1/nodes/${uuid}/volume/targets?detail=true`,
    list: 'targets',
    columns: columns('boot_index', 'volume_type', 'volume_id'),
  },
  { id: 'allocation', title: 'Allocation', path: (uuid) => `v1/nodes/${uuid}/allocation` },
  { id: 'interfaces', policy: 'node:validate', title: 'Validation', path: (uuid) => `v1/nodes/${uuid}/validate` },
];
/** What a change of hardware changed. */
const Differences = ({ before, after }: Value) => (
  <ul class="plain">
    {differencesOf(before, after).map(({ field, before: old, after: now }) => (
      <li key={field}>
        {field}: {old !== undefined && <del>{old}</del>} {now !== undefined && <ins>{now}</ins>}
      </li>
    ))}
  </ul>
);
const at = (value: unknown, path: string): unknown =>
  path
    .split('.')
    .reduce<unknown>((inner, name) => (typeof inner === 'object' && inner !== null ? (inner as Value)[name] : undefined), value);
export function SectionView({ section, uuid, again }: { readonly section: Section; readonly uuid: string; readonly again: unknown }) {
  const { data, error } = useApi(section.path(uuid), again);
  if (error !== undefined) return <p>{error}</p>;
  if (data === undefined) return <p>Loading …</p>;
  const { columns: shown = [], list, title } = section;
  if (list === undefined)
    return (
      <Scrolled label={title}>
        <pre>{JSON.stringify(data, null, 2)}</pre>
      </Scrolled>
    );
  const entries = typeof list === 'string' ? ((data[list] as readonly Value[] | undefined) ?? []) : list(data);
  if (entries.length === 0) return <p>None.</p>;
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
                <td key={path}>{path === 'differences' ? <Differences {...entry} /> : textOf(at(entry, path))}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Scrolled>
  );
}
