import { createHmac } from 'node:crypto';
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { systemClock } from '../../../model/clock';
import { createWebhook, type Webhook } from '../../../wire/http/webhook';

type WebhookOptions = Parameters<typeof createWebhook>[0];
interface Posted {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}
const posted: Posted[] = [];
/** Statuses of the next answers, then 204; 0: no answer, unless the test gives one. */
let answers: number[] = [];
const unanswered: ServerResponse[] = [];
let server: Server;
let webhook: Webhook | undefined;
const pauses: number[] = [];
const outcomes: string[] = [];
let wake = (): void => {};

beforeAll(async () => {
  server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      posted.push({ path: request.url!, headers: request.headers, body });
      const status = answers.shift() ?? 204;
      if (status === 302) response.setHeader('location', '/elsewhere');
      if (status === 0) {
        unanswered.push(response);
        wake();
      } else response.writeHead(status).end();
    });
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
});
beforeEach(() => {
  answers = [];
  for (const list of [posted, unanswered, pauses, outcomes]) list.length = 0;
});
afterEach(() => webhook?.stop(0));
afterAll(async () => {
  server.closeAllConnections();
  await new Promise((done) => server.close(done));
});

const made = (more: Partial<WebhookOptions> = {}): Webhook =>
  (webhook = createWebhook({
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook?a=1`,
    secret: null,
    headers: {},
    timeoutMs: 20_000,
    retries: 3,
    queue: 10,
    now: () => 1_700_000_000.5,
    // The pauses between tries pass at once.
    sleep: async (milliseconds, signal) => {
      pauses.push(milliseconds);
      await systemClock.sleep(milliseconds < 5000 ? Math.min(milliseconds, 20) : milliseconds, signal);
    },
    told: (outcome, { id }, reason) => {
      outcomes.push([outcome, id, ...(reason === undefined ? [] : [reason])].join(' '));
      wake();
    },
    ...more,
  }));
const message = (id: string) => ({ id, event: 'baremetal.node.create.end', body: JSON.stringify({ id }) });
async function heard(count: number, list: readonly unknown[] = outcomes): Promise<readonly string[]> {
  while (list.length < count)
    await new Promise<void>((resolve) => {
      wake = resolve;
    });
  return outcomes;
}

it('posts in order, with a signature and the configured headers', async () => {
  const { send } = made({ secret: 'key', headers: { 'X-Own': 'yes' } });
  for (const id of ['1', '2', '3']) send(message(id));
  expect(await heard(3)).toEqual(['sent 1', 'sent 2', 'sent 3']);
  expect(posted.map(({ body }) => body)).toEqual(['{"id":"1"}', '{"id":"2"}', '{"id":"3"}']);
  const [{ path, headers, body }] = posted as [Posted];
  expect(path).toBe('/hook?a=1');
  expect(headers).toMatchObject({
    'content-type': 'application/json',
    'x-own': 'yes',
    'x-bloomery-event': 'baremetal.node.create.end',
    'x-bloomery-delivery': '1',
    'x-bloomery-timestamp': '1700000000',
    'x-bloomery-signature': `sha256=${createHmac('sha256', 'key').update(`1700000000.${body}`).digest('hex')}`,
  });
});
it('signatureOf equals the HMAC that openssl computes', async () => {
  const { send } = made({ secret: 'key' });
  send({ ...message('1'), body: '{}' });
  await heard(1);
  // printf '1700000000.{}' | openssl dgst -sha256 -hmac key
  expect(posted[0]!.headers['x-bloomery-signature']).toBe('sha256=9d713ed406bb7076d4123f0dc2c39d2df5c654ed4b0cd56b52c8b4c940bd63ae');
});
it('retries after statuses 500 and 429, before it posts the next message', async () => {
  answers = [500, 429];
  const { send } = made();
  send(message('1'));
  send(message('2'));
  expect(await heard(2)).toEqual(['sent 1', 'sent 2']);
  expect(posted.map(({ headers }) => headers['x-bloomery-delivery'])).toEqual(['1', '1', '1', '2']);
  expect(pauses).toEqual([1000, 2000]);
});
it.each([
  [[500, 500, 500, 503], 'lost 1 status 503', 4],
  [[404], 'lost 1 status 404', 1],
  // Redirections are not followed.
  [[302], 'lost 1 status 302', 1],
])('drops a message after the responses %j', async (given, outcome, tries) => {
  answers = [...given];
  made().send(message('1'));
  expect(await heard(1)).toEqual([outcome]);
  expect(posted).toHaveLength(tries);
});
it('drops a message after a timeout or a refused connection', async () => {
  answers = [0];
  made({ timeoutMs: 100, retries: 0 }).send(message('1'));
  expect((await heard(1))[0]).toMatch(/^lost 1 .*(?:timeout|aborted)/i);
  await webhook!.stop(0);
  made({ url: 'http://127.0.0.1:1/', retries: 1 }).send(message('2'));
  expect((await heard(2))[1]).toMatch(/^lost 2 .*ECONNREFUSED/);
});
it('drops the newest message when the queue is full', async () => {
  answers = [0];
  const { send, waiting } = made({ queue: 2, retries: 0 });
  for (const id of ['1', '2', '3']) send(message(id));
  expect(waiting()).toBe(2);
  expect(outcomes).toEqual(['lost 3 the queue is full']);
  await heard(1, unanswered);
  unanswered[0]!.writeHead(500).end();
  expect((await heard(3)).slice(1)).toEqual(['lost 1 status 500', 'sent 2']);
});
it('stop posts the queued messages until its timeout, and drops the rest', async () => {
  const one = made();
  one.send(message('1'));
  await one.stop(5000);
  expect(outcomes).toEqual(['sent 1']);
  answers = [0];
  const other = made();
  other.send(message('2'));
  other.send(message('3'));
  await other.stop(10);
  expect(outcomes.slice(1)).toEqual(['lost 2 the server stopped', 'lost 3 the server stopped']);
  other.send(message('4'));
  expect(outcomes.at(-1)).toMatch(/^lost 4/);
});
