/** Content negotiation by the Accept header (RFC 9110 §12.5.1), with Ironic's leniency. */
import Negotiator from 'negotiator';

const negotiator = (accept: string): Negotiator => new Negotiator({ headers: { accept } });

/** Ironic ignores a header that names no media range, and one that begins with the type whatever its parameters are. */
export const accepts = (header: string | undefined, type: string): boolean =>
  !header || header === '*/*' || header.startsWith(type) || !header.includes('/') || negotiator(header).mediaType([type]) !== undefined;

/** The offer that the caller prefers, of equals the first. Undefined: the caller accepts none. */
export const preferred = (header: string | undefined, offers: readonly string[]): string | undefined =>
  header?.includes('/') ? negotiator(header).mediaType([...offers]) : offers[0];
