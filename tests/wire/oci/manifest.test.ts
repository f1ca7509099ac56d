import { candidatesOf, compressionOf, isArtifact, layersOf, sizeOfContainer } from '../../../wire/oci/manifest';
import type { JsonObject } from '../../../model/json';

const entry = (n: number, architecture?: string, disktype?: string): JsonObject => ({
  n,
  ...(architecture === undefined ? {} : { platform: { architecture } }),
  ...(disktype === undefined ? {} : { annotations: { disktype } }),
});
it.each([
  ['the agent prefers raw', 'agent', null, [entry(1, 'amd64', 'qcow2'), entry(2, 'amd64', 'raw')], [2, 1]],
  ['the server prefers qcow2', 'local', null, [entry(1, 'amd64', 'raw'), entry(2, 'amd64', 'qcow2')], [2, 1]],
  ['qemu and applehv are qcow2 and raw', 'agent', null, [entry(1, 'amd64', 'qemu'), entry(2, 'amd64', 'applehv')], [2, 1]],
  ['unknown types are left out', 'agent', null, [entry(1, 'amd64', 'hyperv'), entry(2, 'amd64', 'constructor')], []],
  ['those without a type come last', 'agent', null, [entry(1), entry(2, undefined, 'qcow2')], [2, 1]],
  [
    'other architectures are left out',
    'agent',
    'x86_64',
    [entry(1, 'arm64', 'raw'), entry(2, 'amd64', 'raw'), entry(3, 'x86_64', 'raw')],
    [2, 3],
  ],
  ['aarch64 is arm64', 'agent', 'aarch64', [entry(1, 'arm64', 'raw'), entry(2, 'amd64', 'raw')], [1]],
  ['an entry without an architecture suits all', 'agent', 'riscv64', [entry(1), entry(2, 'amd64', 'raw')], [1]],
] as const)('%s', (_, by, cpuArch, entries, order) => {
  expect(candidatesOf(entries, { by, cpuArch }).map((candidate) => candidate.entry['n'])).toEqual(order);
});

it.each<readonly [JsonObject, boolean]>([
  [{ artifactType: 'application/x' }, true],
  [{ config: { mediaType: 'application/vnd.oci.empty.v1+json' } }, true],
  [{ artifactType: '' }, false],
  [{ config: { mediaType: 'application/vnd.oci.image.config.v1+json' } }, false],
  [{ config: 'x' }, false],
])('%j is an artifact: %s', (manifest, expected) => expect(isArtifact(manifest)).toBe(expected));

it('reads layers, and takes nothing for granted', () => {
  const layers = layersOf({
    layers: [
      { digest: 'sha256:00', size: 5, mediaType: 'application/zstd', annotations: { 'org.opencontainers.image.title': 'disk' } },
      'x',
      { digest: 7, size: -1 },
    ],
  });
  expect(layers).toEqual([
    { digest: 'sha256:00', size: 5, mediaType: 'application/zstd', title: 'disk' },
    { digest: '', size: null, mediaType: null, title: null },
  ]);
  expect(sizeOfContainer({ size: 3 }, layers)).toBe(8);
  expect(sizeOfContainer(undefined, layersOf({}))).toBe(0);
});

it.each([['x'.repeat(300)], ['a\nb'], ['\u001b[31m']])('leaves out a name or a type that no file has: %j', (text) => {
  const [layer] = layersOf({ layers: [{ mediaType: text, annotations: { 'org.opencontainers.image.title': text } }] });
  expect(layer).toMatchObject({ mediaType: null, title: null });
});

it.each([
  ['application/zstd', 'zstd'],
  ['application/vnd.oci.image.layer.v1.tar+gzip', 'gzip'],
  ['application/x-xz', null],
  [null, null],
] as const)('the compression of %s is %s', (mediaType, expected) => expect(compressionOf(mediaType)).toBe(expected));
