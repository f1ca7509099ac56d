/**
 * The Helm chart and the kustomize base: rendered by the real programs, valid for Kubernetes, with a configuration with which the server
 * starts.
 */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import Ajv, { type ValidateFunction } from 'ajv';
import { hashSync } from 'bcryptjs';
import { parse, parseAllDocuments } from 'yaml';
import { loadOptions } from '../../../config/load';
import { recorderManifest } from '../../../metal3/recorder-manifest';
import { timeoutSignal } from '../../../wire/timeout-signal';
import { needs } from '../support/needs';
import { programs, root } from '../support/venv';
import { MAKING_MS, release, startInstalled } from './release';

const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), 'bloomery-lab-chart-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const TOOLS = join(root, '.cache/tools');
const OPERATOR = 'github.com/prometheus-operator/prometheus-operator@v0.83.0';
const MODULES = { helm: 'helm.sh/helm/v4/cmd/helm@v4.3.1', kustomize: 'sigs.k8s.io/kustomize/kustomize/v5@v5.7.1' };
const examples = join(root, 'packaging/helm/examples');
const packaging = join(root, 'packaging');

interface Resource {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly data?: Readonly<Record<string, string>>;
  readonly spec?: Readonly<Record<string, unknown>>;
}
const parsed = (text: string): readonly Resource[] =>
  parseAllDocuments(text)
    .map((document) => document.toJS() as Resource | null)
    .filter((resource) => resource !== null);

let chart: string;
let validator: string;
let validMonitor: ValidateFunction;
const helm = async (...words: readonly string[]): Promise<string> => (await run(join(TOOLS, 'helm'), words, { maxBuffer: 1 << 24 })).stdout;
const template = (...words: readonly string[]): Promise<string> => helm('template', 'bloomery', chart, ...words);
const kustomize = async (path: string): Promise<string> =>
  (await run(join(TOOLS, 'kustomize'), ['build', join(packaging, 'kustomize', path)], { maxBuffer: 1 << 24 })).stdout;
/** Validates with the schemas of Kubernetes and of the Prometheus operator, which permit no other members. @returns the kinds */
async function validate(text: string): Promise<readonly string[]> {
  const file = join(folder, 'resources.yaml');
  const isMonitor = (value: string): boolean => /^kind: ServiceMonitor$/m.test(value);
  const resources = text.split(/^---$/m);
  writeFileSync(file, resources.filter((resource) => !isMonitor(resource)).join('---'));
  await run(join(validator, 'kubernetes-validate'), ['--strict', '-k', '1.34', file]);
  for (const resource of parsed(resources.filter(isMonitor).join('---')))
    if (!validMonitor(resource)) throw new Error(`ServiceMonitor: ${JSON.stringify(validMonitor.errors)}`);
  return parsed(text).map(({ kind }) => kind);
}

type Schema = Readonly<Record<string, unknown>>;
/** Forbids members that the schema does not name, as the API server treats a user's resource. */
function closed(schema: Schema): Schema {
  const entries = Object.entries(schema).map(([key, value]): readonly [string, unknown] => {
    if (key === 'items' || key === 'additionalProperties') return [key, typeof value === 'object' ? closed(value as Schema) : value];
    if (key !== 'properties') return [key, value];
    return [key, Object.fromEntries(Object.entries(value as Record<string, Schema>).map(([name, entry]) => [name, closed(entry)]))];
  });
  const isClosed = 'properties' in schema && !('additionalProperties' in schema);
  return { ...Object.fromEntries(entries), ...(isClosed ? { additionalProperties: false } : {}) };
}
/** The schema of ServiceMonitor, from the sources of the Prometheus operator. */
async function monitorSchema(): Promise<ValidateFunction> {
  const { stdout } = await run('go', ['mod', 'download', '-json', OPERATOR], { cwd: folder, maxBuffer: 1 << 24 });
  const { Dir: sources } = JSON.parse(stdout) as { readonly Dir: string };
  const file = join(sources, 'example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml');
  const definition = parse(readFileSync(file, 'utf8')) as {
    readonly spec: { readonly versions: readonly { readonly schema: { readonly openAPIV3Schema: Schema } }[] };
  };
  const whole = closed(definition.spec.versions[0]!.schema.openAPIV3Schema);
  // Kubernetes itself checks the metadata.
  const properties = { ...(whole['properties'] as Schema), metadata: { type: 'object', required: ['name'] } };
  const schema = { ...whole, properties };
  return new Ajv({ strict: false, formats: { int32: true, int64: true } }).compile(schema);
}

