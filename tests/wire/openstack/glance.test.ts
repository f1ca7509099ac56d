import { glanceId, mayUseImage, parseImage } from '../../../wire/openstack/glance';

const ID = '3a1f0b5c-2d4e-4f60-8a7b-9c0d1e2f3a4b';

test.each([
  [ID, ID],
  [`glance://${ID}`, ID],
  [`glance://image/${ID}`, ID],
  [ID.replaceAll('-', ''), ID.replaceAll('-', '')],
  ['glance://tiny', undefined],
  [`http://host/${ID}`, undefined],
  [`${ID}0`, undefined],
  ['', undefined],
])('glanceId(%p) is %p', (href, id) => {
  expect(glanceId(href)).toBe(id);
});

test('parseImage reads the attributes and custom properties of an image', () => {
  const body = {
    id: ID,
    name: 'tiny',
    status: 'active',
    visibility: 'public',
    owner: 'p',
    size: 1024,
    disk_format: 'raw',
    container_format: 'bare',
    checksum: 'c',
    os_hash_algo: 'sha512',
    os_hash_value: 'h',
    tags: ['a', 1],
    min_disk: 0,
    min_ram: 0,
    protected: false,
    self: '/v2/x',
    kernel_id: 'k',
    img_type: 'partition',
    os_distro: '',
    virtual_size: null,
    direct_url: 'swift+https://key@host/x',
  };
  expect(parseImage(body)).toEqual({
    id: ID,
    status: 'active',
    visibility: 'public',
    owner: 'p',
    size: 1024,
    diskFormat: 'raw',
    containerFormat: 'bare',
    checksum: 'c',
    hashAlgorithm: 'sha512',
    hash: 'h',
    tags: ['a'],
    properties: { kernel_id: 'k', img_type: 'partition' },
  });
  for (const wrong of [undefined, null, 'text', [], {}, { id: 1 }]) expect(parseImage(wrong)).toBeUndefined();
  expect(parseImage({ id: ID })).toMatchObject({ status: '', visibility: '', owner: null, size: null, tags: [], properties: {} });
});

// Visibility, owner, members; the caller; whether administrators are checked too.
const [OWN, CALLERS, OTHER] = ['service', 'mine', 'theirs'];
test.each([
  ['public', OTHER, [], { project: CALLERS }, false, true],
  ['community', OTHER, [], { project: null }, false, true],
  ['private', OTHER, [], { project: OTHER }, false, false],
  ['private', OTHER, [], { project: null }, false, false],
  ['private', OTHER, [], { admin: true, project: CALLERS }, false, true],
  ['private', OTHER, [], { admin: true, project: CALLERS }, true, false],
  ['private', OWN, [], { project: null }, false, true],
  ['private', OWN, [], { project: CALLERS }, false, false],
  ['private', OWN, [], { admin: true, project: CALLERS }, true, true],
  ['shared', CALLERS, [OWN], { project: CALLERS }, false, true],
  ['shared', OTHER, [OWN], { project: CALLERS }, false, false],
  ['shared', OTHER, [OWN, CALLERS], { project: CALLERS }, false, true],
  ['shared', OTHER, [CALLERS], { project: CALLERS }, false, false],
  ['shared', OTHER, [OWN], { project: null }, false, true],
  ['', OWN, [], { project: null }, false, false],
] as const)(
  'mayUseImage for visibility "%s", owner %s, members %j, caller %j, administrators checked %s: %s',
  (visibility, owner, members, user, checks, usable) => {
    expect(mayUseImage({ visibility, owner }, members, { admin: false, ...user, ownProject: OWN }, checks)).toBe(usable);
  },
);
