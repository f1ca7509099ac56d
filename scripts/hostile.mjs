// npm run hostile -- --minutes 60: attacks of tests/hostile/ (JSON, uploads, events, lookups) again and again, on a server that deploys
// simulated machines meanwhile. Attackers and machines are on other hosts in reality. So they run with a lower priority than the server, its
// database and the probe. The probe is this process: it measures how long `GET /v1/nodes/X` takes, first beside deployments alone, then
// beside attacks too.
import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { cliArguments } from './cli-arguments.mjs';
import { freePort } from './free-port.mjs';
import { SHOWN_OUTPUT, failuresOf } from './hostile/failures.mjs';
import { measure, p99, report } from './hostile/measure.mjs';
import { createProcesses, isOver, stop } from './hostile/processes.mjs';
import { build, installPackages } from './install.mjs';

const {
  minutes,
  machines,
  profile,
  'boot-seconds': bootSeconds,
} = cliArguments({
  command: 'npm run hostile',
  usage: '[--minutes N] [--machines N] [--boot-seconds N] [--profile FOLDER]',
  about: `Attacks of tests/hostile/ (JSON, uploads, events, lookups) in a loop, on a server that deploys simulated machines meanwhile.
Attackers, machines and other clients run with nice 19 above the priority of the server, its database and the probe.
Prints the times of GET /v1/nodes/X without and with attacks.`,
  options: {
    minutes: {
      value: 'N',
      least: 0.1,
      default: 10,
      help: 'duration of the attacks (10); half of it, at most one minute, goes before without attacks',
    },
    machines: { value: 'N', least: 1, most: 2000, default: 200, help: 'simulated machines (200)' },
    'boot-seconds': {
      value: 'N',
      least: 0.1,
      default: 2,
      help: 'seconds that a machine takes to boot (2: some 20,000 deployments an hour; servers take minutes)',
    },
    profile: { value: 'FOLDER', help: 'write a CPU profile of the server there' },
  },
});
installPackages();
build();

/** Maximum p99 of `GET /v1/nodes/X` during attacks. */
const MAX_P99_MS = 100;
const SLOW_READERS = 100;
const REQUEST_TIMEOUT_MS = 60_000;
const MAX_QUIET_MS = 60_000;
/** Additional time for the round of attacks that runs when the time is over. */
const LAST_ROUND_MS = 300_000;
const SHOWN_ERRORS = 5;
/** An address of its own, so that limits for the attackers' and machines' addresses do not affect the probe. */
const PROBE_ADDRESS = '127.0.0.2';

const { folder, start, stopAll, isStopping } = createProcesses();

// ---- the server and its machines
const images = join(folder, 'httpboot');
mkdirSync(images);
const image = randomBytes(8 << 20);
writeFileSync(join(images, 'image.raw'), image);
for (const name of ['kernel', 'ramdisk']) writeFileSync(join(images, name), randomBytes(64 << 10));
const [port, bootPort] = [await freePort(), await freePort()];
const url = `http://127.0.0.1:${port}`;
const bootUrl = `http://127.0.0.1:${bootPort}`;
/** @param {string} name */
const file = (name) => `file://${join(images, name)}`;
writeFileSync(
  join(folder, 'conf'),
  `[DEFAULT]\nauth_strategy = noauth\nmy_ip = 127.0.0.1\nrpc_transport = none\nenabled_hardware_types = ipmi,redfish,fake-hardware
enabled_boot_interfaces = ipxe,fake\nenabled_deploy_interfaces = direct,fake\nenabled_inspect_interfaces = agent,no-inspect
[api]\nhost_ip = 127.0.0.1\nport = ${port}\n[conductor]\nautomated_clean = false\nfile_url_allowed_paths = ${images}
deploy_kernel = ${file('kernel')}\ndeploy_ramdisk = ${file('ramdisk')}\n[deploy]\nhttp_root = ${images}
[boot]\nhttp_host = 127.0.0.1\nhttp_port = ${bootPort}\ntftp = false\n[agent]\nrequire_tls = false\n[dhcp]\ndhcp_provider = none\n`,
);
const instance = {
  image_source: `${bootUrl}/image.raw`,
  image_disk_format: 'raw',
  image_os_hash_algo: 'sha256',
  image_os_hash_value: createHash('sha256').update(image).digest('hex'),
};

/** @param {string} path @returns {Promise<{ status: number, text: string }>} */
function get(path) {
  return new Promise((done, fail) => {
    const headers = { 'x-openstack-ironic-api-version': 'latest' };
    const signal = AbortSignal.timeout(REQUEST_TIMEOUT_MS);
    // A new connection for each request, as each run of a command makes.
    const sent = request(`${url}${path}`, { agent: false, localAddress: PROBE_ADDRESS, headers, signal }, (answer) => {
      /** @type {Buffer[]} */
      const parts = [];
      answer.on('data', (part) => parts.push(part));
      answer.on('end', () => done({ status: answer.statusCode ?? 0, text: Buffer.concat(parts).toString() }));
      answer.on('error', fail);
    });
    sent.on('error', fail);
    sent.end();
  });
}
/** @param {string} text @returns {string[]} */
const namesOf = (text) => JSON.parse(text).nodes.map((/** @type {{ name: string }} */ { name }) => name);

// ---- measurements
const counts = { deployed: 0, failed: 0, rounds: 0, failedRounds: 0, unfinishedRounds: 0, slowReaders: 0 };
/** Reason → count. @type {Map<string, number>} */
const errors = new Map();
/** @type {string[]} */
const crashes = [];
/** @param {number} end */
const isTime = (end) => performance.now() < end && crashes.length === 0;

