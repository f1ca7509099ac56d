/**
 * NTFS: what its own files say of its free clusters (Linux: fs/ntfs3/ntfs.h; libntfs-3g: layout.h). $LogFile is record 2, $Volume is 3 and
 * $Bitmap is 6 of the master file table.
 */
import { refuse, type Facts, type ReadAt } from './facts';

const [LOG_FILE, VOLUME, BITMAP] = [2, 3, 6];
const [VOLUME_INFORMATION, DATA, END] = [0x70, 0x80, 0xffffffff];
/** A volume has at most this number of clusters. */
const MAX_CLUSTERS = 2 ** 32;
const MAX_RECORD = 4096;
const CHUNK = 2 ** 20;
/** Byte → the zeros in it. */
const ZEROS = Uint8Array.from({ length: 256 }, (_, byte) => 8 - byte.toString(2).replaceAll('0', '').length);

interface Volume {
  readonly cluster: number;
  readonly clusters: number;
  readonly record: number;
  /** Position of the master file table. */
  readonly table: number;
}
const NONSENSE = 'its superblock makes no sense';
const DAMAGED = 'its own files cannot be read';

function volumeOf(boot: Buffer): Volume {
  const sector = boot.readUInt16LE(0x0b);
  const perCluster = boot.readUInt8(0x0d);
  // Numbers above 128 are negative powers of two.
  const cluster = sector * (perCluster > 0x80 ? 2 ** (256 - perCluster) : perCluster);
  const perRecord = boot.readInt8(0x40);
  const record = perRecord < 0 ? 2 ** -perRecord : perRecord * cluster;
  const isPower = (value: number, least: number, most: number): boolean =>
    value >= least && value <= most && Number.isInteger(Math.log2(value));
  refuse(!isPower(sector, 256, 4096) || !isPower(cluster, 256, 2 ** 21) || !isPower(record, 512, MAX_RECORD), NONSENSE);
  const clusters = Math.floor((Number(boot.readBigUInt64LE(0x28)) * sector) / cluster);
  const table = Number(boot.readBigUInt64LE(0x30));
  refuse(clusters < 1 || clusters > MAX_CLUSTERS || table >= clusters, NONSENSE);
  return { cluster, clusters, record, table: table * cluster };
}

/** A record of the table, with the bytes that its update sequence keeps for the end of each 512 bytes. */
async function recordOf(read: ReadAt, { record, table }: Volume, number: number): Promise<Buffer> {
  const bytes = Buffer.from(await read(table + number * record, record));
  refuse(bytes.length < record || bytes.toString('latin1', 0, 4) !== 'FILE', DAMAGED);
  const [at, count] = [bytes.readUInt16LE(4), bytes.readUInt16LE(6)];
  refuse(count !== record / 512 + 1 || at + 2 * count > 510, DAMAGED);
  for (let block = 1; block < count; block++) {
    refuse(bytes.readUInt16LE(block * 512 - 2) !== bytes.readUInt16LE(at), DAMAGED);
    bytes.copy(bytes, block * 512 - 2, at + 2 * block, at + 2 * block + 2);
  }
  return bytes;
}
/** The first attribute of a kind, without a name. */
function attributeIn(record: Buffer, kind: number): Buffer {
  for (let at = record.readUInt16LE(0x14); at + 8 <= record.length;) {
    const [type, length] = [record.readUInt32LE(at), record.readUInt32LE(at + 4)];
    if (type === END || length < 24 || at + length > record.length) break;
    if (type === kind && record.readUInt8(at + 9) === 0) return record.subarray(at, at + length);
    at += length;
  }
  // Perhaps in another record: the attribute has too many pieces for this one.
  throw new Error(DAMAGED);
}

