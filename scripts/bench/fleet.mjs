// The scenarios of npm run bench with simulated machines. Their BMCs and agents answer over the network, as real ones do.
import { spawn } from 'node:child_process';
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { root } from '../install.mjs';

/** Starts `bloomery simulate` and waits until it is ready. */
async function startFleet(folder, words, bind, ending) {
  const resources = join(folder, 'fleet.json');
  const fleet = spawn(
    process.execPath,
    [join(root, 'bin/bloomery'), 'simulate', ...words, '--resources', resources, '--control', '0', '--json'],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  ending(fleet);
  bind(fleet.pid, 1);
  let text = '';
  let url;
  fleet.stdout.on('data', (part) => {
    if (url !== undefined) return;
    text = (text + part).slice(-1000);
    url = /"control":"(http:[^"]+)"/.exec(text)?.[1];
  });
  while (url === undefined) {
    if (fleet.exitCode !== null) throw new Error('the fleet does not start');
    await delay(50);
  }
  const { nodes } = JSON.parse(readFileSync(resources, 'utf8'));
  return { nodes, url, pid: fleet.pid };
}
const memoryOf = (pid) => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024;

/** The sum of a metric's samples with these labels. */
const metric = (text, name, labels = '') =>
  [...text.matchAll(new RegExp(`^${name}\\{?([^}\\n]*)\\}? ([0-9.e+-]+)$`, 'gm'))]
    .filter(([, given]) => given.includes(labels))
    .reduce((sum, [, , value]) => sum + Number(value), 0);

const countOf = (text, name) => text.match(new RegExp(`^${name}\\{`, 'gm'))?.length ?? 0;
/** The record of a node for a simulated machine. */
const activeNode = ({ name, driver, driver_info, resource_class, properties }, uuid, power_state) => {
  const kind = driver === 'ipmi' ? 'ipmitool' : driver;
  return {
    uuid,
    name,
    driver,
    driver_info,
    resource_class,
    properties,
    power_state,
    provision_state: 'active',
    power_interface: kind,
    management_interface: kind,
    boot_interface: 'ipxe',
    deploy_interface: 'direct',
    network_interface: 'noop',
  };
};
/** By protocol: the maximum of concurrent calls at one BMC, and the number of BMCs with it. A retransmitted IPMI request counts again. */
const mostAtOnce = (machines) =>
  ['ipmi', 'redfish']
    .map((protocol) => {
      const all = machines.filter(({ protocols }) => protocols[0] === protocol).map(({ traffic }) => traffic.most);
      const most = Math.max(...all);
      return `${most} (${protocol}, ${all.filter((candidate) => candidate === most).length} of ${all.length})`;
    })
    .join(' and ');
const DRIVERS = { enabled_hardware_types: 'ipmi,redfish', enabled_boot_interfaces: 'ipxe' };
const halfAndHalf = (count) =>
  ['--machines', count, '--bmcs', 'half', '--ipmi', '127.0.0.1', '--redfish', '127.0.0.1', '--seed', '1'].map(String);

