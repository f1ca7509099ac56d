/**
 * The server's own subscriptions to the events of a Redfish service (DSP0266 §12, Eventing; DSP2046, EventDestination), and the parts that
 * events name. Subscriptions of others, also those of the vendor methods, are left alone: ours have our owner in `Context`.
 */
import { createHash } from 'node:crypto';
import type { Signal, SignalKind } from '../../model/rules/health-rules';
import {
  RedfishError,
  collection,
  hasMessage,
  isStatus,
  linkOf,
  member,
  readLinked,
  readResource,
  rootPath,
  textOf,
  textsOf,
  type RedfishResource,
  type SendRedfishRequest,
} from '../../wire/redfish';
import { isOriginPath, kindOfPath, subjectOfPath } from '../common/health-records';
import { statesOfHealth } from '../common/health-signals';
import type { EventSubscriptions, Task } from '../interfaces';
import { redfishFault, redfishRequester, redfishSystem } from './target';

/** Of EventTypesForSubscription; metric reports are not wanted. */
const TYPES: readonly string[] = ['Alert', 'StatusChange', 'ResourceAdded', 'ResourceRemoved', 'ResourceUpdated', 'Other'];
/**
 * `Context` has a word that changes with the destination: services report the destination in other forms, and it has a secret, which other
 * users of the service should not need to see.
 */
const contextOf = (owner: string, destination: string): string =>
  `${owner} ${createHash('sha256').update(destination).digest('hex').slice(0, 16)}`;
/** The destination has a secret of ours. Some services keep no Context. */
const isOurs = (body: unknown, owner: string, destination?: string): boolean =>
  textOf(member(body, 'Context'))?.startsWith(`${owner} `) === true ||
  (destination !== undefined && !textOf(member(body, 'Context')) && member(body, 'Destination') === destination);
/** A service that could not send for a while ends or suspends a subscription, as its DeliveryRetryPolicy says. */
const isEnabled = (body: unknown): boolean => !['Disabled', 'StandbyOffline'].includes(textOf(member(body, 'Status', 'State')) ?? '');

interface Service {
  readonly ask: SendRedfishRequest;
  readonly body: unknown;
  /** The path of the subscriptions. */
  readonly place: string;
}
/** Undefined: the machine has no event service. */
async function serviceOf(task: Task): Promise<Service | undefined> {
  const { target } = await redfishSystem(task);
  // A slow service is asked again in the next round.
  const patient = redfishRequester(task, target);
  const ask: SendRedfishRequest = (method, path, more) => patient(method, path, { ...more, impatient: true });
  const service = await readLinked(ask, await readResource(ask, rootPath(target)), 'EventService');
  const place = linkOf(member(service?.body, 'Subscriptions'));
  return place === undefined ? undefined : { ask, body: service!.body, place };
}
const ourSubscriptions = async ({ ask, place }: Service, owner: string, destination?: string): Promise<readonly RedfishResource[]> =>
  (await collection(ask, place)).filter(({ body }) => isOurs(body, owner, destination));

/**
 * The bodies to try in turn. EventTypes is deprecated since EventDestination 1.5: some services require it, and others refuse it. Schemas
 * since 1.3 want SubscriptionType.
 *
 * @internal
 */
