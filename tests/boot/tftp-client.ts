/** A TFTP client whose acknowledgements, losses and repetitions the test chooses. */
import { createSocket } from 'node:dgram';
import { decodeTftp, encodeTftp, type TftpPacket } from '../../wire/tftp';

export interface TransferRequest {
  readonly port: number;
  readonly file: string;
  readonly mode?: string;
  readonly kind?: 'rrq' | 'wrq';
  readonly options?: Readonly<Record<string, string>>;
  /** Called with each packet that comes; `true`: act as if it had been lost. */
  readonly lose?: (packet: TftpPacket, index: number) => boolean;
  /** The packets to send instead of a client's usual answer. */
  readonly answer?: (packet: TftpPacket) => readonly TftpPacket[];
  readonly timeoutMs?: number;
}
export interface Got {
  readonly data: Buffer;
  /** The options that the OACK granted. */
  readonly granted: Readonly<Record<string, string>>;
  /** DATA packets that came, those that were "lost" too. */
  readonly packets: number;
  readonly error?: { readonly code: number; readonly message: string };
}

export async function getFile(asked: TransferRequest): Promise<Got> {
  const socket = createSocket('udp4');
  await new Promise<void>((done) => socket.bind(0, '127.0.0.1', done));
  const parts: Buffer[] = [];
  let granted: Record<string, string> = {};
  let expected = 1;
  let inWindow = 0;
  let packets = 0;
  let index = 0;
  try {
    return await new Promise<Got>((done, fail) => {
      const timer = setTimeout(() => fail(new Error(`nothing more came; block ${expected} is missing`)), asked.timeoutMs ?? 20_000);
      const finish = (error?: Got['error']): void => {
        clearTimeout(timer);
        done({ data: Buffer.concat(parts), granted, packets, ...(error ? { error } : {}) });
      };
      socket.on('message', (bytes, from) => {
        const packet = decodeTftp(bytes);
        if (!packet) {
          fail(new Error('a malformed packet came'));
          return;
        }
        const reply = (block: number): void => {
          for (const answer of asked.answer?.(packet) ?? [{ kind: 'ack', block } as const])
            socket.send(encodeTftp(answer), from.port, from.address);
        };
        if (packet.kind === 'data') packets++;
        if (asked.lose?.(packet, index++)) return;
        if (packet.kind === 'error') {
          finish(packet);
          return;
        }
        if (packet.kind === 'oack') {
          granted = Object.fromEntries(packet.options);
          if (expected === 1) reply(0);
        } else if (packet.kind === 'data') {
          const blockSize = Number(granted.blksize ?? 512);
          if (packet.block !== expected % 65536) {
            reply((expected - 1) % 65536);
            return;
          }
          // A copy: the packet's data may be a view of a larger buffer.
          parts.push(Buffer.from(packet.data));
          expected++;
          timer.refresh();
          const last = packet.data.length < blockSize;
          if (++inWindow >= Number(granted.windowsize ?? 1) || last) {
            inWindow = 0;
            reply(packet.block);
          }
          if (last) finish();
        }
      });
      const { kind = 'rrq', file, mode = 'octet', options = {} } = asked;
      socket.send(encodeTftp({ kind, file, mode, options: new Map(Object.entries(options)) }), asked.port, '127.0.0.1');
    });
  } finally {
    await new Promise<void>((closed) => socket.close(closed));
  }
}
