/** Pages of other origins: CORS headers by the options of [cors], as in oslo.middleware, and a defence against forged requests. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Options } from '../../config/options';
import { HEADER, MAXIMUM, MINIMUM } from '../../model/versions';
import { Unread } from './errors';
import { baseOf } from './forwarded';

/** Headers that a page may always send. */
const SIMPLE = [
  'Accept',
  'Accept-Language',
  'Content-Type',
  'Cache-Control',
  'Content-Language',
  'Expires',
  'Last-Modified',
  'Pragma',
  'X-Auth-Token',
  MAXIMUM,
  MINIMUM,
  HEADER,
];
type Cors = (method: string | undefined, headers: IncomingHttpHeaders) => Readonly<Record<string, string>>;

/** The value of Access-Control-Allow-Origin; undefined: the origin is not allowed. */
const permittedOrigin = (origin: string, allowed: readonly string[]): string | undefined =>
  allowed.includes(origin) ? origin : allowed.includes('*') ? '*' : undefined;

/** Pages of other origins may send this type only after a preflight request (OPTIONS). */
const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json$/i;
/** Host and port, without a default port. Undefined if the text is not a URL, such as `null`, the Origin of pages without an origin. */
const hostOf = (url: string): string | undefined => (URL.canParse(url) ? new URL(url).host : undefined);
/** Whether a page of this server sent the request: browsers say so in `Origin`, which no page can change. */
export function isOfOwnPage(request: IncomingMessage, options: Options): boolean {
  const { origin = '', host = '' } = request.headers;
  const from = hostOf(origin);
  // Only hosts are compared: behind a proxy the scheme of the origin may differ.
  return from !== undefined && [baseOf(request, options), `http://${host}`].some((own) => hostOf(own) === from);
}
/**
 * Whether a page of another origin may have sent this request without a preflight request. Browsers send forms, plain text and empty
 * bodies so, with the login of their user. For methods other than POST they make a preflight request first.
 */
function isForged(request: IncomingMessage, options: Options): boolean {
  const { method, headers } = request;
  const { origin } = headers;
  if (method !== 'POST' || origin === undefined || permittedOrigin(origin, options['cors.allowed_origin']) !== undefined) return false;
  const [type = ''] = (headers['content-type'] ?? '').split(';', 1);
  if (JSON_TYPE.test(type.trim())) return false;
  return !isOfOwnPage(request, options);
}

/** @throws Unread for a request that may be forged */
export function refuseCrossOriginForgery(request: IncomingMessage, options: Options): void {
  if (isForged(request, options)) throw new Unread(415, 'Pages of other origins may send JSON only, with its Content-Type.');
}

/** @returns the headers to add to the response; none if the origin, the method or a header is not allowed */
export function createCors(options: Options): Cors {
  const allowed = options['cors.allowed_origin'];
  const methods = options['cors.allow_methods'];
  const names = new Set([...options['cors.allow_headers'], ...SIMPLE].map((name) => name.toLowerCase()));
  const maxAge = options['cors.max_age'];
  const exposed = options['cors.expose_headers'];
  return (method, headers) => {
    const { origin } = headers;
    if (origin === undefined) return {};
    const permitted = permittedOrigin(origin, allowed);
    if (permitted === undefined) return {};
    const basic = {
      Vary: 'Origin',
      'Access-Control-Allow-Origin': permitted,
      ...(options['cors.allow_credentials'] ? { 'Access-Control-Allow-Credentials': 'true' } : {}),
    };
    if (method !== 'OPTIONS') return { ...basic, ...(exposed.length > 0 ? { 'Access-Control-Expose-Headers': exposed.join(',') } : {}) };
    const requestedMethod = headers['access-control-request-method'];
    const requestedHeaders = (headers['access-control-request-headers'] ?? '')
      .split(',')
      .map((name) => name.trim())
      .filter(Boolean);
    if (
      requestedMethod === undefined ||
      !methods.includes(requestedMethod) ||
      !requestedHeaders.every((name) => names.has(name.toLowerCase()))
    )
      return {};
    return {
      ...basic,
      ...(maxAge > 0 ? { 'Access-Control-Max-Age': String(maxAge) } : {}),
      'Access-Control-Allow-Methods': requestedMethod,
      ...(requestedHeaders.length > 0 ? { 'Access-Control-Allow-Headers': requestedHeaders.join(',') } : {}),
    };
  };
}
