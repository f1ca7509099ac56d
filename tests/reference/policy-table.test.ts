/** The policy table of the real Ironic, which is what `recorded.json` says: every operation as every persona on nodes of each kind. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startRealIronic } from '../lab/inspection/real-ironic';
import { freePort } from '../support/free-port';
import { SETTINGS } from './policy-table/differences';
import { startKeystone } from './policy-table/keystone';
import { tableOf, type Table } from './policy-table/table';

const RECORDED = join(__dirname, 'policy-table/recorded.json');

it('is as recorded', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'bloomery-policies-'));
  const keystone = await startKeystone();
  const ironic = await startRealIronic(folder, '127.0.0.1', await freePort(), {
    ...SETTINGS,
    DEFAULT: { ...SETTINGS.DEFAULT, auth_strategy: 'keystone' },
    keystone_authtoken: {
      ...{ auth_type: 'v3password', auth_url: keystone.url, www_authenticate_uri: keystone.url },
      ...{ username: 'validator', password: 'p', user_domain_id: 'default', project_name: 'validator', project_domain_id: 'default' },
    },
  });
  try {
    const recorded = JSON.parse(readFileSync(RECORDED, 'utf8')) as Table;
    // RECORD_POLICIES=REGEX writes the rows of these operations anew.
    const only = process.env['RECORD_POLICIES'];
    const made = await tableOf(ironic.url, ({ name }) => ({ 'x-auth-token': name }), new RegExp(only ?? ''));
    if (only !== undefined) writeFileSync(RECORDED, `${JSON.stringify({ ...recorded, ...made }, null, 1)}\n`);
    else expect(made).toEqual(recorded);
  } finally {
    await ironic.stop();
    await keystone.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}, 1_800_000);
