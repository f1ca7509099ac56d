/**
 * The policy table with tokens of a real Keystone: every operation as every persona on owned nodes, compared with the real Ironic's
 * answers.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startServerProcess, type RunningServer } from '../../demo/lab/server';
import { ENABLED } from '../reference/both';
import { compare, SETTINGS } from '../reference/policy-table/differences';
import { PERSONAS, type Persona } from '../reference/policy-table/personas';
import { tableOf, type Table } from '../reference/policy-table/table';
import { freePort } from '../support/free-port';
import { startKeystone, type RealKeystone } from './services/keystone';
import { PASSWORD } from './services/service';

const RECORDED = join(__dirname, '../reference/policy-table/recorded.json');
/** Rows of operations, and those of owned nodes in one state. */
const ROWS = /^[^|]+(?: \| owned)?$/;

const folder = mkdtempSync(join(tmpdir(), 'bloomery-policy-tokens-'));
let keystone: RealKeystone;
let server: RunningServer;
let url: string;
/** Project → ID. */
const projects = new Map<string, string>();
const tokens = new Map<string, string>();

/** Keystone adds the roles that others include. */
async function tokenOf({ name, roles, project }: Persona): Promise<string> {
  const { identity } = keystone;
  const where = project === undefined ? 'system' : projects.get(project)!;
  const user = await identity.user(name, { [where]: [roles[0]!] });
  return identity.token(user, project === undefined ? { system: { all: true } } : { project: { id: where } });
}

beforeAll(async () => {
  mkdirSync(join(folder, 'keystone'));
  keystone = await startKeystone(join(folder, 'keystone'));
  const { identity } = keystone;
  for (const { project } of PERSONAS)
    if (project !== undefined && !projects.has(project)) projects.set(project, await identity.project(project.replace('project-', '')));
  for (const persona of PERSONAS) tokens.set(persona.name, await tokenOf(persona));
  const service = await identity.user('baremetal', { [projects.get('project-service')!]: ['admin', 'service'] });
  const port = await freePort();
  url = `http://127.0.0.1:${port}`;
  server = await startServerProcess(
    join(folder, 'server'),
    {
      ...SETTINGS,
      DEFAULT: { ...ENABLED, ...SETTINGS.DEFAULT, auth_strategy: 'keystone', host: 'real-ironic', my_ip: '127.0.0.1' },
      api: { host_ip: '127.0.0.1', port },
      keystone_authtoken: {
        auth_url: keystone.url,
        auth_type: 'password',
        user_id: service,
        password: PASSWORD,
        project_id: projects.get('project-service')!,
      },
    },
    undefined,
    ['--roles', 'api,conductor'],
  );
}, 900_000);
afterAll(async () => {
  await server?.stop();
  await keystone?.close();
  rmSync(folder, { recursive: true, force: true });
}, 120_000);

it('with tokens of a real Keystone, our server responds to each operation of each persona as Ironic, apart from listed differences', async () => {
  const ours = await tableOf({ url, identify: ({ name }) => ({ 'x-auth-token': tokens.get(name)! }), projects, only: ROWS });
  const recorded = JSON.parse(readFileSync(RECORDED, 'utf8')) as Table;
  const theirs = Object.fromEntries(Object.entries(recorded).filter(([row]) => ROWS.test(row)));
  expect(Object.keys(ours).length).toBeGreaterThan(200);
  expect(compare(ours, theirs).wrong).toEqual([]);
}, 1_800_000);
