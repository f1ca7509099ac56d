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
const OPERATOR_MODULE = 'github.com/metal3-io/baremetal-operator';
const OPERATOR = '0.13.2';
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
interface Build {
  /** The folder of the programs, in .cache/tools. */
  readonly name: string;
  /** Program → its package. */
  readonly programs: Readonly<Record<string, string>>;
  /** Lines of go.mod: what is required, and what replaces it. */
  readonly lines: (folder: string) => Promise<readonly string[]>;
}
/** Builds programs once. @returns their folder */
async function built({ name, programs, lines }: Build): Promise<string> {
  const folder = join(root, '.cache/tools', name);
  if (Object.keys(programs).every((program) => existsSync(join(folder, program)))) return folder;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'go.mod'), ['module programs', 'go 1.25.0', ...(await lines(folder)), ''].join('\n'));
  for (const [program, path] of Object.entries(programs))
    await run('go', ['build', '-trimpath', '-ldflags', '-s -w', '-o', join(folder, program), path], {
      ...options,
      cwd: folder,
      env: environment,
    });
  return folder;
}
const API_PROGRAMS: Build = {
  name: `kubernetes-${KUBERNETES}`,
  programs: { etcd: 'go.etcd.io/etcd/server/v3', 'kube-apiserver': 'k8s.io/kubernetes/cmd/kube-apiserver' },
  // The module is published with its parts replaced by folders beside it, which are modules of the same release.
  async lines(folder) {
    const { GoMod: file } = await download(`k8s.io/kubernetes@v${KUBERNETES}`, folder);
    const parts = [...readFileSync(file, 'utf8').matchAll(/^\s*(?:replace\s+)?(k8s\.io\/[\w.-]+)\s+=>\s+\.\/staging\//gm)].map(
      ([, name]) => name!,
    );
    const replaced = parts.map((name) => `replace ${name} => ${name} v${KUBERNETES.replace(/^1/, '0')}`);
    return [`require k8s.io/kubernetes v${KUBERNETES}`, `require go.etcd.io/etcd/server/v3 v${ETCD}`, ...replaced];
  },
};
const OPERATOR_PROGRAM: Build = {
  name: `baremetal-operator-${OPERATOR}`,
  programs: { 'baremetal-operator': OPERATOR_MODULE },
  // Replacements in the operator's own go.mod do not count here. Of the last module, the version that it asks for is not published.
  async lines() {
    const standalone = 'github.com/metal3-io/ironic-standalone-operator/api';
    const required = [OPERATOR_MODULE, `${OPERATOR_MODULE}/apis`].map((name) => `require ${name} v${OPERATOR}`);
    return [...required, `replace ${standalone} => ${standalone} v0.10.0`];
  },
};
/** The folder of the operator's sources of a release. */
const operatorSources = async (version: string): Promise<string> => {
  mkdirSync(join(root, '.cache/tools'), { recursive: true });
  return (await download(`${OPERATOR_MODULE}@v${version}`, join(root, '.cache/tools'))).Dir;
};
/** The manifests below a folder of the operator's sources. @param version another release than the one that runs */
export const operatorManifests = async (path: string, version = OPERATOR): Promise<string> => join(await operatorSources(version), path);
/** The program of the operator. */
export const operatorProgram = async (): Promise<string> => join(await built(OPERATOR_PROGRAM), 'baremetal-operator');

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
  /** Ends the API server as a host's death does; etcd goes on. */
  killApi(): Promise<void>;
  startApi(): Promise<void>;
  /** Forgets all states but the present one, so that lists that began before cannot be continued. */
  compact(): Promise<void>;
  stop(): Promise<void>;
}
/** Creates or changes an object as `kubectl apply --server-side` does: unknown members are refused. */
export async function applyObject(cluster: Cluster, resource: ApplicableObject): Promise<void> {
  const { kind, apiVersion, metadata } = resource;
  const { name, namespace } = metadata;
  const group = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const place = namespace === undefined ? '' : `/namespaces/${namespace}`;
  const path = `${group}${place}/${PLURALS[kind] ?? `${kind.toLowerCase()}s`}/${name}?fieldManager=user&fieldValidation=Strict&force=true`;
  const { status, body } = await cluster.ask('PATCH', path, resource, { type: 'application/apply-patch+yaml' });
  if (status >= 300) throw new Error(`${kind} ${name}: ${status} ${JSON.stringify(body)}`);
}
export interface ApplicableObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
}
/** Where it is not the kind with an s. */
const PLURALS: Readonly<Record<string, string>> = { HardwareData: 'hardwaredata' };
const ADMIN = 'administrator';

/** @param folder for its data and logs */
export async function startCluster(folder: string): Promise<Cluster> {
  const programs = await built(API_PROGRAMS);
  const [port, client, peer] = [await freePort(), await freePort(), await freePort()];
  const at = (name: string): string => join(folder, name);
  execFileSync('openssl', ['genrsa', '-out', at('account.key'), '2048'], { stdio: 'ignore' });
  execFileSync('openssl', ['rsa', '-in', at('account.key'), '-pubout', '-out', at('account.pub')], { stdio: 'ignore' });
  writeFileSync(at('tokens.csv'), `${ADMIN},admin,admin,system:masters\n`);
  const children = new Map<string, ChildProcess>();
  const start = (name: string, words: readonly string[]): void => {
    const log = openSync(at(`${name}.log`), 'a');
    children.set(name, spawn(join(programs, name), words, { stdio: ['ignore', log, log] }));
    closeSync(log);
  };
  const end = async (name: string, signal: NodeJS.Signals): Promise<void> => {
    const child = children.get(name);
    children.delete(name);
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    if (child.kill(signal)) await ended;
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
    for (const name of [...children.keys()].reverse()) await end(name, 'SIGTERM');
  };
  const startApi = async (): Promise<void> => {
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
      // As kubeadm and managed clusters have it; without it, no DaemonSet may be privileged.
      '--allow-privileged=true',
      '--disable-admission-plugins=ServiceAccount',
    ]);
    await until(
      'the API server is ready',
      async () => existsSync(ca) && (await ask('GET', '/readyz').catch(() => undefined))?.status === 200,
      200,
    );
  };
  try {
    await startApi();
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
    killApi: () => end('kube-apiserver', 'SIGKILL'),
    startApi,
    async compact() {
      const post = async (path: string, body: object): Promise<{ readonly header: { readonly revision: string } }> =>
        (await (await fetch(`${store}/v3/${path}`, { method: 'POST', body: JSON.stringify(body) })).json()) as never;
      const { header } = await post('kv/range', { key: 'AA==' });
      await post('kv/compaction', { revision: header.revision, physical: true });
    },
    stop,
  };
}