/** Counts the nodes with another power state than in `power` (by name), in maintenance, or with an error. */
async function countWrong(must, url, power) {
  const found = { power: 0, maintenance: 0, errors: 0 };
  for (let marker = ''; ;) {
    const { nodes } = await must(url, 'GET', `/v1/nodes?fields=uuid,name,power_state,maintenance,last_error&limit=1000${marker}`);
    for (const node of nodes) {
      if (node.power_state !== power.get(node.name)) found.power++;
      if (node.maintenance) found.maintenance++;
      if (node.last_error !== null) found.errors++;
    }
    if (nodes.length < 1000) return found;
    marker = `&marker=${nodes.at(-1).uuid}`;
  }
}
/** Power synchronisation with simulated BMCs, half IPMI and half Redfish; then the same with packet loss and latency. */
const powerScenario = ({ ask, must, lanes, cpuOf, bind, ending }) => ({
  nodes: 10_000,
  run: async ({ begin, nodes: count, openStore, folder }) => {
    const fleet = await startFleet(folder, halfAndHalf(count), bind, ending);

    console.log(`${count} simulated machines: ${memoryOf(fleet.pid).toFixed(0)} MiB`);
    const press = (name, action) => must(fleet.url, 'POST', `/machines/${name}/power`, { action });
    const faults = (value) => must(fleet.url, 'PUT', '/machines/all/faults', value);
    const store = await openStore();
    const isOn = (index) => index % 3 === 0;
    const uuids = fleet.nodes.map(() => randomUUID());
    await lanes(8, fleet.nodes.entries(), async ([index, node]) => {
      if (isOn(index)) await press(node.name, 'on');
      await store.nodes.create(activeNode(node, uuids[index], isOn(index) ? 'power on' : 'power off'));
    });
    await store.close();
    const every = 60;
    const all = await begin({
      DEFAULT: DRIVERS,
      conductor: { sync_power_state_interval: every, sync_power_state_workers: 256 },
      // With Ironic's 1,000 sessions most BMCs would need a new login in each round.
      redfish: { connection_cache_size: count },
    });
    const { url, pid } = all.server;
    const rounds = async () => {
      const { text } = await ask(url, 'GET', '/metrics');
      const of = (part) => metric(text, `bloomery_periodic_duration_seconds_${part}`, 'task="power synchronisation"');
      return { count: of('count'), sum: of('sum') };
    };
    const power = new Map(fleet.nodes.map(({ name }, index) => [name, isOn(index) ? 'power on' : 'power off']));
    const round = async (what) => {
      const before = await rounds();
      let cpu = [cpuOf(pid), cpuOf(all.database.pid), cpuOf(fleet.pid)];
      let now = before;
      const end = performance.now() + 1_800_000;
      while (now.count === before.count && performance.now() < end) {
        await delay(250);
        now = await rounds();
      }
      cpu = [cpuOf(pid), cpuOf(all.database.pid), cpuOf(fleet.pid)].map((value, index) => value - cpu[index]);
      const wrong = await countWrong(must, url, power);
      const cpuText = `server ${cpu[0]} ms, database ${cpu[1]} ms, fleet ${cpu[2]} ms`;
      console.log(
        `${what}: ${(now.sum - before.sum).toFixed(1)} s a round; CPU ${cpuText}; wrong ${JSON.stringify(wrong)}; fleet ${memoryOf(fleet.pid).toFixed(0)} MiB, server ${memoryOf(pid).toFixed(0)} MiB`,
      );
    };
    await round('first round, logins included');
    await round('second round');
    await round('third round');
    await faults({ loss: 0.2, latency: 300 });
    await round('20 % lost, 300 ms late, the round in which the faults begin');
    await round('20 % lost, 300 ms late');
    await round('20 % lost, 300 ms late, again');
    await round('20 % lost, 300 ms late, again');
    const log = readFileSync(join(folder, 'log'), 'utf8').split('\n');
    const tried = log.filter((line) => line.includes('the power state cannot be read')).length;
    console.log(`failed reads, repeated in the next round: ${tried}`);
    await faults({});
  },
});

/** The sensors of simulated BMCs, all kinds in each round. A latency of 20 ms makes concurrent calls at one BMC visible. */
const sensorScenario = ({ ask, must, lanes, cpuOf, bind, freePort, ending }) => ({
  nodes: 1000,
  run: async ({ begin, nodes: count, openStore, folder }) => {
    const fleet = await startFleet(folder, [...halfAndHalf(count), '--faults', 'latency=20'], bind, ending);
    const store = await openStore();
    await lanes(8, fleet.nodes, async (node) => {
      await must(fleet.url, 'POST', `/machines/${node.name}/power`, { action: 'on' });
      await store.nodes.create(activeNode(node, randomUUID(), 'power on'));
    });
    await store.close();
    const every = 30;
    // Metrics of single machines are on this port only.
    const port = await freePort();
    const metrics = `http://127.0.0.1:${port}`;
    const rounds = async (what, { server, database }, times) => {
      const read = async () => {
        const { text } = await ask(metrics, 'GET', '/metrics');
        const of = (part) => metric(text, `bloomery_periodic_duration_seconds_${part}`, 'task="sensors"');
        const { machines } = await must(fleet.url, 'GET', '/machines');
        return {
          rounds: of('count'),
          seconds: of('sum'),
          cpu: [server, database, fleet].map(({ pid }) => cpuOf(pid)),
          read: countOf(text, 'baremetal_sensor_reading'),
          told: countOf(text, 'baremetal_last_payload_timestamp_seconds'),
          calls: machines.reduce((sum, { traffic }) => sum + traffic.calls, 0),
          most: mostAtOnce(machines),
        };
      };
      let before = await read();
      for (let time = 1; time <= times; time++) {
        let now = before;
        // Not more often, because a scrape of all readings costs CPU too.
        for (const end = performance.now() + 1_800_000; now.rounds === before.rounds && performance.now() < end; now = await read())
          await delay(5000);
        const seconds = now.seconds - before.seconds;
        const [ours, its, theirs] = now.cpu.map((value, index) => value - before.cpu[index]);
        console.log(
          `${what}, round ${time}: ${seconds.toFixed(1)} s; ${now.told} machines, ${now.read} readings, ${(now.read / seconds).toFixed(0)} a second; ` +
            `CPU server ${ours} ms (${(ours / now.read).toFixed(3)} a reading, ${(ours / count).toFixed(2)} a machine), database ${its} ms, fleet ${theirs} ms; ` +
            `${now.calls - before.calls} calls, at one BMC at once at most ${now.most}; server ${memoryOf(server.pid).toFixed(0)} MiB`,
        );
        before = now;
      }
    };
    const options = (powerEvery) => ({
      DEFAULT: DRIVERS,
      conductor: { sync_power_state_interval: powerEvery, sync_power_state_workers: 64 },
      redfish: { connection_cache_size: count },
      metrics: { prometheus_port: port },
      sensor_data: {
        send_sensor_data: true,
        workers: 64,
        wait_timeout: 1800,
        enable_for_conductor: false,
        ...Object.fromEntries(['', '_power', '_temperature', '_fan', '_drive'].map((kind) => [`interval${kind}`, every])),
      },
    });
    const alone = await begin(options(0));
    await rounds('sensors alone', alone, 3);
    await alone.server.stop();
    await rounds('beside power states each 5 s', await begin(options(5)), 2);
  },
});

