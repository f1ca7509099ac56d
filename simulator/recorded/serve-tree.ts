/**
 * Serves a recorded tree (wire/redfish/recorded-tree.ts) as a BMC: its resources, a login, and the little state that power, boot device and
 * virtual media have.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Clock } from '../../model/clock';
import { isObject, type JsonObject } from '../../model/json';
import type { RecordedResource, RecordedTree } from '../../wire/redfish/recorded-tree';
import { linkKey, linkOf, member, textOf } from '../../wire/redfish';
import { listenOn, readJson, sendJson, type HttpListener } from '../http';
import { refuse } from '../redfish/protocol/messages';

interface Options {
  readonly tree: RecordedTree;
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly username: string;
  readonly password: string;
  readonly clock: Pick<Clock, 'now'>;
  readonly random: (bytes: number) => Buffer;
}
const MAX_BODY = 64 * 1024;
/** Sessions that are kept. The oldest end first. */
const MAX_SESSIONS = 100;
/** Levels of a change. */
const MAX_DEPTH = 16;
const HEADERS = { 'odata-version': '4.0', 'cache-control': 'no-store' } as const;

interface Answer {
  readonly status: number;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}
interface Served {
  readonly options: Options;
  /** By linkKey; the bodies as they are now. */
  readonly resources: Map<string, RecordedResource>;
  /** Target of an action → path and name of its resource and the action. */
  readonly actions: ReadonlyMap<string, { readonly resource: string; readonly action: string }>;
  /** Token → path of the session. */
  readonly sessions: Map<string, string>;
  /** linkKey of a settings resource → the resource that it is for. */
  readonly settings: ReadonlyMap<string, string>;
  /** Changes of settings resources, until the machine starts. */
  readonly pending: Map<string, JsonObject>;
}

function merged(into: unknown, change: JsonObject, depth = 0): JsonObject {
  const before = isObject(into) ? into : {};
  const after = Object.entries(change).map(([name, value]) => [
    name,
    isObject(value) && depth < MAX_DEPTH ? merged(Object.hasOwn(before, name) ? before[name] : undefined, value, depth + 1) : value,
  ]);
  return Object.fromEntries([...Object.entries(before), ...(after as [string, unknown][])]);
}
const change = ({ resources }: Served, key: string, body: JsonObject): void => {
  const resource = resources.get(key);
  if (resource) resources.set(key, { ...resource, body: merged(resource.body, body) });
};
/** What a start of the machine does. */
function start(served: Served): void {
  for (const [key, body] of served.pending) change(served, key, body);
  served.pending.clear();
}
const POWER: Readonly<Record<string, (now: string) => string>> = {
  On: () => 'On',
  ForceOn: () => 'On',
  ForceOff: () => 'Off',
  GracefulShutdown: () => 'Off',
  PushPowerButton: (now) => (now === 'On' ? 'Off' : 'On'),
  ForceRestart: () => 'On',
  GracefulRestart: () => 'On',
  PowerCycle: () => 'On',
};
/** Name of an action → what it does. Others are accepted, and do nothing. */
const ACTIONS: Readonly<Record<string, (served: Served, key: string, body: JsonObject) => Answer | undefined>> = {
  '#ComputerSystem.Reset': (served, key, { ResetType: type }) => {
    const next = typeof type === 'string' && Object.hasOwn(POWER, type) ? POWER[type] : undefined;
    if (!next) return refuse('ActionParameterValueNotInList', String(type).slice(0, 100), 'ResetType', 'ComputerSystem.Reset');
    const state = next(textOf(member(served.resources.get(key)?.body, 'PowerState')) ?? 'Off');
    change(served, key, { PowerState: state });
    if (state === 'On') start(served);
    return undefined;
  },
  '#VirtualMedia.InsertMedia': (served, key, { Image: image }) => {
    if (typeof image !== 'string') return refuse('ActionParameterMissing', 'InsertMedia', 'Image');
    change(served, key, { Image: image, Inserted: true, ConnectedVia: 'URI' });
    return undefined;
  },
  '#VirtualMedia.EjectMedia': (served, key) => {
    change(served, key, { Image: null, Inserted: false, ConnectedVia: 'NotConnected' });
    return undefined;
  },
};

function actionsIn(resources: ReadonlyMap<string, RecordedResource>): Served['actions'] {
  const found = new Map<string, { readonly resource: string; readonly action: string }>();
  for (const [resource, { body }] of resources) {
    const actions = member(body, 'Actions');
    if (!isObject(actions)) continue;
    for (const [action, described] of Object.entries({ ...actions, ...(isObject(actions['Oem']) ? actions['Oem'] : {}) })) {
      const target = textOf(member(described, 'target'));
      if (target !== undefined) found.set(linkKey(target), { resource, action });
    }
  }
  return found;
}
function settingsIn(resources: ReadonlyMap<string, RecordedResource>): Served['settings'] {
  const found = new Map<string, string>();
  for (const [key, { body }] of resources) {
    const settings = linkOf(member(body, '@Redfish.Settings', 'SettingsObject'));
    if (settings !== undefined) found.set(linkKey(settings), key);
  }
  return found;
}

