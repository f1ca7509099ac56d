import { AlreadyRead } from '../../conductor/core/call-types';
import { createServer } from 'node:http';
import { request } from 'undici';
import { WebSocket, WebSocketServer } from 'ws';
import {
  authorize,
  authorized,
  createNonces,
  decodeAnswer,
  digestOf,
  encodeCall,
  encodeError,
  encodeResult,
  MAX_SKEW_MS,
  PING,
} from '../../conductor/rpc/codec';
import { createRpcClient, NoResponse } from '../../conductor/rpc/client';
import { startRpcServer } from '../../conductor/rpc/server';
import { OPERATIONS, type Perform } from '../../conductor/operations';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { systemClock } from '../../model/clock';
import { Fault, FAULTS, type FaultName } from '../../model/errors';
import { silentLog } from '../../model/log';
import { silentMetrics, type Metrics } from '../../model/metrics';
import { ownCertificate } from '../../wire/http/certificate';
import { optionsOf } from '../support/options';
import { until } from '../support/until';

type RpcServerOptions = Parameters<typeof startRpcServer>[0]['options'];
const SECRET = 'shared';
const options = optionsOf({ 'DEFAULT.host': 'c1', 'json_rpc.host_ip': '127.0.0.1' });
const origin = { requestId: 'req-1', user: 'u', project: null };

const ends: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});
const measured: string[] = [];
const metrics: Metrics = {
  ...silentMetrics,
  count: (name) => void measured.push(name),
  observe: (_, labels) => void measured.push(Object.values(labels).join(' ')),
};
beforeEach(() => void measured.splice(0));
const client = (secret = SECRET, clock = systemClock, settings = options) => {
  const made = createRpcClient({ options: settings, secret, clock, random: randomBytes, log: silentLog, metrics });
  ends.push(() => made.close());
  return made;
};
async function serving(perform: Perform, isLeaving = () => false, changed: Partial<RpcServerOptions> = {}) {
  const server = await startRpcServer({
    options: { ...options, ...changed },
    announced: '127.0.0.1',
    secret: SECRET,
    clock: systemClock,
    log: silentLog,
    metrics,
  });
  ends.push(() => server.stop());
  server.serve({ perform, isLeaving });
  return { hostname: 'c1', address: server.address };
}
const never = new AbortController().signal;
const validate = (...args: readonly unknown[]) => ({ method: 'validate' as const, args, origin });

describe('a fault', () => {
  it.each(Object.keys(FAULTS) as FaultName[])('%s is the same after encoding and decoding', (name) => {
    const details = { message: 'm', node: 'n', host: 'h', uuid: 'u', reason: 'r' };
    const sent = new Fault(name, details);
    const thrown: unknown = (() => {
      try {
        return decodeAnswer(encodeError('1', sent, silentLog));
      } catch (error) {
        return error;
      }
    })();
    expect(thrown).toBeInstanceOf(Fault);
    expect(thrown).toMatchObject({ name, details, status: sent.status, message: sent.message });
  });
  it('that this version does not know becomes an error with its message', () => {
    const text = encodeError('1', new Fault('Invalid', { message: 'm' }), silentLog).replace('"Invalid"', '"Newer"');
    expect(() => decodeAnswer(text)).toThrow(new Error('m'));
  });
});

it('encodes no arguments that were omitted, and an empty result as null', () => {
  expect(JSON.parse(encodeCall('1', { method: 'setPower', args: ['u', 'power on', undefined] }))).toEqual({
    jsonrpc: '2.0',
    id: '1',
    method: 'setPower',
    params: { args: ['u', 'power on'] },
  });
  const { args } = (
    JSON.parse(encodeCall('1', { method: 'provision', args: ['u', 'manage', {}, new AlreadyRead({})] })) as { params: { args: unknown } }
  ).params;
  expect(args).toEqual(['u', 'manage', {}]);
  expect(decodeAnswer(encodeResult('1', undefined))).toBeNull();
});

