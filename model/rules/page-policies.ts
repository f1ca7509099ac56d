/** The policies of what the page offers only to users with the right. It offers everything else to all, and shows the API's errors. */
const of = <Kind extends string, Operation extends string>(kind: Kind, ...operations: readonly Operation[]) =>
  operations.map((operation) => `${kind}:${operation}` as const);

export const PAGE_POLICIES = [
  ...of('node', 'create', 'delete', 'update', 'set_provision_state', 'set_power_state', 'set_maintenance', 'clear_maintenance'),
  ...of('node:out_of_service', 'set', 'clear'),
  ...of('node', 'set_boot_device', 'validate', 'list_all', 'get_console', 'set_console_state', 'set_raid_state'),
  ...of('node:traits', 'list', 'set'),
  'node:history:get',
  'node:inventory:get',
  'node:bios:get',
  'node:firmware:get',
  'node:hardware:get',
  ...of('node:health', 'get', 'report', 'mask', 'clear'),
  'node:default_config:get',
  'node:resident_agent:get',
  'node:snapshot:create',
  'conductor:get',
  ...of('deploy_template', 'get', 'create', 'update', 'delete'),
  ...of('default_config', 'get', 'create', 'update', 'delete'),
  ...of('image', 'get', 'create', 'update', 'delete'),
  ...of('inspection_rule', 'get', 'create', 'update', 'delete'),
  ...of('runbook', 'list', 'create', 'update', 'delete'),
  ...of('allocation', 'list', 'create', 'update', 'delete'),
  ...of('snapshot', 'list', 'update', 'delete'),
  'erasure:list',
] as const;
export type PagePolicy = (typeof PAGE_POLICIES)[number];
