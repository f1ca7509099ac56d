import { randomUUID } from 'node:crypto';
import type { NewNode, NodeRecord } from '../../../model/records';
import { useDatabase } from '../../support/database';

const database = useDatabase();
const make = (provisionState: NodeRecord['provision_state'], more: Partial<NewNode> = {}) =>
  database.store().nodes.create({ uuid: randomUUID(), driver: 'ipmi', provision_state: provisionState, ...more });
const at = (minute: number): string => `2026-03-01T10:${String(minute).padStart(2, '0')}:00.000000+00:00`;

it('record counts nodes without parents by state, skips equal counts, and removes old ones', async () => {
  const { stateCounts, nodes } = database.store();
  await stateCounts.record(at(0), at(0));
  const parent = await make('active');
  await make('active');
  await make('enroll', { parent_node: parent.uuid });
  await stateCounts.record(at(1), at(0));
  // Another conductor records the same minute.
  await stateCounts.record(at(1), at(0));
  await stateCounts.record(at(2), at(0));
  await nodes.update(parent.uuid, { provision_state: 'deleting' });
  await stateCounts.record(at(3), at(0));
  const counted = [
    { at: at(0), counts: {} },
    { at: at(1), counts: { active: 2 } },
    { at: at(3), counts: { active: 1, deleting: 1 } },
  ];
  expect(await stateCounts.list(at(0))).toEqual(counted);
  expect(await stateCounts.list(at(2))).toEqual([{ at: at(2), counts: { active: 2 } }, counted[2]]);
  await stateCounts.record(at(4), at(3));
  expect(await database.query('SELECT count(*)::int AS count FROM state_counts')).toEqual([{ count: 2 }]);
});
