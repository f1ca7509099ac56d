import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkPage, summaryOf } from '../../../commands/check/check';
import { loadOptions } from '../../../config/load';
import type { LoadedOptions } from '../../../config/options';
import { certificateFinding } from '../../../commands/check/certificates';
import { spaceFinding } from '../../../commands/check/host';
import { checkHost } from '../../../commands/check/host-checks';
import { createProgram } from '../../../commands/program';
import { ownCertificate } from '../../../wire/http/certificate';
import { useDatabase } from '../../support/database';
import { freePort } from '../../support/free-port';

type Finding = Awaited<ReturnType<typeof checkHost>>[number];
const database = useDatabase();
const folder = mkdtempSync(join(tmpdir(), 'bloomery-check-'));
afterAll(() => rmSync(folder, { recursive: true }));

const GIB = 2 ** 30;
it.each([
  [100 * GIB, 'ok'],
  [GIB, 'warning'],
  [GIB / 10, 'warning'],
])('spaceFinding() rates %d free bytes as "%s"', (bytes, severity) => {
  expect(spaceFinding(bytes)[0]).toBe(severity);
});

it.each([
  ['2026-01-01', '2027-01-01', 'ok', /is valid for 306 more days$/],
  ['2026-01-01', '2026-03-20', 'warning', /is valid for 19 more days$/],
  ['2026-01-01', '2026-02-01', 'warning', /expired at 2026-02-01$/],
  ['2026-04-01', '2027-02-01', 'warning', /valid only from 2026-04-01: compare the clock$/],
])(
  'certificateFinding() rates a certificate that is valid from %s to %s as "%s" on 2026-03-01',
  (validFrom, validTo, severity, message) => {
    const [found, text] = certificateFinding({ validFrom, validTo }, 'a.pem', Date.parse('2026-03-01'));
    expect([found, text]).toEqual([severity, expect.stringMatching(message)]);
  },
);

const finding = (severity: Finding['severity']): Finding => ({ what: 'x', severity, message: 'y' });
const option = { option: '[a]b', from: 'f', message: null };
it.each([
  [[], [finding('ok'), finding('note')], 0, /all is well$/],
  [[{ ...option, result: 'no effect', expected: true }], [], 0, /1 has no effect, 0 warnings/],
  [[{ ...option, result: 'no effect' }], [], 1, /1 warning, 0 refusals: the server starts$/],
  [[], [finding('warning')], 1, /the server starts$/],
  [[{ ...option, result: 'refused' }], [finding('warning')], 2, /1 warning, 1 refusal: the server does not start$/],
  [[], [finding('refused')], 2, /the server does not start$/],
] as const)('summaryOf() sums up options %j and findings %j with status %d', (options, host, status, text) => {
  expect(summaryOf(options, host)).toEqual({ status, text: expect.stringMatching(text) as unknown });
});

it('checkPage() lists refused options first, and escapes control characters', () => {
  const page = checkPage(
    [
      { ...option, result: 'works' },
      { ...option, result: 'refused', message: 'no\u001b[31m' },
    ],
    [finding('ok')],
  );
  expect(page.split('\n')).toEqual([
    'Options:',
    '  refused    [a]b (f): no\\u001b[31m',
    '  works      [a]b (f)',
    'Host:',
    '  ok         x: y',
    'Summary: 1 option of 2 work, 0 have no effect, 0 warnings, 1 refusal: the server does not start',
    '',
  ]);
});