describe('a signature', () => {
  const signed = { time: 1000, nonce: 'n', digest: digestOf('body') };
  const header = authorize(SECRET, 'c1', signed);
  it.each<[string, string | undefined, string, boolean]>([
    ['is valid for its own call', header, 'c1', true],
    ['is invalid for another conductor', header, 'c2', false],
    ['is invalid for another time', header.replace(' 1000 ', ' 1001 '), 'c1', false],
    ['is invalid for another body', header.replace(signed.digest, digestOf('other')), 'c1', false],
    ['is invalid with another secret', authorize('other', 'c1', signed), 'c1', false],
    ['is invalid if it is absent', undefined, 'c1', false],
    ['is invalid if it is malformed', 'BLOOMERY1 a b c d', 'c1', false],
    ['is invalid if it is too short', header.slice(0, -1), 'c1', false],
    [
      'is invalid with as many characters that are not ASCII',
      header.replace(/[^ ]+$/, (signature) => 'é'.repeat(signature.length)),
      'c1',
      false,
    ],
  ])('%s', (_, text, to, holds) => {
    expect(authorized(SECRET, to, text)).toEqual(holds ? signed : undefined);
  });
  it('is valid for one call: its nonce is remembered until its time is too old', () => {
    const nonces = createNonces();
    expect([nonces.isNew('a', 0), nonces.isNew('a', 1), nonces.isNew('b', 2)]).toEqual([true, false, true]);
    expect(nonces.isNew('a', 2 * MAX_SKEW_MS)).toBe(false);
    expect(nonces.isNew('c', 2 * MAX_SKEW_MS + 1)).toBe(true);
    expect(nonces.isNew('a', 2 * MAX_SKEW_MS + 2)).toBe(false);
    expect(nonces.isNew('a', 9 * MAX_SKEW_MS)).toBe(true);
  });
});

