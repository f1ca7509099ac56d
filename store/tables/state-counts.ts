/** The table `state_counts`: how many nodes were in each provision state, over time. */
import type { Knex } from 'knex';
import type { StateCounts } from '../../model/records';
import { preparedOn } from '../sql/prepared';

interface StateCountsTable {
  /** Counts the nodes now, and removes counts older than `before`. */
  record(at: string, before: string): Promise<void>;
  /** The counts since a time, the oldest first. Counts that equal the previous ones are left out. */
  list(since: string): Promise<readonly StateCounts[]>;
}

/** Counts only nodes without a parent, as the API's list of nodes shows them by default. */
const RECORD = `
  WITH old AS (DELETE FROM state_counts WHERE at < $2)
  INSERT INTO state_counts (at, counts)
  SELECT $1, coalesce(jsonb_object_agg(provision_state, count), '{}')
  FROM (SELECT provision_state, count(*) AS count FROM nodes WHERE parent_node IS NULL GROUP BY provision_state) AS counted
  ON CONFLICT (at) DO NOTHING`;
const LIST = `
  SELECT at, counts FROM (SELECT at, counts, lag(counts) OVER (ORDER BY at) AS earlier FROM state_counts WHERE at >= $1) AS found
  WHERE counts IS DISTINCT FROM earlier ORDER BY at`;

export function stateCountsOn(db: Knex): StateCountsTable {
  const prepared = preparedOn(db);
  return {
    async record(at, before) {
      await prepared('state_counts_record', RECORD, [at, before]);
    },
    list: (since) => prepared<StateCounts>('state_counts_list', LIST, [since]),
  };
}
