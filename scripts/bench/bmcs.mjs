// The simulated BMCs of `npm run bench -- ipmi`, which starts this program: COUNT PASSWORD. Prints a JSON array of their ports.
import { randomBytes } from 'node:crypto';
import { built } from './program.mjs';

const [count, password = ''] = process.argv.slice(2);
const { serveIpmi } = await built('simulator/ipmi/ipmi');
const { silentLog: log } = await built('model/log');
const { systemClock } = await built('model/clock');
const clock = { ...systemClock, sleep: async () => {} };
/** @param {number} index */
const serve = (index) =>
  serveIpmi({
    host: '127.0.0.1',
    port: 0,
    username: 'admin',
    password,
    log,
    clock,
    random: randomBytes,
    machine: {
      name: `m${index}`,
      macs: [],
      isOn: () => true,
      act: async () => {},
      boot: () => ({ device: 'none', persistent: false, mode: null }),
      setBoot: () => {},
    },
  });
const all = await Promise.all(Array.from({ length: Number(count) }, (_, index) => serve(index)));
console.log(JSON.stringify(all.map(({ port }) => port)));
