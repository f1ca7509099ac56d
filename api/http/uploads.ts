/**
 * Limits the bodies that are being received and processed, in all and of each source: their number, their bytes, and how many large ones
 * are parsed at once. Half-sent bodies would otherwise fill the memory.
 */
import type { IncomingMessage } from 'node:http';
import { createShares, type ShareLimits } from '../../wire/shares';
import { hasBody, readBody, unpacked, type Body, type BodyLimits } from './body';
import { Unread } from './errors';
import { createFairTurns } from './fair-turns';

/** Requests whose body is incomplete. */
const REQUESTS: ShareLimits = { inAll: 1024, ofSource: 256 };
/** Bytes of bodies from their first byte to the end of the response. */
const BYTES: ShareLimits = { inAll: 256 << 20, ofSource: 128 << 20 };
/** The same limits for paths that take large bodies without authentication. */
const PUBLIC_BYTES: ShareLimits = { inAll: 64 << 20, ofSource: 32 << 20 };
/** Bodies for such paths that are unpacked, parsed and processed at once; and bodies that wait for their turn. */
const TURNS: ShareLimits = { inAll: 4, ofSource: 2 };
const WAITING: ShareLimits = { inAll: 512, ofSource: 256 };

const NO_BODY = Buffer.alloc(0);
const busy = (): Unread => new Unread(503, 'Too many requests are being received; please try again later.');

type Received = Pick<BodyLimits, 'bytes' | 'isFile' | 'isPublic'>;
/**
 * @param work gets the decompressed body
 * @throws Unread, what `work` throws
 */
type Receive = <T>(request: IncomingMessage, source: string, limits: Received, work: (body: Body) => Promise<T>) => Promise<T>;
export function createUploads(): Receive {
  const requests = createShares(REQUESTS);
  const general = createShares(BYTES);
  const open = createShares(PUBLIC_BYTES);
  const turn = createFairTurns({ running: TURNS, waiting: WAITING, refusal: busy });
  return async <T>(request: IncomingMessage, source: string, limits: Received, work: (body: Body) => Promise<T>): Promise<T> => {
    if (!hasBody(request)) return work(NO_BODY);
    if (!requests.take(source, 1)) throw busy();
    const bytes = limits.isPublic ? open : general;
    let held = 0;
    const reserve = (more: number): void => {
      if (!bytes.take(source, more)) throw busy();
      held += more;
    };
    try {
      const body = await readBody(request, limits, reserve).finally(() => requests.give(source, 1));
      const process = async (): Promise<T> => work(await unpacked(request, body, limits.bytes));
      return await (limits.isPublic ? turn(source, process) : process());
    } finally {
      if (held > 0) bytes.give(source, held);
    }
  };
}
