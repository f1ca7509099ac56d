// npm run bench -- SCENARIO (see --help): measures the CPU time and latency of the built server.
//
// It starts an embedded database and a server, with fake hardware or simulated machines, and removes both at the end. `--one-core` binds
// the server to CPU 0 and the database to CPU 1. The CPU time comes from /proc, so it is available on Linux only.
// `npm run bench -- compare REF` (see `compare --help`) compares this checkout with a commit instead.
import { spawn, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, createServer, request } from 'node:http';
import { createServer as createSocket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fleetScenarios } from './bench/fleet.mjs';
import { inspectionScenario } from './bench/inspection.mjs';
import { benchIpmi } from './bench/ipmi.mjs';
import { benchPolicy } from './bench/policy.mjs';
import { recorderScenario } from './bench/recorder.mjs';
import { NODE, lanes } from './bench/work.mjs';
import { build, installPackages, root } from './install.mjs';
import { cliArguments } from './cli-arguments.mjs';

// Another command, with arguments of its own.
if (process.argv[2] === 'compare') await import('./bench/compare.mjs');
const NAMES = [
  'provisioning',
  'heartbeats',
  'power-sync',
  'fleet-power',
  'fleet-lifecycle',
  'sensors',
  'recorder',
  'inspection',
  'ipmi',
  'policy',
];
const given = cliArguments({
  command: 'npm run bench',
  usage: 'SCENARIO [--nodes N] [--seconds N] [--one-core]',
  about:
    'Measures CPU time and latency of the built server. Starts a database and a server, and removes both at the end. ' +
    '`npm run bench -- compare --help` is about the comparison with a commit.',
  options: {
    nodes: { value: 'N', least: 1, help: 'number of machines (the default depends on the scenario)' },
    seconds: { value: 'N', least: 1, most: 86_400, help: 'duration of each measurement by time (default: 5; recorder: 60)' },
    'one-core': { help: 'bind the server to CPU 0 and the database to CPU 1' },
    reference: { value: 'URL', help: 'inspection: the URL of an Ironic to measure too' },
    'reference-pid': { value: 'PID', least: 1, help: 'inspection: the process ID of that Ironic' },
  },
  positional: { name: 'SCENARIO', choices: NAMES, needed: true },
});
const { seconds = 5 } = given;

// ---- processes
/** Cleanup steps, executed in reverse order. Also after a signal, which skips `finally`. */
const undo = [];
let ended;
const endAll = () => {
  ended ??= (async () => {
    for (const step of undo.reverse()) await step();
  })();
  return ended;
};
let signalled = false;
for (const [signal, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
])
  process.once(signal, () => {
    signalled = true;
    void endAll().finally(() => process.exit(code));
  });
