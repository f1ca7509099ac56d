/** Graphical consoles beside the real Ironic's: what is enabled, what is refused, and what clients get. */
import { until } from '../../support/until';
import { timeoutSignal } from '../../../wire/timeout-signal';
import { startBoth, type Both } from '../both';

const PUBLIC = 'http://screens.example.org:6090/vnc_auto.html';
let both: Both;
beforeAll(async () => {
  const vnc = { enabled: 'true', public_url: PUBLIC };
  both = await startBoth(
    { DEFAULT: { enabled_console_interfaces: 'no-console,fake,fake-graphical' } },
    { reference: { vnc: { ...vnc, container_provider: 'fake' } }, ours: { vnc: { ...vnc, host_ip: '127.0.0.1', port: '0' } } },
  );
}, 900_000);
afterAll(() => both?.stop(), 60_000);

interface Answer {
  readonly status: number;
  readonly body: unknown;
}
async function ask(server: string, method: string, path: string, body?: unknown, version = '1.104'): Promise<Answer> {
  const response = await fetch(`${server}/v1/${path}`, {
    method,
    headers: { 'X-OpenStack-Ironic-API-Version': version, 'Content-Type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: timeoutSignal(60_000),
  });
  const text = await response.text();
  return { status: response.status, body: text === '' ? null : (JSON.parse(text) as unknown) };
}
/** Without tokens and addresses. The errors are texts of JSON, which each server spaces in its own way. */
function plain({ status, body }: Answer): Answer {
  const { error_message: message } = (body ?? {}) as { error_message?: unknown };
  const told = typeof message === 'string' ? { error_message: JSON.parse(message) as unknown } : body;
  const text = JSON.stringify(told)
    .replace(/token%3D[\w-]+/g, 'token%3D…')
    .replace(/http:\/\/127\.0\.0\.1:\d+/g, 'http://server');
  return { status, body: JSON.parse(text) as unknown };
}
/** What is compared: of records the status only, because other tests compare their fields. */
const comparedOf = (method: string, path: string, answer: Answer): unknown => {
  if (answer.status < 300 && (method === 'POST' || method === 'PATCH')) return answer.status;
  return path.endsWith('validate') ? (answer.body as { console?: unknown }).console : answer;
};
const on = (name: string, interfaces = 'fake-graphical') => ({ name, driver: 'fake-hardware', console_interface: interfaces });
const NODE = '11111111-aaaa-4aaa-8aaa-111111111111';
/** In order: each works on what those before have left. */
const REQUESTS: readonly (readonly [what: string, method: string, path: string, body?: unknown, version?: string])[] = [
  ['an interface that is not enabled', 'POST', 'nodes', on('n0', 'redfish-graphical')],
  ['a node of it', 'POST', 'nodes', { ...on('n1'), uuid: NODE }],
  ['a node without a console', 'POST', 'nodes', on('n2', 'no-console')],
  ['the console before it is on', 'GET', 'nodes/n1/states/console'],
  ['no console', 'GET', 'nodes/n2/states/console'],
  ['on without a console', 'PUT', 'nodes/n2/states/console', { enabled: true }],
  ['no value', 'PUT', 'nodes/n1/states/console', {}],
  ['a wrong value', 'PUT', 'nodes/n1/states/console', { enabled: 'perhaps' }],
  ['on', 'PUT', 'nodes/n1/states/console', { enabled: true }],
  ['the console', 'GET', 'nodes/n1/states/console'],
  ['the console in an older version', 'GET', `nodes/${NODE}/states/console`, undefined, '1.1'],
  ['on again', 'PUT', 'nodes/n1/states/console', { enabled: true }],
  ['the validation', 'GET', 'nodes/n1/validate'],
  ['another interface while it is on', 'PATCH', 'nodes/n1', [{ op: 'replace', path: '/console_interface', value: 'no-console' }]],
  ['the interface again', 'PATCH', 'nodes/n1', [{ op: 'replace', path: '/console_interface', value: 'fake-graphical' }]],
  ['the console after the interface changed', 'GET', 'nodes/n1/states/console'],
  ['off', 'PUT', 'nodes/n1/states/console', { enabled: false }],
  ['the console after it is off', 'GET', 'nodes/n1/states/console'],
  ['a node that does not exist', 'GET', 'nodes/n9/states/console'],
];

it('answers as the real Ironic', async () => {
  const differing: unknown[] = [];
  const settled = (server: string): Promise<void> =>
    until('no work on the node', async () => {
      const { status, body } = await ask(server, 'GET', `nodes/${NODE}`);
      return status === 404 || (body as { reservation: unknown }).reservation === null;
    });
  for (const [what, method, path, body, version] of REQUESTS) {
    const [left, right] = await Promise.all(
      [both.reference, both.ours].map(async (server) => {
        const answer = plain(await ask(server, method, path, body, version));
        await settled(server);
        return comparedOf(method, path, answer);
      }),
    );
    if (JSON.stringify(left) !== JSON.stringify(right)) differing.push([what, left, right]);
  }
  expect(differing).toEqual([]);
}, 240_000);

it('keeps the same things about a console that is on', async () => {
  const shown = await Promise.all(
    [both.reference, both.ours].map(async (server) => {
      await ask(server, 'PUT', 'nodes/n1/states/console', { enabled: true });
      let internal: Readonly<Record<string, unknown>> = {};
      await until('the token', async () => {
        const { body } = await ask(server, 'GET', `nodes/${NODE}`);
        internal = (body as { driver_internal_info: typeof internal }).driver_internal_info;
        return internal['novnc_secret_token'] !== undefined;
      });
      const { body } = await ask(server, 'GET', 'nodes/n1/states/console');
      return { internal, url: (body as { console_info: { url: string } }).console_info.url };
    }),
  );
  for (const { internal, url } of shown) {
    // Neither shows the token in the node, nor when it was made.
    expect([internal['novnc_secret_token'], internal['novnc_secret_token_created']]).toEqual(['******', '******']);
    expect(url).toMatch(new RegExp(`^${PUBLIC.replaceAll('.', '\\.')}\\?path=websockify%3Fnode%3D${NODE}%26token%3D[\\w-]{43}$`));
  }
}, 240_000);
