/** The API on a database of its own with a fake conductor, asked over HTTP as clients do. */
import { createServer, request as httpRequest, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Options } from '../../config/options';
import { createProbes, type Probes } from '../../api/http/probes';
import { createApi, serverOptions } from '../../api/server';
import { systemClock } from '../../model/clock';
import type { Log } from '../../model/log';
import { silentMetrics } from '../../model/metrics';
import { answerCheck } from './answers';
import { createFakeConductor, FAKE_HARDWARE, type FakeConductor } from './fake-conductor';
import { optionsOf } from './options';
import { useDatabase, type TestDatabase } from './database';

/** What tests look into of an answer. */
interface Shown extends Readonly<Record<string, unknown>> {
  readonly uuid: string;
  readonly nodes: readonly Shown[];
  readonly ports: readonly Shown[];
  readonly links: readonly Shown[];
  readonly next: string;
  readonly node: Shown;
  readonly config: Shown;
  readonly default_version: Shown;
  readonly error_message: string;
}
/** Any text like this. */
export const matching = (pattern: RegExp): unknown => expect.stringMatching(pattern);

interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** As JSON; undefined without a body. */
  readonly body: Shown;
  readonly text: string;
  /** The sentence of a refusal of either shape. */
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
  /** @param minor of the version header; null: none */
  ask(method: string, path: string, minor?: number | string | null, send?: Send): Promise<Reply>;
}
export const OPTIONS: Options = optionsOf({
  'DEFAULT.http_basic_auth_user_file': '/nonexistent',
  'api.log_requests': 'none',
  'recorder.enabled': true,
  'events.poll_interval': 0.05,
  'events.keep_alive_interval': 1,
  'events.max_listeners': 2,
});

/** Of a request whose answer does not say which version it was. */
const askedMinor = (minor: number | string | null): number | undefined =>
  minor === null ? 1 : typeof minor === 'number' ? minor : undefined;

/** To be called once at the top of a test file. A conductor `here` is registered that offers fake-hardware. */
export function useApi(changed: Partial<Options> = {}, probes: Probes = createProbes({})): ApiUnderTest {
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
    const options = { ...OPTIONS, ...changed };
    const api = createApi({ store: database.store(), conductor, options, log, clock: systemClock, metrics: silentMetrics, probes });
    server = createServer(serverOptions(options), api);
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  });
  afterAll(async () => {
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  });

  const ask: ApiUnderTest['ask'] = (method, path, minor = 115, { body, headers } = {}) =>
    new Promise((resolve, reject) => {
      const text = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body);
      const version = minor === null ? {} : { 'X-OpenStack-Ironic-API-Version': typeof minor === 'number' ? `1.${minor}` : minor };
      const type = text === undefined ? {} : { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) };
      const sent = httpRequest(`${url()}${path}`, { method, headers: { ...version, ...type, ...headers } }, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () => {
          const answered = Buffer.concat(chunks).toString();
          const json = response.headers['content-type'] === 'application/json' && answered !== '';
          const value = (json ? JSON.parse(answered) : undefined) as Shown;
          const inner = (value as Shown | undefined)?.error_message;
          // Only one refusal is not JSON within JSON: that of callers who take none.
          const told = inner?.startsWith('{') ? (JSON.parse(inner) as { faultstring?: string; description?: string }) : undefined;
          const used = response.headers['x-openstack-ironic-api-version'] as string | undefined;
          const problem = check({
            method,
            path,
            minor: used === undefined ? askedMinor(minor) : Number(used.split('.')[1]),
            status: response.statusCode!,
            type: response.headers['content-type'],
            text: answered,
          });
          if (problem !== undefined) {
            reject(new Error(`an answer outside openapi.yaml: ${problem}`));
            return;
          }
          resolve({
            status: response.statusCode!,
            headers: response.headers,
            body: value,
            text: answered,
            fault: told?.faultstring ?? told?.description ?? inner,
          });
        });
      });
      sent.on('error', reject);
      sent.end(text);
    });
  return { database, conductor, logged, url, ask };
}