describe('checkHost()', () => {
  const check = async (changes: Partial<LoadedOptions>, roles = ['api', 'conductor', 'boot']): Promise<readonly Finding[]> => {
    const [api, http] = [await freePort(), await freePort()];
    const defaults = { 'api.port': api, 'boot.http_port': http, 'boot.http_host': '127.0.0.1', 'boot.tftp': false };
    const options = { ...loadOptions([], {}).options, ...defaults, ...changes };
    return checkHost({ options, roles, stateDir: join(folder, 'state'), databaseUrl: database.connection() });
  };
  const of = (findings: readonly Finding[], what: string): readonly (readonly [string, string])[] =>
    findings.filter((candidate) => candidate.what === what).map(({ severity, message }) => [severity, message]);
  const kernel = join(folder, 'kernel');
  const agent = { 'conductor.deploy_kernel': `file://${kernel}`, 'conductor.deploy_ramdisk': kernel };

  it('finds nothing wrong on a correct host but missing boot loaders', async () => {
    writeFileSync(kernel, '');
    const findings = await check({ ...agent, 'pxe.loader_file_paths': {}, 'pxe.tftp_root': folder });
    expect(findings.filter(({ severity, what }) => severity === 'refused' || (severity === 'warning' && what !== 'boot loaders'))).toEqual(
      [],
    );
    expect(of(findings, 'database')).toEqual([['ok', expect.stringMatching(/its schema is up to date$/)]]);
    expect(of(findings, 'ports')).toHaveLength(2);
    expect(of(findings, 'agent').map(([severity]) => severity)).toEqual(['ok', 'ok']);
    expect(of(findings, 'boot loaders')).toEqual([
      ['warning', expect.stringMatching(/lacks the boot loaders undionly\.kpxe, snponly\.efi/)],
    ]);
  });

  it.each([
    [['ipxe'], /snponly\.efi: /],
    [['ipxe', 'pxe'], /snponly\.efi, pxelinux\.0, bootx64\.efi: /],
    [['ipxe', 'http'], /snponly\.efi, bootx64\.efi: /],
  ])('warns about missing boot loaders of the boot interfaces %j', async (enabled, lacking) => {
    const findings = await check({ 'DEFAULT.enabled_boot_interfaces': enabled, 'pxe.loader_file_paths': {}, 'pxe.tftp_root': folder });
    expect(of(findings, 'boot loaders')).toEqual([['warning', expect.stringMatching(lacking)]]);
  });

  it('refuses a port of the API that is in use', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await new Promise((listening) => taken.once('listening', listening));
    const { port } = taken.address() as AddressInfo;
    const findings = await check({ 'api.port': port });
    expect(of(findings, 'ports')[0]).toEqual(['refused', expect.stringMatching(/the API.*: the port is in use$/)]);
    expect(of(findings, 'ports')[1]![0]).toBe('ok');
    await new Promise((closed) => taken.close(closed));
  });

  it.each<[string, Partial<LoadedOptions>, string, RegExp]>([
    ['discovery', { 'auto_discovery.enabled': true }, 'refused', /needs \[auto_discovery\]driver/],
    ['access', { 'api.host_ip': '0.0.0.0' }, 'refused', /auth_strategy is not set, and the API would listen/],
    ['TLS', { 'api.enable_ssl_api': true }, 'refused', /needs \[api\]cert_file/],
    [
      'hardware',
      { 'DEFAULT.enabled_hardware_types': ['toaster'] },
      'refused',
      /unknown hardware types: toaster; there are fake-hardware, idrac, intel-ipmi, ipmi, /,
    ],
    ['hardware', { 'DEFAULT.enabled_deploy_interfaces': ['direct', 'waffle'] }, 'warning', /not available: waffle/],
    ['boot services', { 'boot.http_host': null, 'boot.interface': 'nope0' }, 'refused', /there is no such interface/],
    [
      'boot services',
      { 'deploy.http_url': 'http://192.0.2.1:6180', 'boot.http_port': 8080 },
      'warning',
      /= http:\/\/192\.0\.2\.1:6180, but .* port 8080: set \[boot\]http_port/,
    ],
    ['DHCP', { 'dhcp.dhcp_provider': 'builtin' }, 'refused', /\[boot\]interface is not set/],
    ['agent', { 'conductor.deploy_kernel': '/nowhere/kernel' }, 'warning', /= \/nowhere\/kernel: ENOENT/],
    ['agent', { 'conductor.rescue_kernel': '/nowhere/kernel' }, 'warning', /rescue_kernel = \/nowhere\/kernel: ENOENT/],
    [
      'agent',
      { 'conductor.bootloader_by_arch': { x86_64: '/nowhere/esp' } },
      'warning',
      /bootloader_by_arch, x86_64: \/nowhere\/esp: ENOENT/,
    ],
    [
      'agent',
      { 'conductor.bootloader_files': { 'grubx64.efi': '/nowhere/grub' } },
      'warning',
      /bootloader_files, grubx64\.efi: \/nowhere\/grub: ENOENT/,
    ],
    [
      'agent',
      { 'conductor.deploy_kernel': '11111111-2222-3333-4444-555555555555' },
      'note',
      /deploy_kernel = 11111111-2222-3333-4444-555555555555: an image in Glance, not checked$/,
    ],
    [
      'agent',
      { 'conductor.deploy_ramdisk': 'glance://11111111-2222-3333-4444-555555555555' },
      'note',
      /: an image in Glance, not checked$/,
    ],
    ['inspection', { 'inspector.hooks': ['ports', 'nope'] }, 'refused', /\[inspector\]hooks: ports needs validate-interfaces before it/],
    ['inspection', { 'inspector.hooks': ['ports', 'nope'] }, 'refused', /\[inspector\]hooks: unknown hook nope/],
    ['inspection', { 'redfish.inspection_hooks': ['nope'] }, 'refused', /\[redfish\]inspection_hooks: unknown hook nope/],
    ['inspection', { 'inspection_rules.built_in_rules': '/nowhere/rules.yaml' }, 'refused', /\/nowhere\/rules\.yaml/],
    [
      'hardware',
      { 'DEFAULT.autodetect_deploy_interfaces': ['autodetect', 'direct'] },
      'refused',
      /autodetect_deploy_interfaces has 'autodetect', which cannot choose itself/,
    ],
    [
      'boot templates',
      { 'pxe.ipxe_config_template': '/nowhere/ipxe' },
      'refused',
      /^\[pxe\]ipxe_config_template = \/nowhere\/ipxe: ENOENT/,
    ],
    [
      'container registries',
      { 'oci.authentication_config': '/nowhere/auth' },
      'warning',
      /authentication_config: cannot read \/nowhere\/auth: /,
    ],
    ['container registries', { 'oci.verify_ca': '/nowhere/ca' }, 'warning', /verify_ca: cannot read \/nowhere\/ca: /],
    ['formats of images', { 'conductor.permitted_image_formats': ['raw', 'qcow'] }, 'warning', /: there is no format qcow$/],
    [
      'architectures',
      { 'conductor.deploy_kernel_by_arch': { amd64: '/k' }, 'conductor.deploy_ramdisk_by_arch': { amd64: '/r' } },
      'warning',
      /^\[conductor\]deploy_ramdisk_by_arch: no node has the architecture amd64: the name is x86_64$/,
    ],
    [
      'architectures',
      { 'pxe.ipxe_bootfile_name_by_arch': { 'arm64-uefi': 'ipxe.efi' } },
      'warning',
      /^\[pxe\]ipxe_bootfile_name_by_arch: no node has the architecture arm64: the name is aarch64$/,
    ],
    ['log', { 'DEFAULT.log_dir': '/nowhere/log' }, 'refused', /^\[DEFAULT\]log_dir: cannot write \/nowhere\/log\/bloomery\.log: ENOENT/],
    ['log', { 'DEFAULT.log_file': '/nowhere/x.log' }, 'refused', /^\[DEFAULT\]log_file: cannot write \/nowhere\/x\.log: ENOENT/],
    [
      'agent',
      { 'deploy.http_url': 'http://192.0.2.1', 'deploy.http_root': '/nowhere', 'conductor.deploy_kernel': 'http://192.0.2.1/a/kernel' },
      'warning',
      /: this server answers there, and \/nowhere has no a\/kernel$/,
    ],
    [
      'agent',
      { 'conductor.deploy_kernel_by_arch': { x86_64: '/nowhere/x86' }, 'conductor.deploy_ramdisk_by_arch': { x86_64: '/nowhere/ramdisk' } },
      'warning',
      /deploy_kernel_by_arch, x86_64: \/nowhere\/x86: ENOENT/,
    ],
    [
      'agent',
      { 'conductor.deploy_ramdisk_by_arch': { aarch64: '/nowhere/arm' } },
      'warning',
      /deploy_ramdisk is not set: nodes without an entry in deploy_ramdisk_by_arch that boot/,
    ],
    [
      'agent',
      { 'conductor.deploy_ramdisk_by_arch': { aarch64: 'http://u:hush@192.0.2.1/arm' } },
      'warning',
      /deploy_ramdisk_by_arch, aarch64: \S+: deploy_kernel_by_arch has no aarch64/,
    ],
    ['agent', { 'conductor.deploy_kernel': 'http://u:hush@[::1]:2/kernel' }, 'warning', /= http:\/\/\[::1\]:2\/kernel: /],
    [
      'users',
      { 'DEFAULT.auth_strategy': 'http_basic', 'DEFAULT.http_basic_auth_user_file': '/nowhere/users' },
      'refused',
      /\/nowhere\/users/,
    ],
    ['Keystone', { 'DEFAULT.auth_strategy': 'keystone' }, 'refused', /auth_url/],
  ])('reports what is wrong with %s when the options are %j', async (what, changes, severity, message) => {
    const findings = of(await check(changes), what);
    expect(findings).toContainEqual([severity, expect.stringMatching(message)]);
    expect(JSON.stringify(findings)).not.toContain('hush');
  });

  it('requests agent images with the credentials of [deploy]image_server_*, and warns when they are refused or incomplete', async () => {
    const server = createHttpServer(({ headers }, response) => {
      response.writeHead(headers.authorization === `Basic ${Buffer.from('u:hush').toString('base64')}` ? 200 : 401).end();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const kernel = { 'conductor.deploy_kernel': `http://127.0.0.1:${port}/kernel` };
    const login = { 'deploy.image_server_auth_strategy': 'http_basic', 'deploy.image_server_user': 'u' } as const;
    const shown = `[conductor]deploy_kernel = http://127.0.0.1:${port}/kernel`;
    const kernelOf = async (changes: Partial<LoadedOptions>) => of(await check({ ...kernel, ...changes }), 'agent')[0];
    expect(await kernelOf({})).toEqual(['warning', `${shown}: 127.0.0.1:${port} answers 401`]);
    expect(await kernelOf({ ...login, 'deploy.image_server_password': 'hush' })).toEqual(['ok', shown]);
    expect(await kernelOf(login)).toEqual(['warning', expect.stringMatching(/: Missing \['image_server_password'\] fields/)]);
    server.closeAllConnections();
    server.close();
  });

  it('accepts a certificate with its private key, and refuses it with the key of another one', async () => {
    const make = (name: string): void => {
      const { certificate, privateKey } = ownCertificate('127.0.0.1', name, Date.now(), randomBytes);
      writeFileSync(join(folder, `${name}.pem`), certificate);
      writeFileSync(join(folder, `${name}.key`), privateKey);
    };
    make('one');
    make('other');
    const tls = { 'api.enable_ssl_api': true, 'api.cert_file': join(folder, 'one.pem') };
    expect(of(await check({ ...tls, 'api.key_file': join(folder, 'one.key') }), 'certificates')).toEqual([
      ['ok', expect.stringMatching(/one\.pem is valid for \d+ more days$/)],
    ]);
    expect(of(await check({ ...tls, 'api.key_file': join(folder, 'other.key') }), 'certificates')).toEqual([
      ['refused', expect.stringMatching(/not a certificate in PEM and its private key/)],
    ]);
  });
});

/** `bloomery check --json` with this DATABASE_URL. */
async function checkCommand(url: string, ...words: readonly string[]) {
  const written: string[] = [];
  const output = jest.spyOn(process.stdout, 'write').mockImplementation((text) => written.push(String(text)) > 0);
  const before = [process.env['DATABASE_URL'], process.exitCode] as const;
  process.env['DATABASE_URL'] = url;
  try {
    await createProgram().parseAsync(['node', 'bloomery', 'check', '--state-dir', join(folder, 'state'), '--json', ...words]);
    const answer = JSON.parse(written.join('')) as { options: object[]; host: Finding[]; status: number };
    return { ...answer, exit: process.exitCode };
  } finally {
    output.mockRestore();
    if (before[0] === undefined) delete process.env['DATABASE_URL'];
    else process.env['DATABASE_URL'] = before[0];
    process.exitCode = before[1];
  }
}
it('`bloomery check --json` prints the options and the findings, and exits with their status', async () => {
  const path = join(folder, 'ironic.conf');
  const [api, http] = [await freePort(), await freePort()];
  writeFileSync(path, `[api]\nport = ${api}\nports = 1\n[boot]\nhttp_host = 127.0.0.1\nhttp_port = ${http}\ntftp = false\n`);
  const answer = await checkCommand(database.connection(), '--config-file', path);
  expect([answer.status, answer.exit]).toEqual([1, 1]);
  expect(answer.options).toContainEqual({
    option: '[api]ports',
    from: `${path} line 3`,
    result: 'no effect',
    message: 'did you mean [api]port?',
  });
  expect(answer.host.map(({ what }) => what)).toEqual(expect.arrayContaining(['database', 'ports', 'clock', 'agent']));
});
it('`bloomery check` says that it read no configuration file, and names DATABASE_URL as the source of an invalid URL', async () => {
  const empty = join(folder, 'no-files');
  mkdirSync(empty);
  const { host, status } = await checkCommand('mysql://a:b@127.0.0.1/c', '--config-dir', empty, '--roles', 'conductor');
  expect(status).toBe(2);
  const messageOf = (name: string): string | undefined => host.find(({ what }) => what === name)?.message;
  expect(messageOf('configuration')).toMatch(/^no file was read: /);
  expect(messageOf('database')).toMatch(/^DATABASE_URL must be a postgresql:\/\/ URL, not mysql:\/\/;/);
});
