/** The agent in a deployed system: what it does, refuses and slows down. */
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { request } from 'node:https';
import type { AddressInfo } from 'node:net';
import { silentLog } from '../../model/log';
import { createBrake } from '../../ramdisk-agent/resident/brake';
import { residentCommands, type ResidentHost } from '../../ramdisk-agent/resident/commands';
import { leaveOf } from '../../ramdisk-agent/resident/leave';
import { keepRegistered, pauseAfter } from '../../ramdisk-agent/resident/registration';
import { runResident, type Resident } from '../../ramdisk-agent/resident';
import { tree } from '../../ramdisk-agent/system/tree';
import { systemClock } from '../../model/clock';
import { kernelBytes } from '../support/resident-host';
import { until } from '../support/until';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { fakeClock, fileTree, folder } from './support';

const NODE = '5d2a1a50-9d2a-4a5f-8f06-1f1f1f1f1f1f';
const FILES: Readonly<Record<string, Buffer>> = { 'http://boot/kernel': kernelBytes(), 'http://boot/initrd': randomBytes(3000) };
const fileOf = (name: string, changes: object = {}) => ({
  url: `http://boot/${name}`,
  size: FILES[`http://boot/${name}`]!.length,
  sha256: createHash('sha256').update(FILES[`http://boot/${name}`]!).digest('hex'),
  ...changes,
});
const LOAD = { node: NODE, kernel: fileOf('kernel'), initrd: fileOf('initrd'), command_line: 'a=b' };

function hostOf(changes: Partial<ResidentHost> = {}, loaded = '1\n', free = 4_000_000) {
  const calls: string[] = [];
  const temporary = folder();
  const clock = fakeClock();
  const host: ResidentHost = {
    node: NODE,
    bootId: 'boot-1',
    version: 'v',
    clock,
    log: silentLog,
    tree: tree(fileTree({ 'proc/meminfo': `MemAvailable: ${free} kB\n`, 'sys/kernel/kexec_loaded': loaded })),
    machine: 'x86_64',
    kernelCalls: { load: async (_, __, line) => void calls.push(`load ${line}`), start: async () => void calls.push('start') },
    temporary,
    fetch: async (url) =>
      (async function* () {
        yield FILES[url]!;
      })(),
    leave: { check: async () => {}, go: async () => void calls.push('leave') },
    ...changes,
  };
  return { calls, clock, temporary, commands: residentCommands(host) };
}

it('says who it is, loads a ramdisk, and starts it after its answer', async () => {
  const { calls, clock, commands, temporary } = hostOf();
  expect(await commands['resident.identify']!.run({})).toEqual({
    node: NODE,
    boot_id: 'boot-1',
    version: 'v',
    machine: 'x86_64',
    going: false,
  });
  expect(await commands['resident.load']!.run(LOAD)).toEqual({ loaded: true });
  expect(calls).toEqual(['load a=b']);
  expect(readdirSync(temporary)).toEqual([]);
  expect(await commands['resident.start']!.run({ node: NODE })).toEqual({ going: true });
  expect(calls).toEqual(['load a=b']);
  await clock.advance(1000);
  expect(calls).toEqual(['load a=b', 'leave']);
  expect(await commands['resident.identify']!.run({})).toMatchObject({ going: true });
  await expect(commands['resident.load']!.run(LOAD)).rejects.toThrow('the services stop already');
});