beforeAll(async () => {
  needs({ go: 'golang' });
  mkdirSync(TOOLS, { recursive: true });
  for (const [name, module] of Object.entries(MODULES))
    if (!existsSync(join(TOOLS, name))) await run('go', ['install', module], { env: { ...process.env, GOBIN: TOOLS }, maxBuffer: 1 << 24 });
  validator = await programs('kubernetes-validate', ['kubernetes-validate==1.37.0']);
  validMonitor = await monitorSchema();
  const out = join(folder, 'out');
  await release(out, ['chart', 'kustomize']);
  chart = join(
    out,
    readdirSync(out).find((name) => name.startsWith('bloomery-chart-'))!,
  );
}, MAKING_MS);

it.each([
  ['an endpoint', { endpoints: [{ port: 'metrics', intervall: '30s' }], selector: {} }],
  ['the specification', { endpoints: [], selector: {}, selectors: {} }],
])('the schema of ServiceMonitor refuses a misspelt member of %s', (_, spec) => {
  const monitor = { apiVersion: 'monitoring.coreos.com/v1', kind: 'ServiceMonitor', metadata: { name: 'a' } };
  expect(validMonitor({ ...monitor, spec: { endpoints: [], selector: {} } })).toBe(true);
  expect(validMonitor({ ...monitor, spec })).toBe(false);
});

it('a second release makes the same bytes of the chart and the kustomize base', async () => {
  const again = join(folder, 'again');
  await release(again, ['chart', 'kustomize']);
  for (const name of readdirSync(again)) expect(readFileSync(join(again, name)).equals(readFileSync(join(folder, 'out', name)))).toBe(true);
});

it('the chart passes helm lint, and has the version of package.json', async () => {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { readonly version: string };
  expect(await helm('lint', chart, '--values', join(examples, 'single.yaml'))).toContain('0 chart(s) failed');
  expect(await helm('show', 'chart', chart)).toContain(`version: ${version}`);
});

it.each(readdirSync(examples))(
  'the chart renders %s to resources that Kubernetes accepts, with a configuration that the server accepts',
  async (name) => {
    const text = await template('--values', join(examples, name));
    const kinds = await validate(text);
    expect(kinds.includes('ServiceMonitor')).toBe(name === 'postgresql.yaml');
    const file = join(folder, 'ironic.conf');
    writeFileSync(file, parsed(text).find(({ kind }) => kind === 'ConfigMap')!.data!['ironic.conf']!);
    expect(loadOptions([file], {})).toMatchObject({ warnings: [], refusals: [] });
  },
);

it.each([
  ['of recorders', (): string => readFileSync(join(root, 'docs/recorder/daemonset.yaml'), 'utf8'), 'DaemonSet'],
  ['of the controller for HardwareData', (): string => readFileSync(join(root, 'docs/recorder/hardware-sync.yaml'), 'utf8'), 'ClusterRole'],
  [
    'of a recorder for one machine',
    (): string =>
      recorderManifest({
        node: '11111111-2222-3333-4444-555555555555',
        token: 'x'.repeat(43),
        url: 'https://ironic.example:6385',
        host: 'worker-1',
        image: 'registry.example:5000/bloomery:0.1.0',
        interval: 300,
      }),
    'Secret',
  ],
])('Kubernetes accepts the manifests %s', async (_, text, kind) => expect(await validate(text())).toContain(kind));

it.each([
  ['values that name no users', [], 'who may call the API?'],
  ['replicas without a database', ['auth.existingSecret=a', 'replicas=2'], 'set database.existingSecret'],
  ['DHCP without hostNetwork', ['auth.existingSecret=a', 'dhcp.range=1-2', 'dhcp.interface=e'], 'set hostNetwork'],
  ['DHCP without an interface', ['auth.existingSecret=a', 'dhcp.range=1-2', 'hostNetwork=true'], 'dhcp.interface'],
  ['a password in a ConfigMap', ['auth.existingSecret=a', 'config.database.connection=x'], 'use database.existingSecret'],
  ['screens without an address', ['auth.existingSecret=a', 'screens.enabled=true'], 'Set screens.publicUrl'],
  ['an unknown value', ['auth.existingSecret=a', 'tsl.secretName=x'], "additional properties 'tsl' not allowed"],
])('the chart refuses %s', async (_, values, message) => {
  await expect(template(...values.flatMap((value) => ['--set', value]))).rejects.toThrow(message);
});

