import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bootFiles, BOOT_FILES, OWN_FILES, ownFiles } from '../../config/local-files';
import { loadOptions } from '../../config/load';
import { OPTIONS, type LoadedOptions, type OptionRow } from '../../config/options';
import { checkOptions } from '../../server/setting-checks';

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'bloomery-own-')));
afterAll(() => rmSync(folder, { recursive: true }));
const given = (changes: Partial<LoadedOptions>): LoadedOptions => ({ ...loadOptions([], {}).options, ...changes });

const rows: readonly OptionRow[] = OPTIONS;
const PATH =
  /(?:file|files|dir|dirs|directory|path|paths|root|socket|kernel|ramdisk|bootloader|image|bin|c32|verify_ca|machines|step_log|accelerators|rules|template|boot_script)(?:_by_arch)?$/;
/** Options that look like paths, and that no user must be kept from → why. */
const NEITHER: Readonly<Record<string, string>> = {
  'DEFAULT.state_path': 'other options name what is in it',
  'DEFAULT.grub_config_path': 'a path in generated images',
  'keystone_authtoken.memcache_tls_cafile': 'has no effect',
  'keystone_authtoken.memcache_tls_certfile': 'has no effect',
  'keystone_authtoken.memcache_tls_keyfile': 'has no effect',
  'healthcheck.disable_by_file_path': 'only its existence counts',
  'healthcheck.disable_by_file_paths': 'only their existence counts',
  'healthcheck.enable_by_file_paths': 'only their existence counts',
  'conductor.file_url_allowed_paths': 'what users may read',
  'deploy.http_root': 'served to everybody',
  'pxe.tftp_root': 'served to everybody',
  'pxe.loader_file_paths': 'served to everybody',
  'dnsmasq.dhcp_leasefile': 'has no effect',
  'agent_containers.container_steps_file': 'a path in the ramdisk',
  'nfs.share_path': 'a path on the server of the share',
  'cifs.share_path': 'a path on the server of the share',
};

it('each option that is a path is in OWN_FILES, in BOOT_FILES, or has a reason for neither', () => {
  const placed = new Set<string>([...OWN_FILES, ...BOOT_FILES, ...Object.keys(NEITHER)]);
  const paths = rows.filter(({ name, kind }) => ['string', 'list', 'texts', 'dict'].includes(kind) && PATH.test(name));
  expect(paths.map(({ section, name }) => `${section}.${name}`).filter((key) => !placed.has(key))).toEqual([]);
  const keys = new Set(rows.map(({ section, name }) => `${section}.${name}`));
  expect([...placed].filter((key) => !keys.has(key))).toEqual([]);
});

it('the own files are the state directory, its parts, the configuration, and the files of options', () => {
  const file = join(folder, 'ironic.conf');
  writeFileSync(file, '[ssl]\nkey_file = /srv/tls.key\n[agent]\nverify_ca = True\n[oslo_policy]\npolicy_dirs = /srv/policy\n');
  const own = ownFiles(loadOptions([file], {}).options, '/srv/state');
  expect(own).toEqual(expect.arrayContaining(['/srv/state', '/srv/state/postgres', file, '/srv/tls.key', '/srv/policy']));
  expect(own.every((path) => path.startsWith('/'))).toBe(true);
});

it('boot files are the paths of options, and no URLs', () => {
  const options = given({
    'conductor.deploy_kernel': 'file:///srv/a%20b/../kernel',
    'conductor.deploy_ramdisk': '/srv/ramdisk',
    'conductor.bootloader': 'https://192.0.2.1/esp.img',
    'conductor.rescue_kernel_by_arch': { aarch64: '/srv/arm' },
    'DEFAULT.isolinux_bin': '/srv/isolinux.bin',
  });
  expect([...bootFiles(options)].sort()).toEqual(['/srv/arm', '/srv/isolinux.bin', '/srv/kernel', '/srv/ramdisk']);
});

describe('an allowed folder with files of the server', () => {
  const state = join(folder, 'lib/state');
  mkdirSync(join(state, 'images'), { recursive: true });
  mkdirSync(join(folder, 'lib/images'));
  symlinkSync('lib', join(folder, 'link'));
  const warnings = (allowed: readonly string[], changes: Partial<LoadedOptions> = {}, roles: readonly string[] = ['conductor']) =>
    checkOptions(given({ 'conductor.file_url_allowed_paths': allowed, ...changes }), roles, false, state);
  it.each([
    [join(folder, 'lib'), `contains ${state}, which file:// URLs cannot read`],
    [join(folder, 'link'), `contains ${state}, which file:// URLs cannot read`],
    [state, `is in ${state}, so that all its files are refused`],
    [join(state, 'images'), `is in ${state}, so that all its files are refused`],
    ['/etc/images', 'is in /etc, so that all its files are refused'],
  ])('%s causes a warning', (allowed, problem) => {
    expect(warnings([allowed])).toEqual([
      `[conductor]file_url_allowed_paths: ${allowed} ${problem}: move the images to a folder with nothing else in it, ` +
        'such as /var/lib/bloomery-images, and name that folder instead',
    ]);
  });
  it('is a warning also for other files than the state directory, and only in conductors', () => {
    const images = join(folder, 'lib/images');
    expect(warnings([images])).toEqual([]);
    expect(warnings([images], { 'redfish.verify_ca': join(images, 'ca.pem') })).toEqual([
      expect.stringContaining(`contains ${join(images, 'ca.pem')}`),
    ]);
    expect(warnings([state], {}, ['api'])).toEqual([]);
  });
});
