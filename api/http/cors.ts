/** CORS headers for pages of other origins: the options of [cors], as in oslo.middleware. */
import type { IncomingHttpHeaders } from 'node:http';
import type { Options } from '../../config/options';
import { HEADER, MAXIMUM, MINIMUM } from '../../model/versions';

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
export type Cors = (method: string | undefined, headers: IncomingHttpHeaders) => Readonly<Record<string, string>>;

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
    const permitted = allowed.includes(origin) ? origin : allowed.includes('*') ? '*' : undefined;
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
