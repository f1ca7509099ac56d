import { containerOf, tempUrlPath, withoutAccount } from '../../../wire/openstack/temp-url';

const ID = '3a1f0b5c-2d4e-4f60-8a7b-9c0d1e2f3a4b';

test('tempUrlPath signs method, time and path with HMAC-SHA256', () => {
  const url = { method: 'GET', path: '/v1/AUTH_p/glance/o', expires: 1_700_000_000, key: 'k' } as const;
  const signature = (changed: object = {}): string => /sig=(\w+)/.exec(tempUrlPath({ ...url, ...changed }))![1]!;
  // printf 'GET\n1700000000\n/v1/AUTH_p/glance/o' | openssl dgst -sha256 -hmac k
  expect(tempUrlPath(url)).toBe(
    '/v1/AUTH_p/glance/o?temp_url_sig=4947fa0440a89b8a127b263fef982874e80211c9966d96aa4ae35939686c79e4&temp_url_expires=1700000000',
  );
  const others = [{ method: 'PUT' }, { path: '/v1/AUTH_p/glance/p' }, { expires: 1_700_000_001 }, { key: 'l' }].map(signature);
  expect(new Set([signature(), ...others]).size).toBe(5);
  expect(signature({ path: '/v1/AUTH_p/a%20b/o' })).toBe(signature({ path: '/v1/AUTH_p/a b/o' }));
});

test.each([
  [0, 'glance'],
  [3, 'glance_3a1'],
  [8, 'glance_3a1f0b5c'],
  [9, 'glance_3a1f0b5c-2'],
  [32, `glance_${ID}`],
])('containerOf with %i characters of the image ID is %s', (seed, expected) => {
  expect(containerOf('glance', ID.toUpperCase(), seed)).toBe(expected);
});

test.each([
  ['https://swift/v1/AUTH_abc', 'https://swift'],
  ['https://swift/v1/AUTH_abc/', 'https://swift'],
  ['https://swift', 'https://swift'],
  ['https://swift/v1/AUTH_', 'https://swift/v1/AUTH_'],
  ['https://swift/v1/other', 'https://swift/v1/other'],
  ['https://rgw/swift/v1/AUTH_abc', 'https://rgw/swift'],
])('withoutAccount(%s) is %s', (endpoint, expected) => {
  expect(withoutAccount(endpoint, 'AUTH_')).toBe(expected);
});
