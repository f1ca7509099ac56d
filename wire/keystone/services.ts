/**
 * Clients of OpenStack services: requests with this program's credentials, found through Keystone's catalog or at a fixed URL
 * (`auth_type` none and http_basic).
 */
import { isObject } from '../../model/json';
import { endpointOf, type ServiceSelector } from './catalog';
import { createExchange, type ServiceRequest, type ServiceResponse, type StreamedResponse, type Upload } from './exchange';
import { throwUnreachable, createSender, type Retries } from './sender';
import { createKeystoneSession, KeystoneError, type SessionParts } from './session';
import { keystoneSettings, serviceAuthType, tlsSettings, withoutVersion, SettingsError } from './settings';
import { oneLine } from '../../model/log';
import { shortened } from '../../model/text';

/** Section of the configuration → version of the API, as in the path of its URLs. Null: the URL of the catalog, as it is. */
const SERVICES = { neutron: 'v2.0', glance: 'v2', swift: null, cinder: null, nova: 'v2.1', service_catalog: null } as const;
type ServiceName = keyof typeof SERVICES;

export interface ServiceCall extends Partial<ServiceRequest> {
  /** The client's ID of a chain of requests to several services. */
  readonly globalRequestId?: string | undefined;
  /** Statuses of 300 and more that are not errors. */
  readonly accept?: readonly number[];
  /** Aborts the request, besides the end of the program. */
  readonly signal?: AbortSignal;
}
export interface ServiceClient {
  /**
   * @param path below the URL of the API and its version; starts with a slash
   * @throws ServiceError
   */
  request(path: string, call?: ServiceCall): Promise<ServiceResponse>;
  /**
   * The URL of the API without a slash at the end, with its version.
   * @throws ServiceError
   */
  endpoint(): Promise<string>;
  /**
   * GET of content of any size. The body is read as it arrives; the caller destroys one that it does not read to its end.
   * @throws ServiceError, also for an error response
   */
  stream(path: string, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<StreamedResponse>;
  /**
   * PUT of content of any size, without retries. Callers send another request before it, which replaces a token that is not accepted.
   * @throws ServiceError, also for an error response
   */
  upload(path: string, upload: Upload, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<void>;
  /**
   * The project of this program's token. Undefined: it has none.
   * @throws ServiceError
   */
  projectId(): Promise<string | undefined>;
  /** Whether `auth_type` or `endpoint_override` is set. */
  readonly isConfigured: boolean;
  close(): Promise<void>;
}
export type Services = Readonly<Record<ServiceName, ServiceClient>>;

/**
 * `unreachable`: no response; `refused`: Keystone refuses this program, or the configuration is incomplete; `failing`: an error response
 * of the service, with its status. The message names section and reason, and contains no secrets.
 */
export class ServiceError extends Error {
  constructor(
    readonly service: ServiceName,
    readonly kind: KeystoneError['kind'],
    /** The service's own words where it gives a reason. */
    readonly reason: string,
    readonly status?: number,
    options?: ErrorOptions,
  ) {
    super(`[${service}] ${reason}`, options);
  }
}

/** Redirects are not followed: a request that is redirected has no answer, and has stored nothing. */
const isDone = ({ status }: { readonly status: number }): boolean => status < 300;
const MAX_REASON = 500;
/** The first `message`, `detail` or `title` in an error body: {NeutronError: {message}}, {badRequest: {message}}, {errors: [{title}]}. */
function messageIn(body: unknown, depth = 0): string | undefined {
  if (depth > 3) return undefined;
  if (Array.isArray(body)) return messageIn(body[0], depth + 1);
  if (!isObject(body)) return undefined;
  const { message, detail, title } = body;
  const own = [message, detail, title].find((text) => typeof text === 'string' && text !== '');
  if (typeof own === 'string') return own;
  for (const inner of Object.values(body).slice(0, 10)) {
    const found = messageIn(inner, depth + 1);
    if (found !== undefined) return found;
  }
  return undefined;
}
function reasonOf({ status, body }: ServiceResponse): string {
  const text = oneLine(shortened(messageIn(body) ?? '', MAX_REASON));
  return text === '' ? `HTTP status ${status}` : `HTTP status ${status}: ${text}`;
}

/** Sends the requests to one service. */
interface Transport {
  request(path: string, request: ServiceRequest, signal?: AbortSignal): Promise<ServiceResponse>;
  stream(path: string, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<StreamedResponse>;
  upload(path: string, upload: Upload, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<number>;
  endpoint(): Promise<string>;
  projectId(): Promise<string | undefined>;
  close(): Promise<void>;
}
type Parts = Pick<SessionParts, 'clock' | 'signal'>;

const DEFAULT_TIMEOUT_SECONDS = 60;
function retriesOf(values: Readonly<Record<string, unknown>>, section: string): Retries {
  const number = (name: string): number | undefined => {
    const value = values[`${section}.${name}`];
    return typeof value === 'number' ? value : undefined;
  };
  const milliseconds = (name: string): number | undefined => {
    const seconds = number(name);
    return seconds === undefined ? undefined : seconds * 1000;
  };
  const statuses = values[`${section}.retriable_status_codes`];
  return {
    attemptTimeoutMs: milliseconds('timeout') ?? milliseconds('request_timeout') ?? DEFAULT_TIMEOUT_SECONDS * 1000,
    connect: { retries: number('connect_retries') ?? 0, pauseMs: milliseconds('connect_retry_delay') },
    status: { retries: number('status_code_retries') ?? 0, pauseMs: milliseconds('status_code_retry_delay') },
    statuses: Array.isArray(statuses) ? statuses.map(Number) : [],
  };
}

/** Requests without Keystone: to a fixed URL, with a name and a password or nothing. */
function fixedTransport(
  selector: ServiceSelector,
  headers: Readonly<Record<string, string>>,
  retries: Retries,
  section: string,
  values: object,
  parts: Parts,
): Transport {
  const url = endpointOf([], selector);
  if (url === undefined)
    throw new SettingsError(
      `[${section}]endpoint_override: it is not set; without [${section}]auth_type there is no catalog that names the URL`,
    );
  const exchange = createExchange(tlsSettings(values, section));
  const send = createSender(exchange, retries, parts);
  const base = selector.version === undefined ? url : `${withoutVersion(url)}/${selector.version}`;
  return {
    request: (path, request, signal) => send(`${base}${path}`, { ...request, headers: { ...request.headers, ...headers } }, { signal }),
    stream: (path, more, signal) => exchange.stream(`${base}${path}`, { ...more, ...headers }, signal).catch(throwUnreachable(base)),
    upload: (path, upload, more, signal) =>
      exchange.upload(`${base}${path}`, upload, { ...more, ...headers }, signal).catch(throwUnreachable(base)),
    endpoint: async () => base,
    projectId: async () => undefined,
    close: () => exchange.close(),
  };
}

/** As keystoneauth sends it: services without authentication need the header. Cinder takes its project from it. */
const NO_TOKEN = { 'x-auth-token': 'notused' };
function transportOf(section: ServiceName, values: Readonly<Record<string, unknown>>, parts: Parts): Transport {
  const text = (name: string): string | undefined => {
    const value = values[`${section}.${name}`];
    return typeof value === 'string' && value !== '' ? value : undefined;
  };
  const [serviceName, region, endpointOverride, version] = [
    text('service_name'),
    text('region_name'),
    text('endpoint_override'),
    SERVICES[section],
  ];
  const interfaces = values[`${section}.valid_interfaces`];
  const selector: ServiceSelector = {
    serviceType: text('service_type') ?? section,
    interfaces: Array.isArray(interfaces) ? interfaces.map(String) : [],
    serviceName,
    region,
    endpointOverride,
    version: version ?? undefined,
  };
  const retries = retriesOf(values, section);
  const auth = serviceAuthType(values, section);
  if (auth.type === 'none') return fixedTransport(selector, NO_TOKEN, retries, section, values, parts);
  if (auth.type === 'http_basic') {
    const authorization = `Basic ${Buffer.from(`${auth.username}:${auth.password}`).toString('base64')}`;
    return fixedTransport(selector, { authorization }, retries, section, values, parts);
  }
  const session = createKeystoneSession(keystoneSettings(values, section), { ...parts, retries });
  return {
    request: (path, request, signal) => session.request(selector, path, request, signal),
    stream: (path, headers, signal) => session.stream(selector, path, headers, signal),
    upload: (path, upload, headers, signal) => session.upload(selector, path, upload, headers, signal),
    endpoint: () => session.endpoint(selector),
    projectId: () => session.projectId(),
    close: () => session.close(),
  };
}

/** The client of one service. It reads its options and connects at the first request. */
function createServiceClient(section: ServiceName, values: Readonly<Record<string, unknown>>, parts: Parts): ServiceClient {
  let opened: Transport | undefined;
  const ask = async <T>(work: (transport: Transport) => Promise<T>): Promise<T> => {
    try {
      opened ??= transportOf(section, values, parts);
      return await work(opened);
    } catch (error) {
      if (error instanceof KeystoneError) throw new ServiceError(section, error.kind, error.message, undefined, { cause: error });
      if (error instanceof SettingsError) throw new ServiceError(section, 'refused', error.message, undefined, { cause: error });
      throw error;
    }
  };
  return {
    isConfigured: ['auth_type', 'auth_section', 'endpoint_override'].some((name) => Boolean(values[`${section}.${name}`])),
    endpoint: () => ask((transport) => transport.endpoint()),
    projectId: () => ask((transport) => transport.projectId()),
    async stream(path, headers, signal) {
      const response = await ask((transport) => transport.stream(path, headers, signal));
      if (isDone(response)) return response;
      response.body.on('error', () => {}).destroy();
      throw new ServiceError(section, 'failing', `HTTP status ${response.status}`, response.status);
    },
    async upload(path, upload, headers, signal) {
      const status = await ask((transport) => transport.upload(path, upload, headers, signal));
      if (!isDone({ status })) throw new ServiceError(section, 'failing', `HTTP status ${status}`, status);
    },
    async request(path, { method = 'GET', headers, body, globalRequestId, accept = [], signal } = {}) {
      const request = {
        method,
        headers: { ...headers, ...(globalRequestId === undefined ? {} : { 'x-openstack-request-id': globalRequestId }) },
        ...(body === undefined ? {} : { body }),
      };
      const response = await ask((transport) => transport.request(path, request, signal));
      if (isDone(response) || accept.includes(response.status)) return response;
      throw new ServiceError(section, 'failing', reasonOf(response), response.status);
    },
    async close() {
      await opened?.close();
      opened = undefined;
    },
  };
}

/** @param options `section.name` → value */
export const createServices = (options: object, parts: Parts): Services =>
  Object.fromEntries(
    Object.keys(SERVICES).map((section) => [
      section,
      createServiceClient(section as ServiceName, options as Readonly<Record<string, unknown>>, parts),
    ]),
  ) as unknown as Services;
