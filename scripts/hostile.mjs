// npm run hostile -- --minutes 60: the attacks of tests/hostile/ again and again, on a server that deploys simulated machines meanwhile.
// Reports crashes, deployments that failed, and how long `GET /v1/nodes/X` took.
import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
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

const ROUND_MS = 1000;
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

const counts = { deployed: 0, failed: 0, rounds: 0, failedRounds: 0, unanswered: 0 };
const errors = new Map();
const times = [];
const crashes = [];
const isTime = (end) => performance.now() < end && crashes.length === 0;

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
          errors.set(reason, (errors.get(reason) ?? 0) + 1);
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
async function probe(end, uuid) {
  while (isTime(end)) {
    const began = performance.now();
    const { status } = await call('GET', `/v1/nodes/${uuid}`).catch(() => ({ status: 0 }));
    if (status === 200) times.push(performance.now() - began);
    else counts.unanswered++;
    await delay(PROBE_EVERY_MS);
  }
}
async function attack(end) {
  const jest = [
    'node_modules/jest/bin/jest.js',
    '--selectProjects',
    'hostile',
    '--runInBand',
    '--testPathPatterns',
    'hostile/(json|uploads|events)',
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
        .filter((line) => /●|Expected|Received|Error/.test(line))
        .slice(0, 20)
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
  await Promise.all([deploy(end, names), probe(end, node), attack(end)]);
  const seen = [...crashes];
  times.sort((a, b) => a - b);
  const [p50, p99, worst] = [0.5, 0.99, 1].map((share) => percentile(times, share).toFixed(0));
  console.log(
    [
      `crashes: ${seen.length}`,
      ...seen,
      `deployments: ${counts.deployed} done, ${counts.failed} failed`,
      ...[...errors].slice(0, SHOWN_ERRORS).map(([reason, count]) => `  ${count}: ${reason}`),
      `rounds of attacks: ${counts.rounds}, ${counts.failedRounds} with failed tests`,
      `GET /v1/nodes/X: ${times.length} answered, ${counts.unanswered} not; median ${p50} ms, p99 ${p99} ms, worst ${worst} ms`,
    ].join('\n'),
  );
  return seen.length === 0 && counts.failed === 0 && counts.failedRounds === 0 && counts.deployed > 0;
}
let isGood = false;
try {
  isGood = await run();
} finally {
  await stopAll();
}
process.exit(isGood ? 0 : 1);