it.each<[string, object, RegExp]>([
  ['another node', { node: randomUUID() }, /the agent of another node/],
  ['no kernel', { kernel: undefined }, /kernel\.url is missing or wrong/],
  ['a URL of another kind', { kernel: fileOf('kernel', { url: 'file:///etc/shadow' }) }, /kernel\.url is missing or wrong/],
  ['a size that is none', { initrd: fileOf('initrd', { size: -1 }) }, /initrd\.size is missing or wrong/],
  ['a checksum that is none', { initrd: fileOf('initrd', { sha256: 'x' }) }, /initrd\.sha256 is missing or wrong/],
  ['another checksum', { initrd: fileOf('initrd', { sha256: 'f'.repeat(64) }) }, /The ramdisk has another SHA-256 than the conductor says/],
  ['a file that is larger', { initrd: fileOf('initrd', { size: 2999 }) }, /The ramdisk has more bytes in place of 2999/],
  ['a file that is shorter', { initrd: fileOf('initrd', { size: 3001 }) }, /The ramdisk has 3000 bytes in place of 3001/],
  ['a huge ramdisk', { initrd: fileOf('initrd', { size: 2 ** 40 }) }, /its kernel or its initial ramdisk is too large/],
  ['a file that is no kernel', { kernel: fileOf('initrd') }, /kernel is not a kernel for x86_64/],
  ['no command line', { command_line: 1 }, /command_line is missing or wrong/],
  ['two command lines', { command_line: 'a\nb' }, /control characters/],
  ['a long command line', { command_line: 'a'.repeat(2048) }, /exceeds 2047 bytes/],
])('refuses %s, and loads nothing', async (_, changes, reason) => {
  const { calls, commands, temporary } = hostOf();
  await expect(commands['resident.load']!.run({ ...LOAD, ...changes })).rejects.toThrow(reason);
  expect([calls, readdirSync(temporary)]).toEqual([[], []]);
});

it.each<[string, Partial<ResidentHost>, number, RegExp]>([
  ['too little memory', {}, 10, /too little memory is free/],
  [
    'a system that cannot be left',
    { leave: { check: async () => Promise.reject(new Error('no way')), go: async () => {} } },
    4_000_000,
    /no way$/,
  ],
  [
    'a kernel that does not allow it',
    { kernelCalls: { load: async () => Promise.reject(new Error('lockdown')), start: async () => {} } },
    4_000_000,
    /lockdown$/,
  ],
])('says what prevents it: %s', async (_, changes, free, reason) => {
  await expect(hostOf(changes, '0\n', free).commands['resident.load']!.run(LOAD)).rejects.toThrow(reason);
});

it('starts nothing while no ramdisk is loaded, nor for another node', async () => {
  const { calls, clock, commands } = hostOf({}, '0\n');
  await expect(commands['resident.start']!.run({ node: NODE })).rejects.toThrow('No ramdisk is loaded');
  await expect(hostOf().commands['resident.start']!.run({ node: 'x' })).rejects.toThrow('another node');
  await clock.advance(1000);
  expect(calls).toEqual([]);
});

it('can be asked again after the system could not be left', async () => {
  const { clock, commands } = hostOf({ leave: { check: async () => {}, go: async () => Promise.reject(new Error('no')) } });
  await commands['resident.start']!.run({ node: NODE });
  await clock.advance(1000);
  expect(await commands['resident.identify']!.run({})).toMatchObject({ going: false });
});

describe('the end of the system', () => {
  const leaving = (paths: readonly string[]) => {
    const done: string[] = [];
    const clock = fakeClock();
    const leave = leaveOf({
      run: async (program, args) => {
        done.push([program, ...args].join(' '));
        return '';
      },
      exists: (path) => paths.includes(path),
      write: (path, text) => void done.push(`${text} > ${path}`),
      endProcesses: () => void done.push('end processes'),
      kernelCalls: { load: async () => {}, start: async () => void done.push('start') },
      clock,
    });
    return { done, leave, clock };
  };
  it('systemd stops the services, and needs kexec', async () => {
    await expect(leaving(['/run/systemd/system']).leave.check()).rejects.toThrow('no program kexec (kexec-tools)');
    const { done, leave } = leaving(['/run/systemd/system', '/usr/sbin/kexec']);
    await leave.check();
    await leave.go();
    expect(done).toEqual(['systemctl kexec --no-block']);
  });
  it('without systemd, all processes end, and the file systems are read-only', async () => {
    const { done, leave, clock } = leaving([]);
    await leave.check();
    const gone = leave.go();
    await clock.advance(10_000);
    await gone;
    expect(done).toEqual(['end processes', 'sync', 'u > /proc/sysrq-trigger', 'start']);
  });
});

it('answers each wrong token of a minute later than the one before', async () => {
  const clock = fakeClock();
  const brake = createBrake(clock);
  const never = new AbortController().signal;
  const took: number[] = [];
  const wrong = async (): Promise<void> => {
    const began = clock.now();
    const answered = brake.refused(never).then(() => took.push(clock.now() - began));
    for (let at = 0; at < 50; at++) await clock.advance(250);
    await answered;
  };
  for (let at = 0; at < 4; at++) await wrong();
  await clock.advance(61_000);
  await wrong();
  expect(took).toEqual([250, 500, 1000, 2000, 250]);
});

