/** An NVMe subsystem over TCP (NVMe base specification 2.0, TCP transport 1.0) with a controller, a namespace, Sanitize and Format NVM. */
import type { Socket } from 'node:net';
import { startLocalServer, type LocalServer } from './local-server';
import type { Work } from './work';

export interface NvmeModel {
  readonly data: Buffer;
  readonly serial: string;
  readonly work: Work;
  /** Identify Controller: bit 0 crypto erase, bit 1 block erase. */
  readonly sanicap: number;
  /** Bit 2: cryptographic erase by Format NVM. */
  readonly fna: number;
}
const SECTOR = 512;
/** Status codes, generic. */
const [INVALID_OPCODE, INVALID_FIELD, SANITIZE_FAILED, SANITIZING, OUT_OF_RANGE] = [0x01, 0x02, 0x1c, 0x1d, 0x80];
interface Completion {
  readonly status?: number;
  readonly result?: bigint;
  readonly data?: Buffer;
}
type Command = (entry: Buffer, sent: Buffer) => Completion | undefined;
const low = (entry: Buffer, word: number): number => entry.readUInt32LE(4 * word);

/** Bytes of a structure: offset → a number with its length, or text. */
type Field = readonly [offset: number, bytes: number, value: number];
function structure(length: number, fields: readonly Field[], texts: readonly (readonly [number, number, string])[] = []): Buffer {
  const bytes = Buffer.alloc(length);
  for (const [offset, size, value] of fields) bytes.writeUIntLE(value, offset, size);
  for (const [offset, size, text] of texts) bytes.write(text.padEnd(size), offset, 'latin1');
  return bytes;
}
const controllerOf = ({ serial, sanicap, fna }: NvmeModel, name: string): Buffer => {
  const bytes = structure(
    4096,
    [
      [77, 1, 5], // MDTS
      [78, 2, 1], // CNTLID
      [80, 4, 0x01_04_00], // VER
      [111, 1, 1], // CNTRLTYPE
      [256, 2, 2], // OACS: Format NVM
      [320, 2, 10], // KAS
      [328, 4, sanicap],
      [512, 2, 0x44_66], // SQES, CQES
      [514, 2, 128], // MAXCMD
      [516, 4, 1], // NN
      [524, 1, fna],
      [536, 4, 1 | (1 << 20)], // SGLS
      [1792, 4, 4], // IOCCSZ: no data within commands
      [1796, 4, 1], // IORCSZ
      [1803, 1, 1], // MSDBD
    ],
    [
      [4, 20, serial],
      [24, 40, `Model ${serial}`],
      [64, 8, '1'],
    ],
  );
  bytes.write(name, 768);
  return bytes;
};
function namespaceOf({ data }: NvmeModel): Buffer {
  const sectors = data.length / SECTOR;
  return structure(4096, [
    [0, 6, sectors],
    [8, 6, sectors],
    [16, 6, sectors],
    [130, 1, 9], // LBADS
  ]);
}
/** SANACT → what it does. */
const SANITIZES: Readonly<Record<number, readonly [name: string, bit: number, fill: number]>> = {
  2: ['sanitize block', 1, 0],
  4: ['sanitize crypto', 0, 0xa5],
};
function sanitizeLog({ work }: NvmeModel): Buffer {
  const state = { idle: 0, done: 1, working: 2, failed: 3 }[work.state()];
  return structure(512, [
    [0, 2, work.progress()],
    [2, 2, state],
  ]);
}

/** Opcode → what it does; undefined: it has no completion now. */
function commandsOf(
  model: NvmeModel,
  name: string,
): { readonly admin: Readonly<Record<number, Command>>; readonly io: Readonly<Record<number, Command>> } {
  const { data, serial, work, sanicap, fna } = model;
  const identify: Command = (entry) => {
    const page: Readonly<Record<number, () => Buffer>> = {
      0: () => namespaceOf(model),
      1: () => controllerOf(model, name),
      2: () => structure(4096, [[0, 4, low(entry, 1) < 1 ? 1 : 0]]),
      3: () => structure(4096, [[0, 4, 0x08_01]], [[4, 8, serial]]), // EUI-64
    };
    const chosen = page[low(entry, 10) & 0xff];
    return chosen ? { data: chosen() } : { status: INVALID_FIELD };
  };
  const log: Command = (entry) => {
    const length = 4 * (((low(entry, 10) >>> 16) | ((low(entry, 11) & 0xffff) << 16)) + 1);
    const page = (low(entry, 10) & 0xff) === 0x81 ? sanitizeLog(model) : Buffer.alloc(512);
    return { data: Buffer.concat([page, Buffer.alloc(Math.max(0, length - page.length))]).subarray(0, length) };
  };
  const sanitize: Command = (entry) => {
    const action = low(entry, 10) & 7;
    if (work.state() === 'working') return { status: SANITIZING };
    if (action === 1) {
      work.leave();
      return {};
    }
    const [what, bit, fill] = SANITIZES[action] ?? [];
    if (what === undefined || ((sanicap >> bit!) & 1) === 0) return { status: INVALID_FIELD };
    void work.begin(what, () => data.fill(fill!));
    return {};
  };
  const format: Command = (entry) => {
    const setting = (low(entry, 10) >> 9) & 7;
    if (work.state() === 'working') return { status: SANITIZING };
    if (setting === 2 && (fna & 4) === 0) return { status: INVALID_FIELD };
    if (setting > 0) void work.begin(setting === 2 ? 'format crypto' : 'format user data', () => data.fill(setting === 2 ? 0xa5 : 0));
    return {};
  };
  const move: Command = (entry, sent) => {
    if (work.state() === 'working') return { status: SANITIZING };
    if (work.state() === 'failed') return { status: SANITIZE_FAILED };
    const from = Number(entry.readBigUInt64LE(40)) * SECTOR;
    const end = from + ((low(entry, 12) & 0xffff) + 1) * SECTOR;
    if (end > data.length) return { status: OUT_OF_RANGE };
    if (entry[0] === 2) return { data: data.subarray(from, end) };
    sent.copy(data, from, 0, end - from);
    return {};
  };
  return {
    admin: {
      0x02: log,
      0x06: identify,
      0x08: () => ({}),
      0x09: () => ({}),
      0x0c: () => undefined,
      0x18: () => ({}),
      0x80: format,
      0x84: sanitize,
    },
    io: { 0x00: () => ({}), 0x01: move, 0x02: move },
  };
}

