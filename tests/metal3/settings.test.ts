/** ironic.conf, made from the environment that ironic-standalone-operator writes. */
import { loadOptions } from '../../config/load';
import { OPTIONS } from '../../config/options';
import { parseIni } from '../../config/ini';
import { httpdPorts } from '../../metal3/containers';
import { Metal3Error, contextOf, type Environment, type ContainerContext } from '../../metal3/container-context';
import { checkVariables, configurationFile, ironicSettings } from '../../metal3/settings';
import { FIXED_SETTINGS, leastVersion, VARIABLES } from '../../metal3/variables';
import { readFileSync, rmSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The variables that the operator always writes. */
const POD: Environment = {
  IRONIC_LISTEN_PORT: '6385',
  IRONIC_ACCESS_PORT: '6385',
  HTTP_PORT: '6180',
  LISTEN_ALL_INTERFACES: 'true',
  PROVISIONING_IP: '172.22.0.2',
  IRONIC_USE_MARIADB: 'false',
  IRONIC_EXPOSE_JSON_RPC: 'false',
  IRONIC_JSON_RPC_PORT: '6189',
};
const PASSWORD: Environment = { IRONIC_HTPASSWD: `admin:$2a$10$${'a'.repeat(53)}` };
const PROXY: Environment = { IRONIC_PRIVATE_PORT: 'unix', IRONIC_REVERSE_PROXY_SETUP: 'true', VMEDIA_TLS_PORT: '6183' };
const API_TLS = ['/certs/ironic/tls.crt', '/certs/ironic/tls.key'];
const MEDIA_TLS = ['/certs/vmedia/tls.crt', '/certs/vmedia/tls.key'];
const RAMDISK = ['/shared/html/images/ironic-python-agent.kernel', '/shared/html/images/ironic-python-agent.initramfs'];

const contextWith = (environment: Environment, files: readonly string[] = [], ip = '172.22.0.2'): ContainerContext =>
  contextOf(environment, { ip, hasIpv6: true, exists: (path) => files.includes(path) });
const settingsOf = (more: Environment = {}, files: readonly string[] = [], ip = '172.22.0.2') =>
  ironicSettings({ ...POD, ...more }, contextWith({ ...POD, ...more }, files, ip)).settings;

const folder = mkdtempSync(join(tmpdir(), 'bloomery-metal3-'));
afterAll(() => rmSync(folder, { recursive: true }));

it.each<[string, Environment, readonly string[], Readonly<Record<string, string | undefined>>]>([
  ['a password', PASSWORD, [], { 'DEFAULT.auth_strategy': 'http_basic', 'DEFAULT.http_basic_auth_user_file': '/conf/ironic/htpasswd' }],
  ['the old name of the password', { HTTP_BASIC_HTPASSWD: 'a:b' }, [], { 'DEFAULT.auth_strategy': 'http_basic' }],
  ['a mounted file of users', {}, ['/auth/ironic/htpasswd'], { 'DEFAULT.auth_strategy': 'http_basic' }],
  ['no password', {}, [], { 'DEFAULT.auth_strategy': 'noauth', 'api.host_ip': '::', 'api.port': '6385' }],
  [
    'TLS behind httpd',
    PROXY,
    [...API_TLS, ...MEDIA_TLS],
    {
      'DEFAULT.auth_strategy': 'noauth',
      'api.unix_socket': '/shared/ironic.sock',
      'api.unix_socket_mode': '666',
      'api.host_ip': undefined,
      'api.enable_ssl_api': undefined,
      'api.public_endpoint': 'https://172.22.0.2:6385',
      'service_catalog.endpoint_override': 'https://172.22.0.2:6385',
      'deploy.http_url': 'http://172.22.0.2:6180',
      'deploy.external_http_url': 'https://172.22.0.2:6183',
      'agent.api_ca_file': '/conf/ipa-tls.pem',
    },
  ],
  [
    'a port behind httpd',
    { IRONIC_REVERSE_PROXY_SETUP: 'true', IRONIC_PRIVATE_PORT: '6388' },
    API_TLS,
    { 'api.host_ip': '127.0.0.1', 'api.port': '6388' },
  ],
  [
    'TLS of its own',
    { ...PASSWORD, IRONIC_SSL_PROTOCOL: '-ALL +TLSv1.3', IRONIC_TLS_12_CIPHERS: 'ECDHE-RSA-AES256-GCM-SHA384' },
    API_TLS,
    {
      'DEFAULT.auth_strategy': 'http_basic',
      'api.enable_ssl_api': 'true',
      'api.cert_file': '/certs/ironic/tls.crt',
      'api.server_tls_minimum_version': '1.3',
      'api.server_tls_ciphers': 'ECDHE-RSA-AES256-GCM-SHA384',
    },
  ],
  ['one address only', { LISTEN_ALL_INTERFACES: 'false' }, [], { 'api.host_ip': '172.22.0.2', 'json_rpc.host_ip': '172.22.0.2' }],
  [
    'a ramdisk in the volume',
    {},
    RAMDISK,
    { 'conductor.deploy_kernel': `file://${RAMDISK[0]!}`, 'conductor.deploy_ramdisk': `file://${RAMDISK[1]!}` },
  ],
  [
    'ramdisks by architecture',
    {
      DEPLOY_KERNEL_BY_ARCH: 'x86_64:http://192.0.2.1/k,aarch64:http://192.0.2.1/only-a-kernel',
      DEPLOY_RAMDISK_BY_ARCH: 'x86_64:http://192.0.2.1/r',
    },
    [],
    { 'conductor.deploy_kernel_by_arch': 'x86_64:http://192.0.2.1/k', 'conductor.deploy_ramdisk_by_arch': 'x86_64:http://192.0.2.1/r' },
  ],
  ['a kernel without its initramfs', {}, RAMDISK.slice(0, 1), { 'conductor.deploy_kernel': undefined }],
  ['another kernel by URL', { DEPLOY_KERNEL_URL: 'http://192.0.2.1/k' }, RAMDISK, { 'conductor.deploy_kernel': 'http://192.0.2.1/k' }],
  [
    'a boot loader',
    {},
    ['/usr/lib/grub/x86_64-efi/monolithic/gcdx64.efi'],
    { 'conductor.bootloader': 'file:///usr/lib/grub/x86_64-efi/monolithic/gcdx64.efi' },
  ],
  [
    'kernel arguments',
    {
      IRONIC_KERNEL_PARAMS: 'console=ttyS0',
      IRONIC_RAMDISK_SSH_KEY: 'ssh-ed25519 AAAA a',
      IRONIC_IPA_COLLECTORS: 'default',
      IRONIC_ENABLE_VLAN_INTERFACES: 'eth0.4',
    },
    [],
    {
      'pxe.kernel_append_params':
        'nofb nomodeset vga=normal ipa-insecure=1 sshkey="ssh-ed25519 AAAA a" console=ttyS0 systemd.journald.forward_to_console=yes',
      'inspector.extra_kernel_params':
        'ipa-inspection-collectors=default ipa-enable-vlan-interfaces=eth0.4 ipa-inspection-dhcp-all-interfaces=1 ipa-collect-lldp=1',
    },
  ],
  ['fast track off', { IRONIC_FAST_TRACK: 'false' }, [], { 'deploy.fast_track': 'false', 'inspector.power_off': 'true' }],
  ['fast track', {}, [], { 'deploy.fast_track': 'true', 'inspector.power_off': 'false', 'inspector.hooks': '$default_hooks,parse-lldp' }],
  ['no LLDP', { IRONIC_IPA_COLLECT_LLDP: '0' }, [], { 'inspector.hooks': '$default_hooks' }],
  ['no cleaning', { IRONIC_AUTOMATED_CLEAN: 'false' }, [], { 'conductor.automated_clean': 'false' }],
  ['discovery', { IRONIC_ENABLE_DISCOVERY: 'true' }, [], { 'auto_discovery.enabled': 'true', 'auto_discovery.driver': 'ipmi' }],
  [
    'an outside address',
    { IRONIC_EXTERNAL_IP: '203.0.113.9' },
    [],
    { 'deploy.external_callback_url': 'http://203.0.113.9:6385', 'deploy.external_http_url': 'http://203.0.113.9:6180' },
  ],
  [
    'outside URLs',
    { IRONIC_EXTERNAL_CALLBACK_URL: 'https://a.example', IRONIC_EXTERNAL_HTTP_URL: 'https://b.example' },
    MEDIA_TLS,
    { 'deploy.external_callback_url': 'https://a.example', 'deploy.external_http_url': 'https://b.example' },
  ],
  [
    'CA certificates',
    { WEBSERVER_CACERT_FILE: '/certs/ca/trusted/ca.crt' },
    ['/certs/ca/bmc'],
    {
      'DEFAULT.webserver_verify_ca': '/certs/ca/trusted/ca.crt',
      'agent.api_ca_file': '/conf/ipa-tls.pem',
      'redfish.verify_ca': '/certs/ca/bmc',
    },
  ],
  ['no verification', { IRONIC_INSECURE: 'true' }, [], { 'DEFAULT.webserver_verify_ca': 'False', 'json_rpc.insecure': 'true' }],
  [
    'sensors',
    { SEND_SENSOR_DATA: 'true' },
    [],
    { 'sensor_data.send_sensor_data': 'true', 'metrics.prometheus_unix_socket': '/shared/bloomery-metrics.sock' },
  ],
  [
    'several conductors',
    { IRONIC_EXPOSE_JSON_RPC: 'true', OS_DATABASE__CONNECTION: 'postgresql://db/ironic' },
    API_TLS,
    {
      'DEFAULT.rpc_transport': 'json-rpc',
      'json_rpc.port': '6189',
      'json_rpc.use_ssl': 'true',
      'json_rpc.cafile': '/certs/ironic/tls.crt',
    },
  ],
  ['other folders', { CUSTOM_CONFIG_DIR: '/c', ...PASSWORD }, [], { 'DEFAULT.http_basic_auth_user_file': '/c/ironic/htpasswd' }],
])('translates %s to options', (_, environment, files, expected) => {
  expect(settingsOf(environment, files)).toMatchObject(
    Object.fromEntries(Object.entries(expected).filter(([, value]) => value !== undefined)),
  );
  const settings = settingsOf(environment, files);
  for (const [key, value] of Object.entries(expected)) expect([key, settings[key]]).toEqual([key, value]);
});

it('finds the secrets of registries', () => {
  expect(settingsOf()).not.toHaveProperty(['oci.authentication_config']);
  expect(settingsOf({}, ['/auth/oci.json'])).toMatchObject({ 'oci.authentication_config': '/auth/oci.json' });
  expect(settingsOf({ IRONIC_OCI_AUTH_CONFIG: '/x.json' })).toMatchObject({ 'oci.authentication_config': '/x.json' });
});

it('writes IPv6 addresses in brackets', () => {
  expect(settingsOf({ PROVISIONING_IP: 'fd00::2' }, MEDIA_TLS, 'fd00::2')).toMatchObject({
    'DEFAULT.my_ipv6': 'fd00::2',
    'DEFAULT.host': '[fd00::2]',
    'deploy.http_url': 'http://[fd00::2]:6180',
    'deploy.external_http_url': 'https://[fd00::2]:8083',
  });
});

it.each<[string, Environment, readonly string[], RegExp]>([
  ['MariaDB', { IRONIC_USE_MARIADB: 'true', MARIADB_HOST: 'db' }, [], /^IRONIC_USE_MARIADB: Bloomery has no MariaDB/],
  ['calls between processes without a shared database', { IRONIC_EXPOSE_JSON_RPC: 'true' }, [], /^IRONIC_EXPOSE_JSON_RPC: /],
  [
    'several conductors without a shared database',
    { IRONIC_DEPLOYMENT: 'Conductor', IRONIC_EXPOSE_JSON_RPC: '' },
    [],
    /^IRONIC_EXPOSE_JSON_RPC: /,
  ],
  ['the networking service', { IRONIC_NETWORKING_ENABLED: 'true' }, [], /^IRONIC_NETWORKING_ENABLED: /],
  ['TLS curves', { IRONIC_TLS_CURVES: 'X25519' }, [], /^IRONIC_TLS_CURVES: /],
  ['TLS before 1.2', { IRONIC_SSL_PROTOCOL: '-ALL +TLSv1.1' }, [], /^IRONIC_SSL_PROTOCOL: it must allow/],
  ['an unknown protection', { IRONIC_TLS_CLIENT_VERIFY: 'true' }, [], /^IRONIC_TLS_CLIENT_VERIFY: it is a security setting/],
  ['a proxy without a certificate', { IRONIC_REVERSE_PROXY_SETUP: 'true' }, [], /^IRONIC_REVERSE_PROXY_SETUP is true, and \/certs\/ironic/],
  ['a proxy with a password and no certificate', { IRONIC_REVERSE_PROXY_SETUP: 'true', ...PASSWORD }, [], /^IRONIC_REVERSE_PROXY_SETUP/],
  ['media with TLS and no certificate', PROXY, API_TLS, /^VMEDIA_TLS_PORT is set, and \/certs\/vmedia/],
  ['several unsupported features, and names all of them', { IRONIC_TLS_CURVES: 'x', IPXE_AUTH: 'x' }, [], /IPXE_AUTH[^]*IRONIC_TLS_CURVES/],
])('refuses variables for %s', (_, environment, files, message) => {
  expect(() => settingsOf(environment, files)).toThrow(Metal3Error);
  expect(() => settingsOf(environment, files)).toThrow(message);
});

it('httpd refuses a proxy without a certificate too, and dnsmasq, which has none, does not', () => {
  const environment = { ...POD, ...PROXY, ...PASSWORD };
  const log = {} as Parameters<typeof httpdPorts>[2];
  expect(() => httpdPorts(environment, contextWith(environment), log)).toThrow(/^IRONIC_REVERSE_PROXY_SETUP[^]*VMEDIA_TLS_PORT/);
  expect(checkVariables(environment, contextWith(environment))).toEqual([]);
});

it.each<[string, readonly string[], string]>([
  ['a certificate without its key', ['/certs/ironic/tls.crt'], '/certs/ironic has tls.crt only'],
  ['a key without its certificate', ['/certs/vmedia/tls.key'], '/certs/vmedia has tls.key only'],
  ['a CA without a certificate', ['/certs/ca/ironic/tls.crt'], 'asks for TLS'],
  ['TLS of iPXE', ['/certs/ipxe/tls.crt', '/certs/ipxe/tls.key'], 'is not supported'],
])('refuses %s', (_, files, message) => {
  expect(() => contextWith(POD, files)).toThrow(message);
});

it('warns about unknown variables of Ironic that protect nothing, but not about those of other programs', () => {
  const environment = { ...POD, IRONIC_COLOUR: 'red', KUBERNETES_PORT: '1', PATH: '/bin', OS_API__MAX_LIMIT: '1' };
  expect(checkVariables(environment, contextWith(environment))).toEqual([
    'variables that are not known here and have no effect: IRONIC_COLOUR',
  ]);
});

it('writes a configuration file that the server loads without warnings', () => {
  const environment = { ...POD, ...PROXY, ...PASSWORD, IRONIC_RAMDISK_SSH_KEY: 'ssh-ed25519 $home' };
  const { settings } = ironicSettings(environment, contextWith(environment, [...API_TLS, ...MEDIA_TLS, ...RAMDISK]));
  const file = join(folder, 'ironic.conf');
  writeFileSync(file, configurationFile(settings));
  const { options, warnings, refusals } = loadOptions([file], { OS_API__MAX_LIMIT: '7' });
  expect({ warnings, refusals }).toEqual({ warnings: [], refusals: [] });
  expect(options).toMatchObject({
    'api.unix_socket_mode': 0o666,
    'api.max_limit': 7,
    'inspector.hooks': ['ramdisk-error', 'validate-interfaces', 'ports', 'architecture', 'parse-lldp'],
  });
  expect(options['pxe.kernel_append_params']).toContain('sshkey="ssh-ed25519 $home"');
  expect(parseIni(readFileSync(file, 'utf8'))).toHaveLength(Object.keys(settings).length);
});

it('sets only options that exist', () => {
  const known = new Set(OPTIONS.map(({ section, name }) => `${section}.${name}`));
  expect(Object.keys(FIXED_SETTINGS).filter((key) => !known.has(key))).toEqual([]);
});

it('docs/metal3.md explains each variable', () => {
  const page = readFileSync(join(__dirname, '../../docs/metal3.md'), 'utf8');
  expect(VARIABLES.map(({ name }) => name).filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
  expect(new Set(VARIABLES.map(({ name }) => name)).size).toBe(VARIABLES.length);
});

it('refuses values of several lines', () => {
  expect(() => configurationFile({ 'pxe.kernel_append_params': 'a\n[api]' })).toThrow('more than one line');
});

it.each([
  ['', '1.2'],
  ['-ALL +TLSv1.2 +TLSv1.3', '1.2'],
  ['+TLSv1.3', '1.3'],
  ['ALL -TLSv1.2', '1.3'],
  ['all', '1.2'],
  ['-ALL', undefined],
  ['TLSv1 TLSv1.1', undefined],
])('leastVersion() reads %p of IRONIC_SSL_PROTOCOL as %s', (text, least) => {
  expect(leastVersion(text)).toBe(least);
});