it('pauses five minutes between registrations, and less after failures', () => {
  expect([0, 1, 2, 20].map((failures) => pauseAfter(failures, 0.5))).toEqual([300_000, 5000, 10_000, 300_000]);
  expect([0, 1].map((random) => pauseAfter(0, random))).toEqual([210_000, 390_000]);
});

it('registers by its address, and has a new certificate with a new address', async () => {
  const asked: { readonly headers: IncomingHttpHeaders; readonly body: Readonly<Record<string, string>> }[] = [];
  const stop = new AbortController();
  const server = createServer((message, response) => {
    let text = '';
    message.on('data', (part: Buffer) => (text += part.toString()));
    message.on('end', () => {
      asked.push({ headers: message.headers, body: JSON.parse(text) as Record<string, string> });
      response.writeHead(asked.length === 2 ? 503 : 204).end();
      if (asked.length === 4) stop.abort();
    });
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const addresses = ['192.0.2.1', '192.0.2.1', '192.0.2.1', '2001:db8::1'];
  const presented: string[] = [];
  await keepRegistered({
    service: () => ({ url: `${url}/v1/`, node: NODE, token: 'secret' }),
    address: async () => addresses.shift()!,
    hostname: () => 'host',
    port: 9998,
    version: 'v',
    bootId: 'b',
    trust: { insecure: false },
    clock: { now: () => Date.now(), sleep: async () => {} },
    random: randomBytes,
    log: silentLog,
    present: ({ certificate }) => void presented.push(certificate),
    signal: stop.signal,
  });
  server.close();
  expect(asked.map(({ body }) => body['url'])).toEqual([...Array<string>(3).fill('https://192.0.2.1:9998'), 'https://[2001:db8::1]:9998']);
  expect(asked.map(({ body }) => presented.indexOf(body['certificate']!))).toEqual([0, 0, 0, 1]);
  expect(asked[0]!.headers['x-resident-token']).toBe('secret');
});

it('answers to its token alone, and reads no large body', async () => {
  const stop = new AbortController();
  let port = 0;
  const root = fileTree({ 'proc/meminfo': '' });
  const host: Resident = {
    service: () => ({ url: 'http://127.0.0.1:1', node: NODE, token: 'right' }),
    address: async () => '127.0.0.1',
    hostname: () => 'host',
    bootId: 'b',
    listen: { host: '127.0.0.1', port: 0 },
    trust: { insecure: false },
    clock: systemClock,
    random: randomBytes,
    newUuid: randomUUID,
    log: { ...silentLog, info: (text: string) => void (port ||= Number(/^Listening at port (\d+)/.exec(text)?.[1] ?? 0)) },
    tree: tree(root),
    machine: 'x86_64',
    kernelCalls: { load: async () => {}, start: async () => {} },
    temporary: root,
    fetch: async () => Promise.reject(new Error('none')),
    leave: { check: async () => {}, go: async () => {} },
    signal: stop.signal,
  };
  const running = runResident(host);
  await until('the agent to listen', () => port !== 0);
  const ask = (token: string, body: object): Promise<number> =>
    new Promise((resolve, reject) => {
      const sent = request(
        {
          host: '127.0.0.1',
          port,
          method: 'POST',
          path: `/v1/commands/?wait=true&agent_token=${token}`,
          rejectUnauthorized: false,
          agent: false,
        },
        (answer) => {
          answer.resume();
          resolve(answer.statusCode!);
        },
      );
      sent.on('error', reject);
      sent.end(JSON.stringify(body));
    });
  const identify = { name: 'resident.identify', params: {} };
  expect(await ask('right', identify)).toBe(200);
  expect(await ask('wrong', identify)).toBe(401);
  expect(await ask('', identify)).toBe(401);
  expect(await ask('right', { ...identify, params: { a: 'x'.repeat(70_000) } })).toBe(400);
  expect(await ask('right', { name: 'standby.power_off', params: {} })).toBe(404);
  stop.abort();
  await running;
});
