/** The policy table of the real Ironic must be as recorded in `recorded.json`: every operation as every persona on nodes of each kind. */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startRealIronic } from '../lab/inspection/real-ironic';
import { programs } from '../lab/support/venv';
import { freePort } from '../support/free-port';
import { SETTINGS } from './policy-table/differences';
import { startKeystone } from './policy-table/keystone';
import { tableOf, type Table } from './policy-table/table';

const run = promisify(execFile);
const RECORDED = join(__dirname, 'policy-table/recorded.json');
/** A Python program, because Python includes SQLite. */
const SET_STATE = `
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], timeout=30)
with database:
    database.execute("UPDATE nodes SET provision_state = ?, provision_updated_at = datetime('now') WHERE uuid = ?", (sys.argv[3], sys.argv[2]))
`;

it('the real Ironic gives each persona the response to each operation that recorded.json has', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'bloomery-policies-'));
  const keystone = await startKeystone();
  const ironic = await startRealIronic(folder, '127.0.0.1', await freePort(), {
    ...SETTINGS,
    DEFAULT: { ...SETTINGS.DEFAULT, auth_strategy: 'keystone' },
    keystone_authtoken: {
      auth_type: 'v3password',
      auth_url: keystone.url,
      www_authenticate_uri: keystone.url,
      username: 'validator',
      password: 'p',
      user_domain_id: 'default',
      project_name: 'validator',
      project_domain_id: 'default',
    },
  });
  try {
    const recorded = JSON.parse(readFileSync(RECORDED, 'utf8')) as Table;
    // RECORD_POLICIES=REGEX records the rows of these operations again.
    const only = process.env['RECORD_POLICIES'];
    const python = join(await programs('ironic', ['ironic==39.0.0']), 'python');
    const made = await tableOf({
      url: ironic.url,
      identify: ({ name }) => ({ 'x-auth-token': name }),
      setState: async (node, state) => {
        await run(python, ['-c', SET_STATE, join(folder, 'ironic.sqlite'), node, state], { timeout: 60_000 });
      },
      only: new RegExp(only ?? ''),
    });
    if (only !== undefined) writeFileSync(RECORDED, `${JSON.stringify({ ...recorded, ...made }, null, 1)}\n`);
    else expect(made).toEqual(recorded);
  } finally {
    await ironic.stop();
    await keystone.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}, 1_800_000);
