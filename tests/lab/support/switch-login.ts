/** An SSH server in the namespace of a lab: the login of a switch, which is Open vSwitch or our own command line. */
import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { until, type Lab } from '../../../demo/lab/machines';

const run = promisify(execFile);
export const SSH_PORT = 2222;

export interface SwitchLogin {
  /** The private key of root. */
  readonly key: string;
  start(): Promise<void>;
  /** The number of logins so far. */
  logins(): number;
}

interface Behind {
  /** The folder of Open vSwitch, whose tools the logins use. */
  readonly switchFolder?: string;
  /** The command that logins run instead of a shell. */
  readonly command?: string;
  readonly port?: number;
}
export async function prepareSwitchLogin(lab: Lab, { switchFolder, command, port = SSH_PORT }: Behind): Promise<SwitchLogin> {
  const folder = join(lab.folder, `ssh-${port}`);
  mkdirSync(folder);
  const [key, hostKey, authorized] = ['key', 'host-key', 'authorized'].map((name) => join(folder, name)) as [string, string, string];
  for (const file of [key, hostKey]) await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', file]);
  copyFileSync(`${key}.pub`, authorized);
  const configuration = join(folder, 'sshd_config');
  const lines = [
    `Port ${port}`,
    'ListenAddress 127.0.0.1',
    `HostKey ${hostKey}`,
    `AuthorizedKeysFile ${authorized}`,
    'UsePAM no',
    'PasswordAuthentication no',
    'PermitRootLogin yes',
    'StrictModes no',
    'PidFile none',
    `SetEnv ${switchFolder === undefined ? '' : `OVS_RUNDIR=${switchFolder} `}PATH=/usr/sbin:/usr/bin:/sbin:/bin`,
    ...(command === undefined ? [] : [`ForceCommand ${command}`]),
  ];
  writeFileSync(configuration, `${lines.join('\n')}\n`);
  mkdirSync('/run/sshd', { recursive: true });
  let log = '';
  return {
    key,
    start: async () => {
      log = '';
      const child = lab.start('/usr/sbin/sshd', '-D', '-e', '-f', configuration);
      child.stderr!.on('data', (data: Buffer) => (log += data.toString()));
      await until(
        60,
        () => `sshd: ${log}`,
        () => log.includes('Server listening'),
      );
    },
    logins: () => log.split('Accepted publickey').length - 1,
  };
}
