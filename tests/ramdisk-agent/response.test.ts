import { bodyOf, parseHead } from '../../ramdisk-agent/system/response';

const head = (lines: readonly string[]) => parseHead(['HTTP/1.1 200 OK', ...lines].join('\r\n'));
const many = (count: number): readonly string[] => Array.from({ length: count }, (_, index) => `x-${index}: ${index}`);

it.each<[string, string, number, Readonly<Record<string, string>>]>([
  ['a status alone', 'HTTP/1.1 204', 204, {}],
  ['an empty reason', 'HTTP/1.1 200 ', 200, {}],
  ['HTTP/1.0, and a reason of several words', 'HTTP/1.0 404 Not Found at all', 404, {}],
  ['names in any case, values without the spaces around', 'HTTP/1.1 200 OK\r\nConTENT-length: \t 5 \r\nX:\r\nY: a:b', 200, { 'content-length': '5', x: '', y: 'a:b' }], // prettier-ignore
  ['bytes that are not ASCII', 'HTTP/1.1 200 \xe9\r\nx: \xfc', 200, { x: '\xfc' }],
  ['the first of several values', 'HTTP/1.1 302 Found\r\nLocation: /a\r\nlocation: /b', 302, { location: '/a' }],
  ['as many headers as are allowed', ['HTTP/1.1 200 OK', ...many(200)].join('\r\n'), 200, { 'x-199': '199' }],
])('reads a head: %s', (_, text, status, headers) => {
  const read = parseHead(text);
  expect(read.status).toBe(status);
  expect(Object.fromEntries(read.headers)).toMatchObject(headers);
});

it.each<[string, string, RegExp]>([
  ['nothing', '', /not HTTP/],
  ['another protocol', 'SSH-2.0-OpenSSH_9.2', /not HTTP/],
  ['another version', 'HTTP/2 200', /not HTTP/],
  ['a status of two digits', 'HTTP/1.1 20 OK', /not HTTP/],
  ['a status of four digits', 'HTTP/1.1 2000', /not HTTP/],
  ['a control character in the reason', 'HTTP/1.1 200 O\0K', /not HTTP/],
  ['a bare LF', 'HTTP/1.1 200 OK\nx: 1', /not HTTP/],
  ['a bare LF in a header', 'HTTP/1.1 200 OK\r\nx: 1\ny: 2', /not valid/],
  ['a bare CR', 'HTTP/1.1 200 OK\r\nx: 1\r2', /not valid/],
  ['a header without a colon', 'HTTP/1.1 200 OK\r\nabc', /not valid/],
  ['a header without a name', 'HTTP/1.1 200 OK\r\n: 1', /not valid/],
  ['a space before the colon', 'HTTP/1.1 200 OK\r\nx : 1', /not valid/],
  ['a folded header', 'HTTP/1.1 200 OK\r\nx: 1\r\n 2', /not valid/],
  ['too many headers', ['HTTP/1.1 200 OK', ...many(201)].join('\r\n'), /more than 200/],
  ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\nContent-Length: 5', /several headers content-length/],
])('refuses a head with %s', (_, text, reason) => expect(() => parseHead(text)).toThrow(reason));

it.each<[string, readonly string[], RegExp]>([
  ['length and encoding', ['content-length: 5', 'transfer-encoding: chunked'], /both/],
  ['another encoding', ['transfer-encoding: gzip, chunked'], /other than chunked/],
  ['a negative length', ['content-length: -1'], /not valid/],
  ['a length with a sign', ['content-length: +1'], /not valid/],
  ['two lengths in one', ['content-length: 5, 5'], /not valid/],
  ['a hexadecimal length', ['content-length: 0x10'], /not valid/],
  ['an empty length', ['content-length:'], /not valid/],
  ['a length of 16 digits', ['content-length: 1000000000000000'], /not valid/],
])('refuses a body with %s', (_, lines, reason) => expect(() => bodyOf(head(lines))).toThrow(reason));

