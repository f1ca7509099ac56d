import { blobUrl, isBlobUrl, isOciUrl, manifestUrl, parseBlobUrl, parseReference } from '../../../wire/oci/reference';

const SHA256 = `sha256:${'ab'.repeat(32)}`;
const SHA512 = `sha512:${'ab'.repeat(64)}`;

it.each([
  ['oci://quay.io/team/disk', { registry: 'quay.io', repository: 'team/disk', tag: 'latest', digest: undefined }],
  ['oci://quay.io/team/disk:v1.2', { registry: 'quay.io', repository: 'team/disk', tag: 'v1.2', digest: undefined }],
  ['OCI://localhost:5000/disk:v1', { registry: 'localhost:5000', repository: 'disk', tag: 'v1', digest: undefined }],
  [`oci://[fd00::1]:5000/a/b/c@${SHA256}`, { registry: '[fd00::1]:5000', repository: 'a/b/c', tag: 'latest', digest: SHA256 }],
  [`oci://10.0.0.1/disk:v1@${SHA512.toUpperCase()}`, { registry: '10.0.0.1', repository: 'disk', tag: 'v1', digest: SHA512 }],
])('reads %s', (href, expected) => {
  expect(isOciUrl(href)).toBe(true);
  expect(parseReference(href)).toEqual(expected);
});

it.each([
  ['oci://quay.io', 'It does not name a repository.'],
  ['oci:///disk', 'It does not name the host of a registry.'],
  ['oci://quay.io:99999/disk', 'It does not name the host of a registry.'],
  ['oci://-x/disk', 'It does not name the host of a registry.'],
  ['oci://host\\@other/disk', 'Credentials belong to image_pull_secret, not to the URL.'],
  ['oci://user:password@quay.io/disk', 'Credentials belong to image_pull_secret, not to the URL.'],
  ['oci://quay.io/../secret', 'It does not name a repository.'],
  ['oci://quay.io/a//b', 'It does not name a repository.'],
  ['oci://quay.io/a?x=1', 'It does not name a repository.'],
  ['oci://quay.io/a%2fb', 'It does not name a repository.'],
  [`oci://quay.io/${'a'.repeat(256)}`, 'It does not name a repository.'],
  ['oci://quay.io/a:', 'The tag is invalid.'],
  ['oci://quay.io/a:v/../x', 'The tag is invalid.'],
  ['oci://quay.io/a:b:c', 'It has more than one tag or digest.'],
  [`oci://quay.io/a@${SHA256}@${SHA256}`, 'It has more than one tag or digest.'],
  ['oci://quay.io/a@nothing', 'Lacking required digest value'],
  ['oci://quay.io/a@sha256:00', 'Manifest digest length incorrect and does not match the expected lenngth of the algorithm.'],
  [`oci://quay.io/a@sha256:${'g'.repeat(64)}`, 'The digest has characters that are not hexadecimal digits.'],
  ['oci://quay.io/a@md5:00', 'The algorithm of the digest is neither sha256 nor sha512.'],
  ['oci://quay.io/a@constructor:00', 'The algorithm of the digest is neither sha256 nor sha512.'],
  [`oci://quay.io/${'a/'.repeat(2000)}b`, 'It is longer than 2048 characters.'],
])('refuses %s', (href, message) => {
  expect(() => parseReference(href)).toThrow(new Error(message));
});

it('names blobs and manifests', () => {
  const blob = { registry: 'quay.io:443', repository: 'a/b', digest: SHA256 };
  expect(isBlobUrl(blobUrl(blob))).toBe(true);
  expect(isBlobUrl('oci://quay.io/a')).toBe(false);
  expect(parseBlobUrl(blobUrl(blob))).toEqual(blob);
  expect(() => parseBlobUrl('oci-blob://quay.io/a')).toThrow('Lacking required digest value');
  expect(manifestUrl(blob, SHA256)).toBe(`oci://quay.io:443/a/b@${SHA256}`);
});
