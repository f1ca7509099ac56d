/** DHCPv6 with clients that we did not write (dhclient, perfdhcp, the kernel), with garbage and floods on the wire. Root. */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { buildSync } from 'esbuild';
import type { ServerOptions } from './dhcp-server';
import { until } from '../../../demo/lab/machines';
import { addNamespace, removeNamespace } from '../../../demo/lab/namespace';
import { needs } from '../support/needs';
import { root } from '../support/venv';

const run = promisify(execFile);
const MAC = '52:54:00:aa:06:01';
/** Half of them are for unknown machines. */
const POOL = 256;
const IN_RANGE = /^fd00:77::1:[0-9a-f]{1,2}$/;
const program = join(root, '.cache/lab/dhcpv6-server.js');
let servers: string;
let clients: string;
let folder: string;
let server: ChildProcess;
const log: string[] = [];

/** Runs a program in the clients' namespace. @returns its output, whatever its exit code */
const client = async (...words: readonly string[]): Promise<string> =>
  run('ip', ['netns', 'exec', clients, ...words], { timeout: 240_000 }).then(
    ({ stdout, stderr }) => stdout + stderr,
    (error: unknown) => {
      const { stdout, stderr } = error as { stdout: string; stderr: string };
      return stdout + stderr;
    },
  );
/** Gets an address as a known machine, and releases it. */
async function dhclient(): Promise<string> {
  const leases = join(folder, 'leases');
  writeFileSync(leases, '');
  const words = ['dhclient', '-6', '-sf', '/bin/true', '-cf', '/dev/null', '-lf', leases, '-pf', join(folder, 'pid')];
  const printed = await client('timeout', '200', ...words, '-1', 'eth0');
  const address = /iaaddr ([\da-f:]+)/.exec(readFileSync(leases, 'utf8'))?.[1];
  if (!address) throw new Error(`dhclient has no lease: ${printed}`);
  await client(...words, '-r', 'eth0');
  return address;
}
const LINK_LOCAL = '[...require("os").networkInterfaces().eth0].find((one) => one.address.startsWith("fe80")).address';

beforeAll(async () => {
  needs({ ip: 'iproute2', dhclient: 'isc-dhcp-client', dnsmasq: 'dnsmasq-base', perfdhcp: 'kea-admin' });
  folder = mkdtempSync(join(tmpdir(), 'bloomery-dhcpv6-'));
  servers = await addNamespace('bloomery-dhcpv6');
  clients = await addNamespace('bloomery-dhcpv6-c');
  for (const command of [
    `-n ${servers} link add near0 type veth peer name eth0 address ${MAC} netns ${clients}`,
    `-n ${servers} link set near0 up`,
    `-n ${servers} addr add fd00:77::1/64 dev near0 nodad`,
    `-n ${clients} link set eth0 up`,
  ])
    await run('ip', command.split(' '));
  // dhclient gives up at once while its link-local address is tentative (RFC 4862 §5.4).
  const show = ['ip', '-6', '-o', 'addr', 'show', 'eth0', 'scope', 'link', '-tentative'];
  await until(
    240,
    () => 'a link-local address',
    async () => (await client(...show)).includes('fe80:'),
  );
  buildSync({
    entryPoints: [join(__dirname, 'dhcp-server.ts')],
    outfile: program,
    bundle: true,
    platform: 'node',
    packages: 'external',
    logLevel: 'error',
  });
  const options: Partial<ServerOptions> = {
    'boot.interface': 'near0',
    'boot.dhcp_subnet': ['fd00:77::/64 range=fd00:77::1:0-fd00:77::1:ff dns=fd00:77::53 slaac=true'],
    'boot.dhcp_unknown_macs': 'discover',
  };
  const rows = { ports: [MAC], boots: [] };
  server = spawn('ip', ['netns', 'exec', servers, process.execPath, program, JSON.stringify({ ...options, rows })]);
  createInterface({ input: server.stderr! }).on('line', (line) => void log.push(line));
  const [ready] = (await Promise.race([once(server.stdout!, 'data'), once(server, 'exit')])) as [unknown];
  if (String(ready) !== 'ready\n') throw new Error(`the DHCPv6 service did not start: ${log.join('\n')}`);
});
afterAll(async () => {
  const ended = once(server, 'exit');
  server.kill();
  expect(await ended).toEqual([0, null]);
  await removeNamespace(clients);
  await removeNamespace(servers);
  rmSync(folder, { recursive: true });
});

it('the DHCPv6 service gives dhclient an address from the range, and the same address again after a release', async () => {
  const address = await dhclient();
  expect(address).toMatch(IN_RANGE);
  expect(await dhclient()).toBe(address);
});

