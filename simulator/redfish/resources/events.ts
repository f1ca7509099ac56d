/** EventService (DSP0266 §12.1): subscriptions, events of changes, and test events. They go to loopback destinations only. */
import { reasonOf } from '../../../model/errors';
import { isLoopback } from '../../../model/idents';
import { isObject } from '../../../model/json';
import type { Faults } from '../../bmc/faults';
import { hardwarePart } from '../../hardware/hardware';
import { list, oneOf, refuseAction, refuseNew, refusePatch, text, textOrNull, integer, type Check } from '../protocol/checks';
import { eventsOfChange } from './conditions';
import { isFetchable } from '../protocol/download';
import { refuse } from '../protocol/messages';
import {
  ROOT,
  bmcOf,
  collectionRoute,
  dateTime,
  link,
  resource,
  type ServiceAnswer,
  type RouteContext,
  type Route,
  type Service,
  type ResourceBody,
} from '../protocol/routes';
import { timeoutSignal } from '../../../wire/timeout-signal';

const PATH = '/EventService';
const SUBSCRIPTIONS = `${PATH}/Subscriptions`;
const TEST = 'EventService.SubmitTestEvent';
const EVENT_TYPES = ['StatusChange', 'ResourceUpdated', 'ResourceAdded', 'ResourceRemoved', 'Alert', 'Other'];
const MAX_SUBSCRIPTIONS = 20;
const SEND_TIMEOUT_MS = 5000;

interface Subscription {
  readonly id: string;
  readonly destination: string;
  readonly context: string;
  readonly eventTypes: readonly string[];
  /** Headers may contain secrets, so the service never shows them. */
  readonly headers: Readonly<Record<string, string>>;
}
const STORED_SUBSCRIPTIONS = hardwarePart<readonly Subscription[]>('subscriptions', []);
const subscriptionsOf = (service: Service): readonly Subscription[] => bmcOf(service)?.hardware.get(STORED_SUBSCRIPTIONS) ?? [];
const storeSubscriptions = (service: Service, subscriptions: readonly Subscription[]): void =>
  bmcOf(service)?.hardware.set(STORED_SUBSCRIPTIONS, subscriptions);
const byId = ({ service, values: [id] }: RouteContext): Subscription | undefined =>
  subscriptionsOf(service).find((candidate) => candidate.id === id);

const show = ({ id, destination, context, eventTypes }: Subscription): ResourceBody =>
  resource(`${SUBSCRIPTIONS}/${id}`, 'EventDestination', id, `Subscription ${id}`, {
    Destination: destination,
    Context: context,
    Protocol: 'Redfish',
    SubscriptionType: 'RedfishEvent',
    EventFormatType: 'Event',
    EventTypes: eventTypes,
    HttpHeaders: [],
    DeliveryRetryPolicy: 'RetryForever',
    Status: { State: 'Enabled', Health: 'OK' },
  });

const header: Check = (value, name) =>
  isObject(value) && Object.values(value).every((candidate) => typeof candidate === 'string' && !/[\r\n]/.test(candidate))
    ? undefined
    : ['PropertyValueTypeError', '******', name];
const NEW = {
  Destination: text,
  Context: textOrNull,
  Protocol: oneOf(['Redfish']),
  EventTypes: list(oneOf(EVENT_TYPES)),
  EventFormatType: oneOf(['Event']),
  SubscriptionType: oneOf(['RedfishEvent']),
  DeliveryRetryPolicy: oneOf(['RetryForever']),
  HttpHeaders: list(header, 16),
};
function subscribe({ service }: RouteContext, body: ResourceBody): ServiceAnswer {
  const refused = refuseNew(body, NEW, ['Destination']);
  if (refused) return refused;
  const { Destination, Context, EventTypes, HttpHeaders } = body as {
    readonly Destination: string;
    readonly Context?: string | null;
    readonly EventTypes?: readonly string[];
    readonly HttpHeaders?: readonly Readonly<Record<string, string>>[];
  };
  if (service.faults?.now.events_refused) return refuse('EventSubscriptionLimitExceeded');
  if (!isFetchable(Destination)) return refuse('PropertyValueFormatError', Destination, 'Destination');
  const subscriptions = subscriptionsOf(service);
  if (subscriptions.length >= MAX_SUBSCRIPTIONS) return refuse('EventSubscriptionLimitExceeded');
  const added: Subscription = {
    id: String(Math.max(0, ...subscriptions.map(({ id }) => Number(id))) + 1),
    destination: Destination,
    context: Context ?? '',
    eventTypes: EventTypes ?? [],
    headers: Object.assign({}, ...(HttpHeaders ?? [])) as Readonly<Record<string, string>>,
  };
  storeSubscriptions(service, [...subscriptions, added]);
  return { status: 201, body: show(added), headers: { location: `${ROOT}${SUBSCRIPTIONS}/${added.id}` } };
}

