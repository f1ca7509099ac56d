/** docs/upgrade.md to the letter: the server starts with the configuration of a bifrost and of a metal3, after the edits on the page. */
import { hashSync } from 'bcryptjs';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { loadOptions, type Loaded } from '../../../config/load';
import { withoutEffect as reasonOf } from '../../../config/without-effect';
import { startServer } from '../../../server/server';
import { silentLog } from '../../../model/log';
import { timeoutSignal } from '../../../wire/timeout-signal';
import { useDatabase } from '../../support/database';
import type { Server } from '../../support/whole-server';

const database = useDatabase();
const folder = mkdtempSync(join(tmpdir(), 'bloomery-upgrade-'));
let server: Server | undefined;
afterEach(async () => {
  await server?.stop();
  server = undefined;
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const page = readFileSync(join(__dirname, '../../../docs/upgrade.md'), 'utf8');
/** The edits of a section of the page. */
function editsOf(heading: string): readonly string[] {
  const section = page.split(`## ${heading}\n`)[1]!.split('\n## ', 1)[0]!;
  const edits = section.split('```')[1]!.match(/^sed .+$/gm) ?? [];
  if (edits.length === 0) throw new Error(`${heading}: the page has no edits`);
  return edits;
}

interface Site {
  readonly heading: string;
  /** The page's variables → this test's address, files and ports. */
  readonly variables: Readonly<Record<string, string>>;
  /** The error that prevents the start before the edits. */
  readonly refusal: string;
  readonly drivers: readonly string[];
  /** Option → its expected value. */
  readonly options: Readonly<Record<string, unknown>>;
  readonly withoutEffect: readonly string[];
}
const here = {
  OS_API__HOST_IP: '127.0.0.1',
  OS_API__PORT: '0',
  OS_BOOT__HTTP_HOST: '127.0.0.1',
  OS_BOOT__HTTP_PORT: '0',
  OS_BOOT__TFTP: 'false',
};
/** The file with its paths below a folder of the test, because the server makes the folders that it names. */
const relocated = (text: string, root: string): string => text.replaceAll(/(?<==\s*|,|file:\/\/)(?=\/\w)/g, root);
const SITES: Readonly<Record<string, Site>> = {
  bifrost: {
    heading: 'From bifrost',
    variables: { ...here, OS_DEFAULT__LOG_DIR: '' },
    refusal: '[database]connection must be a postgresql:// URL, not mysql+pymysql://',
    drivers: ['ipmi', 'manual-management', 'redfish'],
    options: {
      'pxe.kernel_append_params': 'ipa-insecure=1 systemd.journald.forward_to_console=yes',
      'inspector.hooks': ['ramdisk-error', 'validate-interfaces', 'ports', 'architecture', 'parse-lldp'],
      'deploy.fast_track': true,
      'sensor_data.send_sensor_data': true,
      'service_catalog.username': 'admin',
    },
    withoutEffect: ['[pxe]tftp_master_path', '[deploy]default_boot_option'],
  },
  metal3: {
    heading: 'From a metal3 configuration',
    variables: { ...here, OS_DEFAULT__MY_IP: '127.0.0.1' },
    refusal: '[database]connection must be a postgresql:// URL, not sqlite://',
    drivers: ['fake-hardware', 'idrac', 'ipmi', 'manual-management', 'redfish'],
    options: {
      'DEFAULT.enabled_boot_interfaces': ['ipxe', 'pxe', 'fake', 'redfish-virtual-media', 'idrac-redfish-virtual-media', 'redfish-https'],
      'conductor.verify_step_priority_override': { 'management.clear_job_queue': '90' },
      'sensor_data.interval': 160,
      'pxe.boot_retry_timeout': 1200,
      'pxe.ipxe_fallback_script': 'inspector.ipxe',
    },
    withoutEffect: [
      '[DEFAULT]use_stderr',
      '[DEFAULT]hash_ring_algorithm',
      '[DEFAULT]tempdir',
      '[agent]certificates_path',
      '[api]api_workers',
      '[database]sqlite_synchronous',
      '[deploy]default_boot_option',
      '[deploy]iso_master_path',
      '[oslo_messaging_notifications]location',
      '[oslo_messaging_notifications]transport_url',
      '[metrics]backend',
      '[pxe]images_path',
      '[pxe]tftp_master_path',
    ],
  },
};
/** The options that a warning names. */
const namedIn = ({ warnings }: Loaded): readonly string[] => [...warnings.join('\n').matchAll(/(\[\w+\]\w+) \(/g)].map(([, name]) => name!);

test.each(Object.entries(SITES))(
  'the server starts with the configuration of %s after the edits of docs/upgrade.md',
  async (name, { heading, variables, refusal, drivers, options, withoutEffect }) => {
    const file = join(folder, 'ironic.conf');
    const root = join(folder, name, 'root');
    writeFileSync(file, relocated(readFileSync(join(__dirname, `${name}.conf`), 'utf8'), root));
    const users = loadOptions([file], {}).options['DEFAULT.http_basic_auth_user_file'];
    mkdirSync(dirname(users), { recursive: true });
    writeFileSync(users, `admin:${hashSync('of-the-administrator', 4)}\n`);
    const start = (loaded: Loaded, databaseUrl?: string): Promise<Server> =>
      startServer({
        options: loaded.options,
        roles: ['api', 'conductor', 'boot'],
        stateDir: join(folder, name, 'state'),
        log: silentLog,
        ...(databaseUrl === undefined ? {} : { databaseUrl }),
      });
    await expect(start(loadOptions([file], variables))).rejects.toThrow(refusal);

    for (const edit of editsOf(heading)) execFileSync('sh', ['-c', edit], { cwd: folder });
    const loaded = loadOptions([file], variables);
    expect(loaded).toMatchObject({ options, refusals: [] });
    expect(namedIn(loaded).toSorted()).toEqual(withoutEffect.toSorted());
    // The page says why each of these options has no effect.
    const text = page.replaceAll(/\[([^\]]+)\]\([^)]+\)/g, '$1').replaceAll('`', '');
    for (const option of withoutEffect) {
      const [section, name] = option.slice(1).split(']') as [string, string];
      expect(text).toMatch(new RegExp(`^\\| \\[${section}\\] \\|.* ${name}\\b.* \\| ${reasonOf(`${section}.${name}`)} \\|$`, 'm'));
    }
    server = await start(loaded, database.connection());
    const drivenBy = async (credentials: string): Promise<unknown> => {
      const headers = { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` };
      const response = await fetch(`${server!.apiUrl!}/v1/drivers`, { headers, signal: timeoutSignal(60_000) });
      const body = (await response.json()) as { readonly drivers?: readonly { readonly name: string }[] };
      return response.ok ? body.drivers!.map((driver) => driver.name).sort() : response.status;
    };
    expect(await drivenBy('admin:of-the-administrator')).toEqual(drivers);
    expect(await drivenBy('admin:of-nobody')).toBe(401);
  },
);
