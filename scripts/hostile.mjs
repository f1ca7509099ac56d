// npm run hostile -- --minutes 60: the attacks of tests/hostile/ again and again, on a server that deploys simulated machines meanwhile.
// Meanwhile connections to its boot service and its API hardly read. Reports crashes, deployments that failed, the server's memory, and how
// long `GET /v1/nodes/X` took: by the wall clock, and without the waits of server, database and this program for a processor, which a busy
// machine adds (tests/hostile/scheduling.ts).
import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { connect, createServer } from 'node:net';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { cliArguments } from './cli-arguments.mjs';
import { build, installPackages, root } from './install.mjs';

const { minutes, machines } = cliArguments({
  command: 'npm run hostile',
  usage: '[--minutes N] [--machines N]',
  about: 'The attacks of tests/hostile/ in a loop, on a server that deploys simulated machines meanwhile.',
  options: {
    minutes: { value: 'N', least: 0.1, default: 10, help: 'for so long (10)' },
    machines: { value: 'N', least: 1, most: 2000, default: 200, help: 'simulated machines (200)' },
  },
});
installPackages();
build();

const { stopwatch } = createRequire(import.meta.url)('../dist/tests/hostile/scheduling.js');

const ROUND_MS = 1000;
/** The p99 of `GET /v1/nodes/X`, without waits for a processor. */
const MOST_P99_MS = 100;
const SLOW_READERS = 100;
const SLOW_ADDRESS = '127.0.0.8';
const READ_EVERY_MS = 1000;
const SAMPLE_EVERY_MS = 1000;
const PROBE_EVERY_MS = 100;
const REQUEST_TIMEOUT_MS = 60_000;
const SHOWN_ERRORS = 5;
/** Provision state → the verb that follows. Machines are deployed and deleted in a circle. */
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

async function freePort() {
  const socket = createServer().listen(0, '127.0.0.1');
  await once(socket, 'listening');
  const { port } = socket.address();
  socket.close();
  await once(socket, 'close');
  return port;
}

const folder = mkdtempSync(join(tmpdir(), 'bloomery-hostile-'));
const children = [];
const start = (name, command, environment = {}) => {
  const child = spawn(process.execPath, command, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...environment } });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (output = (output + data).slice(-20_000)));
  children.push(child);
  return { name, child, output: () => output, ended: once(child, 'exit') };
};
const isOver = ({ child }) => child.exitCode !== null || child.signalCode !== null;
async function stopAll() {
  for (const child of children.reverse()) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    await ended;
  }
  rmSync(folder, { recursive: true, force: true });
}
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => void stopAll().finally(() => process.exit(130)));

// ---- the server and its machines
const images = join(folder, 'httpboot');
mkdirSync(images);
const image = randomBytes(8 << 20);
writeFileSync(join(images, 'image.raw'), image);
for (const name of ['kernel', 'ramdisk']) writeFileSync(join(images, name), randomBytes(64 << 10));
const [port, bootPort] = [await freePort(), await freePort()];
const url = `http://127.0.0.1:${port}`;
const bootUrl = `http://127.0.0.1:${bootPort}`;
const file = (name) => `file://${join(images, name)}`;
writeFileSync(
  join(folder, 'conf'),
  `[DEFAULT]\nauth_strategy = noauth\nmy_ip = 127.0.0.1\nrpc_transport = none\nenabled_hardware_types = ipmi,redfish,fake-hardware
enabled_boot_interfaces = ipxe,fake\nenabled_deploy_interfaces = direct,fake\nenabled_inspect_interfaces = agent,no-inspect
[api]\nhost_ip = 127.0.0.1\nport = ${port}\n[conductor]\nautomated_clean = false\nfile_url_allowed_paths = ${folder}
deploy_kernel = ${file('kernel')}\ndeploy_ramdisk = ${file('ramdisk')}\n[deploy]\nhttp_root = ${images}
[boot]\nhttp_host = 127.0.0.1\nhttp_port = ${bootPort}\ntftp = false\n[agent]\nrequire_tls = false\n[dhcp]\ndhcp_provider = none\n`,
);
const instance = {
  image_source: `${bootUrl}/image.raw`,
  image_disk_format: 'raw',
  image_os_hash_algo: 'sha256',
  image_os_hash_value: createHash('sha256').update(image).digest('hex'),
};

