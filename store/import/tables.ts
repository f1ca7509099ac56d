/** How Ironic's tables map to ours: different names, references to other tables, lists from tables of their own, and keys. */

/** Our `column` contains the UUID of the row of `table` whose `id` Ironic's column `from` contains. */
interface Reference {
  readonly column: string;
  readonly from: string;
  readonly table: string;
}
/** Rows of one of Ironic's tables that are a list in a column of ours. */
interface ChildList {
  readonly column: string;
  readonly table: string;
  /** Ironic's column with the `id` of the row that the list belongs to. */
  readonly parent: string;
  /** Ironic's column by which the pages are sorted. */
  readonly key: string;
  /** Columns of an item. With one, the item is its value; with several, the item is an object. */
  readonly members: readonly string[];
}
export interface ImportTable {
  /** What it contains, for the summary. */
  readonly what: string;
  readonly table: string;
  /** Ironic's name of the table, if it differs. */
  readonly from?: string;
  /** Ironic's column by which the pages are sorted. Default: id. */
  readonly key?: string;
  readonly references?: readonly Reference[];
  readonly lists?: readonly ChildList[];
  /** Columns with different names: Ironic's → ours. */
  readonly renamed?: Readonly<Record<string, string>>;
}

const NODE: Reference = { column: 'node_uuid', from: 'node_id', table: 'nodes' };
const step = (table: string, parent: string, order: string): ChildList => ({
  column: 'steps',
  table,
  parent,
  key: 'id',
  members: ['interface', 'step', 'args', order],
});

/** Referenced tables come first, except allocations: nodes and allocations refer to each other. */
export const IMPORT_TABLES: readonly ImportTable[] = [
  { what: 'chassis', table: 'chassis' },
  {
    what: 'nodes',
    table: 'nodes',
    references: [
      { column: 'chassis_uuid', from: 'chassis_id', table: 'chassis' },
      { column: 'allocation_uuid', from: 'allocation_id', table: 'allocations' },
    ],
    lists: [{ column: 'traits', table: 'node_traits', parent: 'node_id', key: 'node_id', members: ['trait'] }],
  },
  { what: 'port groups', table: 'portgroups', references: [NODE] },
  { what: 'ports', table: 'ports', references: [NODE, { column: 'portgroup_uuid', from: 'portgroup_id', table: 'portgroups' }] },
  { what: 'volume connectors', table: 'volume_connectors', references: [NODE] },
  { what: 'volume targets', table: 'volume_targets', references: [NODE] },
  { what: 'allocations', table: 'allocations', references: [NODE] },
  { what: 'deploy templates', table: 'deploy_templates', lists: [step('deploy_template_steps', 'deploy_template_id', 'priority')] },
  {
    what: 'runbooks',
    table: 'runbooks',
    lists: [
      step('runbook_steps', 'runbook_id', 'order'),
      { column: 'traits', table: 'runbook_traits', parent: 'runbook_id', key: 'runbook_id', members: ['trait'] },
    ],
  },
  { what: 'inspection rules', table: 'inspection_rules' },
  { what: 'entries of node histories', table: 'node_history', references: [NODE] },
  { what: 'inventories', table: 'inventories', from: 'node_inventory', references: [NODE], renamed: { inventory_data: 'inventory' } },
  { what: 'BIOS settings', table: 'bios_settings', key: 'node_id', references: [NODE] },
  { what: 'firmware components', table: 'firmware_components', from: 'firmware_information', references: [NODE] },
];
