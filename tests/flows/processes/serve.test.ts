/** `bloomery serve` as an operator uses it: what it refuses, and with which messages. Runs the built program (npm test builds it). */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const program = join(__dirname, '../../../bin/bloomery');
const folder = mkdtempSync(join(tmpdir(), 'bloomery-serve-'));
let taken: Server;
let takenPort: number;
let files = 0;

beforeAll(async () => {
  taken = createServer();
  await new Promise<void>((done) => taken.listen(0, '127.0.0.1', done));
  takenPort = (taken.address() as AddressInfo).port;
});
afterAll(async () => {
  await new Promise((done) => taken.close(done));
  rmSync(folder, { recursive: true, force: true });
});

const config = (text: string): string => {
  const path = join(folder, `${++files}.conf`);
  writeFileSync(path, text);
  return path;
};
// The program takes half a second to start, and its share of a busy machine may be small.
/** Runs the program to its end; one that serves would be ended after 240 s and fail the test. */
async function run(
  args: readonly string[],
  environment: Record<string, string> = {},
): Promise<{ code: number | null; output: string; errors: string }> {
  const child = spawn(process.execPath, [program, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, DATABASE_URL: undefined, ...environment },
    timeout: 240_000,
  });
  let output = '';
  let errors = '';
  child.stdout.on('data', (data: Buffer) => (output += data.toString()));
  child.stderr.on('data', (data: Buffer) => (errors += data.toString()));
  const code = await new Promise<number | null>((done) => child.once('close', done));
  return { code, output, errors };
}
/** The last line that is not a log line. */
const said = (errors: string): string =>
  errors
    .trim()
    .split('\n')
    .findLast((line) => !line.startsWith('{')) ?? '';

const LOOPBACK = '[api]\nhost_ip = 127.0.0.1\nport = 0\n[boot]\nhttp_host = 127.0.0.1\nhttp_port = 0\ntftp = false\n';

describe('refuses to start with one clear line:', () => {
  it.each<[string, () => readonly string[], RegExp]>([
    ['an option that is not a number', () => ['--config-file', config('[api]\nport = many\n')], /\[api\]port "many" must be an integer/],
    ['a file that does not exist', () => ['--config-file', '/nonexistent.conf'], /cannot read the configuration file \/nonexistent.conf/],
    ['a line that is not an option', () => ['--config-file', config('[api]\nport\n')], /line 2: neither "name = value" nor a section/],
    [
      'inventories in Swift without Swift',
      () => ['--config-file', config('[inventory]\ndata_backend = swift\n')],
      /\[inventory\]data_backend = swift needs Swift: set \[swift\]auth_type/,
    ],
    [
      'a folder for inventories that cannot be written',
      () => ['--config-file', config('[inventory]\ndata_backend = directory\ndirectory = /proc/none\n')],
      /cannot write \[inventory\]directory \/proc\/none/,
    ],
    [
      'no auth_strategy on all addresses',
      () => ['--config-file', config('[api]\nhost_ip = 0.0.0.0\n')],
      /auth_strategy is not set, and the API would listen on 0\.0\.0\.0 \(\[api\]host_ip\): set auth_strategy = http_basic/,
    ],
    [
      'Keystone without its address',
      () => ['--config-file', config('[DEFAULT]\nauth_strategy = keystone\n')],
      /\[keystone_authtoken\]auth_url: it is not set/,
    ],
    [
      'TLS without a certificate',
      () => ['--config-file', config('[api]\nenable_ssl_api = true\n')],
      /\[api\]enable_ssl_api needs \[api\]cert_file and \[api\]key_file\. To make a self-signed certificate: openssl req -x509/,
    ],
    [
      'a certificate that does not exist',
      () => [
        '--config-file',
        config(`${LOOPBACK}[api]\nenable_ssl_api = true\n[ssl]\ncert_file = /nonexistent\nkey_file = /nonexistent\n`),
      ],
      /\[ssl\]cert_file: cannot read \/nonexistent: ENOENT.*\. To make a self-signed certificate: openssl .* -keyout \/nonexistent -out \/nonexistent/,
    ],
    [
      'a security option that has no effect',
      () => ['--config-file', config('[json_rpc]\nunix_socket = /run/socket\n')],
      /line 2: option \[json_rpc\]unix_socket is a security option that has no effect here: remove it\. Instead: calls between processes/,
    ],
    ['an unknown role', () => ['--roles', 'api,waiter'], /"waiter" is not a role: choose from api, conductor, boot/],
    ['an unknown option of the command', () => ['--confg', 'x'], /unknown option '--confg'/],
    ['the API without a conductor', () => ['--roles', 'api'], /api and conductor must run in one process/],
    [
      'a busy port',
      () => ['--state-dir', join(folder, 'busy'), '--config-file', config(LOOPBACK.replace('port = 0', `port = ${takenPort}`))],
      /cannot listen on 127\.0\.0\.1 port \d+ \(the API, \[api\]host_ip and port\): the port is in use/,
    ],
    [
      'a state directory that it may not write',
      () => ['--state-dir', '/proc/bloomery', '--config-file', config(LOOPBACK)],
      /cannot write the state directory \/proc\/bloomery/,
    ],
    [
      'a database that does not answer',
      () => [
        '--state-dir',
        join(folder, 'db'),
        '--config-file',
        config(`${LOOPBACK}[database]\nconnection = postgresql://user:hidden@127.0.0.1:1/x\n`),
      ],
      /database.*127\.0\.0\.1/i,
    ],
    [
      'a database of another kind',
      () => [
        '--state-dir',
        join(folder, 'db'),
        '--config-file',
        config(`${LOOPBACK}[database]\nconnection = mysql://user:hidden@127.0.0.1/x\n`),
      ],
      /postgresql:\/\//,
    ],
  ])('%s', async (_, args, message) => {
    const { code, errors } = await run(['serve', ...args()]);
    expect(said(errors)).toMatch(message);
    expect(errors).not.toContain('hidden');
    expect(errors).not.toMatch(/\n\s+at /);
    expect(code).not.toBe(0);
  });
});

