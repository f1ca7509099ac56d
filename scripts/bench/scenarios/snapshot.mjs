// npm run bench -- snapshot [--size MIB] [--disk-rate MB] [--nodes N]: a snapshot's speed as a share of the speed at which the same disk is
// read directly, for several contents, and the CPU time of both sides. The agent and the server share this machine, and the server writes
// to memory if it can: a real one writes to another disk than the one that is measured.
import { spawnSync } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { root } from '../../install.mjs';
import { statOf } from '../cpu.mjs';
import { rows } from '../measure.mjs';
import { enrol } from '../nodes.mjs';
import { startProgram } from '../processes.mjs';
import { built } from '../program.mjs';

const MIB = 2 ** 20;
const GIB = 2 ** 30;
/** Measurements of each content. The table has their medians. */
const ROUNDS = 5;
const TOKEN = 'token-of-the-bench';
/** How often another client asks meanwhile, in milliseconds. */
const PROBE_MS = 250;

/** Programs and libraries of this machine, one after another, as a file system has them. */
function* systemFiles() {
  for (const folder of ['/usr/bin', '/usr/lib', join(root, 'node_modules')]) {
    if (!existsSync(folder)) continue;
    for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true })) {
      if (!entry.isFile()) continue;
      try {
        yield readFileSync(join(entry.parentPath, entry.name));
      } catch {
        // Another user's.
      }
    }
  }
}
function* noise() {
  for (;;) yield randomBytes(MIB);
}
/** Seven of eight MiB are zeros. */
function* mostlyZeros() {
  const zeros = Buffer.alloc(7 * MIB);
  for (let part = Buffer.alloc(0); ; part = Buffer.alloc(0)) {
    for (const bytes of systemFiles()) {
      part = Buffer.concat([part, bytes]);
      for (; part.length >= MIB; part = part.subarray(MIB)) {
        yield part.subarray(0, MIB);
        yield zeros;
      }
    }
  }
}
function* files() {
  for (;;) yield* systemFiles();
}
/** @type {Readonly<Record<string, () => Iterable<Buffer>>>} */
const CONTENTS = { 'programs and libraries': files, 'random bytes': noise, 'mostly zeros': mostlyZeros };

/** @param {string} path @param {number} size @param {Iterable<Buffer>} content */
function writeDisk(path, size, content) {
  const file = openSync(path, 'w');
  let rest = size;
  for (const bytes of content) {
    const taken = bytes.subarray(0, rest);
    writeSync(file, taken);
    rest -= taken.length;
    if (rest === 0) break;
  }
  fsyncSync(file);
  closeSync(file);
}
/** Runs dd of coreutils, and returns its seconds. @param {readonly string[]} words */
function dd(...words) {
  const began = performance.now();
  const { status, stderr } = spawnSync('dd', words, { stdio: ['ignore', 'ignore', 'pipe'] });
  if (status !== 0) throw new Error(`dd ${words.join(' ')}: ${stderr.toString()}`);
  return (performance.now() - began) / 1000;
}
const median = (/** @type {readonly number[]} */ values) => values.toSorted((a, b) => a - b)[values.length >> 1] ?? NaN;

/**
 * Lets the kernel limit the reads of this process and its children (control groups, version 1 or 2; root only).
 * @param {string} path a file on the disk
 * @param {number} rate bytes a second
 * @param {import('../processes.mjs').AtEnd} atEnd
 */
function limitReads(path, rate, atEnd) {
  const device = spawnSync('findmnt', ['-n', '-o', 'MAJ:MIN', '-T', path]).stdout.toString().trim();
  const isFirst = existsSync('/sys/fs/cgroup/blkio');
  const parent = isFirst ? '/sys/fs/cgroup/blkio' : '/sys/fs/cgroup';
  const group = join(parent, `bloomery-bench-${process.pid}`);
  mkdirSync(group);
  atEnd(() => {
    writeFileSync(join(parent, 'cgroup.procs'), String(process.pid));
    rmSync(group, { recursive: true, force: true });
  });
  writeFileSync(join(group, isFirst ? 'blkio.throttle.read_bps_device' : 'io.max'), `${device} ${isFirst ? '' : 'rbps='}${rate}`);
  writeFileSync(join(group, 'cgroup.procs'), String(process.pid));
}

/**
 * @typedef {object} Sent what scripts/bench/saving-agent.mjs prints
 * @property {{ size: number, front: number, digest: string }} report
 * @property {number} seconds
 * @property {number} cpu seconds
 * @property {number} mainThread seconds
 * @property {number} stallMs
 * @property {number} memoryMiB
 */

/** Asks again and again, until the function that it returns is called: that returns the milliseconds of each. @param {() => Promise<unknown>} ask */
function startProbes(ask) {
  /** @type {number[]} */
  const probes = [];
  let isOver = false;
  const probing = (async () => {
    while (!isOver) {
      const began = performance.now();
      await ask();
      probes.push(performance.now() - began);
      await new Promise((done) => setTimeout(done, PROBE_MS));
    }
  })();
  return async () => {
    isOver = true;
    await probing;
    return probes;
  };
}
/** Seconds of a process, and of its main thread. @param {number} pid */
const cpuOf = (pid) => ({
  server: statOf(pid).own / 1000,
  main: Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'latin1').split(' ')[0]) / 1e9,
});