describe('calls between conductors', () => {
  it('run at the other conductor with their origin, and return its result', async () => {
    const seen: unknown[] = [];
    const there = await serving(async (...[name, args, from]) => {
      seen.push([name, args, from]);
      return { power: { result: true } };
    });
    const here = client();
    expect(await here.call(there, validate('node-1'), never)).toEqual({ power: { result: true } });
    expect(seen).toEqual([['validate', ['node-1'], origin]]);
    expect(await here.probe(there)).toBe('answers');
  });
  it('return faults as faults, and other errors with their message', async () => {
    const there = await serving(async (_, [what]) => {
      if (what === 'fault') throw new Fault('NodeLocked', { node: 'n', host: 'c1' });
      throw new TypeError('x is undefined');
    });
    await expect(client().call(there, validate('fault'), never)).rejects.toMatchObject({
      name: 'NodeLocked',
      status: 409,
      message: new Fault('NodeLocked', { node: 'n', host: 'c1' }).message,
    });
    await expect(client().call(there, validate('defect'), never)).rejects.toThrow(new Error('x is undefined'));
  });
  it('transfer a large config drive, and refuse one that is too large', async () => {
    const there = await serving(async (_name, args) => (args[2] as { configdrive: string }).configdrive.length, undefined, {
      'api.max_json_body_size_provision': 20_000,
    });
    const drive = (mib: number) => ({ method: 'provision' as const, args: ['n', 'active', { configdrive: 'x'.repeat(mib * 2 ** 20) }] });
    expect(await client().call(there, drive(19), never)).toBe(19 * 2 ** 20);
    await expect(client().call(there, drive(22), never)).rejects.toThrow(/longer than|reset|closed|EPIPE/);
  });
  it.each<[string, () => Promise<{ hostname: string; address: string }>, () => ReturnType<typeof client>, boolean, string]>([
    ['nobody listens', async () => ({ hostname: 'c1', address: 'http://127.0.0.1:1' }), client, false, 'gone'],
    [
      'the conductor leaves',
      () =>
        serving(
          async () => 1,
          () => true,
        ),
      client,
      false,
      'answers',
    ],
    ['a conductor of another name answers', async () => ({ ...(await serving(async () => 1)), hostname: 'c2' }), client, false, 'gone'],
    ['a conductor of another database answers', () => serving(async () => 1), () => client('other'), false, 'gone'],
    [
      'the clocks differ',
      () => serving(async () => 1),
      () => client(SECRET, { ...systemClock, now: () => Date.now() - 90_000 }),
      false,
      'answers',
    ],
    [
      'the listener is not a conductor',
      async () => {
        const server = createServer((_, response) => response.end('{"jsonrpc":"2.0","result":1}'));
        await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
        ends.push(async () => {
          server.closeAllConnections();
          await new Promise((done) => server.close(done));
        });
        return { hostname: 'c1', address: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
      },
      client,
      false,
      'gone',
    ],
  ])('fail without having run if %s', async (_, there, here, mayHaveRun, probed) => {
    const callee = await there();
    const caller = here();
    const error: unknown = await caller.call(callee, validate('n'), never).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(NoResponse);
    expect((error as NoResponse).mayHaveRun).toBe(mayHaveRun);
    expect((error as Error).message).not.toContain(SECRET);
    expect(await caller.probe(callee)).toBe(probed);
  });
  it('may have run if the caller gives up', async () => {
    const giveUp = new AbortController();
    const there = await serving(() => {
      giveUp.abort(new Error('enough'));
      return new Promise(() => {});
    });
    const error: unknown = await client()
      .call(there, validate('n'), giveUp.signal)
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ mayHaveRun: true });
  });
  it('are aborted at the other conductor when the caller gives up', async () => {
    let told: AbortSignal | undefined;
    const giveUp = new AbortController();
    const there = await serving((_name, _args, _origin, caller) => {
      told = caller;
      giveUp.abort(new Error('enough'));
      return new Promise(() => {});
    });
    const ended = client().call(there, validate('n'), giveUp.signal);
    await expect(ended).rejects.toMatchObject({ mayHaveRun: true });
    await until('its abort', () => told?.aborted === true);
  });
  it('do not run if the caller disconnected before they are read', async () => {
    let calls = 0;
    const there = await serving(async () => ++calls);
    const body = encodeCall('1', validate('n'));
    const authorization = authorize(SECRET, 'c1', { time: Date.now(), nonce: 'late', digest: digestOf(body) });
    const lines = [
      'POST / HTTP/1.1',
      'host: c1',
      `authorization: ${authorization}`,
      `content-length: ${Buffer.byteLength(body)}`,
      '',
      body,
    ];
    const socket = connect(Number(new URL(there.address).port), '127.0.0.1');
    // The whole request and the end of the connection arrive before the server reads.
    socket.end(lines.join('\r\n'));
    await delay(200);
    socket.destroy();
    expect(calls).toBe(0);
  });
  it('are refused without a signature, with a used signature, and with a changed body', async () => {
    let calls = 0;
    const there = await serving(async () => ++calls);
    const body = encodeCall('1', validate('n'));
    const authorization = authorize(SECRET, 'c1', { time: Date.now(), nonce: 'once', digest: digestOf(body) });
    const send = async (headers: Record<string, string>, text = body) => {
      const { statusCode, body: answered } = await request(there.address, { method: 'POST', headers, body: text });
      return [statusCode, await answered.text()];
    };
    expect(await send({})).toEqual([401, '']);
    expect((await send({ authorization }))[0]).toBe(200);
    expect(await send({ authorization })).toEqual([401, '']);
    const changed = authorize(SECRET, 'c1', { time: Date.now(), nonce: 'two', digest: digestOf(body) });
    expect((await send({ authorization: changed }, body.replace('"n"', '"m"')))[1]).toMatch(/does not match its signature/);
    expect(calls).toBe(1);
  });
  it('use TLS if the caller trusts the certificate; certificate and authorities are reloaded', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'bloomery-rpc-'));
    ends.push(async () => rmSync(folder, { recursive: true }));
    const [first, second] = ['first', 'second'].map((name) => ownCertificate('127.0.0.1', name, Date.now(), randomBytes));
    const [cert, key, ca] = ['cert', 'key', 'ca'].map((name) => join(folder, name)) as [string, string, string];
    writeFileSync(cert, first!.certificate);
    writeFileSync(key, first!.privateKey);
    writeFileSync(ca, first!.certificate);
    const server = await startRpcServer({
      options,
      announced: '127.0.0.1',
      secret: SECRET,
      clock: systemClock,
      log: silentLog,
      tls: {
        cert: { option: '[json_rpc]cert_file', path: cert },
        key: { option: '[json_rpc]key_file', path: key },
        minVersion: 'TLSv1.3',
        maxVersion: 'TLSv1.3',
      },
    });
    ends.push(() => server.stop());
    server.serve({ perform: async () => 'done', isLeaving: () => false });
    expect(server.address).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
    const there = { hostname: 'c1', address: server.address };
    const trusting = () => client(SECRET, systemClock, { ...options, 'json_rpc.cafile': ca });
    expect(await trusting().call(there, validate('n'), never)).toBe('done');
    await expect(client().call(there, validate('n'), never)).rejects.toMatchObject({ mayHaveRun: false });
    const sockets = new WebSocketServer({ noServer: true });
    server.stream((request, socket, head, answer) => {
      sockets.once('headers', (lines) => void lines.push(...answer));
      sockets.handleUpgrade(request, socket, head, () => {});
    });
    (await trusting().connect(there, '/x', [], never)).terminate();
    await expect(client().connect(there, '/x', [], never)).rejects.toMatchObject({ mayHaveRun: false });
    writeFileSync(cert, second!.certificate);
    writeFileSync(key, second!.privateKey);
    server.reload();
    const distrusting = trusting();
    await expect(distrusting.call(there, validate('n'), never)).rejects.toMatchObject({ mayHaveRun: false });
    // The authorities are read again too; a file that cannot be used changes nothing.
    writeFileSync(ca, second!.certificate);
    distrusting.reload();
    writeFileSync(ca, 'no certificate');
    distrusting.reload();
    expect(await distrusting.call(there, validate('n'), never)).toBe('done');
    expect(trusting).toThrow(/^\[json_rpc\]cafile: cannot use .*: /);
  });
  it('the server does not start on a port that is in use', async () => {
    const { address } = await serving(async () => 1);
    await expect(serving(async () => 1, undefined, { 'json_rpc.port': Number(new URL(address).port) })).rejects.toThrow(
      /^cannot listen on 127\.0\.0\.1 port \d+ \(other processes, \[json_rpc\]port\): the port is in use$/,
    );
  });
});