it('names all problems of the configuration at once, those that check finds too', async () => {
  const file = config(
    [
      '[DEFAULT]',
      'auth_strategy = http_basic',
      'http_basic_auth_user_file = /nonexistent/htpasswd',
      'log_dir = /nonexistent/log',
      'enabled_console_interfaces = ipmitool-shellinabox',
      'enabled_deploy_interfaces = iscsi',
      '[api]',
      'port = many',
      'host_ip = 127.0.0.1',
      '[inspector]',
      'hooks = ports,site-hook',
      '[redfish]',
      'inspection_hooks = nope',
      '[json_rpc]',
      'unix_socket = /run/socket',
      '[database]',
      'connection = mysql://user:hidden@127.0.0.1/x',
      '',
    ].join('\n'),
  );
  const problems = [
    /option \[api\]port "many" must be an integer/,
    /\[json_rpc\]unix_socket is a security option/,
    /\[DEFAULT\]log_dir: cannot write \/nonexistent\/log\/bloomery\.log: ENOENT.*: create the folder/,
    /hardware type ipmi would have no console interface: enable one of ipmitool-socat, no-console, vnc, fake-graphical in/,
    /hardware type redfish would have no deploy interface: enable one of autodetect, direct, ramdisk, anaconda, bootc, custom-agent in/,
    /\[inspector\]hooks: ports needs validate-interfaces before it/,
    /\[inspector\]hooks: unknown hook site-hook/,
    /\[redfish\]inspection_hooks: unknown hook nope/,
    /\[DEFAULT\]http_basic_auth_user_file: cannot use \/nonexistent\/htpasswd/,
    /\[database\]connection must be a postgresql:\/\/ URL, not mysql:\/\//,
  ];
  const common = ['--config-file', file, '--state-dir', join(folder, 'all')];
  const [served, checked] = [await run(['serve', ...common]), await run(['check', ...common])];
  expect([served.code, checked.code]).toEqual([2, 2]);
  for (const problem of problems) expect(served.errors).toMatch(problem);
  const found = problems.filter((problem) => !problem.source.includes('\\[api\\]port') && !problem.source.includes('unix_socket'));
  for (const problem of found) expect(checked.output).toMatch(problem);
  expect(checked.output).toMatch(/refused +\[api\]port .*"many" must be an integer/);
  expect(served.errors + checked.output).not.toContain('hidden');
});

it('`config --sample` prints the options, and `serve --help` the help', async () => {
  expect((await run(['config', '--sample'])).output).toMatch(/^\[DEFAULT\]\n/);
  expect((await run(['serve', '--help'])).output).toMatch(/--state-dir <folder>/);
});
