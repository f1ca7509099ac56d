/** A disk of SBC-4: SAS, or SATA behind a SAS controller, which hands ATA commands on (SAT-3; ata.ts). */
import type { ScsiAnswer, ScsiDisk } from './iscsi';
import type { Work } from './work';

export const SECTOR = 512;
export interface ScsiModel {
  readonly data: Buffer;
  readonly serial: string;
  /** Sixteen hexadecimal digits. */
  readonly wwn: string;
  readonly work: Work;
  /** Service actions of SANITIZE: 2 block, 3 cryptographic. */
  readonly sanitizes?: readonly number[];
  /** UNMAP, and zeros after it. */
  readonly unmaps?: boolean;
  /** Whether it answers as an idle disk does. QEMU starts only with disks that tell their size. */
  readonly isOpening?: () => boolean;
  /** An ATA disk: its answers to ATA commands, and its IDENTIFY data. */
  readonly ata?: { readonly pass: ScsiDisk; readonly identify: () => Buffer; readonly isReadable: () => boolean };
}

const GOOD: ScsiAnswer = { status: 0 };
const padded = (text: string, length: number): Buffer => Buffer.from(text.padEnd(length).slice(0, length));
/** SPC-4 §4.5.3, fixed format. @param progress 65536ths */
function fixed(key: number, code: number, progress?: number): Buffer {
  const sense = Buffer.alloc(18);
  [sense[0], sense[2], sense[7]] = [0x70, key, 10];
  sense.writeUInt16BE(code, 12);
  if (progress !== undefined) {
    sense[15] = 0x80;
    sense.writeUInt16BE(progress, 16);
  }
  return sense;
}
const check = (key: number, code: number, progress?: number): ScsiAnswer => ({ status: 2, sense: fixed(key, code, progress) });
const [NOT_READY, MEDIUM_ERROR, ILLEGAL, ABORTED] = [2, 3, 5, 0xb];
const ILLEGAL_OPCODE = check(ILLEGAL, 0x20_00);
const ILLEGAL_FIELD = check(ILLEGAL, 0x24_00);

function page(code: number, body: Buffer): Buffer {
  const header = Buffer.from([0, code, 0, 0]);
  header.writeUInt16BE(body.length, 2);
  return Buffer.concat([header, body]);
}
/** Bytes at places, of a page of that length. */
const bytesAt = (length: number, places: Readonly<Record<number, number>>): Buffer =>
  Buffer.from(Array.from({ length }, (_, index) => places[index] ?? 0));
function vital({ serial, wwn, unmaps, ata }: ScsiModel, code: number): Buffer | undefined {
  const naa = Buffer.from([0x01, 0x03, 0, 8, ...Buffer.from(wwn, 'hex')]);
  const limits = bytesAt(0x3c, {});
  limits.writeUInt32BE(0xff_ff, 4);
  if (unmaps) {
    limits.writeUInt32BE(0xff_ff, 16);
    limits.writeUInt32BE(1, 20);
  }
  const pages: Readonly<Record<number, () => Buffer>> = {
    0x80: () => Buffer.from(serial),
    0x83: () => naa,
    ...(ata ? { 0x89: () => Buffer.concat([bytesAt(32, {}), bytesAt(20, {}), Buffer.from([0xec, 0, 0, 0]), ata.identify()]) } : {}),
    0xb0: () => limits,
    0xb1: () => bytesAt(0x3c, { 1: 1 }),
    ...(unmaps ? { 0xb2: () => Buffer.from([0, 0x84, 2, 0]) } : {}),
  };
  if (code === 0) return page(0, Buffer.from([0, ...Object.keys(pages).map(Number)]));
  const found = pages[code];
  return found && page(code, found());
}
function inquiry(model: ScsiModel, command: Buffer): ScsiAnswer {
  if (command[1] === 1) {
    const data = vital(model, command[2]!);
    return data ? { status: 0, data } : ILLEGAL_FIELD;
  }
  const { ata, serial } = model;
  const names = [padded(ata ? 'ATA' : 'ACME', 8), padded(`Model ${serial}`, 16), padded('1', 4)];
  return { status: 0, data: Buffer.concat([Buffer.from([0, 0, 6, 2, 31, 0, 0, 2]), ...names]) };
}
function modeSense(command: Buffer): ScsiAnswer {
  const isLong = command[0] === 0x5a;
  const wanted = command[2]! & 0x3f;
  if (wanted !== 8 && wanted !== 0x3f) return ILLEGAL_FIELD;
  const caching = bytesAt(20, { 0: 8, 1: 18 });
  const header = bytesAt(isLong ? 8 : 4, {});
  header[isLong ? 1 : 0] = header.length + caching.length - (isLong ? 2 : 1);
  return { status: 0, data: Buffer.concat([header, caching]) };
}
function capacity({ data, unmaps }: ScsiModel, isLong: boolean): ScsiAnswer {
  const last = data.length / SECTOR - 1;
  const bytes = Buffer.alloc(isLong ? 32 : 8);
  if (isLong) bytes.writeBigUInt64BE(BigInt(last));
  else bytes.writeUInt32BE(last);
  bytes.writeUInt32BE(SECTOR, isLong ? 8 : 4);
  if (isLong && unmaps) bytes[14] = 0xc0;
  return { status: 0, data: bytes };
}
/** SPC-4 §6.35: whether the disk has a command. */
function opcodes(model: ScsiModel, handled: (opcode: number) => boolean, command: Buffer): ScsiAnswer {
  const [, , options, opcode] = command;
  if ((options! & 7) === 0) return ILLEGAL_FIELD;
  const action = command.readUInt16BE(4);
  const has = handled(opcode!) && (opcode !== 0x48 || model.sanitizes!.includes(action));
  return {
    status: 0,
    data: Buffer.concat([Buffer.from([0, has ? 3 : 1, 0, has ? 10 : 0]), has ? bytesAt(10, { 0: opcode! }) : bytesAt(0, {})]),
  };
}

