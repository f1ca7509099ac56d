/** metal3 in the cluster of the lab: its CRDs, hosts as the operator leaves them, programs beside it, and what a host shows. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, createWriteStream, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import { root } from '../../../demo/lab/root';
import { startServerProcess, type RunningServer, type Sections } from '../../../demo/lab/server';
import { until } from '../../support/until';
import { applyObject, operatorManifests, type ApplicableObject, type Cluster, type ClusterAnswer } from './kubernetes';

export const API = '/apis/metal3.io/v1alpha1/namespaces/metal3';
const VERSION = { apiVersion: 'metal3.io/v1alpha1' };

export interface Hardware {
  readonly storage?: readonly { readonly name?: string; readonly wwn?: string }[];
  readonly nics?: readonly { readonly mac: string; readonly speedGbps?: number; readonly ip?: string }[];
  readonly ramMebibytes?: number;
}
export interface HostObject {
  readonly metadata: {
    readonly uid: string;
    readonly generation: number;
    readonly resourceVersion: string;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly managedFields: readonly { readonly manager: string; readonly subresource?: string; readonly time: string }[];
  };
  readonly spec: { readonly hardware?: Hardware; readonly online?: boolean };
  readonly status: {
    readonly hardware: Hardware;
    readonly provisioning: { readonly ID: string; readonly state: string };
    readonly conditions?: readonly Readonly<Record<string, string>>[];
    readonly errorMessage: string;
    readonly poweredOn: boolean;
  };
}
/** A CRD, as far as tests change it. */
export interface Definition extends ApplicableObject {
  readonly spec: { readonly versions: readonly [{ readonly schema: { readonly openAPIV3Schema: Schema } }] };
}
export interface Schema {
  readonly properties: Record<string, Schema>;
  readonly items: Schema;
}

/** Applies all documents. @returns their kinds */
export async function applyManifests(cluster: Cluster, text: string): Promise<readonly ApplicableObject[]> {
  const resources = parseAllDocuments(text).map((document) => document.toJS() as ApplicableObject);
  for (const resource of resources) await applyObject(cluster, resource);
  return resources;
}
/** metal3's CRDs, its namespace, and the account of the controller. @param edit changes a CRD before it is created */
export async function installMetal3(cluster: Cluster, edit?: (definition: Definition) => void): Promise<void> {
  const folder = await operatorManifests('config/base/crds/bases');
  for (const file of readdirSync(folder)) {
    const definition = parse(readFileSync(join(folder, file), 'utf8')) as Definition;
    edit?.(definition);
    await applyObject(cluster, definition);
  }
  await applyObject(cluster, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'metal3' } });
  const served = async (resource: string): Promise<boolean> => (await cluster.ask('GET', `${API}/${resource}`)).status === 200;
  await until('the CRDs are served', async () => (await served('hardwaredata')) && served('baremetalhosts'), 200);
}
export const controllerManifest = (): string => readFileSync(join(root, 'docs/recorder/hardware-sync.yaml'), 'utf8');

