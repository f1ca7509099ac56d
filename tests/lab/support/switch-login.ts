/** An SSH server in the namespace of a lab: the login of a switch that Open vSwitch is. */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { until, type Lab } from './machines';

const run = promisify(execFile);
export const SSH_PORT = 2222;

export interface SwitchLogin {
  /** The private key of root. */
  readonly key: string;
  start(): Promise<void>;
  stop(): Promise<void>;
  /** How often someone logged in. */
  logins(): number;
}

/** @param switchFolder of Open vSwitch, whose tools logins use */
export async function prepareSwitchLogin(lab: Lab, switchFolder: string): Promise<SwitchLogin> {
  const folder = join(lab.folder, 'ssh');
  mkdirSync(folder);
  const [key, hostKey, authorized] = ['key', 'host-key', 'authorized'].map((name) => join(folder, name)) as [string, string, string];
  for (const file of [key, hostKey]) await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', file]);
  copyFileSync(`${key}.pub`, authorized);
  const configuration = join(folder, 'sshd_config');
  const lines = [
    ...[`Port ${SSH_PORT}`, 'ListenAddress 127.0.0.1', `HostKey ${hostKey}`, `AuthorizedKeysFile ${authorized}`, 'UsePAM no'],
    ...['PasswordAuthentication no', 'PermitRootLogin yes', 'StrictModes no', 'PidFile none'],
    `SetEnv OVS_RUNDIR=${switchFolder} PATH=/usr/sbin:/usr/bin:/sbin:/bin`,
  ];
  writeFileSync(configuration, `${lines.join('\n')}\n`);
  mkdirSync('/run/sshd', { recursive: true });
  let child: ReturnType<Lab['start']> | undefined;
  let log = '';
  return {
    key,
    start: async () => {
      log = '';
      child = lab.start('/usr/sbin/sshd', '-D', '-e', '-f', configuration);
      child.stderr!.on('data', (data: Buffer) => (log += data.toString()));
      await until(
        60,
        () => `sshd: ${log}`,
        () => log.includes('Server listening'),
      );
    },
    stop: async () => {
      const ended = once(child!, 'exit');
      child!.kill();
      await ended;
      // Sessions have processes of their own.
      await lab.exec(
        'sh',
        '-c',
        'ip netns pids "$0" | xargs -r ps -o pid=,args= -p | awk \'/sshd: root/ {print $1}\' | xargs -r kill',
        lab.namespace,
      );
    },
    logins: () => log.split('Accepted publickey').length - 1,
  };
}
