/** Downloads of a BMC: images for virtual media and for firmware. */
import { reasonOf } from '../../../model/errors';
import { basicAuthorization } from '../../../model/urls';
import type { Service } from './routes';
import { timeoutSignal } from '../../../wire/timeout-signal';

interface Download {
  readonly url: string;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
}
const DOWNLOAD_TIMEOUT_MS = 300_000;
const MAX_BYTES = 8 * 2 ** 30;

export const isFetchable = (url: unknown): url is string =>
  typeof url === 'string' && url.length <= 2048 && /^https?:\/\/[^/\s]/.test(url) && URL.canParse(url);

/**
 * @param method HEAD: only checks that the server has the file
 * @param headBytes how many bytes of the file's beginning to return
 * @returns the file's beginning and its size in bytes, or the reason of a failure
 */
export async function download(
  service: Service,
  { url, username = '', password = '' }: Download,
  method: 'GET' | 'HEAD',
  headBytes: number,
): Promise<{ readonly head: Buffer; readonly size: number } | string> {
  const login = basicAuthorization(username === '' ? undefined : { username, password });
  try {
    const signal = timeoutSignal(DOWNLOAD_TIMEOUT_MS, service.signal);
    const answer = await service.http.request(url, { method, headers: login, signal });
    if (answer.status !== 200) {
      await answer.drain();
      return `the server answers ${answer.status}`;
    }
    if (method === 'HEAD') {
      await answer.drain();
      return { head: Buffer.alloc(0), size: Number(answer.header('content-length') ?? 0) };
    }
    let head = Buffer.alloc(0);
    let size = 0;
    for await (const part of answer.body) {
      if (head.length < headBytes) head = Buffer.concat([head, part]).subarray(0, headBytes);
      size += part.length;
      if (size > MAX_BYTES) return 'it is too long';
    }
    return { head, size };
  } catch (error) {
    return reasonOf(error);
  }
}