it('every operation has a destination and an implementation', () => {
  expect(
    Object.entries(OPERATIONS).filter(([name, { to, run }]) => name === PING || typeof to !== 'function' || typeof run !== 'function'),
  ).toEqual([]);
});

it('calls are measured on both sides by operation and outcome', async () => {
  const callee = await serving(async (name, args) => {
    if (args[0] === 'bad') throw new Fault('NodeNotFound', { node: 'bad' });
    return name;
  });
  await client().call(callee, validate('one'), never);
  await expect(client().call(callee, validate('bad'), never)).rejects.toThrow(Fault);
  await expect(client('another secret').call(callee, validate('one'), never)).rejects.toThrow(NoResponse);
  expect(measured.sort()).toEqual([
    'bloomery_rpc_refused_total',
    'client validate failed',
    'client validate ok',
    'client validate unanswered',
    'server validate failed',
    'server validate ok',
  ]);
});

describe('a WebSocket to a conductor', () => {
  const streaming = async (isLeaving = () => false) => {
    const server = await startRpcServer({ options, announced: '127.0.0.1', secret: SECRET, clock: systemClock, log: silentLog, metrics });
    ends.push(() => server.stop());
    server.serve({ perform: async () => null, isLeaving });
    const sockets = new WebSocketServer({ noServer: true });
    let lines: readonly string[] = [];
    sockets.on('headers', (all) => void all.push(...lines));
    server.stream((request, socket, head, answer) => {
      lines = answer;
      sockets.handleUpgrade(request, socket, head, (made) => made.send(`you asked for ${request.url}`));
    });
    return { hostname: 'c1', address: server.address };
  };
  it('is opened with a signature, and loses no message', async () => {
    const opened = await client().connect(await streaming(), '/screens/x', [], never);
    const message = new Promise((done) => opened.once('message', (data) => done((data as Buffer).toString())));
    opened.resume();
    expect(await message).toBe('you asked for /screens/x');
    opened.terminate();
  });
  it.each<readonly [string, () => Promise<unknown>]>([
    ['with another secret', async () => client('other').connect(await streaming(), '/x', [], never)],
    ['for another conductor', async () => client().connect({ ...(await streaming()), hostname: 'c2' }, '/x', [], never)],
    [
      'with another clock',
      async () => client(SECRET, { ...systemClock, now: () => Date.now() - 2 * MAX_SKEW_MS }).connect(await streaming(), '/x', [], never),
    ],
    ['while the conductor stops', async () => client().connect(await streaming(() => true), '/x', [], never)],
    ['to a closed port', async () => client().connect({ hostname: 'c1', address: 'http://127.0.0.1:1' }, '/x', [], never)],
    ['after the caller has gone', async () => client().connect(await streaming(), '/x', [], AbortSignal.abort(new Error('gone')))],
  ])('is refused %s', async (_, connects) => {
    await expect(connects()).rejects.toBeInstanceOf(NoResponse);
  });
  it('is refused for another path than the signed one, and a second time', async () => {
    const { address } = await streaming();
    const signed = (path: string): string => authorize(SECRET, 'c1', { time: Date.now(), nonce: 'n-1', digest: digestOf(path) });
    const asks = (path: string, authorization: string): Promise<unknown> =>
      new Promise((done) => {
        const socket = new WebSocket(`${address.replace('http', 'ws')}${path}`, { headers: { authorization } });
        socket.on('error', () => {});
        socket.once('open', () => {
          socket.terminate();
          done('open');
        });
        socket.once('unexpected-response', (_, { statusCode }) => done(statusCode));
      });
    expect(await asks('/y', signed('/x'))).toBe(401);
    expect(await asks('/x', signed('/x'))).toBe('open');
    expect(await asks('/x', signed('/x'))).toBe(401);
  });
  it('is not believed to a service that cannot sign', async () => {
    const impostor = createServer();
    const sockets = new WebSocketServer({ server: impostor });
    impostor.listen(0, '127.0.0.1');
    await until('the impostor', () => impostor.listening);
    ends.push(() => new Promise((done) => sockets.close(() => impostor.close(() => done()))));
    const address = `http://127.0.0.1:${(impostor.address() as AddressInfo).port}`;
    await expect(client().connect({ hostname: 'c1', address }, '/x', [], never)).rejects.toThrow('is not this conductor of this database');
  });
});
