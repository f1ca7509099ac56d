/** gzip for large answers, for callers that ask for it. Others do not pass through the middleware at all. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { constants } from 'node:zlib';
import compression from 'compression';
import type { RequestHandler } from 'express';

/** Bytes. A list of some fifty nodes is longer; a single resource costs more to compress than to send. */
const THRESHOLD = 16 * 1024;
/** Streams flush each event, and assets of the page are cached by browsers. */
const isJson = (_: IncomingMessage, response: ServerResponse): boolean => response.getHeader('Content-Type') === 'application/json';

export function compressLargeAnswers(): RequestHandler {
  const compress = compression({ threshold: THRESHOLD, level: constants.Z_BEST_SPEED, filter: isJson });
  return (request, response, next) => {
    if (request.headers['accept-encoding'] === undefined) next();
    else compress(request, response, next);
  };
}
