/** The state of a node, with the colour of its kind. */
import { classOf, type NodeRow } from '../lib/rows';

export const StateMark = ({ row }: { readonly row: NodeRow }) => (
  <span class="state">
    <span class={`mark ${row.maintenance ? 'maintenance' : classOf(row)}`} aria-hidden="true" /> {row.state}
    {row.maintenance ? ' (maintenance)' : ''}
  </span>
);