describe('the DHCPv6 client of the ramdisk', () => {
  const bundle = join(root, '.cache/lab/dhcpv6-client.js');
  /** Runs the client until the interface has an address that fits. @returns the address, and the name servers that the client wrote */
  async function addressOf(name: string, range: RegExp): Promise<{ readonly address: string; readonly resolver: string }> {
    buildSync({
      entryPoints: [join(__dirname, 'dhcpv6-client.ts')],
      outfile: bundle,
      bundle: true,
      platform: 'node',
      packages: 'external',
      logLevel: 'error',
    });
    const resolver = join(folder, `resolver-${name}`);
    const child = spawn('ip', ['netns', 'exec', clients, process.execPath, bundle, resolver, name]);
    let said = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (data: Buffer) => (said += data.toString()));
    const ended = once(child, 'exit');
    let address: string | undefined;
    await until(
      240,
      () => `an address of ${name}: ${said}`,
      async () => {
        const shown = await client('ip', '-6', '-o', 'addr', 'show', name, 'scope', 'global');
        address = [...shown.matchAll(/inet6 (\S+)\/128/g)].map(([, found]) => found!).find((found) => range.test(found));
        return address !== undefined && existsSync(resolver);
      },
    );
    child.kill();
    await ended;
    await client('ip', '-6', 'addr', 'del', `${address}/128`, 'dev', name);
    return { address: address!, resolver: readFileSync(resolver, 'utf8') };
  }
  it('gets from our server the address that dhclient gets on the same machine, and writes the name server', async () => {
    const known = await dhclient();
    expect(await addressOf('eth0', IN_RANGE)).toEqual({ address: known, resolver: 'nameserver fd00:77::53\n' });
  });
  it('gets an address from dnsmasq, and writes the name server', async () => {
    for (const command of [
      `-n ${servers} link add near1 type veth peer name eth1 address 52:54:00:aa:06:02 netns ${clients}`,
      `-n ${servers} link set near1 up`,
      `-n ${servers} addr add fd00:78::1/64 dev near1 nodad`,
      `-n ${clients} link set eth1 up`,
    ])
      await run('ip', command.split(' '));
    const words = ['-d', '-C', '/dev/null', '-p', '0', '-i', 'near1', '-z', '-F', 'fd00:78::100,fd00:78::1ff,64', '--enable-ra'];
    const options = ['-O', 'option6:dns-server,[fd00:78::53]', '-l', join(folder, 'dnsmasq-leases')];
    const dnsmasq = spawn('ip', ['netns', 'exec', servers, 'dnsmasq', ...words, ...options], { stdio: 'ignore' });
    const ended = once(dnsmasq, 'exit');
    const { address, resolver } = await addressOf('eth1', /^fd00:78::1[0-9a-f]{2}$/);
    expect(resolver).toBe('nameserver fd00:78::53\n');
    expect(readFileSync(join(folder, 'dnsmasq-leases'), 'utf8')).toContain(` ${address} `);
    dnsmasq.kill();
    await ended;
  });
});

it('the Linux kernel forms an address from the prefix of our router advertisements', async () => {
  await until(
    240,
    () => 'an address from the advertised prefix',
    async () => (await client('ip', '-6', 'addr', 'show', 'eth0')).includes('fd00:77::5054:ff:feaa:601/64'),
  );
});

it('the DHCPv6 service answers every message of perfdhcp', async () => {
  const text = await client('perfdhcp', '-6', '-r', '20', '-p', '3', '-W', '3000000', '-R', '60', '-l', 'eth0', 'all');
  expect([...text.matchAll(/^drops: (\d+)/gm)].map(([, drops]) => drops)).toEqual(['0', '0']);
  expect(Number(/^received packets: (\d+)/m.exec(text)?.[1])).toBeGreaterThan(20);
});

it('the DHCPv6 service keeps addresses for known machines despite malformed messages and a flood of unknown DUIDs', async () => {
  const before = log.length;
  const script = join(folder, 'flood.js');
  // Random bytes, messages that are valid up to their options, and solicits from new MAC addresses, each with another DUID.
  writeFileSync(
    script,
    `const { randomBytes, randomInt } = require('node:crypto');
     const socket = require('node:dgram').createSocket('udp6');
     const option = (code, value) => Buffer.concat([Buffer.from([0, code, value.length >> 8, value.length & 255]), value]);
     socket.bind(546, ${LINK_LOCAL} + '%eth0', () => {
       let left = 6000;
       const next = () => {
         if (left-- === 0) return socket.close();
         const noise = randomBytes(randomInt(600));
         const duid = Buffer.concat([Buffer.from('000300015254', 'hex'), randomBytes(4)]);
         const solicit = Buffer.concat([Buffer.from([1]), randomBytes(3), option(1, duid), option(14, Buffer.alloc(0)), option(3, randomBytes(12))]);
         // As a relay, so that the peer is another machine each time.
         const peer = Buffer.concat([Buffer.from('fe800000000000005054', 'hex'), Buffer.from('00fffe', 'hex'), randomBytes(3)]);
         const relayed = Buffer.concat([Buffer.from([12, 0]), Buffer.from('fd000077000000000000000000000009', 'hex'), peer, option(9, solicit)]);
         const messages = [noise, Buffer.concat([Buffer.from([randomInt(14)]), randomBytes(3), noise]), relayed];
         socket.send(messages[left % 3], 547, 'ff02::1:2%eth0', next);
       };
       next();
     });`,
  );
  expect(await client(process.execPath, script)).toBe('');
  expect(await dhclient()).toMatch(IN_RANGE);
  expect(server.exitCode).toBeNull();
  const lines = (): readonly string[] => log.slice(before);
  await until(
    240,
    () => `log lines about malformed messages and unknown machines: ${lines().join('\n')}`,
    () => ['malformed', 'too many unknown machines'].every((words) => lines().some((line) => line.includes(words))),
  );
  expect(lines().length).toBeLessThan(10);
  const refused = lines().find((line) => line.includes('too many unknown'))!;
  expect(JSON.parse(refused)).toMatchObject({ max: POOL / 2 });
});
