import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { configurationPage, sampleFile } from '../../config/documents';
import { parseIni } from '../../config/ini';
import { ConfigurationError, loadOptions } from '../../config/load';

const folder = mkdtempSync(join(tmpdir(), 'bloomery-config-'));
afterAll(() => rmSync(folder, { recursive: true }));
let files = 0;
const file = (text: string): string => {
  const path = join(folder, `${++files}.conf`);
  writeFileSync(path, text);
  return path;
};
const load = (text: string, environment: Record<string, string> = {}) => loadOptions([file(text)], environment);

describe('the file format', () => {
  it.each([
    ['an equals sign', '[a]\nx = 1', '1'],
    ['a colon', '[a]\nx: 1', '1'],
    ['a value that contains both', '[a]\nx = http://h:1/?a=b', 'http://h:1/?a=b'],
    ['a value that contains a comment sign', '[a]\nx = a;b # c', 'a;b # c'],
    ['a continuation line', '[a]\nx = a,\n  b', 'a,\nb'],
    ['a value in quotes', '[a]\nx = " a "', ' a '],
    ['an empty value', '[a]\nx =', ''],
    ['the last of two values', '[a]\nx = 1\nx = 2', '2'],
    ['lines with carriage returns', '[a]\r\nx = 1\r\n', '1'],
  ])('reads %s', (_, text, value) => {
    expect(parseIni(text).findLast(({ key }) => key === 'x')?.value).toBe(value);
  });

  it.each([
    ['x = 1', 'line 1: an option before the first section'],
    ['[a]\nnothing', 'line 2: neither "name = value" nor a section: nothing'],
    ['[a\n', 'line 1: not a section: [a'],
    ['[a]\n\n  more', 'line 3: a continuation line without an option before it'],
  ])('refuses %j', (text, message) => {
    expect(() => parseIni(text)).toThrow(message);
  });
});

