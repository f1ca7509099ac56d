/** The requests that need no authentication, whatever the strategy. */

/** Version discovery and ramdisk endpoints. Matched before percent-decoding, so that the router cannot read another path in it. */
const PUBLIC = /^(?:\/?|\/v1|\/v1\/lookup|\/v1\/heartbeat\/[a-z0-9-]+|\/v1\/continue_inspection)(?:\.json|\.xml)?$/;
/** The pushes of recorders and the registrations of resident agents, which authenticate with tokens of their own. */
const PUSH = /^\/v1\/nodes\/[0-9a-f-]{36}\/(?:hardware|resident_agent)$/;
/** The parts of snapshots, which agents send with the token of their node. */
const PART = /^\/v1\/snapshots\/[0-9a-f-]{36}\/parts\/\d{1,15}$/;

/** Events of BMCs, with the key of their node. */
const EVENTS = /^\/v1\/nodes\/[0-9a-f-]{36}\/redfish_events\/[\w-]{1,100}$/;

/** @param path as in the request, without trailing slashes */
export const isPublic = (path: string, method: string): boolean =>
  PUBLIC.test(path) ||
  (method === 'POST' && EVENTS.test(path)) ||
  (method === 'PUT' && PUSH.test(path)) ||
  (['GET', 'PUT'].includes(method) && PART.test(path));
