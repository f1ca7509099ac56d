/**
 * Machines that boot at once, for the lab: `node many-clients.js '<JSON>'` with {server, macs}. Each is PXE firmware, then iPXE: DHCP, the
 * loader by TFTP, DHCP again, then script, kernel and ramdisk by HTTP, each from the address that it was given. The timeouts are those of
 * PXE 2.1 §3.4 and of iPXE. Prints a line of JSON: what each phase took, how many requests were repeated, and who gave up.
 */
import { createHash, randomBytes } from 'node:crypto';
import { createSocket, type Socket } from 'node:dgram';
import { get } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { BOOT_REQUEST, decode, encode, MESSAGE, type DhcpPacket, type OptionValues } from '../../../wire/dhcp/dhcp';
import { decodeTftp, encodeTftp } from '../../../wire/tftp';

export interface ManyClients {
  readonly server: string;
  readonly macs: readonly string[];
}
export interface ManyResult {
  readonly booted: number;
  readonly gaveUp: readonly string[];
  readonly repeated: Readonly<Record<'DHCP' | 'TFTP', number>>;
  /** Milliseconds of the slowest machine, by phase. */
  readonly slowest: Readonly<Record<string, number>>;
  readonly bytes: number;
  /** SHA-256 of the ramdisks that came, each once. */
  readonly ramdisks: readonly string[];
}
/** Seconds. */
const WAITS = { pxe: [4, 8, 16, 32], ipxe: [1, 2, 4, 8, 10, 10], tftp: [1, 2, 4, 8, 8] } as const;

const { server, macs } = JSON.parse(process.argv[2]!) as ManyClients;
const repeated = { DHCP: 0, TFTP: 0 };
const slowest: Record<string, number> = {};
const ramdisks = new Set<string>();
let bytes = 0;
const waiting = new Map<number, (packet: DhcpPacket) => void>();
const dhcp = createSocket('udp4');
dhcp.on('message', (message) => {
  const packet = decode(message);
  if (!('malformed' in packet)) waiting.get(packet.xid)?.(packet);
});

/** Sends until an answer of this type comes. */
async function exchange(mac: string, options: OptionValues, answer: number, waits: readonly number[]): Promise<DhcpPacket> {
  const xid = randomBytes(4).readUInt32BE();
  const fixed = { op: BOOT_REQUEST, htype: 1, hops: 0, xid, secs: 0, flags: 0x8000, chaddr: mac, sname: '', file: '', unknown: new Map() };
  const none = '0.0.0.0';
  const packet = encode({ ...fixed, ciaddr: none, yiaddr: none, siaddr: none, giaddr: none, options });
  const came = new Promise<DhcpPacket>((done) =>
    waiting.set(xid, (reply) => {
      if (reply.options.messageType === answer) done(reply);
    }),
  );
  try {
    for (const [index, seconds] of waits.entries()) {
      if (index > 0) repeated.DHCP += 1;
      dhcp.send(packet, 67, '255.255.255.255');
      const found = await Promise.race([came, delay(seconds * 1000)]);
      if (found) return found;
    }
  } finally {
    waiting.delete(xid);
  }
  throw new Error(`no DHCP answer ${answer}`);
}
async function lease(mac: string, options: OptionValues, waits: readonly number[]): Promise<DhcpPacket> {
  const offer = await exchange(mac, { ...options, messageType: MESSAGE.discover }, MESSAGE.offer, waits);
  const { serverIdentifier } = offer.options;
  const wanted = { ...options, messageType: MESSAGE.request, serverIdentifier, requestedAddress: offer.yiaddr };
  return exchange(mac, wanted, MESSAGE.ack, waits);
}

const bound = (address: string): Promise<Socket> =>
  new Promise((done, fail) => {
    const socket = createSocket('udp4');
    socket.once('error', fail).bind(0, address, () => done(socket));
  });