describe('options', () => {
  it('have defaults and types, and replace references to other options', () => {
    const { options, warnings } = load(
      '[DEFAULT]\nmy_ip = 10.0.0.1\nenabled_hardware_types = ipmi, fake-hardware,\n[deploy]\nhttp_url = http://$my_ip:${boot.http_port}/\n[pxe]\nloader_file_paths = a:/b,c:/d:e\n[conductor]\nautomated_clean = No',
    );
    expect(options['deploy.http_url']).toBe('http://10.0.0.1:8080/');
    expect(options['DEFAULT.enabled_hardware_types']).toEqual(['ipmi', 'fake-hardware']);
    expect(options['pxe.loader_file_paths']).toEqual({ a: '/b', c: '/d:e' });
    expect(options['conductor.automated_clean']).toBe(false);
    expect(options['api.port']).toBe(6385);
    expect(options['database.connection']).toBeNull();
    expect(warnings).toEqual([]);
  });

  it.each([
    ['', null],
    ['allowed_vlans =', []],
    ['allowed_vlans = 5, 7-8', ['5', '7-8']],
  ])('distinguish an empty list from a missing one where both have a meaning: %j', (text, expected) => {
    expect(load(`[ironic_networking]\n${text}\n`).options['ironic_networking.allowed_vlans']).toEqual(expected);
  });
  it('collect repeated values if the option allows several, and otherwise take the last', () => {
    const [one, other] = ['{"name": "a"}', '{"name": "b"}'];
    const { options } = load(`[inspector]\npci_device_alias = ${one}\npci_device_alias = ${other}\nadd_ports = all\nadd_ports = pxe\n`);
    expect(options['inspector.pci_device_alias']).toEqual([one, other]);
    expect(options['inspector.add_ports']).toBe('pxe');
  });
  it('replace $default_hooks in [inspector]hooks', () => {
    const hooks = (text: string) => load(`[inspector]\n${text}`).options['inspector.hooks'];
    const usual = ['ramdisk-error', 'validate-interfaces', 'ports', 'architecture'];
    expect(hooks('hooks = $default_hooks,memory')).toEqual([...usual, 'memory']);
    expect(hooks('default_hooks = cpus\nhooks = $default_hooks,memory')).toEqual(['cpus', 'memory']);
    expect(hooks('default_hooks = cpus')).toEqual(['cpus']);
  });

  it('prefer environment variables to files, and later files to earlier ones', () => {
    const first = file('[api]\nport = 1\nmax_limit = 5\n');
    const second = file('[api]\nport = 2\n');
    const { options } = loadOptions([first, second], { OS_API__MAX_LIMIT: '7' });
    expect([options['api.port'], options['api.max_limit']]).toEqual([2, 7]);
  });

  it('are accepted under their former names', () => {
    const timeout = (text: string) => load(text).options['conductor.graceful_shutdown_timeout'];
    expect(load('[DEFAULT]\ngraceful_shutdown_timeout = 7').warnings).toEqual([]);
    expect([
      timeout('[DEFAULT]\ngraceful_shutdown_timeout = 7'),
      timeout('[DEFAULT]\ngraceful_shutdown_timeout = 7\n[conductor]\ngraceful_shutdown_timeout = 8'),
    ]).toEqual([7, 8]);
    expect(() => load('[DEFAULT]\ngraceful_shutdown_timeout = x')).toThrow(/line 2: option \[conductor\]graceful_shutdown_timeout "x"/);
  });
  // The deprecated names of Ironic 2024.1 and 39, of the sections that exist here.
  it.each<readonly [section: string, former: string, name: string, text: string, value: unknown]>([
    ['[api]', 'tls_ciphers', 'api.server_tls_ciphers', 'x', 'x'],
    ['[api]', 'tls_minimum_version', 'api.server_tls_minimum_version', '1.2', '1.2'],
    ['[conductor]', 'configdrive_use_swift', 'deploy.configdrive_use_object_store', 'true', true],
    ['[conductor]', 'send_sensor_data', 'sensor_data.send_sensor_data', 'true', true],
    ['[conductor]', 'send_sensor_data_for_undeployed_nodes', 'sensor_data.enable_for_undeployed_nodes', 'true', true],
    ['[conductor]', 'send_sensor_data_interval', 'sensor_data.interval', '77', 77],
    ['[conductor]', 'send_sensor_data_types', 'sensor_data.data_types', 'Fan', ['Fan']],
    ['[conductor]', 'send_sensor_data_wait_timeout', 'sensor_data.wait_timeout', '77', 77],
    ['[conductor]', 'send_sensor_data_workers', 'sensor_data.workers', '7', 7],
    ['[json_rpc]', 'tls_minimum_version', 'json_rpc.server_tls_minimum_version', '1.2', '1.2'],
    ['[neutron]', 'cleaning_network_uuid', 'neutron.cleaning_network', 'x', 'x'],
    ['[neutron]', 'provisioning_network_uuid', 'neutron.provisioning_network', 'x', 'x'],
    ['[pxe]', 'pxe_append_params', 'pxe.kernel_append_params', 'x', 'x'],
    ...['glance', 'swift', 'cinder', 'nova', 'neutron', 'service_catalog', 'keystone_authtoken'].flatMap(
      (section): readonly (readonly [string, string, string, string, string])[] => [
        [`[${section}]`, 'auth_plugin', `${section}.auth_type`, 'password', 'password'],
        [`[${section}]`, 'tenant_id', `${section}.project_id`, 'x', 'x'],
        [`[${section}]`, 'tenant_name', `${section}.project_name`, 'x', 'x'],
        [`[${section}]`, 'user_name', `${section}.username`, 'x', 'x'],
      ],
    ),
  ])('%s%s is the former name of %s', (section, former, name, text, value) => {
    const { options, warnings } = load(`${section}\n${former} = ${text}`);
    expect(options[name as keyof typeof options]).toEqual(value);
    expect(warnings).toEqual([]);
  });
  it('cause a warning with the reason for each section if they are unknown, and none suggests to open the server', () => {
    const warnings = (text: string) => load(text).warnings.map((line) => line.replace(/ \(\S+ line \d+\)/g, ''));
    expect(warnings('[api]\nnonsense = 1\nprot = 2\nnonsense = 3\n[nowhere]\nmy_ip = 1')).toEqual([
      'without effect: [api]nonsense: it is not known here',
      'without effect: [api]prot: did you mean [api]port?',
      'without effect: [nowhere]my_ip: did you mean [DEFAULT]my_ip?',
    ]);
    expect(
      warnings('[neutron]\nauth_strategy = noauth\n[nowhere]\nauth_strategy = noauth\nenabel_tokens = 1\n[api]\nenabel_tokens = 1'),
    ).toEqual([
      'without effect: [neutron]auth_strategy: Ironic 39 does not have this option either: write [neutron]auth_type, which may be none with endpoint_override',
      'without effect: [nowhere]auth_strategy, [nowhere]enabel_tokens: it is not known here',
      'without effect: [api]enabel_tokens: did you mean [api]enable_tokens?',
    ]);
    expect(
      warnings('[database]\nmax_retries = -1\nconnection_recycle_time = 600\n[DEFAULT]\ntransport_url = rabbit://u:secret@h\n'),
    ).toEqual([
      expect.stringMatching(/^without effect: \[database\]max_retries, \[database\]connection_recycle_time: the connections to PostgreSQL/),
      expect.stringMatching(/^without effect: \[DEFAULT\]transport_url: there is no message queue/),
    ]);
    const many = Array.from({ length: 1000 }, (_, index) => `${'x'.repeat(200)}${index} = 1`).join('\n');
    expect(load(`[api]\n${many}`).warnings).toEqual([expect.stringMatching(/, and 980 more: it is not known here$/)]);
    const sections = Array.from({ length: 100 }, (_, index) => `[section${index}]\nx = 1`).join('\n');
    expect(load(sections).warnings).toHaveLength(51);
  });

  it.each([
    ['[api]\nport = http', /option \[api\]port "http" must be an integer/],
    ['[api]\nport = 70000', /option \[api\]port "70000" must be at most 65535/],
    ['[agent]\nrequire_tls = perhaps', /option \[agent\]require_tls "perhaps" must be true or false/],
    ['[deploy]\ndefault_boot_mode = efi', /must be one of uefi, bios/],
    ...['pxe', 'redfish'].map((section): [string, RegExp] => [
      `[${section}]\nkernel_append_params = a ; b`,
      /must be kernel arguments: key/,
    ]),
    ['[inspector]\nextra_kernel_params = a="b', /must be kernel arguments: key/],
    ['[pxe]\nloader_file_paths = a', /must be key:value pairs/],
    ['[DEFAULT]\nmy_ip = $my_ip', /refers to itself, directly or through other options/],
  ])('refuse %j', (text, message) => {
    expect(() => load(text)).toThrow(message);
    expect(() => load(text)).toThrow(ConfigurationError);
  });
  it('refuse references that would grow without a limit', () => {
    const names = Array.from({ length: 40 }, (_, index) => `x${index}`);
    const lines = names.map((name, index) => `${name} = ${index === 0 ? 'aaaaaaaaaa' : `$x${index - 1}$x${index - 1}`}`);
    expect(() => load(`[DEFAULT]\n${lines.join('\n')}\nhost = $x39\n`)).toThrow(/option \[DEFAULT\]host "\$x39" (?:is too long|refers to)/);
  });
  it('name all invalid values at once', () => {
    expect(() => load('[api]\nport = x\n[agent]\nrequire_tls = y')).toThrow(/\[api\]port "x".*\n.*\[agent\]require_tls "y"/);
  });
  it('refer to values of the host as Ironic does', () => {
    const path = file('[deploy]\nhttp_root = $state_path/httpboot\n[agent]\ndeploy_logs_local_path = ${state_path}/logs\n');
    const { options } = loadOptions([path], {}, { stateDir: '/var/lib/x' });
    expect([options['deploy.http_root'], options['agent.deploy_logs_local_path']]).toEqual(['/var/lib/x/httpboot', '/var/lib/x/logs']);
    expect(load('[DEFAULT]\nstate_path = /y\n[deploy]\nhttp_root = $state_path/h').options['deploy.http_root']).toBe('/y/h');
    expect(() => load('[pxe]\ntftp_server = ${deploy.http_url}')).toThrow(
      /refers to \$deploy\.http_url, which has no value before the start: set/,
    );
    expect(() => load('[deploy]\nhttp_root = $pybasedir/x')).toThrow(/refers to \$pybasedir, which is not an option here/);
    // Ironic's own file: this program has its own.
    const template = load('[pxe]\nipxe_config_template = $pybasedir/drivers/modules/ipxe_config.template');
    expect(template.options['pxe.ipxe_config_template']).toBeNull();
  });

  it('resolve relative policy paths beside a configuration file if they exist there, otherwise beside the last configuration file', () => {
    const [one, other] = [mkdtempSync(join(tmpdir(), 'bloomery-beside-')), mkdtempSync(join(tmpdir(), 'bloomery-beside-'))];
    try {
      const files = [one, other].map((folder) => join(folder, 'ironic.conf'));
      for (const file of files) writeFileSync(file, '[oslo_policy]\npolicy_dirs = /absolute\npolicy_dirs = more.d\n');
      writeFileSync(join(one, 'policy.yaml'), '');
      expect(loadOptions(files, {}).options).toMatchObject({
        'oslo_policy.policy_file': join(one, 'policy.yaml'),
        'oslo_policy.policy_dirs': ['/absolute', join(other, 'more.d'), '/absolute', join(other, 'more.d')],
      });
      writeFileSync(join(other, 'policy.yaml'), '');
      expect(loadOptions(files, {}).options['oslo_policy.policy_file']).toBe(join(other, 'policy.yaml'));
      expect(loadOptions([], {}).options['oslo_policy.policy_file']).toBe('/etc/ironic/policy.yaml');
    } finally {
      for (const folder of [one, other]) rmSync(folder, { recursive: true });
    }
  });

  it('name a configuration file that cannot be read', () => {
    expect(() => loadOptions(['/nonexistent/ironic.conf'], {})).toThrow(/cannot read the configuration file \/nonexistent\/ironic.conf/);
  });
});

