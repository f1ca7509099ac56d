// npm run bench -- ipmi [--nodes N]: the CPU time of a power status with ipmitool and with the native client, in a new and in a cached
// session. The simulated BMCs are another process, whose CPU time does not count.
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { root } from '../../install.mjs';
import { statOf } from '../cpu.mjs';
import { createEnd, startProgram } from '../processes.mjs';
import { built } from '../program.mjs';

const PASSWORD = 'bench-password';
/** The CPU time of terminated children. */
const cpuOfChildren = () => statOf('self').ofChildren;
const cpuOfProcess = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};
const words = (/** @type {number} */ port) => `-I lanplus -H 127.0.0.1 -p ${port} -U admin -E -C 17 power status`.split(' ');
/** @param {number} port @returns {Promise<void>} */
const byTool = (port) =>
  new Promise((done, fail) => {
    const tool = spawn('ipmitool', words(port), {
      env: { ...process.env, IPMI_PASSWORD: PASSWORD },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let text = '';
    tool.stdout.on('data', (part) => (text += part));
    tool.once('error', fail);
    tool.once('close', () => (text.includes('is on') ? done() : fail(new Error(`ipmitool: ${text}`))));
  });

/** @param {number} count of BMCs in each measurement */
async function runAlone(count) {
  const { createIpmiPool } = await built('wire/ipmi/client');
  // A conductor runs for days, so the warm-up of the first thousand sessions does not count.
  const warming = 1000;
  const { atEnd, endAll } = createEnd();
  try {
    const program = [join(root, 'scripts/bench/bmcs.mjs'), String(count + warming), PASSWORD];
    const { line } = await startProgram(program, /^\[[\d,]+\]$/m, atEnd, { areErrorsShown: true });
    /** @type {number[]} */
    const ports = JSON.parse(line[0]);
    const pool = createIpmiPool({ log: { warn: console.error }, clock: { now: Date.now }, random: randomBytes });
    /** @returns {import('../../../wire/ipmi/client.js').IpmiTarget} */
    const target = (/** @type {number} */ port) => ({
      address: '127.0.0.1',
      port,
      username: 'admin',
      password: PASSWORD,
      privilege: 'ADMINISTRATOR',
      cipherSuites: [17],
    });
    const status = async (/** @type {number} */ port) => {
      const answer = await pool.request(target(port), 0, 1, Buffer.alloc(0), { timeoutMs: 60_000 });
      if (((answer[0] ?? 0) & 1) !== 1) throw new Error('wrong power state');
    };
    /** @type {object[]} */
    const rows = [];
    /** @param {string} what @param {(port: number) => Promise<void>} call @param {readonly number[]} targets @param {() => number} cpu */
    const measure = async (what, call, targets, cpu) => {
      const [before, began] = [cpu(), performance.now()];
      for (const port of targets) await call(port);
      const each = (cpu() - before) / targets.length;
      rows.push({
        what,
        count: targets.length,
        'CPU ms each': each.toFixed(3),
        'ms each': ((performance.now() - began) / targets.length).toFixed(2),
      });
      return each;
    };
    const [first, ours] = [ports.slice(0, warming), ports.slice(warming)];
    for (let n = 0; n < 2; n++) for (const port of first) await status(port);
    const tool = await measure('ipmitool', byTool, ours.slice(0, 200), cpuOfChildren);
    const fresh = await measure('native, in a new session', status, ours, cpuOfProcess);
    const cached = await measure('native, in a cached session', status, [...ours, ...ours, ...ours], cpuOfProcess);
    await pool.close();
    console.table(rows);
    console.log(
      `less CPU than ipmitool: ${(tool / fresh).toFixed(0)} times with a new session, ${(tool / cached).toFixed(0)} times in a cached one`,
    );
  } finally {
    await endAll();
  }
}
/** @type {import('../scenarios.mjs').ScenarioWithoutServer} */
export const ipmi = { nodes: 1000, runAlone };