it('the chart gives the container a read-only root, and capabilities only for DHCP', async () => {
  const containerOf = async (name: string): Promise<unknown> => {
    const set = parsed(await template('--values', join(examples, name))).find(({ kind }) => kind === 'StatefulSet')!;
    return (set.spec as { template: { spec: { containers: readonly unknown[] } } }).template.spec.containers[0];
  };
  const closed = { readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } };
  expect(await containerOf('single.yaml')).toMatchObject({ command: ['/usr/bin/bloomery'], securityContext: closed });
  expect(await containerOf('dhcp.yaml')).toMatchObject({
    command: ['/bin/bloomery-with-capabilities'],
    securityContext: { readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'], add: ['NET_ADMIN', 'NET_BIND_SERVICE', 'NET_RAW'] } },
  });
});

it('a server starts with the configuration of the chart, and requires a password', async () => {
  const config = parsed(await template('--set', 'auth.existingSecret=users')).find(({ kind }) => kind === 'ConfigMap')!;
  const place = mkdtempSync(join(folder, 'server-'));
  writeFileSync(join(place, 'ironic.conf'), config.data!['ironic.conf']!);
  writeFileSync(join(place, 'htpasswd'), `a:${hashSync('b', 4)}\n`);
  const words = ['bin/bloomery', 'serve', '--config-file', join(place, 'ironic.conf'), '--state-dir', join(place, 'state')];
  const server = await startInstalled([process.execPath, ...words.map((word) => (word === 'bin/bloomery' ? join(root, word) : word))], {
    OS_API__PORT: '0',
    OS_BOOT__HTTP_PORT: '0',
    OS_METRICS__PROMETHEUS_PORT: '0',
    OS_DEFAULT__HOST: 'bloomery-0',
    OS_DEFAULT__MY_IP: '127.0.0.1',
    OS_DEFAULT__HTTP_BASIC_AUTH_USER_FILE: join(place, 'htpasswd'),
  });
  const status = async (path: string): Promise<number> => (await fetch(`${server.url}${path}`, { signal: timeoutSignal(60_000) })).status;
  expect(await status('/healthcheck')).toBe(200);
  expect(await status('/v1/nodes')).toBe(401);
  expect(await status('/metrics')).not.toBe(200);
  expect(await server.stop()).toBe(0);
});

describe('kustomize', () => {
  it.each(readdirSync(join(packaging, 'kustomize/examples')))(
    'builds the example %s to resources that Kubernetes accepts',
    async (name) => {
      const kinds = await validate(await kustomize(`examples/${name}`));
      expect(kinds.includes('ServiceMonitor')).toBe(name === 'postgresql');
    },
  );

  it('builds the base to the same resources as the chart renders', async () => {
    const made = parsed(await template('--set', 'auth.existingSecret=bloomery-users'));
    const base = parsed(await kustomize('base'));
    const configurations = [made, base].map((resources) =>
      resources.find(({ kind }) => kind === 'ConfigMap')!.data!['ironic.conf']!.trim(),
    );
    expect(configurations[1]).toBe(configurations[0]);
    // Without what only one of them adds: labels of Helm, versions, the hash in the ConfigMap's name.
    const plain = (resources: readonly Resource[]): readonly unknown[] =>
      resources
        .filter(({ kind }) => kind !== 'ConfigMap')
        .map((resource) => JSON.parse(JSON.stringify(resource, omitted)) as Resource)
        .sort((left, right) => (`${left.kind} ${left.metadata.name}` < `${right.kind} ${right.metadata.name}` ? -1 : 1));
    expect(plain(base)).toEqual(plain(made));
  });
});
/** A replacer for JSON.stringify, which leaves these members out. */
function omitted(key: string, value: unknown): unknown {
  if (/^(?:app\.kubernetes\.io\/(?:version|managed-by)|helm\.sh\/chart|annotations|image)$/.test(key)) return undefined;
  return key === 'configMap' ? { name: 'bloomery' } : value;
}