/** What a body consists of when it arrives in parts of the lengths. */
function received(lines: readonly string[], encoded: string, lengths: (index: number) => number) {
  const body = bodyOf(head(lines));
  const room = Buffer.alloc(encoded.length + 8, '~');
  let end = 0;
  for (let at = 0, index = 0; at < encoded.length; index++) {
    const part = encoded.slice(at, at + lengths(index));
    room.write(part, end, 'latin1');
    end = body.take(room, end, end + part.length);
    at += part.length;
  }
  return { content: room.toString('latin1', 0, end), isComplete: body.isComplete(), ends: body.endsWithConnection, length: body.length };
}
const CHUNKED = ['Transfer-Encoding: Chunked'];
it.each<[string, readonly string[], string, string, boolean]>([
  ['a length', ['content-length: 5'], 'hello', 'hello', true],
  ['a length, and what is not of it', ['content-length: 5'], 'hello, more', 'hello', true],
  ['a length, cut', ['content-length: 5'], 'hell', 'hell', false],
  ['no length', [], 'hello', 'hello', false],
  ['one chunk', CHUNKED, '5\r\nhello\r\n0\r\n\r\n', 'hello', true],
  ['chunks', CHUNKED, '1\r\nh\r\n00a\r\nello, worl\r\n1\r\nd\r\n0000\r\n\r\nHTTP/1.1 200', 'hello, world', true],
  ['sizes in both cases', CHUNKED, 'A\r\n0123456789\r\nb\r\n01234567890\r\n0\r\n\r\n', '012345678901234567890', true],
  ['line ends in the content', CHUNKED, '4\r\n\r\n\r\n\r\n0\r\n\r\n', '\r\n\r\n', true],
  ['extensions', CHUNKED, '5;a=b;c="d e"\r\nhello\r\n0 ;x\r\n\r\n', 'hello', true],
  ['trailers', CHUNKED, '5\r\nhello\r\n0\r\nx-sum: 12\r\ny:\r\n\r\n', 'hello', true],
  ['no content', CHUNKED, '0\r\n\r\n', '', true],
  ['a cut chunk', CHUNKED, '5\r\nhel', 'hel', false],
  ['no last chunk', CHUNKED, '5\r\nhello\r\n', 'hello', false],
  ['a cut end', CHUNKED, '5\r\nhello\r\n0\r\n\r', 'hello', false],
])('takes a body with %s, however it arrives', (_, lines, encoded, content, isComplete) => {
  for (let cut = 1; cut < encoded.length; cut++) {
    const { length, ends, ...rest } = received(lines, encoded, (index) => (index === 0 ? cut : encoded.length));
    expect(rest).toEqual({ content, isComplete });
    expect([length, ends]).toEqual([lines[0]?.startsWith('content-length') ? 5 : null, lines.length === 0]);
  }
  for (const size of [1, 2, 3, encoded.length]) expect(received(lines, encoded, () => size)).toMatchObject({ content, isComplete });
});

it.each<[string, string, RegExp]>([
  ['no size', '\r\nhello', /no valid size/],
  ['a size that is no number', 'x\r\n', /no valid size/],
  ['a negative size', '-5\r\n', /no valid size/],
  ['a size with 0x', '0x5\r\nhello\r\n', /no valid size/],
  ['a size of 14 digits', '10000000000000\r\n', /no valid size/],
  ['a space before the size', ' 5\r\nhello\r\n', /no valid size/],
  ['a control character in an extension', '5;\0\r\nhello\r\n', /no valid size/],
  ['a bare LF after the size', '5\nhello\r\n', /CR LF/],
  ['a bare LF after the content', '5\r\nhello\n0\r\n\r\n', /CR LF/],
  ['more content than its size', '4\r\nhello\r\n0\r\n\r\n', /longer than its size/],
  ['a trailer without a colon', '0\r\nabc\r\n\r\n', /trailer/],
  ['a long extension', `5;${'x'.repeat(5000)}`, /too long/],
  ['a size line without an end', '0'.repeat(5000), /too long/],
  ['many trailers', `0\r\n${`x: ${'y'.repeat(1000)}\r\n`.repeat(17)}`, /too long/],
])('refuses a chunked body with %s, however it arrives', (_, encoded, reason) => {
  for (const size of [1, 7, encoded.length]) expect(() => received(CHUNKED, encoded, () => size)).toThrow(reason);
});

it.each([204, 304])('a response %i has no body', (status) => {
  const body = bodyOf(parseHead(`HTTP/1.1 ${status}\r\ncontent-length: 5`));
  expect([body.isComplete(), body.length]).toEqual([true, 0]);
});