/** A simulated BMC sends to destinations on this host only, so that no other host receives its test events. */
async function send(service: Service, { destination, context, headers }: Subscription, event: ResourceBody): Promise<void> {
  if (!isLoopback(new URL(destination).hostname)) return;
  const json = { '@odata.type': '#Event.v1_7_0.Event', Id: event['EventId'], Name: 'Event', Context: context, Events: [event] };
  const { events_key: isWrong, events_flood: times = 1 } = service.faults?.now ?? {};
  try {
    for (let sent = 0; sent < times; sent++) {
      const signal = timeoutSignal(SEND_TIMEOUT_MS, service.signal);
      await (await service.http.request(isWrong ? `${destination}x` : destination, { method: 'POST', headers, json, signal })).drain();
    }
  } catch (error) {
    service.log.debug('an event cannot be sent', { error: reasonOf(error) });
  }
}
/** Sends an event to all who have subscribed to its type. */
function announce(service: Service, type: string, event: ResourceBody): void {
  for (const item of subscriptionsOf(service))
    if (item.eventTypes.length === 0 || item.eventTypes.includes(type)) service.background(send(service, item, event));
}
export const forgetSubscriptions = (service: Service): void => storeSubscriptions(service, []);
/** The faults of a machine have changed: writes that into the log of its BMC, and sends events. */
export function announceChange(service: Service, before: Faults, after: Faults): void {
  const system = bmcOf(service);
  for (const event of system ? eventsOfChange(service, system, before, after) : []) announce(service, 'StatusChange', event);
}
const TEST_PARAMETERS = {
  EventType: oneOf(EVENT_TYPES),
  EventId: text,
  EventTimestamp: text,
  Severity: text,
  Message: text,
  MessageId: text,
  MessageArgs: list(text),
  MessageSeverity: oneOf(['OK', 'Warning', 'Critical']),
  OriginOfCondition: text,
  EventGroupId: integer(0, Number.MAX_SAFE_INTEGER),
};
function submitTest({ service }: RouteContext, body: ResourceBody): ServiceAnswer | undefined {
  const refused = refuseAction(TEST, body, TEST_PARAMETERS, ['MessageId']);
  if (refused) return refused;
  const { EventType = 'Other', EventId = '1', OriginOfCondition, ...more } = body as Readonly<Record<string, string>>;
  const event = {
    MemberId: '0',
    EventType,
    EventId,
    EventTimestamp: dateTime(service.clock.now()),
    ...more,
    OriginOfCondition: OriginOfCondition === undefined ? undefined : { '@odata.id': OriginOfCondition },
  };
  announce(service, EventType, event);
  return undefined;
}

export const EVENT_ROUTES: readonly Route[] = [
  {
    path: PATH,
    get: () =>
      resource(PATH, 'EventService', 'EventService', 'Events', {
        ServiceEnabled: true,
        Status: { State: 'Enabled', Health: 'OK' },
        DeliveryRetryAttempts: 1,
        DeliveryRetryIntervalSeconds: 60,
        EventFormatTypes: ['Event'],
        EventTypesForSubscription: EVENT_TYPES,
        RegistryPrefixes: ['Base', 'Update', 'ResourceEvent'],
        Subscriptions: link(SUBSCRIPTIONS),
        Actions: { [`#${TEST}`]: { target: `${ROOT}${PATH}/Actions/${TEST}`, 'EventType@Redfish.AllowableValues': EVENT_TYPES } },
      }),
  },
  { ...collectionRoute(SUBSCRIPTIONS, 'EventDestination', ({ service }) => subscriptionsOf(service).map(({ id }) => id)), post: subscribe },
  {
    path: `${SUBSCRIPTIONS}/{subscription}`,
    get: (at) => {
      const found = byId(at);
      return found && show(found);
    },
    patch: (at, body) => {
      const found = byId(at);
      if (!found) return refuse('ResourceMissingAtURI', at.path);
      const refused = refusePatch(body, { Context: textOrNull }, show(found));
      const context = (body['Context'] ?? '') as string;
      const changed = subscriptionsOf(at.service).map((item) => (item === found ? { ...item, context } : item));
      if (!refused) storeSubscriptions(at.service, changed);
      return refused;
    },
    delete: (at) => {
      const found = byId(at);
      if (!found) return refuse('ResourceMissingAtURI', at.path);
      const left = subscriptionsOf(at.service).filter((candidate) => candidate !== found);
      storeSubscriptions(at.service, left);
      return undefined;
    },
  },
  { path: `${PATH}/Actions/${TEST}`, post: submitTest },
];
