import { randomUUID } from 'node:crypto';
import { silentLog } from '../../model/log';
import { importIronic } from '../../store/import/import';
import type { Source, SourceRow } from '../../store/import/source';
import { connect } from '../../store/sql/connection';
import { useDatabase } from '../support/database';

const database = useDatabase();
beforeEach(() => database.clear());

const [NODE, PORT] = [randomUUID(), randomUUID()];
const CREATED = '2026-01-02 03:04:05';
const node = (more: SourceRow = {}): SourceRow => ({
  id: 1,
  uuid: NODE,
  driver: 'ipmi',
  provision_state: 'available',
  created_at: CREATED,
  ...more,
});
const port = (more: SourceRow = {}): SourceRow => ({
  id: 1,
  uuid: PORT,
  node_id: 1,
  address: '52:54:00:00:00:01',
  created_at: CREATED,
  ...more,
});
const sourceOf = (tables: Readonly<Record<string, readonly SourceRow[]>>): Source => ({
  tables: new Set(Object.keys(tables)),
  masks: false,
  rows: async function* (table) {
    yield tables[table] ?? [];
  },
  close: async () => {},
});

/** Rows of another database → what does not come, and how many rows come. */
const HOSTILE: readonly (readonly [name: string, nodes: SourceRow, ports: SourceRow, refused: readonly string[], imported: number])[] = [
  ['valid rows', node(), port(), [], 2],
  ['a UUID that is a path', node({ uuid: '../../etc/x' }), port(), ['node ../../etc/x: its uuid "../../etc/x" is malformed'], 0],
  ['a MAC address that is a path', node(), port({ address: '../x\n52' }), ['port ../x\\n52: its address "../x\\n52" is malformed'], 1],
  [
    'a name with terminal control characters',
    node({ name: '\u001b[2J', provision_state: 'cleaning' }),
    port(),
    ['node \\u001b[2J: Ironic works on it (cleaning): let that end, then run the import again'],
    0,
  ],
  [
    'a parent that is the node itself',
    node({ parent_node: NODE }),
    port(),
    [`node ${NODE}: it is its own ancestor: change its parent_node in Ironic, then run the import again`],
    0,
  ],
  [
    'the provision state "__proto__"',
    node({ provision_state: '__proto__' }),
    port(),
    [`node ${NODE}: its provision state "__proto__" does not exist here`],
    0,
  ],
];
it.each(HOSTILE)('importIronic with %s imports the valid rows and lists the malformed ones', async (_, nodes, ports, refused, imported) => {
  const { db } = await connect({ connection: database.connection(), poolSize: 2, log: silentLog });
  try {
    const summary = await importIronic(db, sourceOf({ nodes: [nodes], ports: [ports] }), {
      dryRun: false,
      enabled: { hardware_types: ['ipmi'] },
      secrets: {},
      signal: new AbortController().signal,
    });
    expect(summary.refused).toEqual(refused);
    expect(summary.tables.reduce((sum, table) => sum + table.imported, 0)).toBe(imported);
  } finally {
    await db.destroy();
  }
});
