/** What the services of an OpenStack in tests have in common: their process, the section that authenticates to Keystone, their client. */
import { spawn, type ChildProcess } from 'node:child_process';
import { openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { timeoutSignal } from '../../../wire/timeout-signal';
import { endReference } from '../../lab/inspection/real-ironic';
import { programs } from '../../lab/support/venv';
import { until } from '../../support/until';

export const PASSWORD = 'a password of tests';
export const REGION = 'RegionTest';

export type Body = Readonly<Record<string, unknown>>;

/** Nova, Glance and Placement, which share most of what they need. */
export const computePrograms = (): Promise<string> =>
  programs('compute', ['nova==34.0.0', 'glance==33.0.0', 'openstack-placement==16.0.0', 'pymysql==1.2.4', 'pyuwsgi==2.0.30.post1']);

interface Program {
  /** For errors. */
  readonly name: string;
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly log: string;
  /** Answers any status below 500 when the service is ready. */
  readonly url: string;
}
/** Starts a service and waits until it answers. Throws with the end of its log when it ends first. */
export async function startService({ name, command, env, log, url }: Program): Promise<ChildProcess> {
  const output = openSync(log, 'a');
  const child = spawn(command[0]!, command.slice(1), { stdio: ['ignore', output, output], env: { ...process.env, ...env } });
  const answers = async (): Promise<boolean> => {
    if (child.exitCode !== null) throw new Error(`${name} ended\n${readFileSync(log, 'utf8').slice(-3000)}`);
    return fetch(url, { signal: timeoutSignal(60_000) }).then(
      ({ status }) => status < 500,
      () => false,
    );
  };
  try {
    await until(`${name} answers`, answers, 500, 900_000);
  } catch (error) {
    await endReference(child);
    throw error;
  }
  return child;
}
/** Serves a WSGI application on loopback, with `sqlite_wsgi.py`. @param bin folder of the programs */
export const startWsgi = ({
  bin,
  module,
  port,
  env,
  ...program
}: Omit<Program, 'command'> & { readonly bin: string; readonly module: string; readonly port: number }): Promise<ChildProcess> =>
  startService({
    ...program,
    env: { ...env, MODULE: module, PYTHONPATH: __dirname },
    command: [
      join(bin, 'uwsgi'),
      '--http-socket',
      `127.0.0.1:${port}`,
      '--module',
      'sqlite_wsgi',
      '--processes',
      '1',
      '--threads',
      '4',
      '--enable-threads',
      '--need-app',
      '--die-on-term',
      '--lazy-apps',
      '--buffer-size',
      '65535',
      '--add-header',
      'Connection: close',
      '--http-chunked-input',
    ],
  });

/** A database in a file. Its default is to fail a writer that waits for five seconds. */
export const sqlite = (file: string): string => `sqlite:///${file}?timeout=120`;

/** The options of a section that authenticates a user of the project `service`. */
const credentialsOf = (keystone: { readonly url: string }, username: string): Readonly<Record<string, string>> => ({
  auth_type: 'password',
  auth_url: keystone.url,
  username,
  password: PASSWORD,
  user_domain_id: 'default',
  project_name: 'service',
  project_domain_id: 'default',
  region_name: REGION,
});
/** The section of a service that another one calls. These services share one small machine, and answer late. */
export const clientSection = (keystone: { readonly url: string }, username: string): Readonly<Record<string, string>> => ({
  ...credentialsOf(keystone, username),
  timeout: '600',
});
/** The section `keystone_authtoken` of a service. */
export const tokenSection = (
  keystone: { readonly url: string },
  username: string,
  serviceType: string,
): Readonly<Record<string, string>> => ({
  ...credentialsOf(keystone, username),
  www_authenticate_uri: keystone.url,
  service_type: serviceType,
  http_connect_timeout: '600',
});

type Call = (method: string, path: string, body?: Body | readonly Body[]) => Promise<Body>;
/** A client of one service with one token. It answers the body, and throws unless the status is 2xx. */
export const callerOf =
  (url: string, token: () => string | Promise<string>, headers: Readonly<Record<string, string>> = {}): Call =>
  async (method, path, body) => {
    const response = await fetch(`${url}${path}`, {
      method,
      // uWSGI closes a connection that is idle, perhaps as the next request comes.
      headers: { 'content-type': 'application/json', connection: 'close', ...headers, 'x-auth-token': await token() },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: timeoutSignal(600_000),
    });
    const answer = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${answer}`);
    return answer === '' ? {} : (JSON.parse(answer) as Body);
  };
