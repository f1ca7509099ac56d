/** The SMBIOS table (DSP0134): manufacturer, firmware, memory. */

interface SmbiosStructure {
  readonly type: number;
  /** The formatted area, header included (DSP0134 §6.1.2). */
  readonly data: Buffer;
  readonly strings: readonly string[];
}
interface Smbios {
  readonly firmware: { readonly vendor: string; readonly version: string; readonly build_date: string };
  readonly manufacturer: string;
  readonly product_name: string;
  readonly serial_number: string;
  /** MiB of installed memory; null when the table does not contain it. */
  readonly physical_mb: number | null;
  /** The installed memory modules. */
  readonly modules: readonly MemoryModule[];
}
interface MemoryModule {
  /** The slot; unique. */
  readonly locator: string;
  readonly size_mb: number;
  readonly manufacturer: string;
  readonly part_number: string;
  readonly serial_number: string;
  /** Millions of transfers a second; null: unknown. */
  readonly speed_mts: number | null;
}

/** Splits a table into structures. Stops at its end (type 127) or at the first structure that does not fit. */
function structures(table: Buffer): readonly SmbiosStructure[] {
  const found: SmbiosStructure[] = [];
  for (let at = 0; at + 4 <= table.length;) {
    const length = table[at + 1]!;
    if (length < 4 || at + length > table.length) break;
    // The strings follow, each ended by a NUL, the last by two. Without strings there are still two NULs.
    const end = table.indexOf(Buffer.of(0, 0), at + length);
    const stringsEnd = end < 0 ? table.length : end;
    const strings = table.toString('utf8', at + length, stringsEnd).split('\0');
    found.push({ type: table[at]!, data: table.subarray(at, at + length), strings: strings.map((string) => string.trim()) });
    if (table[at] === 127 || end < 0) break;
    at = end + 2;
  }
  return found;
}

/** Decodes /sys/firmware/dmi/tables/DMI. Without a table, and for missing fields, texts are empty. */
export function readSmbios(table: Buffer | null): Smbios {
  const all = table ? structures(table) : [];
  const text = (type: number, offset: number): string =>
    textOf(
      all.find((candidate) => candidate.type === type),
      offset,
    );
  const installed = all.filter((candidate) => candidate.type === 17).reduce((sum, item) => sum + deviceMiB(item.data), 0);
  const mapped = all.filter((candidate) => candidate.type === 19).reduce((sum, item) => sum + rangeMiB(item.data), 0);
  return {
    firmware: { vendor: text(0, 4), version: text(0, 5), build_date: text(0, 8) },
    manufacturer: text(1, 4),
    product_name: text(1, 5),
    serial_number: text(1, 7),
    physical_mb: installed || mapped || null,
    modules: modulesIn(all),
  };
}

function textOf(structure: SmbiosStructure | undefined, offset: number): string {
  const index = structure && offset < structure.data.length ? structure.data[offset]! : 0;
  return index === 0 ? '' : (structure?.strings[index - 1] ?? '');
}

/** Memory Device (§7.18). Boards name a slot by its bank, its device, or both. Duplicate names get a number. */
function modulesIn(all: readonly SmbiosStructure[]): readonly MemoryModule[] {
  const times = new Map<string, number>();
  return all
    .filter(({ type, data }) => type === 17 && deviceMiB(data) > 0)
    .map((item) => {
      const name = [textOf(item, 0x11), textOf(item, 0x10)].filter((part) => part !== '').join(' ');
      const time = (times.get(name) ?? 0) + 1;
      times.set(name, time);
      const speed = item.data.length >= 0x17 ? item.data.readUInt16LE(0x15) : 0;
      return {
        locator: time === 1 && name !== '' ? name : `${name}#${time}`,
        size_mb: deviceMiB(item.data),
        manufacturer: textOf(item, 0x17),
        part_number: textOf(item, 0x1a),
        serial_number: textOf(item, 0x18),
        speed_mts: speed === 0 || speed === 0xffff ? null : speed,
      };
    });
}

/** Memory Device (§7.18): size in MiB, or KiB with bit 15; 0xFFFF unknown; 0x7FFF: in the extended size. */
function deviceMiB(data: Buffer): number {
  if (data.length < 0x0e) return 0;
  const size = data.readUInt16LE(0x0c);
  if (size === 0xffff) return 0;
  if (size === 0x7fff) return data.length >= 0x20 ? data.readUInt32LE(0x1c) & 0x7fffffff : 0;
  return size & 0x8000 ? (size & 0x7fff) / 1024 : size;
}

/** Memory Array Mapped Address (§7.20): KiB addresses, the end inclusive; all ones: 64-bit byte addresses follow. */
function rangeMiB(data: Buffer): number {
  if (data.length < 0x0c) return 0;
  const [start, end] = [data.readUInt32LE(4), data.readUInt32LE(8)];
  if (start !== 0xffffffff) return (end - start + 1) / 1024;
  return data.length >= 0x1f ? Number((data.readBigUInt64LE(0x17) - data.readBigUInt64LE(0x0f) + 1n) / 1048576n) : 0;
}