it('docs/reference/configuration.md equals the generated page', () => {
  const page = join(__dirname, '../../docs/reference/configuration.md');
  if (process.env['UPDATE_DOCS']) writeFileSync(page, configurationPage());
  expect(readFileSync(page, 'utf8')).toBe(configurationPage());
});

it('sentences of option help have at most 25 words', () => {
  // The page has one sentence of the help on each of these lines.
  const sentences = configurationPage()
    .split('\n')
    .filter((line) => line.startsWith('  '));
  expect(sentences.length).toBeGreaterThan(500);
  expect(sentences.filter((line) => line.trim().split(/\s+/).length > 25)).toEqual([]);
});

it('the sample file loads without warnings', () => {
  expect(load(sampleFile()).warnings).toEqual([]);
});

describe('[dhcp]dhcp_provider', () => {
  const provider = (text: string) => load(text).options['dhcp.dhcp_provider'];
  it.each([
    ['', 'none'],
    ['[neutron]\nauth_type = password', 'neutron'],
    ['[neutron]\nendpoint_override = http://h:9696', 'neutron'],
    ['[neutron]\nauth_type = password\n[DEFAULT]\nenabled_network_interfaces = noop', 'none'],
    ['[neutron]\nauth_type = password\n[dhcp]\ndhcp_provider = none', 'none'],
  ])('is neutron, as in Ironic, where Neutron is configured: %j', (text, expected) => {
    expect(provider(text)).toBe(expected);
  });
});
