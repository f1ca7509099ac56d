/** A MariaDB server (Debian) with a socket and no network, for one test. */
import { execFile, spawn } from 'node:child_process';
import { mkdirSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { until } from '../../support/until';
import { endReference } from '../inspection/real-ironic';

const run = promisify(execFile);

export interface RealMariadb {
  /** Creates an empty database. @returns its URL, for SQLAlchemy */
  create(name: string): Promise<string>;
  close(): Promise<void>;
}

/** @param folder of its own, with a short path: that of the socket has at most 107 bytes */
export async function startMariadb(folder: string): Promise<RealMariadb> {
  mkdirSync(folder, { recursive: true });
  const [data, socket] = [join(folder, 'data'), join(folder, 'socket')];
  await run('mariadb-install-db', [
    '--no-defaults',
    `--datadir=${data}`,
    '--auth-root-authentication-method=normal',
    '--user=root',
    '--skip-test-db',
  ]);
  const words = [
    '--no-defaults',
    `--datadir=${data}`,
    `--socket=${socket}`,
    '--skip-networking',
    '--user=root',
    '--max-connections=1000',
    // The data is not needed after the test.
    '--skip-log-bin',
    '--innodb-flush-log-at-trx-commit=0',
    '--innodb-doublewrite=0',
  ];
  const log = openSync(join(folder, 'log'), 'a');
  const child = spawn('mariadbd', words, { stdio: ['ignore', log, log] });
  const client = (sql: string): Promise<unknown> => run('mariadb', ['--no-defaults', `--socket=${socket}`, '-uroot', '-e', sql]);
  const answers = async (): Promise<boolean> => {
    if (child.exitCode !== null) throw new Error(`MariaDB ended with ${child.exitCode}`);
    return client('SELECT 1').then(
      () => true,
      () => false,
    );
  };
  await until('MariaDB answers', answers, 200);
  return {
    create: async (name) => {
      await client(`CREATE DATABASE ${name} CHARACTER SET utf8mb3`);
      return `mysql+pymysql://root@localhost/${name}?unix_socket=${socket}`;
    },
    close: () => endReference(child),
  };
}
