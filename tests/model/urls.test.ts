import { basicAuthorization, credentialsOf, withoutCredentials } from '../../model/urls';

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
])('%s', (url, credentials, bare) => {
  expect([credentialsOf(url), withoutCredentials(url)]).toEqual([credentials, bare]);
});

it('makes the header of them', () => {
  expect(basicAuthorization({ username: 'u', password: 'p' })).toEqual({ authorization: 'Basic dTpw' });
  expect(basicAuthorization(undefined)).toEqual({});
});
