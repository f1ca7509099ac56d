/** Vendor methods of a Redfish service: subscriptions to its events, and ejecting virtual media. */
import { invalidParameter, Fault } from '../../model/errors';
import { str } from '../../model/python';
import type { JsonObject } from '../../model/records';
import {
  RedfishError,
  linkOf,
  member,
  readLinked,
  readResource,
  rootPath,
  textsOf,
  type SendRedfishRequest,
  type RedfishResource,
} from '../../wire/redfish';
import type { Task, VendorInterface, VirtualMediaType } from '../interfaces';
import { redfishRequester, redfishFault, redfishSystem } from './target';

interface EventService {
  readonly ask: SendRedfishRequest;
  readonly service: RedfishResource;
  /** The path of its subscriptions. */
  readonly subscriptions: string;
}
/** Throws RedfishError. */
async function eventService(task: Task): Promise<EventService> {
  const { target } = await redfishSystem(task);
  const ask = redfishRequester(task, target);
  const root = await readResource(ask, rootPath(target));
  const service = await readLinked(ask, root, 'EventService');
  if (!service) throw new RedfishError('protocol', `The attribute EventService is missing from the resource ${root.path}`);
  const subscriptions = linkOf(member(service.body, 'Subscriptions'));
  if (subscriptions === undefined)
    throw new RedfishError('protocol', `The attribute Subscriptions is missing from the resource ${service.path}`);
  return { ask, service, subscriptions };
}
/** Runs `work` on the event service. An error response becomes the Fault that `explain` makes. */
async function onEvents<T>(task: Task, explain: (why: string) => Fault, work: (events: EventService) => Promise<T>): Promise<T> {
  try {
    return await work(await eventService(task));
  } catch (error) {
    if (!(error instanceof RedfishError)) throw error;
    const reached = error.kind === 'status' || error.kind === 'protocol';
    throw reached ? explain(error.message) : redfishFault(task, error);
  }
}

const SHOWN = ['Id', 'Context', 'Protocol', 'Destination', 'EventTypes'];
const shown = (body: unknown): JsonObject =>
  Object.fromEntries(SHOWN.map((name) => [name, member(body, name)]).filter(([, value]) => value !== undefined)) as JsonObject;
const failure = (message: string): Fault => new Fault('DriverOperationError', { message: `Redfish exception occurred. Error: ${message}` });

