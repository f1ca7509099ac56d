/** The settings with which the policy table is made, and the cells in which we differ from Ironic on purpose. */

import type { Table } from './table';

export const SETTINGS = {
  DEFAULT: { rbac_service_role_elevated_access: 'true' },
  conductor: { sync_power_state_interval: '86400', node_locked_retry_attempts: '1' },
} as const;

interface Difference {
  readonly why: string;
  /** Pattern of the row's operation. */
  readonly operation: RegExp;
  readonly ironic: RegExp;
  readonly ours: RegExp;
}
const DIFFERENCES: readonly Difference[] = [
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
    why: 'The order of redacted values would reveal them.',
    operation: /^GET nodes sorted by (?:last_error|reservation)$/,
    ironic: /^200 \[.*\]$/,
    ours: /^400 The sort_key value "(?:last_error|reservation)" is an invalid field for sorting$/,
  },
  {
    why: 'The states of a node redact what the node does.',
    operation: /^GET states \|/,
    ironic: /^200$/,
    ours: /^200 \.last_error=\*\* Value Redacted - Requires baremetal:node:get:last_error permission\. \*\*$/,
  },
  {
    why: 'A list does not reveal which chassis exist.',
    operation: /^GET nodes of a missing chassis \|/,
    ironic: /^404 Chassis missing could not be found\.$/,
    ours: /^200 \[\]$/,
  },
  {
    why: 'Ironic forgets to fill in the message.',
    operation: /^GET runbook \|/,
    ironic: /^403 Access was denied to the following resource: %\(resource\)s$/,
    ours: /^403 Access was denied to the following resource: baremetal:runbook:get$/,
  },
];

/** The cells that are neither equal nor one of the differences, and the differences that no cell has. */
export function compare(ours: Table, theirs: Table): { readonly wrong: readonly string[]; readonly idle: readonly string[] } {
  const wrong: string[] = [];
  const used = new Set<string>();
  for (const operation of new Set([...Object.keys(theirs), ...Object.keys(ours)]))
    for (const persona of Object.keys({ ...theirs[operation], ...ours[operation] })) {
      const [here = '', there = ''] = [ours[operation]?.[persona], theirs[operation]?.[persona]];
      if (here === there) continue;
      const known = DIFFERENCES.find(
        (difference) => difference.operation.test(operation) && difference.ironic.test(there) && difference.ours.test(here),
      );
      if (known) used.add(known.why);
      else wrong.push(`${operation} as ${persona}: Ironic ${there}; here ${here}`);
    }
  return { wrong, idle: DIFFERENCES.map(({ why }) => why).filter((why) => !used.has(why)) };
}
