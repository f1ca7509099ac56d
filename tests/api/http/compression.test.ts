import { gunzipSync } from 'node:zlib';
import { compressed } from '../../../api/http/compression';

const large = { status: 200, bytes: [Buffer.from('[1'), Buffer.alloc(20_000, ' '), Buffer.from(']')], headers: { 'X-Own': 'kept' } };
const page = { 'sec-fetch-site': 'same-origin', 'accept-encoding': 'gzip, deflate, br' };

it('compresses a large list for the page', async () => {
  const { bytes, headers } = await compressed(page, large);
  expect(headers).toEqual({ 'X-Own': 'kept', 'Content-Encoding': 'gzip', Vary: 'Accept-Encoding' });
  expect(gunzipSync(Buffer.concat(bytes))).toEqual(Buffer.concat(large.bytes));
});
it.each([
  ['of a client that is not a browser', { 'accept-encoding': 'gzip, deflate' }, large],
  ['of a page of another origin', { ...page, 'sec-fetch-site': 'cross-site' }, large],
  ['of a browser without gzip', { ...page, 'accept-encoding': 'br' }, large],
  ['with a small response', page, { status: 200, bytes: [Buffer.from('[]')] }],
  ['with a text response', page, { status: 200, text: '[]', headers: {} }],
])('does not compress the response to a request %s', (_, headers, answer) => {
  expect(compressed(headers, answer)).toBe(answer);
});
