/** The OCI image, run by crun: a read-only root, the user 997, no capabilities. */
import { execFileSync } from 'node:child_process';
import { chownSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { needs } from '../support/needs';
import { containerCommand, unpackImage, type ImageConfiguration } from './image';
import { MAKING_MS, startInstalled, useServer } from './release';

const folder = mkdtempSync(join(tmpdir(), 'bloomery-lab-image-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let configuration: ImageConfiguration;
beforeAll(async () => {
  needs({ mmdebstrap: 'mmdebstrap', crun: 'crun' });
  configuration = await unpackImage(folder);
  mkdirSync(join(folder, 'state'));
}, MAKING_MS);

it('the container serves as user 997, with a read-only root and without capabilities', async () => {
  const { User: user, Env: env, Entrypoint: entry, Cmd: words, WorkingDir: cwd } = configuration.config;
  expect(user).toBe('997:994');
  chownSync(join(folder, 'state'), 997, 994);
  const command = containerCommand({
    folder,
    name: 'server',
    words: [...entry, ...words],
    cwd,
    mounts: { '/var/lib/bloomery': join(folder, 'state') },
    env: [...env, 'OS_API__PORT=0', 'OS_API__HOST_IP=127.0.0.1', 'OS_BOOT__HTTP_PORT=0', 'OS_BOOT__TFTP=false'],
  });
  const server = await startInstalled(command);
  await useServer(server.url);
  expect(() => execFileSync('test', ['-e', join(folder, 'state/postgres/data/PG_VERSION')])).not.toThrow();
  expect(await server.stop()).toBe(0);
});

it('the container has the recorder', () => {
  const { Env: env } = configuration.config;
  const words = ['bloomery-agent', 'record', '--help'];
  const [program, ...rest] = containerCommand({ folder, name: 'recorder', words, env, mounts: {} });
  expect(execFileSync(program!, rest, { encoding: 'utf8' })).toContain('--config-drive PATH');
});
