// The clients of `npm run hostile` besides the attackers and the probe; scripts/hostile.mjs starts it. It deploys and deletes the machines in turn.
// At a message `{ slowReaders }` it holds this many connections that hardly read. Takes a JSON object as its argument: url, bootUrl,
// instance, names. Messages to its parent: `{ connected }` for each slow connection, `{ state, reason }` when a machine is deployed or
// fails.
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

const { url, bootUrl, instance, names } = JSON.parse(process.argv[2] ?? '');
/** @typedef {{ connected?: number, state?: string, reason?: string }} Message */
/** @param {Message} message */
const tell = (message) => void process.send?.(message);
/** An address of its own for this kind of client, because limits apply to each source address. */
const SLOW_ADDRESS = '127.0.0.8';
const ROUND_MS = 1000;
const READ_EVERY_MS = 1000;
const REQUEST_TIMEOUT_MS = 60_000;
/** Provision state → the verb that follows. */
/** @type {Readonly<Record<string, string>>} */
const NEXT = {
  enroll: 'manage',
  manageable: 'provide',
  available: 'active',
  active: 'deleted',
  'deploy failed': 'deleted',
  error: 'deleted',
  'clean failed': 'manage',
  'inspect failed': 'manage',
};

/** @param {string} method @param {string} path @param {unknown} [body] */
async function call(method, path, body) {
  const headers = { 'content-type': 'application/json', 'x-openstack-ironic-api-version': 'latest' };
  const answer = await fetch(`${url}${path}`, {
    method,
    headers,
    signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  return { status: answer.status, body: text === '' ? undefined : JSON.parse(text) };
}
/** The last error in the node's history. The power synchronisation may have cleared `last_error` by now. @param {string} uuid */
async function lastEventOf(uuid) {
  const found = await call('GET', `/v1/nodes/${uuid}/history?detail=true`).catch(() => undefined);
  /** @type {readonly { severity: string, created_at: string, event: string }[]} */
  const history = found?.body?.history ?? [];
  const errors = history.filter(({ severity }) => severity === 'ERROR');
  return errors.toSorted((left, right) => (left.created_at < right.created_at ? -1 : 1)).at(-1)?.event;
}
/** Sends each machine its next verb. A refused verb is sent again in the next round. */
async function deploy() {
  const known = new Set(names);
  const states = new Map();
  for (;;) {
    const listed = await call('GET', `/v1/nodes?fields=uuid,name,provision_state,last_error&limit=1000`).catch(() => undefined);
    for (const { uuid, name, provision_state: state, last_error: reason } of listed?.body?.nodes ?? []) {
      if (!known.has(name)) continue;
      if (states.get(uuid) !== state) {
        states.set(uuid, state);
        if (state === 'active') tell({ state });
        if (/failed$|^error$/.test(state)) tell({ state, reason: reason ?? (await lastEventOf(uuid)) ?? state });
      }
      const target = NEXT[state];
      if (target === undefined) continue;
      if (target === 'active')
        await call('PATCH', `/v1/nodes/${uuid}`, [{ op: 'add', path: '/instance_info', value: instance }]).catch(() => {});
      await call('PUT', `/v1/nodes/${uuid}/states/provision`, { target }).catch(() => {});
    }
    await delay(ROUND_MS);
  }
}
/** Connections, one after another, that take a few kilobytes of a large response each second. @param {string} base @param {string} path */
async function readSlowly(base, path) {
  const { hostname: host, port } = new URL(base);
  for (;;) {
    tell({ connected: 1 });
    const socket = connect({ port: Number(port), host, localAddress: SLOW_ADDRESS }).on('error', () => {});
    let isOpen = true;
    socket.once('close', () => (isOpen = false));
    socket.pause().write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
    while (isOpen) {
      await delay(READ_EVERY_MS);
      socket.read();
    }
    await delay(READ_EVERY_MS);
  }
}

process.once('SIGTERM', () => process.exit(0));
process.once('disconnect', () => process.exit(0));
process.on('message', (message) => {
  const { slowReaders } = /** @type {{ slowReaders: number }} */ (message);
  for (let at = 0; at < slowReaders; at++) void (at % 4 === 0 ? readSlowly(url, '/v1/openapi.json') : readSlowly(bootUrl, '/image.raw'));
});
void deploy();
