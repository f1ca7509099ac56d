import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadOptions } from '../../config/load';
import type { LoadedOptions } from '../../config/options';
import { catalogUrl } from '../../server/conductor';
import { checkOptions } from '../../server/setting-checks';
import { resolveOptions, StartError } from '../../server/settings';
import { ServiceError, type Services } from '../../wire/keystone/services';

const folder = mkdtempSync(join(tmpdir(), 'bloomery-settings-'));
afterAll(() => rmSync(folder, { recursive: true }));
const given = (changes: Partial<LoadedOptions>): LoadedOptions => ({ ...loadOptions([], {}).options, ...changes });

it.each([
  [{}, null, null],
  [{}, 8443, 'https://192.0.2.1:8443'],
  [{ 'DEFAULT.my_ip': '2001:db8::1' }, 8443, 'https://[2001:db8::1]:8443'],
  [{ 'deploy.external_http_url': 'https://outside' }, 8443, 'https://outside'],
] as const)('options %j and the TLS port %s give BMCs the URL %s', (changes, https, expected) => {
  const options = resolveOptions(given({ 'DEFAULT.my_ip': '192.0.2.1', ...changes }), '/state', { api: 6385, http: 8080, https });
  expect(options['deploy.external_http_url']).toBe(expected);
  expect(options['deploy.http_url']).toMatch(/^http:.*:8080$/);
});

describe('URLs without [DEFAULT]my_ip', () => {
  const ports = { api: 6385, http: 8080, https: null };
  const urls = (changes: Partial<LoadedOptions>): readonly string[] => {
    const resolved = resolveOptions(given(changes), '/state', ports);
    const { 'service_catalog.endpoint_override': api, 'deploy.http_url': boot, 'inspector_service.callback_url': callback } = resolved;
    return [api, boot, callback];
  };
  it('have the one address that a service listens on', () => {
    expect(urls({ 'api.host_ip': '192.0.2.8', 'boot.http_host': '192.0.2.9', 'DEFAULT.listen_address': '2001:db8::1' })).toEqual([
      'http://192.0.2.8:6385',
      'http://192.0.2.9:8080',
      'http://[2001:db8::1]:5050/v1/continue',
    ]);
  });
  it('have the address of this host where a service listens on all', () => {
    const { 'DEFAULT.my_ip': own } = resolveOptions(given({}), '/state', ports);
    expect(urls({ 'api.host_ip': '0.0.0.0', 'boot.http_host': null, 'DEFAULT.listen_address': '::' })).toEqual([
      `http://${own}:6385`,
      `http://${own}:8080`,
      `http://${own}:5050/v1/continue`,
    ]);
  });
  it('have my_ipv6 on a host without IPv4', () => {
    expect(urls({ 'DEFAULT.my_ipv6': '2001:db8::5', 'api.host_ip': '::' })[0]).toBe('http://[2001:db8::5]:6385');
  });
  it('have my_ip if it is set, whatever a service listens on, because a proxy may answer there', () => {
    expect(urls({ 'DEFAULT.my_ip': '192.0.2.1', 'api.host_ip': '127.0.0.1' })[0]).toBe('http://192.0.2.1:6385');
  });
});

it('warns, as Ironic does, about an architecture with a kernel and without a ramdisk', () => {
  const changes: Partial<LoadedOptions> = {
    'conductor.deploy_kernel_by_arch': { x86_64: '/k', aarch64: '/k', riscv64: '/k' },
    'conductor.deploy_ramdisk_by_arch': { x86_64: '/r' },
    'conductor.rescue_ramdisk_by_arch': { aarch64: '/r' },
  };
  const warned = checkOptions(given(changes), ['conductor'], false, tmpdir()).filter((warning) => warning.includes('_by_arch'));
  expect(warned).toEqual([
    'The [conductor]deploy_kernel_by_arch configuration has entries for architectures aarch64, riscv64 that are missing from ' +
      '[conductor]deploy_ramdisk_by_arch. This may result in failed provisioning operations for these architectures.',
    'The [conductor]rescue_ramdisk_by_arch configuration has entries for architectures aarch64 that are missing from ' +
      '[conductor]rescue_kernel_by_arch. This may result in failed rescue operations for these architectures.',
  ]);
});

it('warns about the network interface neutron without Neutron', () => {
  const warned = (changes: Partial<LoadedOptions>): boolean =>
    checkOptions(given(changes), ['conductor'], false, tmpdir()).some((checkOption) =>
      checkOption.includes('the network interface neutron is enabled, but'),
    );
  const enabled = { 'DEFAULT.enabled_network_interfaces': ['neutron', 'noop'] };
  expect([warned({}), warned(enabled), warned({ ...enabled, 'neutron.auth_type': 'password' })]).toEqual([false, true, false]);
});

