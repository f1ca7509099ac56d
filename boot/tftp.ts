/** The TFTP service (RFC 1350; options of RFC 2347, 2348, 2349, 7440): read requests only, one socket per transfer. */
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import { networkInterfaces } from 'node:os';
import type { Options } from '../config/options';
import type { Clock } from '../model/clock';
import { createBoundedLog, type BoundedLog, type Log } from '../model/log';
import { silentMetrics, type Metrics } from '../model/metrics';
import { reasonOf } from '../model/errors';
import { canonicalAddress, networksOf } from '../model/idents';
import { withHost } from '../wire/addresses';
import { listenError } from '../wire/sockets/listen-errors';
import { decodeTftp, encodeTftp, TFTP_ERRORS, type TftpOptions, type TftpPacket } from '../wire/tftp';
import type { BootFiles } from './boot-files';
import { NO_TEMPLATES, type BootTemplates } from './boot-templates';
import { openServedFile, shareFiles, type ServedFiles } from './files';
import { GRUB_START, grubConfig, pxelinuxConfig, pxeName } from './pxe';
import { sendFile, type NegotiatedOptions } from './tftp-transfer';
import { cachedSource, fileSource, openBlocks, textSource, type BlockSource } from './tftp-blocks';
import { createTransfers, transferLimits, type Place } from './tftp-transfers';

type TftpServiceOptions = Pick<Options, 'boot.tftp_port' | 'pxe.tftp_root' | 'pxe.loader_file_paths' | 'files.own'> &
  Partial<Pick<Options, 'DEFAULT.my_ip' | 'DEFAULT.my_ipv6'>>;
interface TftpService {
  readonly port: number;
  /** Aborts running transfers. */
  stop(): Promise<void>;
}
interface TftpSetup {
  readonly options: TftpServiceOptions;
  /** The addresses to listen on. */
  readonly hosts: readonly string[];
  readonly log: Log;
  readonly clock: Clock;
  /** Absent: no metrics. */
  readonly metrics?: Metrics;
  /** Configuration files and kernels of boot records; absent: only files below the root. */
  readonly boots?: BootFiles;
  /** Absent: the server's own configuration files. */
  readonly templates?: BootTemplates;
  /** Concurrent transfers of clients that acknowledge what they get. Further requests get no answer, and machines retry. */
  readonly maxTransfers?: number;
}
/** What all addresses share. */
interface Shared extends Pick<Required<TftpSetup>, 'options' | 'clock' | 'metrics'> {
  readonly boots: BootFiles | undefined;
  readonly templates: BootTemplates;
  readonly log: BoundedLog;
  readonly transfers: ReturnType<typeof createTransfers>;
}

/** Larger blocks would be fragmented on Ethernet (1500 octets minus 20, 8 and 4), and boot ROMs lose fragments. */
const MAX_BLOCK = 1468;
const MAX_WINDOW = 64;
const DEFAULT_BLOCK = 512;
/** Seconds. A client that waits for longer would keep its transfer for as long, dead or alive. */
const MAX_TIMEOUT = 10;
/** Bytes of the kernel's buffer for requests: a burst of about a thousand. In a flood, what waits there is received late. */
const RECEIVE_BUFFER = 1 << 20;

/** Rejects if a port cannot be opened. */
export async function startTftp(setup: TftpSetup): Promise<TftpService> {
  const { hosts, options, clock, boots, templates = NO_TEMPLATES, metrics = silentMetrics, maxTransfers = 512 } = setup;
  const log = createBoundedLog(setup.log, clock);
  const own = networksOf(Object.values(networkInterfaces()).flatMap((all = []) => all.flatMap(({ cidr }) => cidr ?? [])));
  const transfers = createTransfers({
    limits: transferLimits(maxTransfers),
    clock,
    isNear: (address) => own.contains(address),
    dropped: (client) => {
      metrics.count('bloomery_tftp_transfers_total', { outcome: 'dropped' });
      log.warn('TFTP: too many transfers, some are dropped', { client });
    },
  });
  const listeners: TftpService[] = [];
  let port = options['boot.tftp_port'];
  const stop = async (): Promise<void> => {
    await Promise.all(listeners.map((listener) => listener.stop()));
    await transfers.stop();
    log.stop();
  };
  try {
    for (const host of hosts) {
      const listener = await listenOn(host, port, { options, clock, metrics, boots, templates, log, transfers });
      listeners.push(listener);
      // If the configured port is 0, the first address decides.
      ({ port } = listener);
      log.info('listening', { address: `${host} port ${port}`, for: 'TFTP' });
    }
  } catch (error) {
    await stop();
    throw error;
  }
  return { port, stop };
}

