import { checkImageServerLogin, imageServerLogin, type ImageServerOptions } from '../../wire/image-servers';
import type { Options } from '../../config/options';
import { optionsOf } from '../support/options';

const LOGIN = { username: 'images', password: 'hush' };
const given = (hosts: readonly string[], permitsUnknown = true, changes: Partial<Options> = {}): ImageServerOptions =>
  optionsOf({
    'deploy.image_server_auth_strategy': 'http_basic',
    'deploy.image_server_user': LOGIN.username,
    'deploy.image_server_password': LOGIN.password,
    'deploy.image_server_auth_hosts': [...hosts],
    'deploy.image_server_auth_permit_unknown_hosts': permitsUnknown,
    ...changes,
  });

it.each<[string, readonly string[], boolean, boolean]>([
  ['http://anywhere/x', [], true, true],
  ['http://anywhere/x', [], false, false],
  ['https://images.example.com:8443/x', ['images.example.com'], false, true],
  ['https://IMAGES.example.com/x', ['Images.Example.com'], true, true],
  ['https://images.example.com.evil.test/x', ['images.example.com', '.example.com'], true, false],
  ['https://evil.test/images.example.com', ['images.example.com'], true, false],
  ['https://images.example.com@evil.test/x', ['images.example.com'], true, false],
  ['https://a.example.com/x', ['.example.com'], true, true],
  ['https://example.com/x', ['.example.com'], true, false],
  ['https://badexample.com/x', ['.example.com'], true, false],
  ['http://[2001:db8::1]:80/x', ['2001:db8::1'], true, true],
  ['file:///x', [], true, false],
  ['http://images.example.com\\@evil.test/x', ['images.example.com'], true, false],
  ['http://images.example.com\\@evil.test/x', [], true, false],
  ['http://ima\tges.example.com/x', ['images.example.com'], true, false],
  ['http://user:word@images.example.com/x', ['images.example.com'], true, true],
  ['http://', [], true, false],
])('imageServerLogin(%s) with the hosts %j (unknown ones permitted: %s) returns the login: %s', (url, hosts, permitsUnknown, gets) => {
  expect(imageServerLogin(url, given(hosts, permitsUnknown))).toEqual(gets ? LOGIN : undefined);
});

it('imageServerLogin returns nothing with the strategy noauth', () => {
  const noauth = given([], true, { 'deploy.image_server_auth_strategy': 'noauth' });
  expect(imageServerLogin('http://x/y', noauth)).toBeUndefined();
});

it.each<[Partial<Options>, string]>([
  [{ 'deploy.image_server_user': null }, "['image_server_user']"],
  [{ 'deploy.image_server_user': '', 'deploy.image_server_password': null }, "['image_server_user', 'image_server_password']"],
])('imageServerLogin rejects an incomplete login: %j', (changes, missing) => {
  expect(() => imageServerLogin('http://x/y', given([], true, changes))).toThrow(
    `Missing ${missing} fields from HTTP(S) basic auth config`,
  );
});

describe('checkImageServerLogin', () => {
  it.each<[ImageServerOptions, number]>([
    [given([], true), 1],
    [given([], true, { 'deploy.image_server_auth_strategy': 'noauth' }), 1],
    [given([], false), 0],
    [given(['images.example.com'], true), 0],
    [given([], true, { 'deploy.image_server_auth_strategy': 'noauth', 'deploy.image_server_user': null }), 0],
  ])('warns only if every host gets the login, case %#', (options, warnings) => {
    expect(checkImageServerLogin(options)).toHaveLength(warnings);
  });
  it('rejects an incomplete login', () => {
    expect(() => checkImageServerLogin(given([], false, { 'deploy.image_server_password': null }))).toThrow(
      '[deploy]image_server_auth_strategy = http_basic needs [deploy]image_server_password',
    );
  });
});
