/** The events that BMCs send to this server (docs/health.md): where to, who sends, and what of them counts. */
import { createHmac } from 'node:crypto';
import { isObject } from '../json';

/** Events of one request; others are left out. */
const MAX_EVENTS = 32;
const MAX_CHARACTERS = 512;
/** The name of the secret that all processes on the database share. */
export const EVENT_SECRET = 'redfish_events';

/** The key of a node, which only its BMC knows. */
export const eventKey = (secret: string, nodeUuid: string): string => createHmac('sha256', secret).update(nodeUuid).digest('base64url');
export const eventPath = (nodeUuid: string, key: string): string => `/v1/nodes/${nodeUuid}/redfish_events/${key}`;
const KEY_IN_PATH = /(\/redfish_events\/)[^/?]+/;
/** Senders may encode each character, also several times. */
function decoded(path: string): string {
  let text = path;
  for (let times = 0; times < 3 && text.includes('%'); times++)
    text = text.replace(/%([\da-f]{2})/gi, (_, code: string) => String.fromCharCode(parseInt(code, 16)));
  return text.replace(/\p{Cc}/gu, '?');
}
/** For logs. Most paths have neither a key nor an encoded character, and each request asks. */
export function withoutEventKey(path: string): string {
  if (path.includes('/redfish_events/')) return path.replace(KEY_IN_PATH, '$1***');
  if (!path.includes('%')) return path;
  const text = decoded(path);
  return KEY_IN_PATH.test(text) ? text.replace(KEY_IN_PATH, '$1***') : path;
}
/** Which subscriptions of a BMC are those of this server for a node. */
export const eventOwner = (nodeUuid: string): string => `bloomery ${nodeUuid}`;

/** The members of an event that the rules of health read (DSP2046, Event). */
const TEXTS = ['MessageId', 'MessageSeverity', 'Severity', 'Message', 'EventType'] as const;
export type BmcEvent = Readonly<Partial<Record<(typeof TEXTS)[number] | 'OriginOfCondition', string>>>;
/** The events of a body, in short. Anything else in it is left out, so that any body of a BMC is acceptable. */
export function eventsOf(body: unknown): readonly BmcEvent[] {
  const given = isObject(body) && Array.isArray(body['Events']) ? (body['Events'] as readonly unknown[]) : [];
  return given.slice(0, MAX_EVENTS).flatMap((event) => {
    if (!isObject(event)) return [];
    const { OriginOfCondition: origin } = event;
    const path = isObject(origin) ? origin['@odata.id'] : origin;
    const texts = [...TEXTS.map((name) => [name, event[name]] as const), ['OriginOfCondition', path] as const];
    return [
      Object.fromEntries(texts.flatMap(([name, value]) => (typeof value === 'string' ? [[name, value.slice(0, MAX_CHARACTERS)]] : []))),
    ];
  });
}
