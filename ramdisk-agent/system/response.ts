/**
 * Responses of HTTP/1.1 (RFC 9112), as bytes: the head, and what of the rest is the body. It takes less than Node's client does: a server that
 * sends something doubtful is refused.
 */

export interface Head {
  readonly status: number;
  /** By names in lower case; the first of several values. */
  readonly headers: ReadonlyMap<string, string>;
}

/** Bytes of a head. Node's client has the same limit. */
export const MAX_HEAD = 16 * 2 ** 10;
/** Header lines. */
const MAX_HEADERS = 200;
const STATUS_LINE = /^HTTP\/1\.[01] (\d{3})(?: [\t\x20-\x7e\x80-\xff]*)?$/;
const HEADER = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t\x20-\x7e\x80-\xff]*)$/;
/** Two of them are refused, since recipients may differ about which one counts. */
const SINGLE: readonly string[] = ['content-length', 'transfer-encoding'];

/**
 * @param text latin1, without the empty line at the end
 * @throws Error for what is no head of HTTP/1.0 or HTTP/1.1
 */
export function parseHead(text: string): Head {
  const [first = '', ...lines] = text.split('\r\n');
  const status = STATUS_LINE.exec(first)?.[1];
  if (status === undefined) throw new Error('the response is not HTTP/1.1');
  if (lines.length > MAX_HEADERS) throw new Error(`the response has more than ${MAX_HEADERS} headers`);
  const headers = new Map<string, string>();
  for (const line of lines) {
    const found = HEADER.exec(line);
    if (!found) throw new Error('the response has a header that is not valid');
    const name = found[1]!.toLowerCase();
    if (!headers.has(name)) headers.set(name, found[2]!.trim());
    else if (SINGLE.includes(name)) throw new Error(`the response has several headers ${name}`);
  }
  return { status: Number(status), headers };
}

/** The body, which arrives bit by bit in memory of the caller's. */
export interface Body {
  /** Bytes, if the head tells them. */
  readonly length: number | null;
  /**
   * Takes what has arrived at `start` to `end`, and moves those bytes that are of the body to `start`.
   * @returns their end
   * @throws Error for an encoding that is not valid
   */
  take(bytes: Buffer, start: number, end: number): number;
  /** Nothing of the body is missing. What follows is not of this response. */
  isComplete(): boolean;
  /** Whether the end of the connection is the end of the body. */
  readonly endsWithConnection: boolean;
}

/** RFC 9112, 6.3. @throws Error for a length or an encoding that is not valid */
export function bodyOf({ status, headers }: Head): Body {
  const [coding, length] = [headers.get('transfer-encoding'), headers.get('content-length')];
  if (status === 204 || status === 304) return ofLength(0);
  if (coding !== undefined) {
    if (length !== undefined) throw new Error('the response has both Content-Length and Transfer-Encoding');
    if (coding.toLowerCase() !== 'chunked') throw new Error('the response has a Transfer-Encoding other than chunked');
    return chunked();
  }
  if (length === undefined) return untilTheEnd;
  if (!/^\d{1,15}$/.test(length)) throw new Error('the response has a Content-Length that is not valid');
  return ofLength(Number(length));
}

function ofLength(length: number): Body {
  let missing = length;
  return {
    length,
    take(_, start, end) {
      const taken = Math.min(missing, end - start);
      missing -= taken;
      return start + taken;
    },
    isComplete: () => missing === 0,
    endsWithConnection: false,
  };
}
const untilTheEnd: Body = { length: null, take: (_, __, end) => end, isComplete: () => false, endsWithConnection: true };

/** Bytes of the line before a chunk, which may have extensions, and of all trailers. */
const MAX_LINE = 4 * 2 ** 10;
const MAX_TRAILERS = MAX_HEAD;
const CHUNK_LINE = /^([0-9A-Fa-f]{1,13})[\t ]*(?:;[\t\x20-\x7e\x80-\xff]*)?$/;
const LF = 0x0a;

/** RFC 9112, 7.1: lines, and after a line that has a number so many bytes and an empty line. The last number is 0; trailers follow it. */
function chunked(): Body {
  let line = '';
  let [missing, trailers] = [0, 0];
  let expected: 'size' | 'empty line' | 'trailer' | 'nothing' = 'size';
  const lineOver = (): void => {
    if (!line.endsWith('\r')) throw new Error('a line of the chunked response does not end with CR LF');
    const text = line.slice(0, -1);
    line = '';
    if (expected === 'size') {
      const size = CHUNK_LINE.exec(text)?.[1];
      if (size === undefined) throw new Error('a chunk of the response has no valid size');
      missing = parseInt(size, 16);
      expected = missing > 0 ? 'empty line' : 'trailer';
    } else if (expected === 'empty line') {
      if (text !== '') throw new Error('a chunk of the response is longer than its size');
      expected = 'size';
    } else if (text === '') expected = 'nothing';
    else if (!HEADER.test(text)) throw new Error('the response has a trailer that is not valid');
    else trailers += text.length;
  };
  return {
    length: null,
    take(bytes, start, end) {
      let to = start;
      for (let at = start; at < end && expected !== 'nothing';) {
        if (missing > 0) {
          const count = Math.min(missing, end - at);
          bytes.copyWithin(to, at, at + count);
          to += count;
          at += count;
          missing -= count;
          continue;
        }
        // One more byte than fits: a line that is too long is seen by its length.
        const most = Math.min(end, at + MAX_LINE + 1);
        const found = bytes.subarray(at, most).indexOf(LF);
        const stop = found < 0 ? most : at + found;
        line += bytes.toString('latin1', at, stop);
        if (line.length > MAX_LINE || trailers + line.length > MAX_TRAILERS) throw new Error('a line of the chunked response is too long');
        at = stop;
        if (found < 0) continue;
        at += 1;
        lineOver();
      }
      return to;
    },
    isComplete: () => expected === 'nothing',
    endsWithConnection: false,
  };
}
