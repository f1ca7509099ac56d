/**
 * The DHCP service with clients that we did not write (udhcpc, dhclient, perfdhcp, QEMU's iPXE ROM), on one of two networks, with garbage
 * on the wire; and what it refuses to start with. Root.
 */
import { execFile, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { buildSync } from 'esbuild';
import type { ServerOptions } from './dhcp-server';
import type { DhcpRows } from '../../support/fakes/dhcp-store';
import { consoleEnd, openLab, until, type Lab, type LabMachine } from '../../../demo/lab/machines';
import { addNamespace, removeNamespace } from '../../../demo/lab/namespace';
import { needs } from '../support/needs';
import { root } from '../support/venv';

const run = promisify(execFile);
const OTHER = { bridge: 'br1', address: '10.78.0.1' } as const;
const PORT_MAC = '52:54:00:aa:00:01';
const program = join(root, '.cache/lab/dhcp-server.js');
let lab: Lab;
/** The clients' namespace. */
let clients: string;

interface Server {
  readonly process: ChildProcess;
  /** The lines that it logged. */
  readonly log: string[];
  stop(): Promise<void>;
}
const commandLine = (options: Partial<ServerOptions>, rows: DhcpRows): string =>
  JSON.stringify({
    'DEFAULT.my_ip': lab.address,
    'pxe.tftp_server': lab.address,
    'deploy.http_url': `http://${lab.address}:8080`,
    'boot.interface': lab.bridge,
    'boot.dhcp_range': '10.77.0.100-10.77.0.200',
    ...options,
    rows,
  });
async function serve(options: Partial<ServerOptions> = {}, rows: DhcpRows = { ports: [PORT_MAC], boots: [] }): Promise<Server> {
  const child = lab.start(process.execPath, program, commandLine(options, rows));
  const log: string[] = [];
  createInterface({ input: child.stderr! }).on('line', (line) => void log.push(line));
  const [ready] = (await Promise.race([once(child.stdout!, 'data'), once(child, 'exit')])) as [unknown];
  if (String(ready) !== 'ready\n') throw new Error(`the DHCP service did not start: ${log.join('\n')}`);
  return {
    process: child,
    log,
    stop: async () => {
      const ended = once(child, 'exit');
      child.kill();
      expect(await ended).toEqual([0, null]);
    },
  };
}
/** Runs a program in the clients' namespace. @returns its output, whatever its exit code */
const client = async (...words: readonly string[]): Promise<string> =>
  run('ip', ['netns', 'exec', clients, ...words], { timeout: 240_000 }).then(
    ({ stdout, stderr }) => stdout + stderr,
    (error: unknown) => {
      const { stdout, stderr } = error as { stdout: string; stderr: string };
      return stdout + stderr;
    },
  );
/** Gets a lease and releases it at once (`-R`). @returns the address; undefined: no lease */
const udhcpc = async (link: string): Promise<string | undefined> =>
  /lease of ([\d.]+) obtained/.exec(
    await client('busybox', 'udhcpc', '-i', link, '-f', '-n', '-q', '-R', '-t', '2', '-T', '1', '-s', '/bin/true'),
  )?.[1];
const IN_RANGE = /^10\.77\.0\.(1\d\d|200)$/;

beforeAll(async () => {
  needs({
    ip: 'iproute2',
    busybox: 'busybox-static',
    dhclient: 'isc-dhcp-client',
    perfdhcp: 'kea-admin',
    setpriv: 'util-linux',
    'qemu-system-x86_64': 'qemu-system-x86',
    'qemu-img': 'qemu-utils',
  });
  lab = await openLab('bloomery-dhcp');
  clients = await addNamespace('bloomery-dhcp-c');
  for (const command of [
    `-n ${lab.namespace} link add ${OTHER.bridge} type bridge`,
    `-n ${lab.namespace} link add empty0 type bridge`,
    `-n ${lab.namespace} link set ${OTHER.bridge} up`,
    `-n ${lab.namespace} addr add ${OTHER.address}/24 dev ${OTHER.bridge}`,
    `-n ${lab.namespace} link add near0 master ${lab.bridge} type veth peer name eth0 address ${PORT_MAC} netns ${clients}`,
    `-n ${lab.namespace} link add near1 master ${OTHER.bridge} type veth peer name eth1 address 52:54:00:aa:00:02 netns ${clients}`,
    ...['near0', 'near1'].map((name) => `-n ${lab.namespace} link set ${name} up`),
    ...['eth0', 'eth1'].map((name) => `-n ${clients} link set ${name} up`),
  ])
    await run('ip', command.split(' '));
  buildSync({
    entryPoints: [join(__dirname, 'dhcp-server.ts')],
    outfile: program,
    bundle: true,
    platform: 'node',
    packages: 'external',
    logLevel: 'error',
  });
});
afterAll(async () => {
  await removeNamespace(clients);
  await lab.close();
});

describe('the DHCP service', () => {
  let server: Server;
  beforeAll(async () => (server = await serve({ 'boot.dhcp_unknown_macs': 'discover', 'boot.dhcp_max_unknown': 101 })));
  afterAll(() => server.stop());

  it('gives udhcpc an address from the range, and the same address again after a release', async () => {
    const address = await udhcpc('eth0');
    expect(address).toMatch(IN_RANGE);
    expect(await udhcpc('eth0')).toBe(address);
  });

  it('gives dhclient an address, and confirms the lease by INIT-REBOOT when dhclient starts again', async () => {
    const words = [
      'dhclient',
      '-4',
      '-1',
      '-v',
      '-sf',
      '/bin/true',
      '-cf',
      '/dev/null',
      '-lf',
      join(lab.folder, 'leases'),
      '-pf',
      join(lab.folder, 'pid'),
    ];
    writeFileSync(join(lab.folder, 'leases'), '');
    const bound = /DHCPACK of ([\d.]+)/.exec(await client(...words, 'eth0'))?.[1];
    expect(bound).toMatch(IN_RANGE);
    // dhclient continues in the background, and writes its process number after its first process has ended.
    await until(
      60,
      () => 'no process number of dhclient',
      () => existsSync(join(lab.folder, 'pid')) && readFileSync(join(lab.folder, 'pid'), 'utf8') !== '',
    );
    // `-x` ends dhclient without a release.
    expect(await client(...words, '-x', 'eth0')).toContain('Killed old client');
    const again = await client(...words, 'eth0');
    expect(again).toContain(`DHCPREQUEST for ${bound!}`);
    expect(again).not.toContain('DHCPDISCOVER');
    expect(again).toContain(`DHCPACK of ${bound!}`);
    await client(...words, '-x', 'eth0');
  });

  it('answers every message of perfdhcp, which acts as a relay', async () => {
    await run('ip', ['-n', clients, 'addr', 'add', '10.77.0.2/24', 'dev', 'eth0']);
    const text = await client('perfdhcp', '-4', '-r', '20', '-p', '3', '-W', '3000000', '-R', '60', '-l', 'eth0', lab.address);
    await run('ip', ['-n', clients, 'addr', 'del', '10.77.0.2/24', 'dev', 'eth0']);
    expect([...text.matchAll(/^drops: (\d+)/gm)].map(([, drops]) => drops)).toEqual(['0', '0']);
    expect(Number(/^received packets: (\d+)/m.exec(text)?.[1])).toBeGreaterThan(20);
  });

  it("does not answer on another interface, neither broadcasts nor messages to that interface's address", async () => {
    expect(await udhcpc('eth1')).toBeUndefined();
    await run('ip', ['-n', clients, 'addr', 'add', '10.78.0.2/24', 'dev', 'eth1']);
    const text = await client('perfdhcp', '-4', '-r', '5', '-p', '2', '-l', 'eth1', OTHER.address);
    await run('ip', ['-n', clients, 'addr', 'del', '10.78.0.2/24', 'dev', 'eth1']);
    expect(Number(/^sent packets: (\d+)/m.exec(text)?.[1])).toBeGreaterThan(5);
    expect(/^received packets: (\d+)/m.exec(text)?.[1]).toBe('0');
  });

  it('keeps serving after 5,000 malformed packets, and logs only a few lines about them', async () => {
    const before = server.log.length;
    const script = join(lab.folder, 'garbage.js');
    // Random bytes, and packets that are valid up to their options.
    writeFileSync(
      script,
      `const { randomBytes, randomInt } = require('node:crypto');
       const socket = require('node:dgram').createSocket('udp4');
       const head = Buffer.alloc(240); head.set([1, 1, 6, 0]); head.set([0x63, 0x82, 0x53, 0x63], 236);
       socket.bind(68, () => {
         socket.setBroadcast(true);
         let left = 5000;
         const next = () => {
           if (left-- === 0) return socket.close();
           randomBytes(6).copy(head, 28);
           const noise = randomBytes(randomInt(600));
           socket.send(left % 2 ? noise : Buffer.concat([head, Buffer.from([53, 1, randomInt(10)]), noise]), 67, '255.255.255.255', next);
         };
         next();
       });`,
    );
    await run('ip', ['-n', clients, 'route', 'add', 'default', 'dev', 'eth0']);
    expect(await client(process.execPath, script)).toBe('');
    await run('ip', ['-n', clients, 'route', 'del', 'default', 'dev', 'eth0']);
    expect(await udhcpc('eth0')).toMatch(IN_RANGE);
    expect(server.process.exitCode).toBeNull();
    const lines = (): readonly string[] => server.log.slice(before);
    await until(
      60,
      () => `a log line about the malformed packets: ${lines().join('\n')}`,
      () => lines().some((line) => line.includes('malformed')),
    );
    expect(lines().length).toBeLessThan(8);
  });

  it('gives udhcpc an address in a flood of discoveries, and after one machine has declined every offer', async () => {
    const script = join(lab.folder, 'flood.js');
    // Each discovery of an invented machine stays without a request. One machine declines what it is offered, 300 times.
    writeFileSync(
      script,
      `const { randomBytes } = require('node:crypto');
       const socket = require('node:dgram').createSocket('udp4');
       const packet = (mac, type, options = []) => {
         const bytes = Buffer.alloc(300); bytes.set([1, 1, 6, 0]); randomBytes(4).copy(bytes, 4); bytes[10] = 0x80; mac.copy(bytes, 28);
         bytes.set([0x63, 0x82, 0x53, 0x63, 53, 1, type, ...options, 255], 236); return bytes;
       };
       const send = (bytes) => new Promise((sent) => socket.send(bytes, 67, '255.255.255.255', sent));
       const declining = Buffer.from('525400aa0077', 'hex');
       const offers = [];
       socket.on('message', (bytes) => bytes.subarray(28, 34).equals(declining) && bytes[242] === 2 && offers.push(bytes));
       socket.bind(68, async () => {
         socket.setBroadcast(true);
         for (let n = 0; n < 300; n++) {
           await send(packet(declining, 1));
           for (let wait = 0; offers.length === 0 && wait < 200; wait++) await new Promise((turn) => setTimeout(turn, 5));
           const offer = offers.shift();
           if (!offer) { console.log('no offer'); break; }
           const server = offer.subarray(offer.indexOf(Buffer.from([54, 4]), 240) + 2).subarray(0, 4);
           await send(packet(declining, 4, [50, 4, ...offer.subarray(16, 20), 54, 4, ...server]));
         }
         require('node:fs').writeFileSync(${JSON.stringify(join(lab.folder, 'declined'))}, '');
         for (let n = 0; n < 8000; n++) { await send(packet(randomBytes(6), 1)); if (n % 10 === 0) await new Promise((turn) => setTimeout(turn, 1)); }
         socket.close();
       });`,
    );
    await run('ip', ['-n', clients, 'route', 'add', 'default', 'dev', 'eth0']);
    const flood = client(process.execPath, script);
    await until(
      240,
      () => 'the machine has not declined its offers',
      () => existsSync(join(lab.folder, 'declined')),
    );
    const addresses: (string | undefined)[] = [];
    for (let round = 0; round < 3; round++) addresses.push(await udhcpc('eth0'));
    expect(await flood).toBe('');
    addresses.push(await udhcpc('eth0'));
    await run('ip', ['-n', clients, 'route', 'del', 'default', 'dev', 'eth0']);
    expect(addresses.filter((address) => !IN_RANGE.test(address ?? ''))).toEqual([]);
  });

  it("sends a router advertisement without a default route when a client's interface comes up", async () => {
    const received = async (): Promise<number> =>
      Number(/Icmp6InRouterAdvertisements\s+(\d+)/.exec(await client('cat', '/proc/net/snmp6'))?.[1]);
    const before = await received();
    await run('ip', ['-n', clients, 'link', 'set', 'eth0', 'down']);
    await run('ip', ['-n', clients, 'link', 'set', 'eth0', 'up']);
    await until(
      240,
      () => 'the kernel of the client saw no router advertisement',
      async () => (await received()) > before,
    );
    expect(await client('ip', '-6', 'route', 'show', 'default')).toBe('');
  });
});

it('by default, the DHCP service gives no address to a MAC address that no port has', async () => {
  const server = await serve({}, { ports: [], boots: [] });
  expect(await udhcpc('eth0')).toBeUndefined();
  await server.stop();
});

describe('the DHCP service refuses to start', () => {
  const refusal = async (options: Partial<ServerOptions>, ...before: readonly string[]): Promise<string> =>
    run('ip', ['netns', 'exec', lab.namespace, ...before, process.execPath, program, commandLine(options, { ports: [], boots: [] })], {
      timeout: 240_000,
    }).then(
      () => 'it started',
      (error: unknown) => {
        const { code, stderr } = error as { code: number; stderr: string };
        return `${code}: ${stderr}`;
      },
    );
  it.each<[string, Partial<ServerOptions>, string]>([
    ['an interface that does not exist', { 'boot.interface': 'eth7' }, '1: [boot]interface = eth7: there is no such interface\n'],
    ['an interface without an address', { 'boot.interface': 'empty0' }, '1: [boot]interface = empty0: it has no IPv4 address\n'],
    [
      'a range outside the subnets of its interface',
      { 'boot.dhcp_range': '10.1.0.1-10.1.0.9' },
      '1: [boot]dhcp_range = 10.1.0.1-10.1.0.9 is in no subnet of interface br0\n',
    ],
  ])('with %s', async (_, options, message) => {
    expect(await refusal(options)).toBe(message);
  });
  it('without the capabilities CAP_NET_RAW and CAP_NET_BIND_SERVICE', async () => {
    expect(await refusal({}, 'setpriv', '--bounding-set=-net_raw,-net_bind_service')).toMatch(
      /^1: cannot .* not permitted: run as root, or with the capabilities/,
    );
  });
  it('while another server uses port 67 of the same interface, but not of another interface', async () => {
    const other = await serve({ 'boot.interface': OTHER.bridge, 'boot.dhcp_range': '10.78.0.100-10.78.0.200' });
    const first = await serve();
    expect(await refusal({})).toBe('1: cannot listen on port 67 of interface br0: the port is in use\n');
    await first.stop();
    await other.stop();
  });
});

describe("QEMU's iPXE", () => {
  /** Seconds of processor time from power on to the script: iPXE waits busily, so other work on the host counts little. */
  async function boot(machine: LabMachine, advertisements: boolean): Promise<number> {
    const server = await serve({ 'boot.router_advertisements': advertisements }, { ports: machine.macs, boots: machine.macs });
    writeFileSync(machine.consoleFile, '');
    await machine.act('on');
    await until(
      240,
      () => `the script on the console\n${consoleEnd(machine)}`,
      () => readFileSync(machine.consoleFile, 'latin1').includes('script reached'),
    );
    const seconds = machine.cpuSeconds();
    await machine.act('off');
    await server.stop();
    return seconds;
  }
  it('loads its script without waiting for a router when our server sends router advertisements', async () => {
    const machine = await lab.machine({ name: 'rom', firmware: 'bios', memoryMiB: 256, cpus: 1, diskGiB: 1 });
    machine.setBoot({ device: 'pxe', persistent: true, mode: null });
    mkdirSync(join(lab.folder, 'www/ipxe'), { recursive: true });
    writeFileSync(join(lab.folder, 'www/ipxe', machine.mac.replaceAll(':', '-')), '#!ipxe\necho script reached\nsleep 999\n');
    lab.start('busybox', 'httpd', '-f', '-p', `${lab.address}:8080`, '-h', join(lab.folder, 'www'));
    const [quick, slow] = [await boot(machine, true), await boot(machine, false)];
    // The wait is 5 s by the clock; a host that is busy gives the machine only a part of them.
    expect(slow - quick).toBeGreaterThan(2);
  }, 420_000);
});
