/** The real kube-apiserver with etcd, built from their Go modules. Objects are stored and checked; no pods run. */
import { execFile, execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { root } from '../../../demo/lab/root';
import { freePort } from '../../support/free-port';
import { until } from '../../support/until';

const run = promisify(execFile);
const KUBERNETES = '1.35.4';
const ETCD = '3.6.5';
/** The CRDs of metal3. */
const OPERATOR = 'github.com/metal3-io/baremetal-operator@v0.13.2';
/** A build takes ten minutes of two processors. */
const BUILD_MS = 3_600_000;
const options = { maxBuffer: 1 << 26, timeout: BUILD_MS };
const environment = { ...process.env, CGO_ENABLED: '0', GOFLAGS: '-buildvcs=false -mod=mod' };

interface Downloaded {
  readonly Dir: string;
  readonly GoMod: string;
}
const download = async (module: string, cwd: string): Promise<Downloaded> =>
  JSON.parse((await run('go', ['mod', 'download', '-json', module], { ...options, cwd })).stdout) as Downloaded;
/** Builds both programs once. @returns their folder */
async function built(): Promise<string> {
  const folder = join(root, '.cache/tools', `kubernetes-${KUBERNETES}`);
  if (['etcd', 'kube-apiserver'].every((name) => existsSync(join(folder, name)))) return folder;
  mkdirSync(folder, { recursive: true });
  // The module is published with its parts replaced by folders beside it, which are modules of the same release.
  const { GoMod: file } = await download(`k8s.io/kubernetes@v${KUBERNETES}`, folder);
  const parts = [...readFileSync(file, 'utf8').matchAll(/^\s*(?:replace\s+)?(k8s\.io\/[\w.-]+)\s+=>\s+\.\/staging\//gm)].map(
    ([, name]) => name!,
  );
  const replaced = parts.map((name) => `replace ${name} => ${name} v${KUBERNETES.replace(/^1/, '0')}`);
  const required = [`require k8s.io/kubernetes v${KUBERNETES}`, `require go.etcd.io/etcd/server/v3 v${ETCD}`];
  writeFileSync(join(folder, 'go.mod'), ['module programs', 'go 1.25.0', ...required, ...replaced, ''].join('\n'));
  for (const [name, path] of [
    ['etcd', 'go.etcd.io/etcd/server/v3'],
    ['kube-apiserver', 'k8s.io/kubernetes/cmd/kube-apiserver'],
  ] as const)
    await run('go', ['build', '-trimpath', '-ldflags', '-s -w', '-o', join(folder, name), path], {
      ...options,
      cwd: folder,
      env: environment,
    });
  return folder;
}

export interface ClusterAnswer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}
export interface Cluster {
  readonly url: string;
  /** The file with the authority of the API server. */
  readonly ca: string;
  /** @param token absent: that of the administrator */
  ask(method: string, path: string, body?: unknown, more?: { readonly type?: string; readonly token?: string }): Promise<ClusterAnswer>;
  /** A token of a service account, as a pod has it. */
  tokenOf(namespace: string, account: string): Promise<string>;
  /** Files with metal3's CRDs. */
  readonly definitions: readonly string[];
  stop(): Promise<void>;
}
const ADMIN = 'administrator';

/** @param folder for its data and logs */
export async function startCluster(folder: string): Promise<Cluster> {
  const programs = await built();
  const { Dir: sources } = await download(OPERATOR, programs);
  const [port, client, peer] = [await freePort(), await freePort(), await freePort()];
  const at = (name: string): string => join(folder, name);
  execFileSync('openssl', ['genrsa', '-out', at('account.key'), '2048'], { stdio: 'ignore' });
  execFileSync('openssl', ['rsa', '-in', at('account.key'), '-pubout', '-out', at('account.pub')], { stdio: 'ignore' });
  writeFileSync(at('tokens.csv'), `${ADMIN},admin,admin,system:masters\n`);
  const children: ChildProcess[] = [];
  const start = (name: string, words: readonly string[]): void => {
    const log = openSync(at(`${name}.log`), 'a');
    children.push(spawn(join(programs, name), words, { stdio: ['ignore', log, log] }));
    closeSync(log);
  };
  const store = `http://127.0.0.1:${client}`;
  const peers = `http://127.0.0.1:${peer}`;
  start('etcd', [
    `--data-dir=${at('etcd')}`,
    `--listen-client-urls=${store}`,
    `--advertise-client-urls=${store}`,
    `--listen-peer-urls=${peers}`,
    `--initial-advertise-peer-urls=${peers}`,
    `--initial-cluster=default=${peers}`,
    '--unsafe-no-fsync',
    '--log-level=warn',
  ]);
  start('kube-apiserver', [
    `--etcd-servers=${store}`,
    `--cert-dir=${at('apiserver')}`,
    `--secure-port=${port}`,
    '--bind-address=127.0.0.1',
    '--advertise-address=127.0.0.1',
    '--endpoint-reconciler-type=none',
    '--service-cluster-ip-range=10.0.0.0/24',
    '--service-account-issuer=https://kubernetes.default.svc',
    `--service-account-key-file=${at('account.pub')}`,
    `--service-account-signing-key-file=${at('account.key')}`,
    `--token-auth-file=${at('tokens.csv')}`,
    '--authorization-mode=RBAC',
    '--disable-admission-plugins=ServiceAccount',
  ]);
  const ca = at('apiserver/apiserver.crt');
  const ask: Cluster['ask'] = (method, path, body, { type = 'application/json', token = ADMIN } = {}) =>
    new Promise((done, fail) => {
      const headers = {
        authorization: `Bearer ${token}`,
        accept: 'application/json',
        ...(body === undefined ? {} : { 'content-type': type }),
      };
      const sent = request({ host: '127.0.0.1', port, method, path, headers, ca: readFileSync(ca), timeout: 60_000 }, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (piece: string) => (text += piece));
        response.once('end', () => {
          const isJson = response.headers['content-type']?.startsWith('application/json');
          done({ status: response.statusCode ?? 0, body: isJson ? (JSON.parse(text) as ClusterAnswer['body']) : { text } });
        });
      });
      sent.once('timeout', () => sent.destroy(new Error('the API server is silent')));
      sent.once('error', fail);
      sent.end(body === undefined ? undefined : JSON.stringify(body));
    });
  const stop = async (): Promise<void> => {
    for (const child of children.reverse()) {
      const ended = once(child, 'exit');
      if (child.exitCode === null && child.kill('SIGTERM')) await ended;
    }
  };
  try {
    await until(
      'the API server is ready',
      async () => existsSync(ca) && (await ask('GET', '/readyz').catch(() => undefined))?.status === 200,
      200,
    );
  } catch (error) {
    await stop();
    throw new Error(`${String(error)}\n${readFileSync(at('kube-apiserver.log'), 'utf8').slice(-2000)}`, { cause: error });
  }
  return {
    url: `https://127.0.0.1:${port}`,
    ca,
    ask,
    async tokenOf(namespace, account) {
      const { body } = await ask('POST', `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`, {
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'TokenRequest',
        spec: { expirationSeconds: 3600 },
      });
      return (body['status'] as { token: string }).token;
    },
    definitions: ['baremetalhosts', 'hardwaredata'].map((name) => join(sources, `config/base/crds/bases/metal3.io_${name}.yaml`)),
    stop,
  };
}
