/** The API with a database of its own and a fake conductor. Tests send HTTP requests. */
import { createServer, request as httpRequest, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Options } from '../../config/options';
import type { AuditLog } from '../../api/http/audit';
import { createProbes, type Probes } from '../../api/http/probes';
import { createApi, serverOptions } from '../../api/server';
import { systemClock } from '../../model/clock';
import type { Log } from '../../model/log';
import { silentMetrics } from '../../model/metrics';
import { answerCheck } from './answers';
import { createFakeConductor, FAKE_HARDWARE, type FakeConductor } from './fakes/fake-conductor';
import { optionsOf } from './options';
import { useDatabase, type TestDatabase } from './database';
import { NEWEST } from './newest';

/** The members of response bodies that tests use. */
interface ResponseBody extends Readonly<Record<string, unknown>> {
  readonly uuid: string;
  readonly nodes: readonly ResponseBody[];
  readonly ports: readonly ResponseBody[];
  readonly links: readonly ResponseBody[];
  readonly next: string;
  readonly node: ResponseBody;
  readonly config: ResponseBody;
  readonly default_version: ResponseBody;
  readonly error_message: string;
}
/** Matches any text that fits the pattern. */
export const matching = (pattern: RegExp): unknown => expect.stringMatching(pattern);

interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** As JSON; undefined without a body. */
  readonly body: ResponseBody;
  readonly text: string;
  /** The message of an error response of either format. */
  readonly fault: string | undefined;
}
interface Send {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}
export interface ApiUnderTest {
  readonly database: TestDatabase;
  readonly conductor: FakeConductor;
  readonly logged: string[];
  url(): string;
  /** Sends a request. @param minor of the version header; null: no header */
  ask(method: string, path: string, minor?: number | string | null, send?: Send): Promise<Reply>;
}
export const OPTIONS: Options = optionsOf({
  'DEFAULT.http_basic_auth_user_file': '/nonexistent',
  'api.log_requests': 'none',
  'recorder.enabled': true,
  'events.poll_interval': 0.05,
  'events.keep_alive_interval': 1,
  'events.max_listeners': 2,
  'events.max_listeners_per_source': 2,
});

/** The version of a request whose response has no version header. */
const requestedMinor = (minor: number | string | null): number | undefined =>
  minor === null ? 1 : typeof minor === 'number' ? minor : undefined;

/** Call it once at the top of a test file. It registers a conductor `here` with fake-hardware. */
export function useApi(changed: Partial<Options> = {}, probes: Probes = createProbes({}), audit?: AuditLog): ApiUnderTest {
  const database = useDatabase();
  const conductor = createFakeConductor(() => database.store());
  const logged: string[] = [];
  const note = (message: string): void => void logged.push(message);
  const log: Log = { debug: () => {}, info: () => {}, warn: note, error: note, child: () => log };
  const check = answerCheck();
  let server: Server;
  const url = (): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  beforeAll(async () => {
    await database
      .store()
      .conductors.register(
        { hostname: 'here', conductor_group: '', drivers: { 'fake-hardware': FAKE_HARDWARE }, address: null, instance: 'i' },
        null,
      );
    // Nothing renews the conductor's heartbeat while the tests run.
    const options = { ...OPTIONS, 'conductor.heartbeat_timeout': 3600, ...changed };
    const services = { store: database.store(), conductor, options, log, clock: systemClock, metrics: silentMetrics, probes };
    const api = createApi({ ...services, ...(audit ? { audit } : {}) });
    server = createServer(serverOptions(options), api);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  });
  afterAll(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  const ask: ApiUnderTest['ask'] = (method, path, minor = NEWEST, { body, headers } = {}) =>
    new Promise((resolve, reject) => {
      const text = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body);
      const version = minor === null ? {} : { 'X-OpenStack-Ironic-API-Version': typeof minor === 'number' ? `1.${minor}` : minor };
      const type = text === undefined ? {} : { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) };
      const sent = httpRequest(`${url()}${path}`, { method, headers: { ...version, ...type, ...headers } }, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () => {
          const responseText = Buffer.concat(chunks).toString();
          const json = response.headers['content-type'] === 'application/json' && responseText !== '';
          const value = (json ? JSON.parse(responseText) : undefined) as ResponseBody;
          const inner = (value as ResponseBody | undefined)?.error_message;
          // Every error message is JSON, except that of a request which does not accept JSON.
          const error = inner?.startsWith('{') ? (JSON.parse(inner) as { faultstring?: string; description?: string }) : undefined;
          const used = response.headers['x-openstack-ironic-api-version'] as string | undefined;
          const problem = check({
            method,
            path,
            minor: used === undefined ? requestedMinor(minor) : Number(used.split('.')[1]),
            status: response.statusCode!,
            type: response.headers['content-type'],
            text: responseText,
          });
          if (problem !== undefined) {
            reject(new Error(`a response does not match openapi.yaml: ${problem}`));
            return;
          }
          resolve({
            status: response.statusCode!,
            headers: response.headers,
            body: value,
            text: responseText,
            fault: error?.faultstring ?? error?.description ?? inner,
          });
        });
      });
      sent.on('error', reject);
      sent.end(text);
    });
  return { database, conductor, logged, url, ask };
}