async function listenOn(
  host: string,
  port: number,
  { options, log, clock, metrics, boots, templates, transfers }: Shared,
): Promise<TftpService> {
  const served: ServedFiles = { named: options['pxe.loader_file_paths'], root: options['pxe.tftp_root'], own: options['files.own'] };
  const openServed = shareFiles(
    (name) => openServedFile(served, name),
    () => clock.now(),
  );
  const family = host.includes(':') ? 'udp6' : 'udp4';

  const { 'DEFAULT.my_ip': myIp, 'DEFAULT.my_ipv6': myIpv6 } = options;
  /** A dual-stack socket shows IPv4 addresses as IPv6 addresses that contain them. */
  const reachable = (config: string, peer: string): string =>
    myIp && myIpv6 && canonicalAddress(peer)?.includes(':') ? withHost(config, myIp, myIpv6) : config;

  const count = (outcome: string): void => metrics.count('bloomery_tftp_transfers_total', { outcome });

  const listener = createSocket({ type: family, reuseAddr: false, recvBufferSize: RECEIVE_BUFFER });
  await bind(listener, host, port).catch((error: unknown) => {
    listener.close();
    throw listenError(error as Error, `${host} port ${port}`, 'TFTP, [boot]tftp_host and tftp_port; [boot]tftp = false switches it off');
  });
  listener.on('error', (error) => log.warn('TFTP: socket error', { error: error.message }));
  listener.on('message', (bytes, peer) => {
    const packet = decodeTftp(bytes);
    // A late packet of an ended transfer, or noise. An error in return could cause a loop.
    if (packet?.kind !== 'rrq' && packet?.kind !== 'wrq') return;
    const refuse = (code: number, message: string): void => {
      count('refused');
      listener.send(encodeTftp({ kind: 'error', code, message }), peer.port, peer.address, () => {});
    };
    if (packet.kind === 'wrq') {
      refuse(TFTP_ERRORS.accessViolation, 'This server is read only');
      return;
    }
    if (packet.mode !== 'octet' && packet.mode !== 'netascii') {
      refuse(TFTP_ERRORS.illegalOperation, 'Unknown transfer mode');
      return;
    }

    const from = { key: `${host} ${peer.address} ${peer.port}`, address: peer.address };
    transfers.request(from, bytes, (place) =>
      serveFile({ openServed, boots, templates, reachable, host, family, log, clock }, packet, peer, {
        refuse,
        count,
        place,
        requestOctets: bytes.length,
      }).catch((error: unknown) => {
        count('failed');
        log.warn('TFTP: transfer failed', { client: peer.address, file: shown(packet.file), error: reasonOf(error) });
      }),
    );
  });

  return {
    port: listener.address().port,
    stop: () => new Promise<void>((closed) => void listener.close(closed)),
  };
}

interface ServeContext extends Pick<Shared, 'log' | 'clock'> {
  readonly openServed: ReturnType<typeof shareFiles>;
  readonly boots: BootFiles | undefined;
  readonly templates: BootTemplates;
  /** The configuration with URLs that the peer can reach. */
  readonly reachable: (config: string, peer: string) => string;
  readonly host: string;
  readonly family: 'udp4' | 'udp6';
}
interface Received {
  readonly requestOctets: number;
  readonly place: Place;
  readonly refuse: (code: number, message: string) => void;
  readonly count: (outcome: string) => void;
}
/** Opens the requested file, negotiates the options and sends it. */
async function serveFile(
  { openServed, boots, templates, reachable, host, family, log, clock }: ServeContext,
  request: Extract<TftpPacket, { kind: 'rrq' | 'wrq' }>,
  peer: RemoteInfo,
  { refuse, count, place, requestOctets }: Received,
): Promise<void> {
  const opened = await openSource({ openServed, boots, templates }, request.file, (config) => reachable(config, peer.address));
  const where = { client: peer.address, file: shown(request.file) };
  if (!opened) {
    log.warn('TFTP: no such file', where);
    refuse(TFTP_ERRORS.fileNotFound, 'File not found');
    return;
  }
  try {
    const negotiated = negotiate(request.options, opened.source, request.mode);
    const blocks = openBlocks(opened.source, request.mode, negotiated.blockSize, negotiated.window);
    if (!blocks) {
      refuse(TFTP_ERRORS.notDefined, 'Too large for netascii mode, use octet');
      return;
    }
    const socket = createSocket({ type: family });
    try {
      // On a connected socket the kernel drops packets of other ports and hosts (RFC 1350 §4), and reports a closed client port.
      await bind(socket, host, 0);
      await connect(socket, peer);
      const started = clock.now();
      const result = await sendFile({ socket, blocks, negotiated, clock, requestOctets, place });
      const ms = clock.now() - started;
      // What gave way to another transfer is counted already.
      if (!place.signal.aborted) count(result.end === 'done' ? 'sent' : result.end === 'silent' ? 'silent' : 'ended by client');
      const figures = {
        ...where,
        bytes: blocks.size,
        ms,
        blockSize: negotiated.blockSize,
        window: negotiated.window,
        resent: result.resent,
      };
      if (result.end === 'done') log.info('TFTP: sent', figures);
      else if (result.end === 'silent') log.warn('TFTP: the client stopped answering', figures);
      else log.debug('TFTP: ended early', { ...figures, reason: shown(result.end) });
    } finally {
      socket.close();
    }
  } finally {
    await opened.close();
  }
}

