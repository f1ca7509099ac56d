/** The files in docs/ that run a recorder: parsed as their programs would, and with existing options only. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { recorderManifest } from '../../metal3/recorder-manifest';
import { RECORD_OPTIONS } from '../../ramdisk-agent/record';

const text = (name: string): string => readFileSync(join(__dirname, '../../docs/recorder', name), 'utf8');
const known = (words: readonly string[]): void => {
  const [program, verb, ...rest] = words;
  expect([program?.split('/').at(-1), verb]).toEqual(['bloomery-agent', 'record']);
  for (const word of rest.filter((candidate) => candidate.startsWith('--'))) expect(Object.keys(RECORD_OPTIONS)).toContain(word.slice(2));
};

interface DaemonSet {
  readonly spec: {
    readonly selector: { readonly matchLabels: object };
    readonly template: {
      readonly metadata: { readonly labels: object };
      readonly spec: {
        readonly nodeSelector: object;
        readonly containers: readonly {
          readonly command: readonly string[];
          readonly args?: readonly string[];
          readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string; readonly readOnly: boolean }[];
        }[];
        readonly volumes: readonly { readonly name: string; readonly hostPath?: { readonly path: string } }[];
      };
    };
  };
}

function daemonSet(yaml: string): DaemonSet {
  const documents = parseAllDocuments(yaml);
  expect(documents.flatMap(({ errors }) => errors)).toEqual([]);
  return documents.map((document) => document.toJS() as DaemonSet & { kind: string }).find(({ kind }) => kind === 'DaemonSet')!;
}
const NODE = '11111111-2222-3333-4444-555555555555';
const settings = {
  node: NODE,
  token: 'x'.repeat(43),
  url: 'https://[2001:db8::1]:6385',
  host: 'worker-1.example',
  image: 'registry.example:5000/bloomery:0.1.0',
  interval: 300,
};
it.each<readonly [string, string, object, readonly string[]]>([
  // A host that registers itself keeps its token.
  ["of metal3's nodes", text('daemonset.yaml'), { 'metal3-node': 'true' }, ['identity']],
  ['of one machine', recorderManifest(settings), { 'kubernetes.io/hostname': 'worker-1.example' }, []],
])('the DaemonSet %s selects them, and mounts the host read-only', (_, yaml, nodes, written) => {
  const { selector, template } = daemonSet(yaml).spec;
  expect(template.metadata.labels).toMatchObject(selector.matchLabels);
  expect(template.spec.nodeSelector).toEqual(nodes);
  const [container] = template.spec.containers;
  known([...container!.command, ...(container!.args ?? [])]);
  const mounts = new Map(container!.volumeMounts.map(({ name, readOnly, mountPath }) => [name, [readOnly, mountPath]]));
  expect([...mounts].filter(([, [readOnly]]) => readOnly !== true).map(([name]) => name)).toEqual(written);
  const ofHost = template.spec.volumes.filter(({ name, hostPath }) => hostPath !== undefined && !written.includes(name));
  expect(ofHost.map(({ name }) => mounts.get(name))).toEqual(ofHost.map(({ hostPath }) => [true, `/host${hostPath!.path}`]));
  expect(ofHost.map(({ hostPath }) => hostPath!.path)).toEqual(['/sys', '/proc', '/dev', '/run/udev']);
});
it("a machine's manifest has its token in a Secret only, and the recorder reads it there", () => {
  const yaml = recorderManifest(settings);
  const [secret] = parseAllDocuments(yaml).map((document) => document.toJS() as unknown);
  expect(secret).toMatchObject({ kind: 'Secret', metadata: { name: `recorder-${NODE}` }, stringData: { token: settings.token } });
  expect(yaml.split(settings.token)).toHaveLength(2);
  const { containers, volumes } = daemonSet(yaml).spec.template.spec;
  expect(containers[0]!.command.join(' ')).toContain(`--url ${settings.url} --node ${NODE} --token-file /token/token --interval 300`);
  expect(volumes).toContainEqual({ name: 'token', secret: { secretName: `recorder-${NODE}`, defaultMode: 0o400 } });
});
it.each([
  ['host', "x'\n---"],
  ['host', 'A'],
  ['image', 'a b'],
  ['url', "https://x/'"],
  ['node', 'one'],
  ['token', ''],
])('a manifest is not made with the %s %j', (name, value) => {
  expect(() => recorderManifest({ ...settings, [name]: value })).toThrow(/no usable|unusable token/);
});

it('the systemd unit runs an existing command with existing options', () => {
  const lines = text('bloomery-recorder.service').split('\n');
  for (const line of lines) expect(line).toMatch(/^(?:|#.*|\[(?:Unit|Service|Install)\]|[A-Z]\w+=.+)$/);
  known(
    lines
      .find((line) => line.startsWith('ExecStart='))!
      .slice('ExecStart='.length)
      .split(' '),
  );
});
