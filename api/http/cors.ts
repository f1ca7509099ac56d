/** Headers that let pages of other origins ask here: the options of [cors], as oslo.middleware reads them. */
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

/** @returns the headers to add to the answer; none when the origin is not allowed, or the page may not ask so */
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
    const wanted = headers['access-control-request-method'];
    const asked = (headers['access-control-request-headers'] ?? '')
      .split(',')
      .map((name) => name.trim())
      .filter(Boolean);
    if (wanted === undefined || !methods.includes(wanted) || !asked.every((name) => names.has(name.toLowerCase()))) return {};
    return {
      ...basic,
      ...(maxAge > 0 ? { 'Access-Control-Max-Age': String(maxAge) } : {}),
      'Access-Control-Allow-Methods': wanted,
      ...(asked.length > 0 ? { 'Access-Control-Allow-Headers': asked.join(',') } : {}),
    };
  };
}