function mayAsk({ options: { username, password }, sessions }: Served, { headers }: IncomingMessage): boolean {
  const token = headers['x-auth-token'];
  if (typeof token === 'string') return sessions.has(token);
  return headers.authorization === `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}
const SESSIONS = /^\/redfish\/v1\/(?:sessionservice\/)?sessions$/;
/** The path of the members of sessions; undefined: the recorded service has none. */
function sessionsPath({ resources }: Served): string | undefined {
  const root = resources.get('/redfish/v1')?.body;
  const named = linkOf(member(root, 'Links', 'Sessions'));
  if (named !== undefined) return linkKey(named);
  return resources.has('/redfish/v1/sessionservice') ? '/redfish/v1/sessionservice/sessions' : undefined;
}
function logIn(served: Served, body: JsonObject): Answer {
  const { username, password, random } = served.options;
  if (body['UserName'] !== username || body['Password'] !== password) return refuse('NoValidSession');
  const [token, id] = [random(16).toString('hex'), random(4).toString('hex')];
  const path = `${sessionsPath(served)!}/${id}`;
  served.sessions.set(token, path);
  for (const oldest of served.sessions.keys()) if (served.sessions.size > MAX_SESSIONS) served.sessions.delete(oldest);
  const shown = { '@odata.id': path, '@odata.type': '#Session.v1_0_0.Session', Id: id, Name: 'Session', UserName: username };
  return { status: 201, body: shown, headers: { 'x-auth-token': token, location: path } };
}
/** Clocks run on from the time of the recording. */
function withTime(body: JsonObject, { tree, clock }: Options): JsonObject {
  const told = textOf(body['DateTime']);
  const time = told === undefined ? NaN : Date.parse(told);
  if (Number.isNaN(time)) return body;
  const now = time + clock.now() - Date.parse(tree.header.recorded);
  return { ...body, DateTime: new Date(now).toISOString().replace(/\.\d+Z$/, '+00:00') };
}
const EMPTY = (path: string): JsonObject => ({ '@odata.id': path, Name: 'Not recorded', Members: [], 'Members@odata.count': 0 });
function read({ resources, options }: Served, url: URL): Answer {
  const paged = resources.get(linkKey(`${url.pathname}${url.search}`));
  const resource = paged ?? resources.get(linkKey(url.pathname));
  if (!resource) return refuse('ResourceMissingAtURI', url.pathname);
  const { status, body, allow, left_out: leftOut, path } = resource;
  const headers = allow === undefined ? {} : { allow };
  if (leftOut) return { status: 200, body: EMPTY(path), headers };
  if (status >= 400) return { ...refuse(status === 404 ? 'ResourceMissingAtURI' : 'InternalError', path), status };
  return { status, body: withTime(body as JsonObject, options), headers };
}

async function answer(served: Served, request: IncomingMessage): Promise<Answer> {
  const url = new URL(request.url ?? '/', 'http://bmc');
  const key = linkKey(url.pathname);
  const method = request.method === 'HEAD' ? 'GET' : request.method;
  if (key === '/redfish' && method === 'GET') return { status: 200, body: { v1: '/redfish/v1/' } };
  const isLogin = method === 'POST' && (key === sessionsPath(served) || key === `${sessionsPath(served)}/members`);
  const isOpen = isLogin || (method === 'GET' && key === '/redfish/v1');
  if (!isOpen && !mayAsk(served, request)) {
    if (method === 'POST' && SESSIONS.test(key)) return refuse('ResourceMissingAtURI', url.pathname);
    return { ...refuse('NoValidSession'), headers: { 'www-authenticate': 'Basic realm="Redfish"' } };
  }
  if (method === 'GET') return read(served, url);
  if (method === 'DELETE') {
    const session = [...served.sessions].find(([, path]) => path === key);
    if (!session) return refuse('OperationNotAllowed');
    served.sessions.delete(session[0]);
    return { status: 204 };
  }
  const sent = (await readJson(request, MAX_BODY).catch(() => null)) ?? {};
  if (!isObject(sent)) return refuse('MalformedJSON');
  if (isLogin) return logIn(served, sent);
  if (method === 'PATCH') return patch(served, key, sent);
  const known = method === 'POST' ? served.actions.get(key) : undefined;
  if (!known) return served.resources.has(key) ? refuse('OperationNotAllowed') : refuse('ResourceMissingAtURI', url.pathname);
  const act = Object.hasOwn(ACTIONS, known.action) ? ACTIONS[known.action] : undefined;
  return act?.(served, known.resource, sent) ?? { status: 204 };
}
function patch(served: Served, key: string, body: JsonObject): Answer {
  const resource = served.resources.get(key);
  if (!resource || !isObject(resource.body)) return refuse('ResourceMissingAtURI', key);
  if (resource.allow !== undefined && !/\bPATCH\b/.test(resource.allow)) return refuse('OperationNotAllowed');
  change(served, key, body);
  const target = served.settings.get(key);
  if (target !== undefined) served.pending.set(target, merged(served.pending.get(target), body));
  return { status: 200, body: served.resources.get(key)!.body };
}

/** Rejects when the port is taken. */
export function serveTree(options: Options): Promise<HttpListener> {
  const resources = new Map(options.tree.resources);
  const served: Served = {
    options,
    resources,
    actions: actionsIn(resources),
    settings: settingsIn(resources),
    sessions: new Map(),
    pending: new Map(),
  };
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    try {
      const { status, body, headers } = await answer(served, request);
      sendJson(response, status, body, { ...HEADERS, ...headers });
    } catch {
      if (response.headersSent) response.destroy();
      else sendJson(response, 500, refuse('InternalError').body, HEADERS);
    }
  };
  return listenOn(
    createServer((request, response) => void handle(request, response)),
    options.port,
    options.host,
  );
}