const created = (answer: ClusterAnswer): ClusterAnswer['body'] => {
  if (answer.status >= 300) throw new Error(JSON.stringify(answer.body));
  return answer.body;
};
/** A provisioned host with HardwareData, as the operator leaves it after an inspection. */
export async function createHost(cluster: Cluster, name: string, uuid: string, hardware: object, conditions = true): Promise<void> {
  const manager = 'fieldManager=baremetal-operator';
  const metadata = { name, namespace: 'metal3' };
  const host = created(
    await cluster.ask('POST', `${API}/baremetalhosts?${manager}`, {
      ...VERSION,
      kind: 'BareMetalHost',
      metadata,
      spec: { online: true },
    }),
  );
  const ready = { type: 'Ready', status: 'True', reason: 'Provisioned', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' };
  const status = {
    errorCount: 0,
    errorMessage: '',
    operationalStatus: 'OK',
    poweredOn: true,
    provisioning: { ID: uuid, state: 'provisioned', image: { url: '' } },
    hardware,
    ...(conditions ? { conditions: [ready] } : {}),
  };
  created(await cluster.ask('PUT', `${API}/baremetalhosts/${name}/status?${manager}`, { ...host, status }));
  const data = { ...VERSION, kind: 'HardwareData', metadata, spec: { hardware } };
  created(await cluster.ask('POST', `${API}/hardwaredata?${manager}`, data));
}

/** A server without real drivers that takes what recorders push. */
export function startFakeServer(folder: string, port: number, recorder: Sections[string] = {}): Promise<RunningServer> {
  const kinds = ['bios', 'boot', 'console', 'deploy', 'firmware', 'inspect', 'management', 'power', 'raid', 'rescue', 'vendor'];
  const fake = Object.fromEntries(kinds.map((kind) => [`enabled_${kind}_interfaces`, 'fake']));
  return startServerProcess(
    join(folder, 'server'),
    {
      DEFAULT: { enabled_hardware_types: 'fake-hardware', enabled_network_interfaces: 'noop', enabled_storage_interfaces: 'noop', ...fake },
      api: { host_ip: '127.0.0.1', port },
      recorder: { enabled: 'true', max_pushes_per_minute: 1000, ...recorder },
    },
    undefined,
    ['--roles', 'api,conductor'],
  );
}
export type Caller = <T>(method: string, path: string, body?: object, headers?: Readonly<Record<string, string>>) => Promise<T>;
export const caller =
  (url: string): Caller =>
  async <T>(method: string, path: string, body?: object, more: Readonly<Record<string, string>> = {}) => {
    const headers = { 'content-type': 'application/json', 'x-openstack-ironic-api-version': 'latest', ...more };
    const answer = await fetch(`${url}${path}`, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return (text === '' ? undefined : JSON.parse(text)) as T;
  };

/** What users see of hosts. */
export function hostsOf(cluster: Cluster) {
  const object = async (resource: 'baremetalhosts' | 'hardwaredata', name: string): Promise<HostObject> =>
    created(await cluster.ask('GET', `${API}/${resource}/${name}`)) as unknown as HostObject;
  return {
    object,
    condition: async (name: string) =>
      (await object('baremetalhosts', name)).status.conditions?.find(({ type }) => type === 'HardwareReported'),
    versions: async (name: string): Promise<readonly string[]> => [
      (await object('baremetalhosts', name)).metadata.resourceVersion,
      (await object('hardwaredata', name)).metadata.resourceVersion,
    ],
    /** Seconds until host and HardwareData show something. */
    async seconds(what: string, name: string, isSo: (hardware: Hardware) => boolean): Promise<number> {
      const from = performance.now();
      await until(
        what,
        async () => {
          const [host, data] = [await object('baremetalhosts', name), await object('hardwaredata', name)];
          return isSo(host.status.hardware) && isSo(data.spec.hardware!);
        },
        50,
      );
      return (performance.now() - from) / 1000;
    },
  };
}

/** Node programs in the background; their output is in files of a folder. */
export function programsIn(folder: string) {
  const children = new Map<string, ChildProcess>();
  const stop = async (name: string): Promise<void> => {
    const child = children.get(name);
    children.delete(name);
    if (!child || child.exitCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    await ended;
  };
  return {
    start(name: string, command: string, words: readonly string[], env: Readonly<Record<string, string>> = {}): number {
      const child = spawn(command, words, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } });
      const path = join(folder, `${name}.log`);
      appendFileSync(path, '');
      const log = createWriteStream(path, { flags: 'a' });
      child.stdout.pipe(log);
      child.stderr.pipe(log);
      children.set(name, child);
      return child.pid!;
    },
    stop,
    output: (name: string): string => readFileSync(join(folder, `${name}.log`), 'utf8'),
    async stopAll(): Promise<void> {
      for (const name of [...children.keys()].reverse()) await stop(name);
    },
  };
}
