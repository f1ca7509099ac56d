import type { IncomingMessage } from 'node:http';
import { peerOf, sourceOf } from '../../../api/http/source';

const source = (remoteAddress: string, forwarded?: string, behindProxy = true): string =>
  sourceOf({ headers: { 'x-forwarded-for': forwarded }, socket: { remoteAddress } } as unknown as IncomingMessage, {
    'oslo_middleware.enable_proxy_headers_parsing': behindProxy,
  });

it.each<[string, string | undefined, boolean, string]>([
  ['192.0.2.1', undefined, true, '192.0.2.1'],
  ['192.0.2.1', '198.51.100.7', false, '192.0.2.1'],
  ['192.0.2.1', '198.51.100.7', true, '198.51.100.7'],
  ['192.0.2.1', '203.0.113.1, 198.51.100.7', true, '198.51.100.7'],
  ['192.0.2.1', '', true, '192.0.2.1'],
  ['::ffff:192.0.2.1', undefined, true, '::ffff:192.0.2.1'],
  ['2001:db8:1:2:3:4:5:6', undefined, true, '2001:db8:1:2'],
  ['2001:db8::6', undefined, true, '2001:db8:0:0'],
  ['::1', undefined, true, '0:0:0:0'],
])('the source of %s with X-Forwarded-For %s (behind a proxy: %s) is %s', (...[remote, forwarded, behindProxy, expected]) =>
  expect(source(remote, forwarded, behindProxy)).toBe(expected),
);

it.each<[string | undefined, object, boolean, string | undefined, boolean]>([
  ['::ffff:192.0.2.1', {}, true, '192.0.2.1', false],
  ['192.0.2.1', { 'x-forwarded-for': '198.51.100.7' }, false, '192.0.2.1', false],
  ['192.0.2.1', { 'x-forwarded-for': '203.0.113.1, 198.51.100.7' }, true, '198.51.100.7', true],
  ['192.0.2.1', { 'x-forwarded-for': 'unknown' }, true, undefined, true],
  ['192.0.2.1', { forwarded: 'for=203.0.113.1, proto=http;for=198.51.100.7;by=192.0.2.1' }, true, '198.51.100.7', true],
  ['192.0.2.1', { forwarded: 'For="[2001:DB8::1]:4711"' }, true, '2001:db8::1', true],
  ['192.0.2.1', { forwarded: 'for=198.51.100.7:80' }, true, '198.51.100.7', true],
  ['192.0.2.1', { forwarded: 'proto=https' }, true, '192.0.2.1', false],
  [undefined, {}, true, undefined, false],
  ['127.0.0.1', {}, false, '127.0.0.1', false],
  ['::ffff:127.0.0.1', { 'x-forwarded-for': '203.0.113.1, 198.51.100.7' }, false, undefined, true],
  ['127.0.0.1', { forwarded: 'for=198.51.100.7' }, false, undefined, true],
  ['127.0.0.1', { forwarded: 'proto=https' }, true, undefined, true],
  ['127.0.0.1', { 'x-forwarded-for': '', forwarded: 'for=198.51.100.7' }, false, undefined, true],
  ['127.0.0.1', { 'x-forwarded-for': '127.0.0.1' }, false, undefined, true],
  ['::1', { 'x-forwarded-for': '' }, false, '::1', false],
  [undefined, { 'x-forwarded-for': '198.51.100.7' }, false, undefined, true],
  [undefined, { 'x-forwarded-for': '198.51.100.7' }, true, '198.51.100.7', true],
  ['::ffff:192.0.2.1', { 'x-forwarded-for': '127.0.0.1' }, false, '192.0.2.1', false],
])('the client of %s with %j (behind a proxy: %s) is %s', (remoteAddress, headers, behindProxy, address, isReported) => {
  const request = { headers, socket: { remoteAddress, localPort: 6385 } } as unknown as IncomingMessage;
  const peer = peerOf(request, { 'oslo_middleware.enable_proxy_headers_parsing': behindProxy });
  expect(peer).toEqual({ address, isReported, listenerPort: 6385 });
});