async function call(method, path, body) {
  const headers = { 'content-type': 'application/json', 'x-openstack-ironic-api-version': '1.115' };
  const answer = await fetch(`${url}${path}`, {
    ...{ method, headers, signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  return { status: answer.status, body: text === '' ? undefined : JSON.parse(text) };
}

const counts = { deployed: 0, failed: 0, rounds: 0, failedRounds: 0, unanswered: 0, slowReaders: 0 };
const errors = new Map();
const times = [];
const ownTimes = [];
/** CPU milliseconds of the server's main thread meanwhile, whatever it did: on a busy machine it does more than the request waits for. */
const cpuTimes = [];
/** @type {{ memory: number[], load: number[] }} */
const samples = { memory: [], load: [] };
const crashes = [];
const isTime = (end) => performance.now() < end && crashes.length === 0;

/** The synchronisation of power states may have removed `last_error` by now. */
async function lastEventOf(uuid) {
  const found = await call('GET', `/v1/nodes/${uuid}/history?detail=true`).catch(() => undefined);
  const errorsOf = (found?.body?.history ?? []).filter(({ severity }) => severity === 'ERROR');
  return errorsOf.toSorted((one, other) => (one.created_at < other.created_at ? -1 : 1)).at(-1)?.event;
}
/** Sends each machine its next verb. What is refused now is sent again in the next round. */
async function deploy(end, names) {
  const states = new Map();
  while (isTime(end)) {
    const listed = await call('GET', `/v1/nodes?fields=uuid,name,provision_state,last_error&limit=1000`).catch(() => undefined);
    for (const { uuid, name, provision_state: state, last_error: reason } of listed?.body?.nodes ?? []) {
      if (!names.has(name)) continue;
      if (states.get(uuid) !== state) {
        states.set(uuid, state);
        if (state === 'active') counts.deployed++;
        if (/failed$|^error$/.test(state)) {
          counts.failed++;
          const why = reason ?? (await lastEventOf(uuid));
          errors.set(why, (errors.get(why) ?? 0) + 1);
        }
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
/** The processes below this one too, such as those of the database. Empty where Linux does not tell. */
function familyOf(pid) {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
    return [pid, ...children.flatMap(familyOf)];
  } catch {
    return [];
  }
}
/** Of the main thread. NaN where Linux does not tell. */
function cpuMs(pid) {
  try {
    return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6;
  } catch {
    return NaN;
  }
}
async function probe(end, uuid, server) {
  while (isTime(end)) {
    const began = performance.now();
    const cpuBefore = cpuMs(server.child.pid);
    const ownMs = stopwatch(familyOf(server.child.pid));
    const { status } = await call('GET', `/v1/nodes/${uuid}`).catch(() => ({ status: 0 }));
    if (status === 200) {
      times.push(performance.now() - began);
      ownTimes.push(ownMs());
      cpuTimes.push(cpuMs(server.child.pid) - cpuBefore);
    } else counts.unanswered++;
    await delay(PROBE_EVERY_MS);
  }
}
/** MiB of the server's memory, and how busy the machine is. */
async function sample(end, server) {
  while (isTime(end)) {
    samples.load.push(loadavg()[0]);
    try {
      const status = readFileSync(`/proc/${server.child.pid}/status`, 'utf8');
      samples.memory.push(Number(/^VmRSS:\s+(\d+)/m.exec(status)[1]) / 1024);
    } catch {
      // Only Linux tells.
    }
    await delay(SAMPLE_EVERY_MS);
  }
}
/** A connection that takes a few kilobytes of a large response each second. */
async function readSlowly(end, of, path) {
  while (isTime(end)) {
    counts.slowReaders++;
    const socket = connect({ port: of, host: '127.0.0.1', localAddress: SLOW_ADDRESS }).on('error', () => {});
    let isOpen = true;
    socket.once('close', () => (isOpen = false));
    socket.pause().write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
    while (isOpen && isTime(end)) {
      await delay(READ_EVERY_MS);
      socket.read();
    }
    socket.destroy();
    await delay(READ_EVERY_MS);
  }
}
async function attack(end) {
  const jest = [
    'node_modules/jest/bin/jest.js',
    '--selectProjects',
    'hostile',
    '--runInBand',
    '--testPathPatterns',
    'hostile/(json|uploads|events|lookups)',
  ];
  while (isTime(end)) {
    const run = start('attacks', jest, { HOSTILE_URL: url });
    await Promise.race([run.ended, delay(end - performance.now() + 300_000)]);
    counts.rounds++;
    if (run.child.exitCode === 0) continue;
    counts.failedRounds++;
    console.log(
      run
        .output()
        .split('\n')
        .filter((line, at, lines) => /●|Expected|Received|Error/.test(line) || /●/.test(lines[at - 2] ?? ''))
        .slice(0, 30)
        .join('\n'),
    );
  }
}
const percentile = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;

async function run() {
  const server = start('the server', [
    'bin/bloomery',
    'serve',
    '--config-file',
    join(folder, 'conf'),
    '--state-dir',
    join(folder, 'state'),
  ]);
  while (!server.output().includes('ready in')) {
    if (isOver(server)) throw new Error(`the server does not start: ${server.output()}`);
    await delay(100);
  }
  const resources = join(folder, 'fleet.json');
  const words = ['simulate', '--machines', machines, '--ipmi', '127.0.0.1', '--redfish', '127.0.0.1', '--seed', 1, '--boot-ms', 2000];
  const fleet = start(
    'the fleet',
    ['bin/bloomery', ...words, '--boot-url', bootUrl, '--register', url, '--resources', resources, '--json'].map(String),
  );
  let node;
  for (let count = 0; count < machines;) {
    await delay(500);
    if (isOver(fleet)) throw new Error(`the fleet does not start: ${fleet.output()}`);
    const { nodes } = (await call('GET', `/v1/nodes?fields=uuid&limit=${machines}`)).body;
    count = nodes.length;
    node = nodes[0]?.uuid;
  }
  console.log(`${machines} machines are registered; attacks for ${minutes} minutes`);
  for (const watched of [server, fleet])
    void watched.ended.then(([code, signal]) =>
      crashes.push(`${watched.name} ended (${code ?? signal}): ${watched.output().slice(-2000)}`),
    );
  const names = new Set(JSON.parse(readFileSync(resources, 'utf8')).nodes.map(({ name }) => name));
  const end = performance.now() + minutes * 60_000;
  const slow = Array.from({ length: SLOW_READERS }, (_, at) =>
    at % 4 === 0 ? readSlowly(end, port, '/v1/openapi.json') : readSlowly(end, bootPort, '/image.raw'),
  );
  await Promise.all([deploy(end, names), probe(end, node, server), attack(end), sample(end, server), ...slow]);
  const seen = [...crashes];
  const figures = (all) => {
    const sorted = all.toSorted((a, b) => a - b);
    const [p50, p99, worst] = [0.5, 0.99, 1].map((share) => percentile(sorted, share).toFixed(0));
    return `median ${p50} ms, p99 ${p99} ms, worst ${worst} ms`;
  };
  const ownP99 = percentile(
    ownTimes.toSorted((a, b) => a - b),
    0.99,
  );
  const { memory, load } = samples;
  const whole = (value = NaN) => Math.round(value);
  const mean = load.reduce((sum, one) => sum + one, 0) / load.length;
  console.log(
    [
      `crashes: ${seen.length}`,
      ...seen,
      `deployments: ${counts.deployed} done, ${counts.failed} failed`,
      ...[...errors].slice(0, SHOWN_ERRORS).map(([reason, count]) => `  ${count}: ${reason}`),
      `rounds of attacks: ${counts.rounds}, ${counts.failedRounds} with failed tests`,
      `slow readers: ${counts.slowReaders} connections, ${SLOW_READERS} at once`,
      `memory of the server: ${whole(memory[0])} MiB at first, ${whole(Math.max(...memory))} at most, ${whole(memory.at(-1))} at last`,
      `load average: mean ${mean.toFixed(1)}, highest ${Math.max(...load).toFixed(1)}`,
      `GET /v1/nodes/X: ${times.length} answered, ${counts.unanswered} not; ${figures(times)}`,
      `  without waits for a processor: ${figures(ownTimes)} (p99 at most ${MOST_P99_MS} ms)`,
      `  CPU time of the server's main thread meanwhile: ${figures(cpuTimes)}`,
    ].join('\n'),
  );
  return seen.length === 0 && counts.failed === 0 && counts.failedRounds === 0 && counts.deployed > 0 && ownP99 < MOST_P99_MS;
}
let isGood = false;
try {
  isGood = await run();
} finally {
  await stopAll();
}
process.exit(isGood ? 0 : 1);
