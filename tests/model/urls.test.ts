import { basicAuthorization, credentialsOf, withoutCredentials, withoutUrlCredentials } from '../../model/urls';

it.each([
  ['http://images/x.iso', undefined, 'http://images/x.iso'],
  ['http://u:p@images/x.iso', { username: 'u', password: 'p' }, 'http://images/x.iso'],
  ['HTTPS://u@images:8443/', { username: 'u', password: '' }, 'HTTPS://images:8443/'],
  ['cifs://u:a:b@host/share', { username: 'u', password: 'a:b' }, 'cifs://host/share'],
  ['http://u%40x:p%2Fq@images', { username: 'u@x', password: 'p/q' }, 'http://images'],
  ['http://u:50%@images/', { username: 'u', password: '50%' }, 'http://images/'],
  ['http://u:p@q@images/', { username: 'u', password: 'p@q' }, 'http://images/'],
  ['http://@images/', undefined, 'http://images/'],
  ['http://images/a@b:c', undefined, 'http://images/a@b:c'],
  ['http://images?a=u:p@b', undefined, 'http://images?a=u:p@b'],
  ['/a/b@c', undefined, '/a/b@c'],
])('credentialsOf and withoutCredentials of %s', (url, credentials, bare) => {
  expect([credentialsOf(url), withoutCredentials(url)]).toEqual([credentials, bare]);
});

it.each([
  ['Failed: http://u:p@images/x.iso, then https://u@h:1/ too', 'Failed: http://images/x.iso, then https://h:1/ too'],
  ['{"a":"http://u:p@h/","b":"c@d"}', '{"a":"http://h/","b":"c@d"}'],
  ['{"a":"http://h","b":"c@d"}', '{"a":"http://h","b":"c@d"}'],
  ['http://h/a@b and c@d', 'http://h/a@b and c@d'],
  ['http://u:p@q@h/', 'http://h/'],
])('withoutUrlCredentials("%s")', (text, bare) => expect(withoutUrlCredentials(text)).toBe(bare));

it('basicAuthorization returns the header for credentials', () => {
  expect(basicAuthorization({ username: 'u', password: 'p' })).toEqual({ authorization: 'Basic dTpw' });
  expect(basicAuthorization(undefined)).toEqual({});
});