/** scheme://host…, without spaces (RFC 3986). */
const isUri = (value: unknown): value is string =>
  typeof value === 'string' && /^[a-z][a-z0-9+.-]*:\/\/[^/?#\s]\S*$/i.test(value) && URL.canParse(value);

/** The event types of the schema EventDestination, for services that do not list theirs. */
const EVENT_TYPES = ['Alert', 'MetricReport', 'Other', 'ResourceAdded', 'ResourceRemoved', 'ResourceUpdated', 'StatusChange'];
async function validateSubscription(task: Task, args: JsonObject): Promise<void> {
  const { Destination: destination, EventTypes: types, Context: context = '', Protocol: protocol = 'Redfish', HttpHeaders: headers } = args;
  if (types !== undefined && types !== null) {
    const { service } = await onEvents(
      task,
      (why) => failure(why),
      async (events) => events,
    );
    const allowed = textsOf(member(service.body, 'EventTypesForSubscription')) ?? EVENT_TYPES;
    if (!Array.isArray(types) || !types.every((type) => allowed.includes(type as string)))
      throw invalidParameter(`EventTypes ${str(types)} is not a valid value, allowed values ${str(allowed)}`);
  }
  if (typeof context !== 'string') throw invalidParameter(`Context ${str(context)} is not a valid string`);
  if (typeof protocol !== 'string') throw invalidParameter(`Protocol ${str(protocol)} is not a string`);
  if (headers !== undefined && headers !== null && !Array.isArray(headers))
    throw invalidParameter(`HttpHeaders ${str(headers)} is not a list of headers`);
  if (!isUri(destination)) throw invalidParameter(`Destination ${str(destination ?? null)} is not a valid URI`);
}
async function createSubscription(task: Task, args: JsonObject): Promise<JsonObject> {
  const { Destination, Protocol = 'Redfish', Context = '', EventTypes = ['Alert'], HttpHeaders } = args;
  const payload = { Destination, Protocol, Context, EventTypes };
  const headers = Array.isArray(HttpHeaders) && HttpHeaders.length > 0 ? { HttpHeaders } : {};
  // The headers may contain credentials for the receiver of the events: they must not appear in errors.
  const explain = (why: string): Fault =>
    failure(`Failed to create subscription on node ${task.node.uuid}. Subscription payload: ${str(payload)}. Error: ${why}`);
  return onEvents(task, explain, async ({ ask, subscriptions }) => {
    const answer = await ask('POST', subscriptions, { body: { ...payload, ...headers } });
    return shown(answer.location === undefined ? answer.body : (await readResource(ask, answer.location)).body);
  });
}

/** The path of a subscription. Refuses an id that would lead out of the collection. */
function subscriptionPath(collection: string, id: string): string {
  if (/^\.{0,2}$|[/\\]/.test(id)) throw new RedfishError('protocol', `Resource ${collection.replace(/\/$/, '')}/${id} not found`);
  return `${collection.replace(/\/$/, '')}/${encodeURIComponent(id)}`;
}
const needsId = async (_task: Task, { id }: JsonObject): Promise<void> => {
  if (!id) throw invalidParameter("id can't be None");
};
const failed = (task: Task, method: string, id: string, why: string): string =>
  `Redfish exception occurred. Error: Redfish ${method} failed for subscription ${id} on node ${task.node.uuid}. Error: ${why}`;

/** The method's names of media → the API's. */
const MEDIA: Readonly<Record<string, VirtualMediaType>> = {
  cd: 'cdrom',
  dvd: 'cdrom',
  usb: 'disk',
  usbstick: 'disk',
  floppy: 'floppy',
};
const mediumOf = (given: unknown): VirtualMediaType | undefined => {
  const name = typeof given === 'string' ? given.toLowerCase() : '';
  return Object.hasOwn(MEDIA, name) ? MEDIA[name] : undefined;
};

export const redfishVendor: VendorInterface = {
  validate: async (task) => {
    await redfishSystem(task);
  },
  methods: {
    create_subscription: {
      http: ['POST'],
      description: "Creates a subscription on a node. Required argument: a dictionary of {'Destination': 'destination_url'}",
      async: false,
      validate: validateSubscription,
      run: createSubscription,
    },
    delete_subscription: {
      http: ['DELETE'],
      description: "Delete a subscription on a node. Required argument: a dictionary of {'id': 'subscription_bmc_id'}",
      async: false,
      validate: needsId,
      run: async (task, { id: given }) => {
        const id = str(given);
        const explain = (why: string): Fault =>
          new Fault('SubscriptionNotFound', { message: failed(task, 'delete_subscription', id, why) });
        await onEvents(task, explain, async ({ ask, subscriptions }) => {
          const { path } = await readResource(ask, subscriptionPath(subscriptions, id));
          await ask('DELETE', path);
        });
      },
    },
    eject_vmedia: {
      http: ['POST'],
      description:
        "Eject a virtual media device. If no device is provided then all attached devices will be ejected. Optional arguments: 'boot_device' - the boot device to eject, either 'cd', 'dvd', 'usb', or 'floppy'",
      validate: async (_task, { boot_device: given }) => {
        if (given && !mediumOf(given)) throw invalidParameter(`Boot device ${str(given)} is not a valid value `);
      },
      run: async (task, { boot_device: given }) => {
        const media = task.driver.management.virtualMedia;
        if (!media) throw new Fault('UnsupportedDriverExtension', { driver: task.node.driver, extension: 'eject_vmedia' });
        const medium = mediumOf(given);
        await media.detach(task, medium ? [medium] : undefined);
      },
    },
    get_all_subscriptions: {
      http: ['GET'],
      description: 'Returns all subscriptions on the node.',
      async: false,
      run: (task) => {
        const explain = (why: string): Fault => failure(`Redfish get_subscriptions failed for node ${task.node.uuid}. Error: ${why}`);
        return onEvents(task, explain, async ({ ask, subscriptions }) => (await readResource(ask, subscriptions)).body);
      },
    },
    get_subscription: {
      http: ['GET'],
      description: "Get a subscription on the node. Required argument: a dictionary of {'id': 'subscription_bmc_id'}",
      async: false,
      validate: needsId,
      run: (task, { id: given }) => {
        const id = str(given);
        const explain = (why: string): Fault => new Fault('DriverOperationError', { message: failed(task, 'get_subscription', id, why) });
        return onEvents(task, explain, async ({ ask, subscriptions }) =>
          shown((await readResource(ask, subscriptionPath(subscriptions, id))).body),
        );
      },
    },
  },
};
