/** IPMI BMCs that we did not write in front of domains of a libvirtd: virtualbmc. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort } from '../../support/free-port';
import { until } from '../../../demo/lab/machines';
import { programs } from '../support/venv';

const run = promisify(execFile);

export interface VirtualBmc {
  /** Starts a BMC in front of the domain, at this port of the lab's address. */
  add(domain: string, port: number): Promise<{ readonly username: string; readonly password: string }>;
  stop(): Promise<void>;
}

/**
 * @param lab the namespace (absent: this one), the address in it for the BMCs, and a folder for all files
 * @param uri of the libvirtd
 */
export async function startVirtualBmc(
  lab: { readonly namespace?: string; readonly address: string; readonly folder: string },
  uri: string,
): Promise<VirtualBmc> {
  const bin = await programs('virtualbmc', ['virtualbmc==3.3.0'], true);
  const folder = join(lab.folder, 'virtualbmc');
  mkdirSync(folder, { recursive: true });
  const config = join(folder, 'virtualbmc.conf');
  writeFileSync(
    config,
    `[default]\nconfig_dir = ${folder}\npid_file = ${folder}/pid\nserver_port = ${await freePort()}\nshow_passwords = false\n`,
  );
  const env = { ...process.env, VIRTUALBMC_CONFIG: config };
  const log = join(folder, 'vbmcd.log');
  const output = openSync(log, 'a');
  const inside = lab.namespace === undefined ? ['env'] : ['ip', 'netns', 'exec', lab.namespace];
  const [program, ...before] = inside as [string, ...string[]];
  const child = spawn(program, [...before, join(bin, 'vbmcd'), '--foreground'], { stdio: ['ignore', output, output], env });
  const ended = once(child, 'exit');
  const vbmc = (...words: string[]): Promise<unknown> => run(program, [...before, join(bin, 'vbmc'), ...words], { env, timeout: 120_000 });
  const stop = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) child.kill();
    await ended;
  };
  try {
    await until(
      240,
      () => `vbmcd to answer\n${readFileSync(log, 'utf8').slice(-3000)}`,
      () =>
        vbmc('list').then(
          () => true,
          () => false,
        ),
    );
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    add: async (domain, port) => {
      const access = { username: 'admin', password: 'password' };
      const words = ['--username', access.username, '--password', access.password, '--libvirt-uri', uri];
      await vbmc('add', domain, '--address', lab.address, '--port', String(port), ...words);
      await vbmc('start', domain);
      return access;
    },
    stop,
  };
}