// ---- attacks
/** @param {number} end */
async function attack(end) {
  const file = join(folder, 'attacks.json');
  const jest = [
    'node_modules/jest/bin/jest.js',
    '--selectProjects',
    'hostile',
    'long',
    '--runInBand',
    '--testPathPatterns',
    'hostile/(json|uploads|events|lookups)',
    '--json',
    '--outputFile',
    file,
  ];
  while (isTime(end)) {
    rmSync(file, { force: true });
    const run = start('attacks', jest, { environment: { HOSTILE_URL: url } });
    const late = new AbortController();
    await Promise.race([run.ended, delay(end - performance.now() + LAST_ROUND_MS, undefined, { signal: late.signal })]);
    late.abort();
    if (isStopping()) return;
    if (!isOver(run.child)) {
      counts.unfinishedRounds++;
      await stop(run.child);
      console.log(`a round of attacks has not ended in time:\n${run.output().slice(-SHOWN_OUTPUT)}`);
      return;
    }
    counts.rounds++;
    if (run.child.exitCode === 0) continue;
    counts.failedRounds++;
    /** @type {import('./testing/jest-results.mjs').JestOutput | undefined} */
    let results;
    try {
      results = JSON.parse(readFileSync(file, 'utf8'));
    } catch {
      // Jest ended before it wrote the file.
    }
    console.log(
      `round ${counts.rounds} of attacks ended with ${run.child.exitCode ?? run.child.signalCode}:\n${failuresOf(results, run.output())}`,
    );
  }
}

async function run() {
  const profiling = profile === undefined ? [] : ['--cpu-prof', '--cpu-prof-dir', resolve(profile)];
  const server = start(
    'the server',
    [...profiling, 'bin/bloomery', 'serve', '--config-file', join(folder, 'conf'), '--state-dir', join(folder, 'state')],
    { isBehind: false },
  );
  while (!server.output().includes('ready in')) {
    if (isOver(server.child)) throw new Error(`the server does not start: ${server.output()}`);
    await delay(100);
  }
  const resources = join(folder, 'fleet.json');
  const words = ['simulate', '--machines', machines, '--ipmi', '127.0.0.1', '--redfish', '127.0.0.1', '--seed', 1];
  const fleet = start('the fleet', [
    'bin/bloomery',
    ...words,
    '--boot-ms',
    Math.round(bootSeconds * 1000),
    '--boot-url',
    bootUrl,
    '--register',
    url,
    '--resources',
    resources,
    '--json',
  ]);
  let uuid = '';
  for (let count = 0; count < machines;) {
    await delay(500);
    if (isOver(fleet.child)) throw new Error(`the fleet does not start: ${fleet.output()}`);
    const { nodes } = JSON.parse((await get(`/v1/nodes?fields=uuid&limit=${machines}`)).text);
    count = nodes.length;
    uuid = nodes[0]?.uuid ?? '';
  }
  const names = namesOf(readFileSync(resources, 'utf8'));
  const load = start('the load', ['scripts/hostile/load.mjs', JSON.stringify({ url, bootUrl, instance, names })], { ipc: true });
  load.child.on('message', (message) => {
    const { connected = 0, state, reason = '' } = /** @type {import('./hostile/load.mjs').Message} */ (message);
    counts.slowReaders += connected;
    if (state === 'active') counts.deployed++;
    else if (state !== undefined) {
      counts.failed++;
      errors.set(reason, (errors.get(reason) ?? 0) + 1);
    }
  });
  for (const watched of [server, fleet, load])
    void watched.ended.then(([code, signal]) =>
      crashes.push(`${watched.name} ended (${code ?? signal}): ${watched.output().slice(-2000)}`),
    );
  /** @param {number} end */
  const measured = (end) => measure(() => isTime(end), server.child.pid, get, `/v1/nodes/${uuid}`);
  const quietMs = Math.min(MAX_QUIET_MS, minutes * 30_000);
  console.log(`${machines} machines are registered; ${Math.round(quietMs / 1000)} s without attacks, ${minutes} minutes with attacks`);
  const quiet = await measured(performance.now() + quietMs);
  console.log(report('without attacks', quiet).join('\n'));
  const end = performance.now() + minutes * 60_000;
  load.child.send({ slowReaders: SLOW_READERS });
  const [attacked] = await Promise.all([measured(end), attack(end)]);
  const seen = [...crashes];
  console.log(
    [
      ...report('with attacks', attacked),
      `crashes: ${seen.length}`,
      ...seen,
      `deployments: ${counts.deployed} done, ${counts.failed} failed`,
      ...[...errors].slice(0, SHOWN_ERRORS).map(([reason, count]) => `  ${count}: ${reason}`),
      `rounds of attacks: ${counts.rounds}, ${counts.failedRounds} with failed tests, ${counts.unfinishedRounds} not finished`,
      `slow readers: ${counts.slowReaders} connections, ${SLOW_READERS} at once`,
      `p99 of GET /v1/nodes/X: ${p99(quiet).toFixed(0)} ms without attacks, ${p99(attacked).toFixed(0)} ms with attacks (at most ${MAX_P99_MS})`,
    ].join('\n'),
  );
  return seen.length === 0 && counts.failed === 0 && counts.failedRounds === 0 && counts.deployed > 0 && p99(attacked) < MAX_P99_MS;
}
let isGood = false;
try {
  isGood = await run();
} finally {
  await stopAll();
}
process.exit(isGood ? 0 : 1);
