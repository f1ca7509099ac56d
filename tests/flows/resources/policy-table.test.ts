/**
 * Every operation as every persona on nodes of each kind: our answers must be those of the real Ironic, which
 * tests/reference/policy-table.test.ts recorded.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hashSync } from 'bcryptjs';
import { loadOptions } from '../../../config/load';
import { startServer } from '../../../server/server';
import { silentLog } from '../../../model/log';
import { ENABLED } from '../../reference/both';
import { compare, SETTINGS } from '../../reference/policy-table/differences';
import { PERSONAS, type Persona } from '../../reference/policy-table/personas';
import { tableOf, type Table } from '../../reference/policy-table/table';
import { useDatabase } from '../../support/database';
import type { Server } from '../../support/whole-server';

const RECORDED = join(__dirname, '../../reference/policy-table/recorded.json');
const database = useDatabase();
const folder = mkdtempSync(join(tmpdir(), 'bloomery-policy-table-'));
let server: Server;

const sectionOf = ({ name, roles, project }: Persona): string =>
  [
    `[${name}]`,
    `roles = ${roles.join(', ')}`,
    ...(project === undefined ? ['system = all'] : [`project = ${project}`, `project_name = ${project.replace('project-', '')}`]),
  ].join('\n');
beforeAll(async () => {
  const [users, roles] = [join(folder, 'htpasswd'), join(folder, 'roles')];
  const digest = hashSync('secret', 4);
  writeFileSync(users, PERSONAS.map(({ name }) => `${name}:${digest}`).join('\n'));
  writeFileSync(roles, `${PERSONAS.map(sectionOf).join('\n')}\n`);
  const settings = {
    ...SETTINGS,
    DEFAULT: {
      ...ENABLED,
      ...SETTINGS.DEFAULT,
      auth_strategy: 'http_basic',
      http_basic_auth_user_file: users,
      http_basic_roles_file: roles,
      host: 'real-ironic',
    },
    api: { host_ip: '127.0.0.1', port: '0' },
  };
  const variables = Object.fromEntries(
    Object.entries(settings).flatMap(([section, options]) =>
      Object.entries(options).map(([name, value]) => [`OS_${section.toUpperCase()}__${name.toUpperCase()}`, value]),
    ),
  );
  const { options } = loadOptions([], variables);
  server = await startServer({
    options,
    roles: ['api', 'conductor'],
    stateDir: folder,
    log: silentLog,
    databaseUrl: database.connection(),
  });
});
afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

it('answers every operation to every persona as Ironic does', async () => {
  const ours = await tableOf({
    url: server.apiUrl!,
    identify: ({ name }) => ({ authorization: `Basic ${Buffer.from(`${name}:secret`).toString('base64')}` }),
    setState: async (node, state) => {
      await database.query('UPDATE nodes SET provision_state = $2, provision_updated_at = now(), updated_at = now() WHERE uuid = $1', [
        node,
        state,
      ]);
    },
  });
  const theirs = JSON.parse(readFileSync(RECORDED, 'utf8')) as Table;
  expect(compare(ours, theirs)).toEqual({ wrong: [], idle: [] });
}, 900_000);
