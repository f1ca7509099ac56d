/**
 * A real Keystone 30 (PyPI) on loopback: one process with SQLite, or several that share database and keys, with other settings each.
 * Users, projects, roles, trusts and application credentials are made through its own API.
 */
import { execFile, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { timeoutSignal } from '../../../wire/timeout-signal';
import { endReference } from '../../lab/inspection/real-ironic';
import { programs } from '../../lab/support/venv';
import { freePort } from '../../support/free-port';
import { PASSWORD, REGION, startWsgi, type Body } from './service';

const run = promisify(execFile);
/** The scope of a token, as the Identity API takes it. Absent: none, even if the user has a default project. */
type Scope =
  | { readonly project: { readonly id: string } }
  | { readonly domain: { readonly id: string } }
  | { readonly system: { readonly all: true } }
  | { readonly 'OS-TRUST:trust': { readonly id: string } };

/** What tests do with Keystone, as its administrator unless they name a token. */
interface Identity {
  /** A token of a user, by ID. */
  token(user: string, scope?: Scope): Promise<string>;
  applicationToken(id: string, secret: string): Promise<string>;
  /** Makes the project if there is none, as `role` does. This and the next three answer the ID. */
  project(name: string): Promise<string>;
  /** @param roles names of the roles in that scope: `project ID`, `system` or `domain` */
  user(name: string, roles?: Readonly<Record<string, readonly string[]>>): Promise<string>;
  role(name: string): Promise<string>;
  service(type: string, url: string): Promise<string>;
  assign(user: string, where: string, role: string): Promise<void>;
  unassign(user: string, where: string, role: string): Promise<void>;
  revoke(token: string): Promise<void>;
  /** @returns the body; throws unless the status is 2xx */
  call(method: string, path: string, body?: Body, token?: string): Promise<Body>;
  readonly adminProject: string;
  readonly adminUser: string;
}
export interface RealKeystone {
  /** With /v3. */
  readonly url: string;
  readonly log: string;
  readonly identity: Identity;
  /** Another process on the same database and keys, with other settings: section → option → value. Stopped with the first one. */
  beside(settings: Sections): Promise<{ readonly url: string; readonly identity: Identity }>;
  /** Ends the first process. */
  stop(): Promise<void>;
  /** Starts it again at the same port. */
  start(): Promise<void>;
  close(): Promise<void>;
}
export type Sections = Readonly<Record<string, Readonly<Record<string, string>>>>;

export const writeIni = (file: string, sections: Sections): void =>
  writeFileSync(
    file,
    Object.entries(sections)
      .map(([section, values]) => [`[${section}]`, ...Object.entries(values).map(([name, value]) => `${name} = ${value}`), ''].join('\n'))
      .join('\n'),
  );

interface Reply {
  readonly status: number;
  readonly token: string | null;
  readonly body: Body;
}
async function exchange(url: string, method: string, body?: Body, token?: string, subject?: string): Promise<Reply> {
  const response = await fetch(url, {
    method,
    headers: {
      'content-type': 'application/json',
      // uWSGI closes a connection that is idle, perhaps as the next request comes.
      connection: 'close',
      ...(token === undefined ? {} : { 'x-auth-token': token }),
      ...(subject === undefined ? {} : { 'x-subject-token': subject }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: timeoutSignal(120_000),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${url}: ${response.status} ${text}`);
  return { status: response.status, token: response.headers.get('x-subject-token'), body: text === '' ? {} : (JSON.parse(text) as Body) };
}
const idOf = (body: Body, member: string): string => (body[member] as { readonly id: string }).id;

/** @param url with /v3 */
async function openIdentity(url: string): Promise<Identity> {
  const login = async (identity: Body, scope: Scope | undefined): Promise<Reply> =>
    exchange(`${url}/auth/tokens`, 'POST', { auth: { identity, scope: scope ?? 'unscoped' } });
  const passwordOf = (user: Body): Body => ({ methods: ['password'], password: { user: { ...user, password: PASSWORD } } });
  const named = (name: string): Body => ({ name, domain: { id: 'default' } });
  const first = await login(passwordOf(named('admin')), { project: named('admin') } as unknown as Scope);
  const { user, project } = first.body['token'] as { readonly user: { readonly id: string }; readonly project: { readonly id: string } };
  const system = async (): Promise<string> => (await login(passwordOf({ id: user.id }), { system: { all: true } })).token!;
  let admin = await system();
  const call: Identity['call'] = async (method, path, body, token) => (await exchange(`${url}${path}`, method, body, token ?? admin)).body;
  /** Finds what has a name, or makes it; once for each name. */
  const namedIn = (kind: 'role' | 'project', more: Body): ((name: string) => Promise<string>) => {
    const ids = new Map<string, Promise<string>>();
    const findOrMake = async (name: string): Promise<string> => {
      const found = (await call('GET', `/${kind}s?name=${encodeURIComponent(name)}`))[`${kind}s`] as { id: string }[];
      return found[0]?.id ?? idOf(await call('POST', `/${kind}s`, { [kind]: { name, ...more } }), kind);
    };
    return (name) => {
      const id = ids.get(name) ?? findOrMake(name);
      ids.set(name, id);
      return id;
    };
  };
  const role = namedIn('role', {});
  const placeOf = (where: string): string => {
    if (where === 'system') return '/system';
    return where === 'domain' ? '/domains/default' : `/projects/${where}`;
  };
  const grant = async (method: string, userId: string, where: string, name: string): Promise<void> => {
    await call(method, `${placeOf(where)}/users/${userId}/roles/${await role(name)}`);
  };
  const assign: Identity['assign'] = (userId, where, name) => grant('PUT', userId, where, name);
  return {
    adminProject: project.id,
    adminUser: user.id,
    call,
    role,
    assign,
    unassign: (userId, where, name) => grant('DELETE', userId, where, name),
    token: async (id, scope) => (await login(passwordOf({ id }), scope)).token!,
    applicationToken: async (id, secret) => {
      const identity = { methods: ['application_credential'], application_credential: { id, secret } };
      return (await exchange(`${url}/auth/tokens`, 'POST', { auth: { identity } })).token!;
    },
    project: namedIn('project', { domain_id: 'default' }),
    user: async (name, assigned = {}) => {
      const body = { user: { name, domain_id: 'default', password: PASSWORD } };
      const id = idOf(await call('POST', '/users', body), 'user');
      for (const [where, names] of Object.entries(assigned)) for (const item of names) await assign(id, where, item);
      return id;
    },
    service: async (type, at) => {
      const id = idOf(await call('POST', '/services', { service: { type, name: type } }), 'service');
      for (const item of ['public', 'internal'])
        await call('POST', '/endpoints', { endpoint: { service_id: id, interface: item, region_id: REGION, url: at } });
      return id;
    },
    revoke: async (token) => {
      await exchange(`${url}/auth/tokens`, 'DELETE', undefined, admin, token);
      if (token === admin) admin = await system();
    },
  };
}

const KEY_FOLDERS = ['fernet-keys', 'credential-keys'];
const bootstrapWords = (url: string): string[] => [
  'bootstrap',
  '--bootstrap-password',
  PASSWORD,
  '--bootstrap-region-id',
  REGION,
  ...['public', 'internal', 'admin'].flatMap((item) => [`--bootstrap-${item}-url`, url]),
];

/**
 * The settings of a Keystone whose users and roles do not change during a test. Without a cache, each validation of a token reads all that
 * the token stands for, and several services that validate tokens keep one processor busy.
 */
export const CACHED: Sections = { cache: { enabled: 'true', backend: 'oslo_cache.dict' } };

/**
 * @param folder of its own
 * @param settings over the usual ones
 */
export async function startKeystone(folder: string, settings: Sections = {}): Promise<RealKeystone> {
  const bin = await programs('keystone', ['keystone==30.0.0', 'pyuwsgi==2.0.30.post1']);
  for (const keys of KEY_FOLDERS) {
    mkdirSync(join(folder, keys), { recursive: true });
    chmodSync(join(folder, keys), 0o700);
    for (const name of ['0', '1']) {
      const file = join(folder, keys, name);
      if (!existsSync(file))
        writeFileSync(file, randomBytes(32).toString('base64').replaceAll('+', '-').replaceAll('/', '_'), { mode: 0o600 });
    }
  }
  const log = join(folder, 'keystone.log');
  const usual: Sections = {
    database: { connection: `sqlite:///${join(folder, 'keystone.sqlite')}` },
    token: { provider: 'fernet', expiration: '3600' },
    fernet_tokens: { key_repository: join(folder, 'fernet-keys') },
    fernet_receipts: { key_repository: join(folder, 'fernet-keys') },
    credential: { key_repository: join(folder, 'credential-keys') },
    // Revocations and changes take effect at once, in every process.
    cache: { enabled: 'false' },
    identity: { password_hash_rounds: '4' },
  };
  const write = (name: string, settings: Sections): string => {
    const file = join(folder, `${name}.conf`);
    const sections = [...new Set([...Object.keys(usual), ...Object.keys(settings)])];
    writeIni(file, Object.fromEntries(sections.map((section) => [section, { ...usual[section], ...settings[section] }])));
    return file;
  };
  const serve = (file: string, port: number): Promise<ChildProcess> =>
    startWsgi({
      name: 'Keystone',
      bin,
      module: 'keystone.wsgi.api',
      port,
      log,
      url: `http://127.0.0.1:${port}/v3`,

      env: { OS_KEYSTONE_CONFIG_FILES: file, OS_KEYSTONE_CONFIG_DIR: folder },
    });
  const main = write('keystone', settings);
  const port = await freePort();
  const url = `http://127.0.0.1:${port}/v3`;
  const manage = (...words: string[]) => run(join(bin, 'keystone-manage'), ['--config-file', main, ...words], { timeout: 600_000 });
  await manage('db_sync');
  await manage(...bootstrapWords(url));
  let child = await serve(main, port);
  const others: ChildProcess[] = [];
  return {
    url,
    log,
    identity: await openIdentity(url),
    beside: async (settings) => {
      const at = await freePort();
      others.push(await serve(write(`beside-${at}`, settings), at));
      const besideUrl = `http://127.0.0.1:${at}/v3`;
      return { url: besideUrl, identity: await openIdentity(besideUrl) };
    },
    stop: () => endReference(child),
    start: async () => {
      child = await serve(main, port);
    },
    close: async () => {
      for (const other of [child, ...others]) await endReference(other);
    },
  };
}