it.each<readonly [string, Partial<LoadedOptions>, string]>([
  [
    'Glance without its options',
    { 'snapshot.glance': true },
    '[snapshot]glance = true needs Glance: set [glance]auth_type and its options',
  ],
  [
    'two targets',
    {
      'snapshot.glance': true,
      'glance.auth_type': 'password',
      'snapshot.s3_endpoint': 'http://s3',
      'snapshot.s3_access_key': 'a',
      'snapshot.s3_secret_key': 'b',
    },
    '[snapshot]glance and [snapshot]s3_endpoint are both set: snapshots have one target',
  ],
  [
    'S3 without a key',
    { 'snapshot.s3_endpoint': 'http://s3', 'snapshot.s3_access_key': 'a' },
    '[snapshot]s3_endpoint needs [snapshot]s3_secret_key',
  ],
  [
    'a key without S3',
    { 'snapshot.s3_secret_key': 'b' },
    '[snapshot]s3_secret_key has no effect without [snapshot]s3_endpoint: set that, or remove the option',
  ],
])('checkOptions() refuses snapshots in %s', (_, changes, message) => {
  expect(() => checkOptions(given(changes), ['conductor'], false, tmpdir())).toThrow(new StartError(message));
});

describe('checkOptions() on files of certificate authorities', () => {
  const check = (changes: Partial<LoadedOptions>) => () => checkOptions(given(changes), ['boot', 'conductor'], false, tmpdir());
  it.each(['DEFAULT.webserver_verify_ca', 'agent.api_ca_file'] as const)('refuses the start while the file of %s does not exist', (key) => {
    const path = join(folder, `${key}.pem`);
    expect(check({ [key]: path })).toThrow(StartError);
    expect(check({ [key]: path })).toThrow(`[${key.replace('.', ']')}: cannot read ${path}`);
    writeFileSync(path, 'authorities');
    expect(check({ [key]: path })()).toEqual([]);
  });
  it.each(['True', 'no', ''])('reads no file for webserver_verify_ca = %j', (value) => {
    expect(check({ 'DEFAULT.webserver_verify_ca': value })()).toEqual([]);
    expect(check({ 'agent.api_ca_file': '' })()).toEqual([]);
  });
});

it('checkOptions() refuses all folders at once that the start cannot create', () => {
  const file = join(folder, 'file');
  writeFileSync(file, '');
  const [root, below] = [file, join(file, 'a', 'b')];
  const options = given({
    'deploy.http_root': root,
    'pxe.tftp_root': below,
    'inventory.data_backend': 'directory',
    'inventory.directory': below,
  });
  const check = (roles: readonly string[]) => () => checkOptions(options, roles, false, join(folder, 'state'));
  const refusal = (name: string, path: string): string =>
    `cannot write ${name} ${path}: ${file} is not a folder: create the folder for the user of the server, or name another one`;
  const inventories = refusal('[inventory]directory', below);
  const all = [refusal('[deploy]http_root', root), refusal('[pxe]tftp_root', below), inventories].join('\n');
  expect(check(['boot', 'conductor'])).toThrow(new StartError(all));
  expect(check(['conductor'])).toThrow(new StartError(inventories));
});

it.each([0, 8443])('[boot]https_port = %s needs a certificate, and the message says how to make one', (port) => {
  const check = (roles: readonly string[]) => () => checkOptions(given({ 'boot.https_port': port }), roles, false, tmpdir());
  expect(check(['boot'])).toThrow(
    /^\[boot\]https_port needs \[boot\]cert_file and \[boot\]key_file\. To make a self-signed certificate: openssl req -x509 .* -keyout key\.pem -out cert\.pem$/,
  );
  expect(check(['conductor'])()).toEqual([]);
});

describe("the API's URL from Keystone's catalog", () => {
  const services = (endpoint: () => Promise<string>, isConfigured = true): Services =>
    ({ service_catalog: { endpoint, isConfigured } }) as unknown as Services;
  const withKeystone = (changes: Partial<LoadedOptions> = {}): LoadedOptions => given({ 'DEFAULT.auth_strategy': 'keystone', ...changes });
  it('has no trailing slashes', async () => {
    expect(
      await catalogUrl(
        withKeystone(),
        services(async () => 'http://api.example/baremetal/'),
      )!(),
    ).toBe('http://api.example/baremetal');
  });
  it('is missing: the error is that of Ironic', async () => {
    const fails = services(async () => Promise.reject(new ServiceError('service_catalog', 'refused', 'no endpoint')));
    await expect(catalogUrl(withKeystone(), fails)!()).rejects.toThrow(
      "Couldn't get the URL of the Ironic API service from the configuration file or keystone catalog. Keystone error: no endpoint",
    );
  });
  it.each<readonly [string, Partial<LoadedOptions>, boolean]>([
    ['the option names it', { 'service_catalog.endpoint_override': 'http://x' }, true],
    ['Keystone is not used', { 'DEFAULT.auth_strategy': 'noauth' }, true],
    ['there are no credentials', {}, false],
  ])('is not looked up when %s', (_name, changes, isConfigured) => {
    expect(
      catalogUrl(
        withKeystone(changes),
        services(async () => '', isConfigured),
      ),
    ).toBeUndefined();
  });
});
