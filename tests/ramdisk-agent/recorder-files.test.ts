/** The files in docs/ that run a recorder: parsed as their programs would, and with existing options only. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
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
          readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string; readonly readOnly: boolean }[];
        }[];
        readonly volumes: readonly { readonly name: string; readonly hostPath: { readonly path: string } }[];
      };
    };
  };
}

it("the DaemonSet selects metal3's nodes, and mounts the host read-only", () => {
  const documents = parseAllDocuments(text('daemonset.yaml'));
  expect(documents.flatMap(({ errors }) => errors)).toEqual([]);
  const set = documents.map((document) => document.toJS() as DaemonSet & { kind: string }).find(({ kind }) => kind === 'DaemonSet')!;
  const { selector, template } = set.spec;
  expect(template.metadata.labels).toMatchObject(selector.matchLabels);
  expect(template.spec.nodeSelector).toEqual({ 'metal3-node': 'true' });
  const [container] = template.spec.containers;
  known(container!.command);
  const mounts = container!.volumeMounts;
  expect(mounts.map(({ name, readOnly, mountPath }) => [name, readOnly, mountPath])).toEqual(
    template.spec.volumes.map(({ name, hostPath }) => [name, true, `/host${hostPath.path}`]),
  );
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
