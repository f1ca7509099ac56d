import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { GUARDED_OPTIONS, refusalsOf } from '../../config/guards';
import { loadOptions } from '../../config/load';
import { formatOptionName } from '../../config/names';
import { OPTIONS, type OptionRow } from '../../config/options';

const folder = mkdtempSync(join(tmpdir(), 'bloomery-guards-'));
afterAll(() => rmSync(folder, { recursive: true }));
const refusals = (text: string, environment: Record<string, string> = {}): readonly string[] => {
  const path = join(folder, 'ironic.conf');
  writeFileSync(path, text);
  return loadOptions([path], environment).refusals;
};

/**
 * Options of Ironic 39.0.0 whose names suggest authentication, TLS, policy, verification, permission or secrets, as oslo-config-generator
 * lists them for `ironic` and the oslo libraries that its ironic.conf.sample covers.
 */
const ironics = readFileSync(join(__dirname, 'ironic-guards.txt'), 'utf8').trim().split('\n');

/** Services that this program never calls or offers: their options protect connections that do not exist. */
const UNUSED = /^\[(?:oslo_messaging_\w+|ironic_networking_json_rpc|ansible)\]/;
/**
 * Ironic's options that only permit more, that authenticate this program at other services, or that something else replaces here → why they
 * have no effect.
 */
const OTHERWISE: Readonly<Record<string, string>> = {
  '[DEFAULT]allow_image_access_via_auth_token': 'opens',
  '[DEFAULT]minimum_required_memory': 'memory for work that agents do here',
  '[agent]certificates_path': 'a folder of files that are made here in memory',
  '[conductor]disable_file_checksum': 'opens',
  '[glance]allowed_direct_url_schemes': 'opens',
  '[json_rpc]allowed_roles': 'each call is signed',
  '[json_rpc]auth_strategy': 'each call is signed',
  '[json_rpc]auth_type': 'each call is signed',
  '[json_rpc]auth_url': 'each call is signed',
  '[json_rpc]http_basic_auth_user_file': 'each call is signed',
  '[json_rpc]password': 'each call is signed',
  '[json_rpc]system_scope': 'each call is signed',
  '[pxe]enable_insecure_template_override': 'opens',
  '[vnc]novnc_auth_schemes': 'it has one value, which opens',
};

const rows: readonly OptionRow[] = OPTIONS;
const effective = new Set(rows.flatMap(({ section, name, formerly = [] }) => [`[${section}]${name}`, ...formerly.map(formatOptionName)]));
const refused = new Set(GUARDED_OPTIONS.map(({ section, name }) => `[${section}]${name ?? ''}`));

it('each security option of Ironic has its effect, refuses the start, or has a reason for neither', () => {
  expect(ironics.length).toBeGreaterThan(200);
  const placed = (option: string): boolean =>
    [effective.has(option), refused.has(option), UNUSED.test(option), option in OTHERWISE].filter(Boolean).length === 1;
  expect(ironics.filter((option) => !placed(option))).toEqual([]);
});

it('GUARDED_OPTIONS names only options of Ironic, and none that has an effect', () => {
  const named = [...refused].filter((option) => !option.endsWith(']'));
  expect(named.filter((option) => effective.has(option))).toEqual([]);
  expect(named.filter((option) => !ironics.includes(option))).toEqual([]);
  expect(Object.keys(OTHERWISE).filter((option) => !ironics.includes(option))).toEqual([]);
});

it.each(GUARDED_OPTIONS.filter(({ name }) => name !== undefined).map((row) => [`[${row.section}]${row.name!}`, row] as const))(
  '%s refuses the start, and its harmless values do not',
  (_, { section, name, harmless = [], instead }) => {
    const one = (value: string): readonly string[] => refusalsOf([{ key: `${section}.${name!}`, value, from: 'a.conf line 1' }]);
    expect(one('/some/thing')).toEqual([
      `a.conf line 1: option [${section}]${name!} is a security option that has no effect here: remove it. Instead: ${instead}`,
    ]);
    expect(['', ...harmless].flatMap(one)).toEqual([]);
  },
);

it('refuses guarded options in files and in environment variables', () => {
  expect(refusals('[DEFAULT]\nmy_ip = 10.0.0.1\n[oslo_policy]\nremote_ssl_ca_crt_file = ca.pem\n')).toEqual([
    expect.stringMatching(/ironic\.conf line 4: option \[oslo_policy\]remote_ssl_ca_crt_file is a security option/),
  ]);
  expect(refusals('', { OS_JSON_RPC__UNIX_SOCKET: '/run/x' })).toEqual([expect.stringMatching(/^OS_JSON_RPC__UNIX_SOCKET: option/)]);
  expect(refusals('[conductor]\nconductor_always_validates_images = No\n')).toEqual([]);
});

it('refuses guarded options of [keystone_authtoken], but not their harmless values', () => {
  const keystone = '[keystone_authtoken]\nwww_authenticate_uri = http://keystone\n';
  expect(refusals(keystone)).toEqual([]);
  expect(refusals(`${keystone}delay_auth_decision = true\nenforce_token_bind = required\n`)).toEqual([
    expect.stringMatching(/\[keystone_authtoken\]delay_auth_decision is a security option/),
    expect.stringMatching(/\[keystone_authtoken\]enforce_token_bind is a security option/),
  ]);
  expect(refusals(`${keystone}delay_auth_decision = false\nenforce_token_bind = permissive\n`)).toEqual([]);
});