interface Run {
  readonly position: number;
  readonly bytes: number;
}
/** A number of 1 to 6 bytes. */
const littleEndian = (bytes: Buffer, at: number, length: number, isSigned: boolean): number => {
  refuse(length < 1 || length > 6 || at + length > bytes.length, DAMAGED);
  return isSigned ? bytes.readIntLE(at, length) : bytes.readUIntLE(at, length);
};
/** Where the content of an attribute is. */
function runsOf(attribute: Buffer, { cluster, clusters }: Volume): readonly Run[] {
  refuse(attribute.readUInt8(8) !== 1 || attribute.length < 0x40 || attribute.readBigUInt64LE(0x10) !== 0n, DAMAGED);
  const runs: Run[] = [];
  let first = 0;
  for (let at = attribute.readUInt16LE(0x20); at < attribute.length && attribute[at] !== 0;) {
    const [ofLength, ofPlace] = [attribute[at]! & 0xf, attribute[at]! >> 4];
    const length = littleEndian(attribute, at + 1, ofLength, false);
    first += littleEndian(attribute, at + 1 + ofLength, ofPlace, true);
    refuse(first < 0 || first + length > clusters, DAMAGED);
    runs.push({ position: first * cluster, bytes: length * cluster });
    at += 1 + ofLength + ofPlace;
  }
  return runs;
}

/** Whether nothing in the journal is newer than the file system. It is empty, or says so in the newer one of its two restart pages. */
async function isJournalClean(read: ReadAt, [first]: readonly Run[]): Promise<boolean> {
  if (!first || first.bytes < 2 * MAX_RECORD) return false;
  const bytes = await read(first.position, 2 * MAX_RECORD);
  refuse(bytes.length < 2 * MAX_RECORD, DAMAGED);
  if (bytes.readUInt32LE(0) === 0xffffffff) return true;
  const pages = [0, MAX_RECORD].flatMap((page) => {
    const area = page + bytes.readUInt16LE(page + 0x18);
    if (bytes.toString('latin1', page, page + 4) !== 'RSTR' || area > page + 0x100) return [];
    const [newest, clients, flags] = [bytes.readBigUInt64LE(area), bytes.readUInt16LE(area + 0x0c), bytes.readUInt16LE(area + 0x0e)];
    return [{ newest, isClean: clients === 0xffff || (flags & 2) !== 0 }];
  });
  return pages.sort((one, other) => (one.newest < other.newest ? 1 : -1))[0]?.isClean ?? false;
}

/** The zeros in the map of clusters. */
async function freeClusters(read: ReadAt, runs: readonly Run[], clusters: number): Promise<number> {
  const whole = Math.floor(clusters / 8);
  let [done, free] = [0, 0];
  for (const { position, bytes } of runs)
    for (let at = 0; at < bytes && done <= whole; at += CHUNK) {
      const piece = await read(position + at, Math.min(CHUNK, bytes - at));
      refuse(piece.length < Math.min(CHUNK, bytes - at), DAMAGED);
      const full = Math.min(piece.length, whole - done);
      for (let byte = 0; byte < full; byte++) free += ZEROS[piece[byte]!]!;
      // The bits after the last cluster are of no cluster.
      if (full < piece.length) for (let bit = 0; bit < clusters % 8; bit++) free += ((piece[full]! >> bit) & 1) === 0 ? 1 : 0;
      done += piece.length;
    }
  refuse(done < Math.ceil(clusters / 8), DAMAGED);
  return free;
}

export const ntfsFacts: Facts = async (read) => {
  const boot = await read(0, 512);
  refuse(boot.length < 512, NONSENSE);
  const volume = volumeOf(boot);
  const information = attributeIn(await recordOf(read, volume, VOLUME), VOLUME_INFORMATION);
  const value = information.readUInt16LE(0x14);
  refuse(value + 12 > information.length, DAMAGED);
  const flags = information.readUInt16LE(value + 10);
  refuse((flags & 0x0001) !== 0, 'it was not unmounted');
  refuse((flags & 0x4000) !== 0, 'it needs a repair');
  const journal = runsOf(attributeIn(await recordOf(read, volume, LOG_FILE), DATA), volume);
  // So it is also after a shutdown that keeps the system's memory (fast startup).
  refuse(!(await isJournalClean(read, journal)), 'its journal has not been replayed');
  const map = runsOf(attributeIn(await recordOf(read, volume, BITMAP), DATA), volume);
  const { cluster, clusters } = volume;
  return { size: clusters * cluster, free: (await freeClusters(read, map, clusters)) * cluster };
};