/** Properties of the controller, by their offsets (fabrics, instead of registers). */
function fabricsOf(isIo: { queue: boolean }): Command {
  let configuration = 0;
  const properties: Readonly<Record<number, () => bigint>> = {
    0x00: () => 127n | (1n << 16n) | (20n << 24n) | (1n << 37n), // CAP
    0x08: () => 0x01_04_00n, // VS
    0x14: () => BigInt(configuration),
    0x1c: () => BigInt((configuration & 1) | ((configuration >> 14) & 3 ? 8 : 0)), // CSTS: RDY, SHST
  };
  return (entry) => {
    if (entry[4] === 0x01) {
      isIo.queue = entry.readUInt16LE(42) > 0;
      return { result: 1n };
    }
    if (entry[4] === 0x04) return { result: properties[low(entry, 11)]?.() ?? 0n };
    if (low(entry, 11) === 0x14) configuration = low(entry, 12);
    return {};
  };
}

function serve(socket: Socket, model: NvmeModel, name: string): void {
  const { admin, io } = commandsOf(model, name);
  const isIo = { queue: false };
  const fabrics = fabricsOf(isIo);
  let rest = Buffer.alloc(0);
  let head = 0;
  const waiting = new Map<number, { readonly entry: Buffer; readonly sent: Buffer }>();

  const send = (type: number, flags: number, length: number, fill: (unit: Buffer) => void, data: Buffer = Buffer.alloc(0)): void => {
    const unit = Buffer.alloc(length);
    [unit[0], unit[1], unit[2], unit[3]] = [type, flags, length, data.length > 0 ? length : 0];
    unit.writeUInt32LE(length + data.length, 4);
    fill(unit);
    socket.write(Buffer.concat([unit, data]));
  };
  const run = (entry: Buffer, sent: Buffer): void => {
    const opcode = entry[0]!;
    const command = opcode === 0x7f ? fabrics : (isIo.queue ? io : admin)[opcode];
    const completion = command ? command(entry, sent) : { status: INVALID_OPCODE };
    if (!completion) return;
    const { status = 0, result = 0n, data } = completion;
    const id = entry.readUInt16LE(2);
    if (data) {
      const given = data.subarray(0, low(entry, 8));
      const fill = (unit: Buffer): void => {
        unit.writeUInt16LE(id, 8);
        unit.writeUInt32LE(given.length, 16);
      };
      send(0x07, 0x04, 24, fill, given);
    }
    head = (head + 1) % 128;
    send(0x05, 0, 24, (unit) => {
      unit.writeBigUInt64LE(result, 8);
      unit.writeUInt16LE(head, 16);
      unit.writeUInt16LE(id, 20);
      unit.writeUInt16LE(status << 1, 22);
    });
  };
  const takeCommand = (unit: Buffer): void => {
    const entry = unit.subarray(8, 72);
    // A transport SGL says that the data are with the host.
    const isWrite = (entry[0]! & 3) === 1 && entry[0] !== 0x7f && entry[39] === 0x5a && low(entry, 8) > 0;
    if (!isWrite) {
      run(entry, unit.subarray(unit[3]! > 0 ? unit[3] : unit[2]));
      return;
    }
    const id = entry.readUInt16LE(2);
    waiting.set(id, { entry, sent: Buffer.alloc(low(entry, 8)) });
    send(0x09, 0, 24, (answer) => {
      answer.writeUInt16LE(id, 8);
      answer.writeUInt16LE(id, 10);
      answer.writeUInt32LE(low(entry, 8), 16);
    });
  };
  const takeData = (unit: Buffer): void => {
    const tag = unit.readUInt16LE(10);
    const task = waiting.get(tag)!;
    unit.copy(task.sent, unit.readUInt32LE(12), unit[3]);
    if ((unit[1]! & 4) === 0) return;
    waiting.delete(tag);
    run(task.entry, task.sent);
  };
  const begin = (): void => send(0x01, 0, 128, (answer) => answer.writeUInt32LE(2 ** 20, 12));
  const TAKEN: Readonly<Record<number, (unit: Buffer) => void>> = { 0x00: begin, 0x04: takeCommand, 0x06: takeData };
  socket.on('error', () => socket.destroy());
  socket.on('data', (bytes) => {
    rest = Buffer.concat([rest, bytes]);
    while (rest.length >= 8 && rest.length >= rest.readUInt32LE(4)) {
      const length = rest.readUInt32LE(4);
      TAKEN[rest[0]!]?.(Buffer.from(rest.subarray(0, length)));
      rest = rest.subarray(length);
    }
  });
}

export const startNvmeModel = (model: NvmeModel, name: string): Promise<LocalServer> =>
  startLocalServer((socket) => serve(socket, model, name));
