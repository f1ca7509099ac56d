/** The state of a node, with the colour of its kind. */
import { classOf, isOverdue, type NodeRow } from '../lib/rows';

function badge({ maintenance, outage }: NodeRow): string {
  if (outage !== null) return isOverdue(outage, Date.now()) ? ' (out of service, overdue)' : ' (out of service)';
  return maintenance ? ' (maintenance)' : '';
}

export const StateMark = ({ row }: { readonly row: NodeRow }) => (
  <span class="state">
    <span class={`mark ${row.maintenance ? 'maintenance' : classOf(row)}`} aria-hidden="true" /> {row.state}
    {badge(row)}
  </span>
);