/** Reads a file block by block. A client that hears nothing repeats its last packet. */
async function tftp(address: string, from: string, file: string): Promise<number> {
  const socket = await bound(address);
  try {
    return await new Promise<number>((done, fail) => {
      let [sent, port, block, size, attempt] = [
        encodeTftp({ kind: 'rrq', file, mode: 'octet', options: new Map([['blksize', '1432']]) }),
        69,
        1,
        0,
        0,
      ];
      let timer: NodeJS.Timeout | undefined;
      const send = (): void => {
        clearTimeout(timer);
        if (attempt >= WAITS.tftp.length) {
          fail(new Error(`no TFTP answer after block ${block - 1}`));
          return;
        }
        timer = setTimeout(() => {
          repeated.TFTP += 1;
          send();
        }, WAITS.tftp[attempt++]! * 1000);
        socket.send(sent, port, from);
      };
      socket.on('message', (message, { port: their }) => {
        const packet = decodeTftp(message);
        if (packet?.kind === 'error') fail(new Error(`TFTP: ${packet.message}`));
        const isNext = packet?.kind === 'data' && packet.block === (block & 0xffff);
        if (!isNext && !(packet?.kind === 'oack' && block === 1)) return;
        port = their;
        attempt = 0;
        sent = encodeTftp({ kind: 'ack', block: packet.kind === 'data' ? packet.block : 0 });
        if (packet.kind === 'data') {
          size += packet.data.length;
          block += 1;
        }
        if (packet.kind === 'data' && packet.data.length < 1432) {
          clearTimeout(timer);
          socket.send(sent, port, from, () => done(size));
        } else send();
      });
      send();
    });
  } finally {
    socket.close();
  }
}
const http = (localAddress: string, url: string): Promise<Buffer> =>
  new Promise((done, fail) => {
    get(url, { localAddress, agent: false }, (response) => {
      const parts: Buffer[] = [];
      response.on('data', (part: Buffer) => void parts.push(part)).on('error', fail);
      response.on('end', () =>
        response.statusCode === 200 ? done(Buffer.concat(parts)) : fail(new Error(`${url}: ${response.statusCode}`)),
      );
    }).on('error', fail);
  });

async function boot(mac: string): Promise<void> {
  const phase = async <T>(name: string, work: Promise<T>): Promise<T> => {
    const started = performance.now();
    const result = await work;
    slowest[name] = Math.max(slowest[name] ?? 0, Math.round(performance.now() - started));
    return result;
  };
  const vendorClass = 'PXEClient:Arch:00000:UNDI:002001';
  const pxe = await phase('DHCP of PXE', lease(mac, { vendorClass, clientArchitectures: [0] }, WAITS.pxe));
  const loader = await phase('TFTP', tftp(pxe.yiaddr, pxe.siaddr, pxe.file));
  bytes += loader;
  const second = { vendorClass, clientArchitectures: [0], userClass: Buffer.from('iPXE'), ipxe: new Map([[19, Buffer.from([1])]]) };
  const ipxe = await phase('DHCP of iPXE', lease(mac, second, WAITS.ipxe));
  if (ipxe.yiaddr !== pxe.yiaddr) throw new Error(`${pxe.yiaddr}, then ${ipxe.yiaddr}`);
  const script = (await phase('script', http(ipxe.yiaddr, ipxe.file))).toString();
  for (const name of ['kernel', 'ramdisk']) {
    const url = new RegExp(`^(?:kernel|initrd) .*?(http://\\S+/${name})\\b`, 'm').exec(script)?.[1];
    const file = await phase(name, http(ipxe.yiaddr, url!));
    bytes += file.length;
    if (name === 'ramdisk') ramdisks.add(createHash('sha256').update(file).digest('hex'));
  }
}

dhcp.bind(68, () => {
  dhcp.setBroadcast(true);
  const gaveUp: string[] = [];
  const all = macs.map((mac) => boot(mac).catch((error: unknown) => void gaveUp.push(`${mac}: ${(error as Error).message}`)));
  void Promise.all(all).then(() => {
    const result: ManyResult = { booted: macs.length - gaveUp.length, gaveUp, repeated, slowest, bytes, ramdisks: [...ramdisks] };
    process.stdout.write(JSON.stringify({ ...result, server }));
    dhcp.close();
  });
});
