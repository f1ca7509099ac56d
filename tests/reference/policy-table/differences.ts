/** What the policy table is made with, and the cells in which we differ from Ironic on purpose. */

export const SETTINGS = {
  DEFAULT: { rbac_service_role_elevated_access: 'true' },
  conductor: { sync_power_state_interval: '86400', node_locked_retry_attempts: '1' },
} as const;

interface Difference {
  readonly why: string;
  /** Of the row. */
  readonly operation: RegExp;
  readonly ironic: RegExp;
  readonly ours: RegExp;
}
export const DIFFERENCES: readonly Difference[] = [
  {
    why: 'Ironic fails for callers whose scope a policy does not have.',
    operation: /chassis|driver/,
    ironic: /^500 .* requires a scope of \['system'\], request was made with project scope\.$/,
    ours: /^403 Access was denied to the following resource: baremetal:(?:chassis|driver):/,
  },
  {
    why: 'A list does not reveal that a hidden node or portgroup exists.',
    operation: /^GET (?:ports|portgroups|connectors|targets) of a (?:node|portgroup) \|/,
    ironic: /^200 \[\]$/,
    ours: /^404 (?:Node|Portgroup) \S+ could not be found\.$/,
  },
  {
    why: 'A hidden node is answered in the words for a missing one, which Ironic calls a portgroup here.',
    operation: /^GET node (?:ports|portgroups) \|/,
    ironic: /^404 Node \S+ could not be found\.$/,
    ours: /^404 Portgroup None could not be found\.$/,
  },
  {
    why: 'Ironic ignores the node for callers of the system.',
    operation: /^GET allocations of a node \|/,
    ironic: /^200 \[owned\.allocation unowned\.allocation\]$/,
    ours: /^200 \[\]$/,
  },
  {
    why: 'Ironic fails: its query has two columns of the same name.',
    operation: /^GET allocations of a node \|/,
    ironic: /^500 Attribute name "owner" is ambiguous/,
    ours: /^200 \[\]$/,
  },
  {
    why: 'Ironic forgets to fill in the message.',
    operation: /^GET runbook \|/,
    ironic: /^403 Access was denied to the following resource: %\(resource\)s$/,
    ours: /^403 Access was denied to the following resource: baremetal:runbook:get$/,
  },
];
