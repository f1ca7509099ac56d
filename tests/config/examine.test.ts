import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { examine, type ExaminedOption } from '../../config/examine';
import { readConfiguration } from '../../config/load';

const folder = mkdtempSync(join(tmpdir(), 'bloomery-examine-'));
afterAll(() => rmSync(folder, { recursive: true }));
const path = join(folder, 'ironic.conf');
const examined = (text: string, environment: Record<string, string> = {}): readonly ExaminedOption[] => {
  writeFileSync(path, text);
  return examine(readConfiguration([path], environment));
};

it.each<[string, ExaminedOption['result'], RegExp | null]>([
  ['[api]\nport = 6385', 'works', null],
  ['[DEFAULT]\nlogdir = /var/log', 'works', /^this name is deprecated: write \[DEFAULT\]log_dir$/],
  ['[api]\ntls_minimum_version = 1.2', 'works', /write \[api\]server_tls_minimum_version$/],
  ['[neutron]\ncleaning_network_uuid = x', 'works', /write \[neutron\]cleaning_network$/],
  ['[pxe]\npxe_append_params = x', 'works', /write \[pxe\]kernel_append_params$/],
  ['[api]\nport = many', 'refused', /^"many" must be an integer$/],
  ['[api]\ntls_minimum_version = 1.0', 'refused', /^"1.0" must be one of/],
  ['[keystone_authtoken]\nmemcache_secret_key = x', 'no effect', null],
  ['[cinder]\nretries = 4', 'no effect', /^see status_code_retries$/],
  ['[neutron]\nretries = 4', 'no effect', /^see status_code_retries$/],
  ['[api]\npublik_endpoint = x', 'no effect', /^did you mean \[api\]public_endpoint\?$/],
  ['[pxe]\nimages_path = x', 'no effect', /^there is one cache, that of the HTTP boot service$/],
  ['[ironic_networking]\nrpc_transport = x', 'no effect', /^the conductor itself drives the switches$/],
  ['[glance]\nallowed_direct_url_schemes = file', 'no effect', /^images are read by Glance's API$/],
  ['[vnc]\nnovnc_web = x', 'no effect', /^the program contains noVNC$/],
  ['[nothing]\nlike_this = x', 'no effect', /^it is not known here$/],
  ['[agent]\ntls_ciphers = x', 'refused', /^it is a security option that has no effect here. Instead: set the limit/],
  ['[oslo_policy]\nremote_ssl_verify_server_crt = false', 'no effect', /^its value is what happens anyway$/],
])('the result of %j is "%s"', (text, result, message) => {
  expect(examined(text)).toEqual([
    expect.objectContaining({
      result,
      from: `${path} line 2`,
      message: message === null ? null : (expect.stringMatching(message) as unknown),
    }),
  ]);
});

it('a deprecated name beside the option itself has no effect', () => {
  const both = examined('[DEFAULT]\nlogdir = /a\nlog_dir = /b');
  expect(both.map(({ option, result }) => [option, result])).toEqual([
    ['[DEFAULT]logdir', 'no effect'],
    ['[DEFAULT]log_dir', 'works'],
  ]);
});

it('examines environment variables as well', () => {
  expect(examined('', { OS_API__PORT: '1', OS_AGENT__TLS_CIPHERS: 'x' })).toEqual([
    { option: '[api]port', from: 'OS_API__PORT', result: 'works', message: null },
    expect.objectContaining({ option: '[agent]tls_ciphers', from: 'OS_AGENT__TLS_CIPHERS', result: 'refused' }),
  ]);
});

it('shows no secret', () => {
  expect(
    JSON.stringify(examined('[keystone_authtoken]\npassword = hush\nmemcache_secret_key = hush\n[metrics]\nprometheus_port = x')),
  ).not.toContain('hush');
});