/** Writes an image, a kernel and a ramdisk of random bytes. */
function writeImages(folder) {
  mkdirSync(folder, { recursive: true });
  const image = randomBytes(8 << 20);
  writeFileSync(join(folder, 'image.raw'), image);
  for (const name of ['kernel', 'ramdisk']) writeFileSync(join(folder, name), randomBytes(64 << 10));
  return { image, file: (name) => `file://${join(folder, name)}` };
}
/** The whole lifecycle: registration, inspection, cleaning, deployment, deletion. */
const lifecycleScenario = ({ must, lanes, measure, through, cpuOf, bind, freePort, ending }) => ({
  nodes: 1000,
  run: async ({ begin, nodes: count, folder }) => {
    const { image, file } = writeImages(join(folder, 'httpboot'));
    const bootPort = await freePort();
    const bootUrl = `http://127.0.0.1:${bootPort}`;
    const all = await begin({
      DEFAULT: {
        my_ip: '127.0.0.1',
        enabled_hardware_types: 'ipmi,redfish',
        enabled_boot_interfaces: 'ipxe',
        enabled_deploy_interfaces: 'direct',
        enabled_inspect_interfaces: 'agent',
      },
      conductor: { deploy_kernel: file('kernel'), deploy_ramdisk: file('ramdisk'), file_url_allowed_paths: folder },
      boot: { http_host: '127.0.0.1', http_port: bootPort, tftp: false },
    });
    const { url } = all.server;
    const began = performance.now();
    const words = [
      '--machines',
      count,
      '--ipmi',
      '127.0.0.1',
      '--redfish',
      '127.0.0.1',
      '--seed',
      '1',
      '--boot-url',
      bootUrl,
      '--boot-ms',
      '2000',
    ];
    let fleet;

    await measure('registered by bloomery simulate --register', all, async () => {
      fleet = await startFleet(folder, [...words.map(String), '--register', url], bind, ending);
      for (;;) {
        const { nodes } = await must(url, 'GET', '/v1/nodes?fields=uuid&limit=1000');
        const { ports } = await must(url, 'GET', '/v1/ports?fields=uuid&limit=1');
        if (nodes.length === Math.min(count, 1000) && ports.length > 0) return { count };
        await delay(100);
      }
    });
    // Waits until the last port of the last node exists.
    await delay(1000);
    const { nodes } = await must(url, 'GET', `/v1/nodes?fields=uuid,name&limit=${count}`);
    const uuids = nodes.map(({ uuid }) => uuid);
    const stages = [
      ['manage', 'manageable'],
      ['inspect', 'manageable'],
      ['provide', 'available'],
      ['active', 'active'],
      ['deleted', 'available'],
    ];
    const instance = {
      image_source: `${bootUrl}/image.raw`,
      image_os_hash_algo: 'sha256',
      image_disk_format: 'raw',
      image_os_hash_value: createHash('sha256').update(image).digest('hex'),
    };
    const fleetCpu = () => cpuOf(fleet.pid);
    for (const [target, end] of stages) {
      if (target === 'active')
        await lanes(16, uuids, (uuid) => must(url, 'PATCH', `/v1/nodes/${uuid}`, [{ op: 'add', path: '/instance_info', value: instance }]));
      const before = fleetCpu();
      await measure(`${target} → ${end}`, all, async () => {
        const done = await through(url, uuids, target, end)();
        return { ...done, 'fleet CPU ms each': ((fleetCpu() - before) / count).toFixed(2) };
      });
      if (target === 'active') {
        console.log(
          `registered, inspected and deployed to active: ${((performance.now() - began) / 1000).toFixed(0)} s for ${count} machines`,
        );
        const { machines } = await must(fleet.url, 'GET', '/machines');
        const phases = {};
        for (const { phase } of machines) phases[phase] = (phases[phase] ?? 0) + 1;
        console.log(
          `phases of the machines: ${JSON.stringify(phases)}; fleet ${memoryOf(fleet.pid).toFixed(0)} MiB, server ${memoryOf(all.server.pid).toFixed(0)} MiB`,
        );
      }
    }
  },
});

/** @param tools the functions of bench.mjs that start servers, send requests and measure */
export const fleetScenarios = (tools) => ({
  'fleet-power': powerScenario(tools),
  sensors: sensorScenario(tools),
  'fleet-lifecycle': lifecycleScenario(tools),
});