interface Opened {
  readonly source: BlockSource;
  close(): Promise<void>;
}
const text = (content: string): Opened => ({ source: textSource(Buffer.from(content)), close: async () => {} });

/**
 * Opens a file of a boot record, else a file below the root. Undefined if there is none.
 * @param reachable replaces URLs in configuration files
 */
async function openSource(
  { openServed, boots, templates }: Pick<ServeContext, 'openServed' | 'boots' | 'templates'>,
  requested: string,
  reachable: (text: string) => string,
): Promise<Opened | undefined> {
  const name = boots && pxeName(requested);
  if (name?.kind === 'pxelinux' || name?.kind === 'grub') {
    const boot = await boots!.recordFor(name.mac, 'TFTP');
    if (boot) return text(reachable((await templates.pxe(name.kind, boot)) ?? (name.kind === 'grub' ? grubConfig : pxelinuxConfig)(boot)));
  }
  if (name?.kind === 'file') {
    const opened = await boots!.open(name.token, name.name, 'TFTP');
    if (opened?.kind === 'remote') return { source: cachedSource(opened.file), close: () => opened.file.release() };
    if (opened) return { source: fileSource(opened.file), close: () => opened.file.handle.close() };
  }
  const shared = await openServed(requested);
  if (shared) return { source: fileSource(shared.file), close: () => shared.close() };
  return name?.kind === 'grub start' ? text(templates.grubStart() ?? GRUB_START) : undefined;
}

/** The options that are granted (RFC 2347: others are omitted from the OACK). @internal */
export function negotiate(requested: TftpOptions, file: Pick<BlockSource, 'size'>, mode: string): NegotiatedOptions {
  const granted = new Map<string, string>();
  const number = (name: string, least: number, most: number): number | undefined => {
    const text = requested.get(name);
    const value = text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : NaN;
    return value >= least && value <= most ? value : undefined;
  };
  const grant = (name: string, value: number | undefined): number | undefined => {
    if (value !== undefined) granted.set(name, String(value));
    return value;
  };
  const least = (value: number | undefined, most: number): number | undefined => (value === undefined ? undefined : Math.min(value, most));
  const blockSize = grant('blksize', least(number('blksize', 8, 65464), MAX_BLOCK)) ?? DEFAULT_BLOCK;
  const window = grant('windowsize', least(number('windowsize', 1, 65535), MAX_WINDOW)) ?? 1;
  const timeout = grant('timeout', number('timeout', 1, MAX_TIMEOUT));
  // The size of a text is known only after the conversion of its line ends (RFC 1350 §1).
  if (mode === 'octet' && requested.has('tsize')) grant('tsize', file.size);
  return { blockSize, window, granted, timeoutSeconds: timeout };
}

/** Text from the network, shortened and printable for the log. */
const shown = (text: string): string =>
  text
    .slice(0, 200)
    .replace(/[^\x20-\x7e]/g, '?')
    .replace(/(boot\/)[0-9a-f-]{32,36}/i, '$1***');

const bind = (socket: Socket, address: string, port: number): Promise<void> =>
  new Promise((done, fail) => {
    socket.once('error', fail);
    socket.bind({ address, port, exclusive: true }, () => {
      socket.off('error', fail);
      done();
    });
  });
const connect = (socket: Socket, peer: RemoteInfo): Promise<void> =>
  new Promise((done, fail) => {
    socket.connect(peer.port, peer.address, (error?: Error | null) => (error ? fail(error) : done()));
  });
