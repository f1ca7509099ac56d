/** The table `introspection_rules`: the rules of the introspection service. */
import type { Knex } from 'knex';
import type { Clock } from '../../../model/clock';
import type { IntrospectionRuleRecord } from '../../../model/records';
import { run } from '../../sql/faults';
import type { Sizes } from '../../sql/sizes';
import { resourceTable, type Table } from '../resources';

interface IntrospectionRules extends Table<IntrospectionRuleRecord> {
  removeAll(): Promise<void>;
}

const table = 'introspection_rules';
const rulesTable = resourceTable<IntrospectionRuleRecord>({
  table,
  columns: { description: 'text', scope: 'text', conditions: 'json', actions: 'json' },
  notFound: ['IntrospectionRuleNotFound', 'rule'],
});

/** @param db the pool, or a transaction */
export const introspectionRulesOn = (db: Knex, clock: Clock, sizes?: Sizes): IntrospectionRules => ({
  ...rulesTable(db, clock, sizes),
  async removeAll() {
    await run(db(table).delete());
  },
});
