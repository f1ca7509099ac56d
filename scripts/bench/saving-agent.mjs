// The part of an agent that sends a snapshot, as a process: npm run bench -- snapshot. Prints what it took, as JSON.
import { readFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { built } from './program.mjs';

const [path = '', size = '', url = '', token = ''] = process.argv.slice(2);
const [{ openDevice }, { sendSnapshot }, { systemClock: clock }, { silentLog: log }] = await Promise.all([
  built('ramdisk-agent/disk/device'),
  built('ramdisk-agent/disk/snapshot'),
  built('model/clock'),
  built('model/log'),
]);
const device = await openDevice({ path, size: Number(size), sectorSize: 512, mode: 'read' });
const fetching = { trust: { insecure: false }, timeoutMs: 60_000, signal: new AbortController().signal };
const delays = monitorEventLoopDelay({ resolution: 1 });
/** Seconds of the main thread: the others read, compress and compute checksums. */
const mainThread = () => Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'latin1').split(' ')[0]) / 1e9;
const [mainBefore, before, began] = [mainThread(), process.cpuUsage(), performance.now()];
delays.enable();
const report = await sendSnapshot({ device, url, token, fetching, retries: 0, retryIntervalMs: 1, progress() {}, clock, log });
delays.disable();
const { user, system } = process.cpuUsage(before);
await device.close();
console.log(
  JSON.stringify({
    report,
    seconds: (performance.now() - began) / 1000,
    cpu: (user + system) / 1e6,
    mainThread: mainThread() - mainBefore,
    stallMs: delays.max / 1e6,
    memoryMiB: process.resourceUsage().maxRSS / 1024,
  }),
);