export function bodiesOf(service: unknown, destination: string, context: string): readonly object[] {
  const least = { Destination: destination, Protocol: 'Redfish', Context: context };
  const offered = textsOf(member(service, 'EventTypesForSubscription'));
  const types = TYPES.filter((type) => offered?.includes(type) ?? type === 'Alert');
  const old = { ...least, EventTypes: types.length > 0 ? types : ['Alert'] };
  const newer = { ...least, SubscriptionType: 'RedfishEvent', EventFormatType: 'Event' };
  return offered && offered.length > 0 ? [old, newer, least] : [newer, old, least];
}
async function subscribe({ ask, body, place }: Service, destination: string, context: string): Promise<string> {
  const bodies = bodiesOf(body, destination, context);
  for (const [index, given] of bodies.entries()) {
    try {
      const answer = await ask('POST', place, { body: given });
      const path = answer.location ?? linkOf(answer.body);
      if (path === undefined) throw new RedfishError('protocol', 'the service does not name the subscription that it made');
      return path;
    } catch (error) {
      // Other refusals do not depend on the form of the request.
      if (!isStatus(error, 400, 422) || EXISTS.some((name) => hasMessage(error, name)) || index === bodies.length - 1) throw error;
    }
  }
  throw new RedfishError('protocol', 'the service accepts no subscription');
}
/** Words for a subscription to the same destination that exists (HPE; Dell). Another service says by the second that a value was changed. */
const EXISTS = ['ResourceAlreadyExists', 'PropertyValueModified'] as const;
/** Subscribes. A service that has such a subscription already, and does not list it as ours, gets it anew. */
async function subscribeAnew(service: Service, destination: string, context: string): Promise<string> {
  try {
    return await subscribe(service, destination, context);
  } catch (error) {
    if (!EXISTS.some((name) => hasMessage(error, name))) throw error;
    const same = (await collection(service.ask, service.place)).filter(({ body }) => member(body, 'Destination') === destination);
    if (same.length === 0) throw error;
    for (const { path } of same) await remove(service.ask, path);
    return subscribe(service, destination, context);
  }
}
/** The secret of the destination must not be in errors, which may quote the request. */
const withoutSecret = (error: unknown, destination: string): unknown => {
  const secret = destination.slice(destination.lastIndexOf('/') + 1);
  return error instanceof RedfishError && error.message.includes(secret)
    ? new RedfishError(error.kind, error.message.replaceAll(secret, '***'), { status: error.status })
    : error;
};

async function keep(task: Task, owner: string, destination: string): Promise<string | undefined> {
  try {
    const service = await serviceOf(task);
    if (!service) return undefined;
    if (member(service.body, 'ServiceEnabled') === false)
      throw new RedfishError('protocol', 'the event service is disabled: enable it at the BMC (ServiceEnabled)');
    const context = contextOf(owner, destination);
    const ours = await ourSubscriptions(service, owner, destination);
    const good = ours.find(({ body }) => [context, undefined, null, ''].includes(member(body, 'Context') as string) && isEnabled(body));
    for (const { path } of ours) if (path !== good?.path) await remove(service.ask, path);
    return good?.path ?? (await subscribeAnew(service, destination, context));
  } catch (error) {
    throw redfishFault(task, withoutSecret(error, destination), 'subscription to events');
  }
}
async function remove(ask: SendRedfishRequest, path: string): Promise<void> {
  await ask('DELETE', path).catch((error: unknown) => {
    if (!isStatus(error, 404)) throw error;
  });
}
async function end(task: Task, owner: string): Promise<void> {
  try {
    const service = await serviceOf(task);
    for (const { path } of service ? await ourSubscriptions(service, owner) : []) await remove(service!.ask, path);
  } catch (error) {
    throw redfishFault(task, error, 'the end of the subscription to events');
  }
}

/** The kinds that the sensors of a machine have: these are read instead of the part. */
const READ_WITH_SENSORS: readonly SignalKind[] = ['fan', 'temperature', 'power', 'drive'];
/** ReadingType of a Sensor (DSP2046). */
const OF_SENSORS: Readonly<Record<string, SignalKind>> = {
  Temperature: 'temperature',
  Rotational: 'fan',
  Voltage: 'voltage',
  Current: 'current',
};
async function origin(task: Task, path: string): Promise<Signal | 'sensors' | undefined> {
  if (!isOriginPath(path)) return undefined;
  const guess = kindOfPath(path);
  const subject = subjectOfPath(path);
  if (READ_WITH_SENSORS.includes(guess)) return 'sensors';
  try {
    const { target } = await redfishSystem(task);
    const { body } = await readResource(redfishRequester(task, target), path);
    const type = textOf(member(body, 'ReadingType')) ?? '';
    const kind = Object.hasOwn(OF_SENSORS, type) ? OF_SENSORS[type]! : guess;
    if (READ_WITH_SENSORS.includes(kind)) return 'sensors';
    const health = member(body, 'Status', 'Health') ?? member(body, 'Status', 'HealthRollup');
    if (typeof health !== 'string') return undefined;
    const states = member(body, 'Status', 'State') === 'Absent' ? [] : statesOfHealth(health);
    return { source: 'event', kind, subject, states };
  } catch (error) {
    if (isStatus(error, 404, 410)) return { source: 'event', kind: guess, subject, states: [] };
    throw redfishFault(task, error, 'reading what an event names');
  }
}

export const redfishEvents: EventSubscriptions = { keep, end, origin };