/** Opcode → where the address and the number of sectors are. */
const MOVES: Readonly<Record<number, (command: Buffer) => readonly [from: number, count: number]>> = {
  0x28: (command) => [command.readUInt32BE(2), command.readUInt16BE(7)],
  0x2a: (command) => [command.readUInt32BE(2), command.readUInt16BE(7)],
  0x88: (command) => [Number(command.readBigUInt64BE(2)), command.readUInt32BE(10)],
  0x8a: (command) => [Number(command.readBigUInt64BE(2)), command.readUInt32BE(10)],
};
function move({ data, ata }: ScsiModel, command: Buffer, sent: Buffer): ScsiAnswer {
  const [from, count] = MOVES[command[0]!]!(command);
  const [begin, end] = [from * SECTOR, (from + count) * SECTOR];
  if (end > data.length) return check(ILLEGAL, 0x21_00);
  if (ata?.isReadable() === false) return check(ABORTED, 0);
  if ((command[0]! & 0xf) === 8) return { status: 0, data: data.subarray(begin, end) };
  sent.copy(data, begin, 0, end - begin);
  return GOOD;
}
function unmap({ data, work }: ScsiModel, sent: Buffer): ScsiAnswer {
  work.taken.push('unmap');
  for (let at = 8; at + 16 <= sent.length; at += 16) {
    const from = Number(sent.readBigUInt64BE(at)) * SECTOR;
    data.fill(0, from, from + sent.readUInt32BE(at + 8) * SECTOR);
  }
  return GOOD;
}
/** SBC-4 §5.31. */
async function sanitize(model: ScsiModel, command: Buffer): Promise<ScsiAnswer> {
  const { data, work, sanitizes = [] } = model;
  const action = command[1]! & 0x1f;
  if (action === 0x1f) {
    work.leave();
    return GOOD;
  }
  if (!sanitizes.includes(action)) return ILLEGAL_FIELD;
  const over = work.begin(action === 3 ? 'sanitize crypto' : 'sanitize block', () => data.fill(action === 3 ? 0xa5 : 0));
  if ((command[1]! & 0x80) !== 0) return GOOD;
  await over;
  return work.state() === 'failed' ? check(MEDIUM_ERROR, 0x31_03) : GOOD;
}

export function scsiDisk(model: ScsiModel): ScsiDisk {
  const { work, ata, sanitizes, unmaps } = model;
  /** SBC-4 §4.11.2 and §4.11.3: what the disk answers to other commands while it works, and after it has failed. */
  const hindered = (): ScsiAnswer | undefined => {
    if (ata || model.isOpening?.()) return undefined;
    if (work.state() === 'working') return check(NOT_READY, 0x04_1b, work.progress());
    return work.state() === 'failed' ? check(MEDIUM_ERROR, 0x31_03) : undefined;
  };
  const ready =
    (answer: (command: Buffer, sent: Buffer) => ReturnType<ScsiDisk>): ScsiDisk =>
    (command, sent) =>
      hindered() ?? answer(command, sent);
  const commands: Readonly<Record<number, ScsiDisk>> = {
    0x00: ready(() => GOOD),
    0x03: () => ({ status: 0, data: hindered()?.sense ?? fixed(0, 0) }),
    0x12: (command) => inquiry(model, command),
    0x1a: ready((command) => modeSense(command)),
    0x1b: ready(() => GOOD),
    0x25: ready(() => capacity(model, false)),
    0x35: ready(() => GOOD),
    0x5a: ready((command) => modeSense(command)),
    0x91: ready(() => GOOD),
    0x9e: ready((command) => ((command[1]! & 0x1f) === 0x10 ? capacity(model, true) : ILLEGAL_FIELD)),
    0xa0: () => ({ status: 0, data: bytesAt(16, { 3: 8 }) }),
    0xa3: (command) => ((command[1]! & 0x1f) === 0x0c ? opcodes(model, (opcode) => opcode in commands, command) : ILLEGAL_FIELD),
    ...Object.fromEntries(Object.keys(MOVES).map((opcode) => [opcode, ready((command, sent) => move(model, command, sent))])),
    ...(unmaps ? { 0x42: ready((_, sent) => unmap(model, sent)) } : {}),
    // The failed state ends by SANITIZE alone.
    ...(sanitizes ? { 0x48: (command) => (work.state() === 'working' ? hindered()! : sanitize(model, command)) } : {}),
    ...(ata ? { 0x85: ata.pass, 0xa1: ata.pass } : {}),
  };
  return (command, sent) => (commands[command[0]!] ?? (() => ILLEGAL_OPCODE))(command, sent);
}
