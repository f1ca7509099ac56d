/** Images with names: what is checked, and that nothing else happens to an image. */
import { useApi } from '../../support/api';
import { NEWEST } from '../../support/newest';

const api = useApi();
const UUID = 'aaaaaaaa-0000-4000-8000-000000000001';
const IMAGE = { name: 'debian-13', image_source: 'http://192.0.2.1/debian.qcow2' };
const create = (body: object) => api.ask('POST', '/v1/images', NEWEST, { body: { ...IMAGE, ...body } });
const patch = (body: unknown) => api.ask('PATCH', '/v1/images/debian-13', NEWEST, { body });
beforeEach(async () => {
  await api.database.query('DELETE FROM images');
});

it('creates, shows, changes, lists and deletes an image', async () => {
  const made = await create({ uuid: UUID, image_os_hash_algo: 'sha256', image_os_hash_value: 'a'.repeat(64) });
  expect([made.status, made.headers['location']]).toEqual([201, `${api.url()}/v1/images/${UUID}`]);
  expect(made.body).toMatchObject({ ...IMAGE, uuid: UUID, description: null, image_checksum: null, extra: {}, updated_at: null });
  const changed = await patch([
    { op: 'replace', path: '/image_source', value: UUID },
    { op: 'remove', path: '/image_os_hash_algo' },
    { op: 'remove', path: '/image_os_hash_value' },
  ]);
  expect([changed.status, changed.body]).toMatchObject([200, { image_source: UUID, image_os_hash_algo: null, image_os_hash_value: null }]);
  expect((await api.ask('GET', `/v1/images/${UUID}`)).body).toMatchObject({ name: 'debian-13' });
  expect((await api.ask('GET', '/v1/images?fields=name')).body['images']).toMatchObject([{ name: 'debian-13' }]);
  expect((await api.ask('DELETE', '/v1/images/debian-13')).status).toBe(204);
  expect((await api.ask('GET', '/v1/images')).body).toEqual({ images: [] });
  expect(await api.ask('GET', '/v1/images/debian-13')).toMatchObject({ status: 404, fault: 'Image debian-13 could not be found.' });
});

it.each([
  [{ name: 'a b' }, "name: 'a b' is not a valid name"],
  [{ name: UUID }, `name: '${UUID}' is not a valid name`],
  [{ image_source: 'debian' }, 'image_source: it is neither a URL (http, https, file, glance, oci, snapshot) nor a UUID'],
  [{ image_source: 'http://a b' }, /^image_source: /],
  [{ image_source: 'ftp://u:p@host/debian' }, /^image_source: a URL with a login cannot be stored here$/],
  [{ image_source: 'http://u:p@host:99999/debian' }, /^image_source: a URL with a login cannot be stored here$/],
  [{ image_source: 'http://host:99999/debian' }, /^image_source: it is not a valid URL$/],
  [{ image_source: 'http://host/debian?temp_url_expires=1&temp_url_sig=00' }, /^image_source: a signed URL cannot be stored here$/],
  [{ image_source: 'http://host/debian?Expires=1&Signature=00&Key-Pair-Id=1' }, /^image_source: a signed URL cannot be stored here$/],
  [{ image_source: 'http://host/debian?X-Goog-Signature=00' }, /^image_source: a signed URL cannot be stored here$/],
  [{ image_source: 'http://host/debian?%73ig=00' }, /^image_source: a signed URL cannot be stored here$/],
  [{ image_source: 'http://host/debian?temp%5furl_sig=00' }, /^image_source: a signed URL cannot be stored here$/],
  [{ image_source: 'http://host/debian?a=1&access_token=00' }, /^image_source: a signed URL cannot be stored here$/],
  [{ image_source: 'http://host/debian#sig=00' }, /^image_source: a signed URL cannot be stored here$/],
  [{ image_checksum: 'http://u:p@host/SHA256SUMS' }, /^image_checksum: a URL with a login cannot be stored here$/],
  [{ image_checksum: 'SHA256SUMS' }, 'image_checksum: it is neither a URL (http, https, file) nor a checksum in hexadecimal'],
  [{ image_os_hash_algo: 'sha256' }, 'image_os_hash_algo and image_os_hash_value need each other'],
  [{ image_os_hash_value: 'a'.repeat(64) }, 'image_os_hash_algo and image_os_hash_value need each other'],
  [
    { image_os_hash_algo: 'sha512', image_os_hash_value: 'a'.repeat(64) },
    'image_os_hash_value: a value of sha512 has 128 hexadecimal digits',
  ],
  [{ image_os_hash_algo: 'md5', image_os_hash_value: 'a' }, "image_os_hash_algo: 'md5' must be one of sha256, sha384, sha512"],
  [{ name: undefined }, /'name' is a required property/],
])('refuses %j', async (fields, fault) => {
  const { status, fault: words } = await create(fields);
  expect(status).toBe(400);
  expect(words).toMatch(fault);
});
it('refuses a name that another image has, and a change that leaves an invalid image', async () => {
  await create({ uuid: UUID });
  expect(await create({})).toMatchObject({ status: 409, fault: 'An image with name debian-13 already exists.' });
  expect(await create({ name: 'x', uuid: UUID })).toMatchObject({ status: 409, fault: `An image with UUID ${UUID} already exists.` });
  expect(await patch([{ op: 'add', path: '/image_os_hash_algo', value: 'sha256' }])).toMatchObject({ status: 400 });
});
it('writes the fields of a file together: after two concurrent changes, the last one is complete', async () => {
  await create({ uuid: UUID });
  const { images } = api.database.store();
  const hashed = { image_os_hash_algo: 'sha256', image_os_hash_value: 'a'.repeat(64) };
  // Another update is written after the tested one has read the image.
  const update = jest.spyOn(images, 'update').mockImplementationOnce(async (uuid, changes) => {
    await images.update(uuid, hashed);
    return images.update(uuid, changes);
  });
  const changed = await patch([{ op: 'replace', path: '/image_source', value: 'http://192.0.2.1/other' }]);
  expect([changed.status, update.mock.calls.length]).toEqual([200, 3]);
  update.mockRestore();
  const other = { image_source: 'http://192.0.2.1/other', image_os_hash_algo: null, image_os_hash_value: null };
  expect((await api.ask('GET', `/v1/images/${UUID}`)).body).toMatchObject(other);
});
it('a change of the description keeps the file of a concurrent change', async () => {
  await create({ uuid: UUID });
  const { images } = api.database.store();
  const update = jest.spyOn(images, 'update').mockImplementationOnce(async (uuid, changes) => {
    await images.update(uuid, { image_source: 'http://192.0.2.1/other' });
    return images.update(uuid, changes);
  });
  const changed = await patch([{ op: 'add', path: '/description', value: 'new' }]);
  update.mockRestore();
  expect([changed.status, changed.body]).toMatchObject([200, { description: 'new', image_source: 'http://192.0.2.1/other' }]);
});