/** @type {import('../scenarios.mjs').Scenario} */
export const snapshot = {
  nodes: 1,
  run: async ({ begin, openStore, atEnd }, { nodes, size: mebibytes = 1024, 'disk-rate': rate }) => {
    const size = mebibytes * MIB;
    const disks = join(root, '.cache');
    mkdirSync(disks, { recursive: true });
    const sources = mkdtempSync(join(disks, 'bench-'));
    atEnd(() => rmSync(sources, { recursive: true, force: true }));
    const memory = '/dev/shm';
    const folder = mkdtempSync(join(existsSync(memory) ? memory : sources, 'bloomery-bench-'));
    atEnd(() => rmSync(folder, { recursive: true, force: true }));
    const { server } = await begin({ snapshot: { directory: folder, min_free_space: 1 } });
    const store = await openStore();
    atEnd(() => store.close());
    const { finishFile, removeFiles } = await built('wire/snapshot-files');
    const uuids = await enrol(server, nodes, { deploy_interface: 'direct' });

    /** Sends one snapshot of each node at once. @param {string} path @returns {Promise<Sent[]>} */
    const sendAll = (path) =>
      Promise.all(
        uuids.map(async (node_uuid) => {
          const uuid = randomUUID();
          await store.snapshots.create({ uuid, node_uuid, state: 'queued' });
          const steps = [{ interface: 'deploy', step: 'snapshot', args: { snapshot: uuid } }];
          await store.nodes.update(node_uuid, {
            provision_state: 'service wait',
            driver_internal_info: { agent_secret_token: TOKEN, service_steps: steps },
          });
          const program = join(root, 'scripts/bench/saving-agent.mjs');
          const words = [program, path, String(size), `${server.url}/v1/snapshots/${uuid}`, TOKEN];
          // As in the ramdisk.
          const environment = { UV_THREADPOOL_SIZE: String(Math.max(4, availableParallelism() + 2)) };
          const { line } = await startProgram(words, /^\{.*\}$/m, atEnd, { environment, areErrorsShown: true });
          /** @type {Sent} */
          const sent = JSON.parse(line[0]);
          await finishFile(folder, uuid, sent.report, new AbortController().signal);
          await removeFiles(folder, uuid);
          await store.snapshots.remove(uuid);
          return sent;
        }),
      );
    const cpu = () => cpuOf(server.pid);

    for (const [name, content] of Object.entries(CONTENTS)) writeDisk(join(sources, name), size, content());
    if (rate !== undefined) limitReads(sources, rate * 1e6, atEnd);
    for (const name of Object.keys(CONTENTS)) {
      const path = join(sources, name);
      /** @type {{ direct: number, took: number, sent: Sent, ofServer: number, ofServerMain: number, probe: number }[]} */
      const rounds = [];
      for (let round = 0; round < ROUNDS; round++) {
        const direct = dd(`if=${path}`, 'of=/dev/null', 'bs=4M', 'iflag=direct');
        // The file leaves the kernel's memory.
        dd(`if=${path}`, 'iflag=nocache', 'count=0');
        const endProbes = startProbes(() => server.send('GET', `/v1/nodes/${uuids[0]}?fields=uuid`));
        const before = cpu();
        const all = await sendAll(path);
        const after = cpu();
        const probes = await endProbes();
        const took = Math.max(...all.map(({ seconds }) => seconds));
        const [sent] = all;
        if (sent === undefined) throw new Error('no machine');
        const bytes = (nodes * size) / GIB;
        rounds.push({
          direct,
          took,
          sent,
          ofServer: (after.server - before.server) / bytes,
          ofServerMain: (after.main - before.main) / bytes,
          probe: probes.toSorted((a, b) => a - b)[Math.floor(0.99 * (probes.length - 1))] ?? NaN,
        });
      }
      const of = (/** @type {(round: (typeof rounds)[number]) => number} */ value) => median(rounds.map(value));
      const ratioOf = (/** @type {(typeof rounds)[number]} */ { direct, took }) => (nodes * direct) / took;
      const row = {
        content: name,
        'direct read MB/s': (size / 1e6 / of(({ direct }) => direct)).toFixed(0),
        'snapshot MB/s': ((nodes * size) / 1e6 / of(({ took }) => took)).toFixed(0),
        ratio: of(ratioOf).toFixed(2),
        'best ratio': Math.max(...rounds.map(ratioOf)).toFixed(2),
        'file / disk': of(({ sent }) => sent.report.size / size).toFixed(2),
        'agent CPU s/GiB': of(({ sent }) => (sent.cpu * GIB) / size).toFixed(2),
        'main thread': of(({ sent }) => (sent.mainThread * GIB) / size).toFixed(2),
        'server CPU s/GiB': of(({ ofServer }) => ofServer).toFixed(2),
        'its main thread': of(({ ofServerMain }) => ofServerMain).toFixed(2),
        'agent stall ms': of(({ sent }) => sent.stallMs).toFixed(0),
        'agent MiB': of(({ sent }) => sent.memoryMiB).toFixed(0),
        'p99 ms of GET node': of(({ probe }) => probe).toFixed(1),
      };
      rows.push(row);
      console.error(JSON.stringify(row));
    }
  },
};
