/** Building blocks of habits: functions that make the part of a habit which changes requests and answers. */
import { isObject } from '../../../model/json';
import type { Around, Asked, HabitContext, Next } from '../protocol/habits';
import type { ResourceBody, ServiceAnswer } from '../protocol/routes';
import { authenticate } from '../resources/sessions';

export const SYSTEM = /^\/redfish\/v1\/Systems\/[^/]+$/;
export const RESET = /^\/redfish\/v1\/Systems\/[^/]+\/Actions\/ComputerSystem\.Reset$/;
export const BIOS_SETTINGS = /^\/redfish\/v1\/Systems\/[^/]+\/Bios\/Settings$/;
export const INSERT = /\/Actions\/VirtualMedia\.InsertMedia$/;
export const EJECT = /\/Actions\/VirtualMedia\.EjectMedia$/;
export const SESSIONS = /^\/redfish\/v1\/SessionService\/Sessions$/;
export const MONITOR = /^\/redfish\/v1\/TaskService\/TaskMonitors\/[^/]+$/;

export const isLoggedIn = ({ service }: HabitContext, asked: Asked): boolean => authenticate(service, asked) !== undefined;
/** The request's body; an empty object if there is none, or if it is no JSON object. */
export async function sentBody(asked: Asked): Promise<ResourceBody> {
  const body = await asked.body().catch(() => undefined);
  return isObject(body) ? body : {};
}
export const withSent = (asked: Asked, body: ResourceBody): Asked => ({ ...asked, body: async () => body });
/** Applies several changes, the first one outermost. */
export const together =
  (...arounds: readonly Around[]): Around =>
  (asked, next, context) =>
    arounds.reduceRight<Next>((inner, around) => (one) => around(one, inner, context), next)(asked);

/** The type of a resource's body, without version: ComputerSystem. */
function typeOf(body: ResourceBody): string | undefined {
  const type = body['@odata.type'];
  return typeof type === 'string' ? /^#(\w+)\./.exec(type)?.[1] : undefined;
}
type Change = (body: ResourceBody, context: HabitContext, asked: Asked) => ResourceBody;
/** Changes the resources of a type (ComputerSystem, ComputerSystemCollection) where GET answers them. */
export const shows =
  (type: string, change: Change): Around =>
  async (asked, next, context) => {
    const answer = await next(asked);
    return asked.method === 'GET' && answer.status === 200 && answer.body && typeOf(answer.body) === type
      ? { ...answer, body: change(answer.body, context, asked) }
      : answer;
  };
/** Changes all answers that have a body. */
export const showsAll =
  (change: Change): Around =>
  async (asked, next, context) => {
    const answer = await next(asked);
    return answer.body ? { ...answer, body: change(answer.body, context, asked) } : answer;
  };
/** Changes each object in a body, the innermost first. */
export function everyObject(value: unknown, change: (one: ResourceBody) => ResourceBody): unknown {
  if (Array.isArray(value)) return value.map((item) => everyObject(item, change));
  if (!isObject(value)) return value;
  return change(Object.fromEntries(Object.entries(value).map(([name, entry]) => [name, everyObject(entry, change)])));
}
export const without = (body: ResourceBody, ...names: readonly string[]): ResourceBody =>
  Object.fromEntries(Object.entries(body).filter(([name]) => !names.includes(name)));
/** Merges objects, those within them too. Other values replace each other. */
export function merged(one: ResourceBody, other: ResourceBody): ResourceBody {
  const entries = Object.entries(other).map(([name, value]) => {
    const before = one[name];
    return [name, isObject(value) && isObject(before) ? merged(before, value) : value];
  });
  return { ...one, ...(Object.fromEntries(entries) as ResourceBody) };
}

type When = (sent: ResourceBody, context: HabitContext, asked: Asked) => boolean | Promise<boolean>;
type Give = ServiceAnswer | ((sent: ResourceBody, context: HabitContext, asked: Asked) => ServiceAnswer | Promise<ServiceAnswer>);
/** Answers some requests instead of the service, if they have a valid login. */
export const instead =
  (method: string | RegExp, path: RegExp, give: Give, when: When = () => true): Around =>
  async (asked, next, context) => {
    const isMeant = (typeof method === 'string' ? asked.method === method : method.test(asked.method)) && path.test(asked.path);
    if (!isMeant || !isLoggedIn(context, asked)) return next(asked);
    const sent = await sentBody(asked);
    if (!(await when(sent, context, asked))) return next(asked);
    return typeof give === 'function' ? give(sent, context, asked) : give;
  };
/** Changes the body of some requests before the service gets them. */
export const takes =
  (method: string, path: RegExp, change: (sent: ResourceBody, context: HabitContext) => ResourceBody): Around =>
  async (asked, next, context) =>
    asked.method === method && path.test(asked.path) ? next(withSent(asked, change(await sentBody(asked), context))) : next(asked);
/** Changes the answers to some requests. */
export const replies =
  (method: string | RegExp, path: RegExp, change: (answer: ServiceAnswer, context: HabitContext, asked: Asked) => ServiceAnswer): Around =>
  async (asked, next, context) => {
    const answer = await next(asked);
    const isMeant = (typeof method === 'string' ? asked.method === method : method.test(asked.method)) && path.test(asked.path);
    return isMeant ? change(answer, context, asked) : answer;
  };

/** An error with a message of any registry, in the standard form. */
export const problem = (status: number, id: string, text: string, headers: Readonly<Record<string, string>> = {}): ServiceAnswer => ({
  status,
  headers,
  body: { error: { code: id, message: text, '@Message.ExtendedInfo': [{ MessageId: id, Message: text, Severity: 'Critical' }] } },
});
/** The boot settings of a PATCH. */
export const bootOf = (sent: ResourceBody): ResourceBody => (isObject(sent['Boot']) ? sent['Boot'] : {});
