// npm run bench -- ipmi [--nodes N]: the CPU time of a power status with ipmitool and with the native client, in a new and in a cached
// session. The simulated BMCs are another process, whose CPU time does not count.
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../install.mjs';

const PASSWORD = 'bench-password';
const BMCS = `
const { serveIpmi } = require('./dist/simulator/ipmi/ipmi.js');
const machine = (name) => ({ name, macs: [], isOn: () => true, act: async () => {}, boot: () => ({ device: 'none', persistent: false, mode: null }), setBoot: () => {} });
const log = { debug() {}, info() {}, warn() {}, error() {}, child: () => log };
const at = { host: '127.0.0.1', port: 0, username: 'admin', password: '${PASSWORD}', log, clock: { now: Date.now, sleep: async () => {} }, random: require('node:crypto').randomBytes };
Promise.all(Array.from({ length: Number(process.argv[1]) }, (_, n) => serveIpmi({ ...at, machine: machine('m' + n) }))).then((all) => {
  console.log(JSON.stringify(all.map(({ port }) => port)));
  process.stdin.on('end', () => process.exit()).resume();
});`;

/** User and system CPU time of terminated children, in milliseconds (proc(5): cutime, cstime; a tick is 10 ms). */
const cpuOfChildren = () => {
  const text = readFileSync('/proc/self/stat', 'utf8');
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[13]) + Number(fields[14])) * 10;
};
const cpuOfProcess = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};

/** @param count the number of BMCs in each scenario */
export async function benchIpmi(count) {
  const { createIpmiPool } = (await import(join(root, 'dist/wire/ipmi/client.js'))).default;
  // A conductor runs for days, so the warm-up of the first thousand sessions does not count.
  const warming = 1000;
  const child = spawn(process.execPath, ['-e', BMCS, String(count + warming)], { cwd: root, stdio: ['pipe', 'pipe', 'inherit'] });
  try {
    const ports = await new Promise((done, fail) => {
      let text = '';
      child.stdout.on('data', (part) => {
        text += part;
        if (text.endsWith('\n')) done(JSON.parse(text));
      });
      child.once('exit', () => fail(new Error('the simulated BMCs ended')));
    });
    const pool = createIpmiPool({ log: { warn: console.error }, clock: { now: Date.now }, random: randomBytes });
    const target = (port) => ({
      address: '127.0.0.1',
      port,
      username: 'admin',
      password: PASSWORD,
      privilege: 'ADMINISTRATOR',
      cipherSuites: [17],
    });
    const status = async (port) => {
      const answer = await pool.request(target(port), 0, 1, Buffer.alloc(0), { timeoutMs: 60_000 });
      if ((answer[0] & 1) !== 1) throw new Error('wrong power state');
    };
    const words = (port) => `-I lanplus -H 127.0.0.1 -p ${port} -U admin -E -C 17 power status`.split(' ');
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
    const rows = [];
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
    child.removeAllListeners('exit');
    child.stdin.end();
  }
}
