import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadOptions } from '../config/load';
import type { LoadedOptions } from '../config/options';
import { catalogUrl, checkOptions, resolveOptions, StartError } from '../settings';
import { ServiceError, type Services } from '../wire/keystone/services';

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

describe('checkOptions() on files of certificate authorities', () => {
  const check = (changes: Partial<LoadedOptions>) => () => checkOptions(given(changes), ['boot', 'conductor'], false, '/state');
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

it.each([0, 8443])('[boot]https_port = %s needs a certificate, and the message says how to make one', (port) => {
  const check = (roles: readonly string[]) => () => checkOptions(given({ 'boot.https_port': port }), roles, false, '/state');
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