/** Returns a function that ends the process. */
const ending = (child) => {
  const ended = new Promise((done) => child.once('exit', done));
  const stop = async () => {
    child.kill('SIGTERM');
    await ended;
  };
  undo.push(stop);
  return stop;
};
async function freePort() {
  const socket = createSocket().listen(0, '127.0.0.1');
  await new Promise((done) => socket.once('listening', done));
  const { port } = socket.address();
  await new Promise((done) => socket.close(done));
  return port;
}
const KINDS = ['bios', 'boot', 'console', 'firmware', 'inspect', 'management', 'power', 'raid', 'rescue', 'storage', 'vendor'];
async function start(folder, database, options) {
  const port = options.api?.port ?? (await freePort());
  const fake = {
    enabled_hardware_types: 'fake-hardware',
    ...Object.fromEntries(KINDS.map((kind) => [`enabled_${kind}_interfaces`, 'fake'])),
    enabled_deploy_interfaces: 'fake,direct',
  };
  const sections = {
    DEFAULT: {
      host: 'bench',
      auth_strategy: 'noauth',
      log_file: join(folder, 'log'),
      enabled_network_interfaces: 'noop',
      ...(options.DEFAULT?.enabled_hardware_types === undefined ? fake : {}),
    },
    api: { host_ip: '127.0.0.1', port },
    agent: { require_tls: false },
  };
  for (const [name, section] of Object.entries(options)) sections[name] = { ...sections[name], ...section };
  const lines = Object.entries(sections).flatMap(([name, section]) => [
    `[${name}]`,
    ...Object.entries(section).map(([option, value]) => `${option} = ${value}`),
  ]);
  const file = join(folder, `${port}.conf`);
  writeFileSync(file, `${lines.join('\n')}\n`);
  const roles = options.boot ? 'api,conductor,boot' : 'api,conductor';
  const words = ['bin/bloomery', 'serve', '--config-file', file, '--state-dir', folder, '--roles', roles];
  const server = spawn(process.execPath, words, {
    cwd: root,
    env: { ...process.env, DATABASE_URL: database },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const stop = ending(server);
  const url = `http://127.0.0.1:${port}`;
  while ((await fetch(`${url}/v1`).catch(() => undefined))?.status !== 200) {
    if (server.exitCode !== null) throw new Error('the server does not start');
    await delay(20);
  }
  if (given['one-core']) bind(server.pid, 0);
  return { url, pid: server.pid, stop };
}
const bind = (pid, cpu) => spawnSync('taskset', ['-acp', String(cpu), String(pid)], { stdio: 'ignore' });

// ---- requests
const agent = new Agent({ keepAlive: true, maxSockets: Infinity });
/** Returns the status and the text of the response. */
const ask = (url, method, path, body) =>
  new Promise((done, fail) => {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const headers = {
      'x-openstack-ironic-api-version': '1.95',
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(text ?? ''),
    };
    const call = request(`${url}${path}`, { method, agent, headers }, (answer) => {
      const parts = [];
      answer.on('data', (part) => parts.push(part));
      answer.on('end', () => done({ status: answer.statusCode, text: Buffer.concat(parts).toString() }));
    });
    // The server may close an idle connection while the client uses it again.
    call.once('error', (error) => (call.reusedSocket && error.code === 'ECONNRESET' ? done(ask(url, method, path, body)) : fail(error)));
    call.end(text);
  });
const must = async (...call) => {
  const { status, text } = await ask(...call);
  if (status >= 300) throw new Error(`${call[1]} ${call[2]}: ${status} ${text.slice(0, 300)}`);
  return text === '' ? {} : JSON.parse(text);
};
function* forEver() {
  for (let index = 0; ; index++) yield index;
}

// ---- measurements
/** CPU milliseconds of a process and its children, terminated ones too; undefined without /proc. */
function cpuOf(pid) {
  try {
    const stats = readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .flatMap((name) => {
        try {
          const text = readFileSync(`/proc/${name}/stat`, 'utf8');
          const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
          return [
            { pid: Number(name), parent: Number(fields[1]), ticks: fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0) },
          ];
        } catch {
          return [];
        }
      });
    return stats.filter((stat) => stat.pid === pid || stat.parent === pid).reduce((sum, { ticks }) => sum + ticks * 10, 0);
  } catch {
    return undefined;
  }
}
const rows = [];
/** Measures `work`, which returns the count and further columns. */
async function measure(what, { server, database }, work) {
  const before = [cpuOf(server.pid), cpuOf(database.pid)];
  const began = performance.now();
  const { count, ...more } = await work();
  const took = (performance.now() - began) / 1000;
  const [ours, its] = [cpuOf(server.pid) - before[0], cpuOf(database.pid) - before[1]];
  const row = {
    what,
    count,
    seconds: took.toFixed(2),
    'a second': (count / took).toFixed(1),
    'server CPU ms each': (ours / count).toFixed(3),
    'database CPU ms each': (its / count).toFixed(3),
    ...more,
  };
  rows.push(row);
  console.error(JSON.stringify(row));
  return took;
}
const quantile = (times, part) => [...times].sort((a, b) => a - b)[Math.floor(part * (times.length - 1))]?.toFixed(2);
/** `width` clients send one request after the other until the time is over. */
const load = (width, forSeconds, call) => async () => {
  const until = performance.now() + forSeconds * 1000;
  const times = [];
  const statuses = {};
  await lanes(width, forEver(), async (index) => {
    const began = performance.now();
    const { status } = await call(index);
    times.push(performance.now() - began);
    statuses[status] = (statuses[status] ?? 0) + 1;
    return performance.now() < until;
  });
  return { count: times.length, 'p50 ms': quantile(times, 0.5), 'p99 ms': quantile(times, 0.99), answers: JSON.stringify(statuses) };
};

// ---- the scenarios
const inState = async (url, state) => {
  let count = 0;
  for (let path = `/v1/nodes?fields=uuid&limit=1000&provision_state=${encodeURIComponent(state)}`; path;) {
    const { nodes, next } = await must(url, 'GET', path);
    count += nodes.length;
    path = next && next.slice(next.indexOf('/v1/'));
  }
  return count;
};
/** Applies a verb to all nodes and waits for the end state. Requests that are refused temporarily are repeated. */
const through = (url, uuids, target, end) => async () => {
  let retries = 0;
  await lanes(16, uuids, async (uuid) => {
    for (;;) {
      const { status, text } = await ask(url, 'PUT', `/v1/nodes/${uuid}/states/provision`, { target });
      if (status === 202) return;
      if (status !== 409 && status !== 503) throw new Error(`${target}: ${status} ${text.slice(0, 300)}`);
      retries++;
      await delay(100);
    }
  });
  const limit = performance.now() + 1_800_000;
  while ((await inState(url, end)) < uuids.length) {
    if (performance.now() > limit) throw new Error(`${await inState(url, end)} of ${uuids.length} nodes are ${end}`);
    await delay(250);
  }
  return { count: uuids.length, retries };
};
async function enrol(url, count, more = {}) {
  const uuids = Array.from({ length: count }, () => randomUUID());
  await lanes(16, uuids, (uuid) => must(url, 'POST', '/v1/nodes', { uuid, ...NODE, ...more }));
  return uuids;
}

const SCENARIOS = {
  provisioning: {
    nodes: 200,
    run: async ({ begin, nodes }) => {
      const all = await begin({});
      const { url } = all.server;
      const uuids = await enrol(url, nodes);
      let took = 0;
      for (const [target, end] of [
        ['manage', 'manageable'],
        ['provide', 'available'],
        ['active', 'active'],
      ])
        took += await measure(target, all, through(url, uuids, target, end));
      await measure('deleted', all, through(url, uuids, 'deleted', 'available'));
      console.log(`enroll to active: ${((nodes * 60) / took).toFixed(0)} nodes a minute`);
    },
  },
  heartbeats: {
    nodes: 40,
    run: async ({ begin, nodes }) => {
      const all = await begin({});
      const { url } = all.server;
      let calls = 0;
      const ramdisk = createServer((received, answer) => {
        calls++;
        let text = '';
        received.on('data', (part) => (text += part));
        received.on('end', () => {
          const name = received.method === 'POST' ? JSON.parse(text).name.split('.')[1] : 'execute_clean_step';
          const steps = [{ step: 'erase_devices', priority: 10, interface: 'deploy', reboot_requested: false, abortable: true }];
          const returnsSteps = name.startsWith('get_');
          const command = {
            command_name: name,
            command_status: returnsSteps ? 'SUCCEEDED' : 'RUNNING',
            command_result: returnsSteps ? { clean_steps: { Generic: steps }, hardware_manager_version: { Generic: '1' } } : null,
          };
          answer.end(JSON.stringify(received.method === 'POST' ? command : { commands: [command] }));
        });
      }).listen(0, '127.0.0.1');
      const callback = `http://127.0.0.1:${ramdisk.address().port}`;
      try {
        const uuids = await enrol(url, nodes, { deploy_interface: 'direct' });
        await through(url, uuids, 'manage', 'manageable')();
        await through(url, uuids, 'provide', 'clean wait')();
        const tokens = [];
        for (const uuid of uuids) tokens.push((await must(url, 'GET', `/v1/lookup?node_uuid=${uuid}`)).config.agent_token);
        const beat = (index) => {
          const at = index % nodes;
          return ask(url, 'POST', `/v1/heartbeat/${uuids[at]}`, { callback_url: callback, agent_version: '11.0', agent_token: tokens[at] });
        };
        await lanes(4, uuids.keys(), beat);
        await delay(2000);
        for (const width of [1, 16, 64]) {
          calls = 0;
          await measure(`heartbeats, ${width} at once`, all, load(width, seconds, beat));
          rows.at(-1)['calls of ramdisks'] = calls;
          await delay(1000);
        }
      } finally {
        ramdisk.closeAllConnections();
        ramdisk.close();
      }
    },
  },
  'power-sync': {
    nodes: 10_000,
    run: async ({ begin, nodes, openStore }) => {
      const store = await openStore();
      const uuids = Array.from({ length: nodes }, () => randomUUID());
      const known = { provision_state: 'active', power_state: 'power on', ...NODE };
      const interfaces = Object.fromEntries([...KINDS, 'deploy'].map((kind) => [`${kind}_interface`, 'fake']));
      await lanes(10, uuids, (uuid) => store.nodes.create({ uuid, ...known, ...interfaces, network_interface: 'noop' }));
      await store.close();
      const every = 20;
      const all = await begin({ conductor: { sync_power_state_interval: every }, fake: { power_delay: '0.05' } });
      const { url } = all.server;
      const show = (index) => ask(url, 'GET', `/v1/nodes/${uuids[(index * 7919) % nodes]}`);
      await lanes(1, Array(200).keys(), show);
      const runs = async () => {
        const { text } = await ask(url, 'GET', '/metrics');
        const statistic = (name) =>
          Number(
            new RegExp(`^bloomery_periodic_duration_seconds_${name}\\{task="power synchronisation"\\} (.*)$`, 'm').exec(text)?.[1] ?? 0,
          );
        return { count: statistic('count'), sum: statistic('sum') };
      };
      // Synchronisation begins with the first interval after the start.
      await measure('GET of a node, no synchronisation', all, load(1, Math.min(seconds, every * 0.6), show));
      await delay(every * 1000 * 0.35);
      await measure('GET of a node, during synchronisation', all, load(1, seconds, show));
      let done = await runs();
      while (done.count === 0) {
        await delay(200);
        done = await runs();
      }
      console.log(`power states of ${nodes} nodes: ${done.sum.toFixed(1)} s a round`);
      const [ours, its] = [cpuOf(all.server.pid), cpuOf(all.database.pid)];
      while ((await runs()).count < 2) await delay(500);
      console.log(`CPU of one round: server ${cpuOf(all.server.pid) - ours} ms, database ${cpuOf(all.database.pid) - its} ms`);
    },
  },
};

const { reference: url, 'reference-pid': pid } = given;
SCENARIOS.inspection = inspectionScenario({
  ask,
  must,
  lanes,
  measure,
  through,
  enrol,
  inState,
  ...(url === undefined ? {} : { reference: { url, pid: pid ?? -1 } }),
});
SCENARIOS.recorder = recorderScenario({ lanes, measure, quantile, freePort, seconds: given.seconds ?? 60 });
Object.assign(
  SCENARIOS,
  fleetScenarios({ ask, must, lanes, measure, through, cpuOf, bind: given['one-core'] ? bind : () => {}, freePort, ending }),
);
if (given.argument === 'ipmi') {
  installPackages();
  build();
  await benchIpmi(given.nodes ?? 1000);
  process.exit();
}
if (given.argument === 'policy') {
  installPackages();
  build();
  await benchPolicy();
  process.exit();
}
const scenario = SCENARIOS[given.argument];
installPackages();
build();
const dist = async (file) => (await import(join(root, 'dist', file))).default;
const { startEmbedded } = await dist('store/embedded/embedded.js');
const { openStore } = await dist('store/postgres.js');
const { systemClock } = await dist('model/clock.js');
const { silentLog } = await dist('model/log.js');
const { silentMetrics } = await dist('model/metrics.js');
const folder = mkdtempSync(join(tmpdir(), 'bloomery-bench-'));
undo.push(async () => rmSync(folder, { recursive: true, force: true }));
const database = await startEmbedded({ stateDir: folder, log: silentLog, clock: systemClock });
undo.push(() => database.stop());
try {
  if (given['one-core']) bind(database.pid, 1);
  await scenario.run({
    folder,
    nodes: given.nodes ?? scenario.nodes,
    openStore: () =>
      openStore({ connection: database.connection, poolSize: 10, clock: systemClock, log: silentLog, metrics: silentMetrics }),
    begin: async (options) => {
      const server = await start(folder, database.connection, options);
      return { server, database };
    },
  });
  console.table(rows);
} catch (error) {
  // Requests fail after a signal has ended the server.
  if (!signalled) throw error;
} finally {
  agent.destroy();
  await endAll();
}
