import { outdated } from '../../../conductor/requests/snapshots';
import type { SnapshotRecord } from '../../../model/records';

const NOW = Date.parse('2026-03-10T00:00:00Z');
const snapshot = (uuid: string, node: string, day: number): SnapshotRecord =>
  ({ uuid, node_uuid: node, created_at: `2026-03-${String(day).padStart(2, '0')}T00:00:00Z` }) as SnapshotRecord;
const ALL = [snapshot('a1', 'a', 1), snapshot('a3', 'a', 3), snapshot('b2', 'b', 2), snapshot('a9', 'a', 9)];

it.each([
  ['all are kept', { perNode: 0, days: 0 }, []],
  ['the latest of each node', { perNode: 1, days: 0 }, ['a3', 'a1']],
  ['the latest two of each node', { perNode: 2, days: 0 }, ['a1']],
  ['those of a week', { perNode: 0, days: 7 }, ['b2', 'a1']],
  ['the latest of each node, and of a week', { perNode: 1, days: 7 }, ['a3', 'b2', 'a1']],
])('%s', (_, kept, removed) => {
  expect(outdated(ALL, kept, NOW).map(({ uuid }) => uuid)).toEqual(removed);
});
