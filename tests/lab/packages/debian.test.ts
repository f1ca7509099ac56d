/** The Debian package in a fresh Debian: installed, run as its user with the capabilities of its unit, removed. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, copyFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { needs } from '../support/needs';
import { MAKING_MS, release, startInstalled, useServer } from './release';

const folder = mkdtempSync(join(tmpdir(), 'bloomery-lab-debian-'));
const debian = join(folder, 'root');
const inside = (...words: readonly string[]): string =>
  execFileSync('chroot', [debian, ...words], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
const CAPABILITIES = '+net_bind_service,+net_raw,+net_admin';

beforeAll(async () => {
  needs({ mmdebstrap: 'mmdebstrap', chroot: 'coreutils' });
  const [file] = await release(join(folder, 'out'), ['deb']);
  const packages = 'adduser,libstdc++6,systemd,bash';
  execFileSync('mmdebstrap', ['--quiet', '--variant=minbase', `--include=${packages}`, 'bookworm', debian], { stdio: 'ignore' });
  // The mounts end with the namespace of this part (scripts/testing/contained.mjs).
  execFileSync('mount', ['--bind', '/dev', join(debian, 'dev')]);
  execFileSync('mount', ['-t', 'proc', 'proc', join(debian, 'proc')]);
  mkdirSync(join(debian, 'tmp'), { recursive: true });
  copyFileSync(file!, join(debian, 'tmp/bloomery.deb'));
}, MAKING_MS);
afterAll(() => {
  for (const mounted of ['dev', 'proc']) execFileSync('umount', ['-l', join(debian, mounted)]);
  rmSync(folder, { recursive: true, force: true });
});

it('the Debian package installs files that dpkg verifies', () => {
  inside('dpkg', '--install', '/tmp/bloomery.deb');
  expect(inside('dpkg', '--verify', 'bloomery')).toBe('');
  expect(inside('stat', '-c', '%U:%G %a', '/var/lib/bloomery', '/var/lib/bloomery-images', '/etc/bloomery/ironic.conf')).toBe(
    'bloomery:bloomery 750\nroot:root 755\nroot:bloomery 640\n',
  );
  expect(
    inside(
      'bash',
      '-c',
      'source /usr/share/bash-completion/completions/bloomery; COMP_WORDS=(bloomery db b); COMP_CWORD=2; _bloomery; echo "$COMPREPLY"',
    ),
  ).toBe('backup\n');
});

it('systemd accepts the unit, and rates its exposure at most 3.0', () => {
  inside('systemd-analyze', 'verify', '--man=no', 'bloomery.service');
  // systemd's exposure level is 0 (best) to 10; the threshold is in tenths.
  inside('systemd-analyze', 'security', '--offline=true', '--threshold=30', 'bloomery.service');
});

it('the installed server serves as the user bloomery, with only the capabilities of the unit', async () => {
  const limits = [
    '--bounding-set',
    `-all,${CAPABILITIES}`,
    '--inh-caps',
    `-all,${CAPABILITIES}`,
    '--ambient-caps',
    `-all,${CAPABILITIES}`,
    '--no-new-privs',
  ];
  const user = ['setpriv', '--reuid', 'bloomery', '--regid', 'bloomery', '--init-groups', ...limits];
  const serve = ['/usr/bin/bloomery', 'serve', '--config-file', '/etc/bloomery/ironic.conf', '--state-dir', '/var/lib/bloomery'];
  const server = await startInstalled(['chroot', debian, ...user, ...serve], { OS_API__PORT: '0', OS_BOOT__HTTP_PORT: '0' });
  // Closed by default: the API needs no password, but listens on the loopback address only.
  expect(server.url).toMatch(/^http:\/\/127\.0\.0\.1:/);
  await useServer(server.url);
  expect(await server.stop()).toBe(0);
  expect(inside('stat', '-c', '%U', '/var/lib/bloomery/postgres')).toBe('bloomery\n');
});

it('dpkg --purge removes the files, the configuration and the state', () => {
  inside('dpkg', '--purge', 'bloomery');
  for (const path of ['usr/lib/bloomery', 'usr/bin/bloomery', 'etc/bloomery', 'var/lib/bloomery', 'lib/systemd/system/bloomery.service'])
    expect({ path, exists: existsSync(join(debian, path)) }).toEqual({ path, exists: false });
});
