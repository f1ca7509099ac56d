/** The SMBIOS table (DSP0134): who made the machine, its firmware, its memory. */

export interface SmbiosStructure {
  readonly type: number;
  /** The formatted area, header included (DSP0134 §6.1.2). */
  readonly data: Buffer;
  readonly strings: readonly string[];
}
export interface Smbios {
  readonly firmware: { readonly vendor: string; readonly version: string; readonly build_date: string };
  readonly manufacturer: string;
  readonly product_name: string;
  readonly serial_number: string;
  /** MiB of installed memory; null when the table does not say. */
  readonly physical_mb: number | null;
}

/** Splits a table; stops at its end (type 127) and at the first structure that does not fit. */
function structures(table: Buffer): readonly SmbiosStructure[] {
  const found: SmbiosStructure[] = [];
  for (let at = 0; at + 4 <= table.length;) {
    const length = table[at + 1]!;
    if (length < 4 || at + length > table.length) break;
    // The strings follow, each ended by a NUL, the last by two; without strings there are still two NULs.
    const end = table.indexOf(Buffer.of(0, 0), at + length);
    const stringsEnd = end < 0 ? table.length : end;
    const strings = table.toString('utf8', at + length, stringsEnd).split('\0');
    found.push({ type: table[at]!, data: table.subarray(at, at + length), strings: strings.map((one) => one.trim()) });
    if (table[at] === 127 || end < 0) break;
    at = end + 2;
  }
  return found;
}

/** Reads what /sys/firmware/dmi/tables/DMI holds; null (no table) and missing fields are empty strings. */
export function readSmbios(table: Buffer | null): Smbios {
  const all = table ? structures(table) : [];
  const text = (type: number, offset: number): string => {
    const structure = all.find((one) => one.type === type);
    const index = structure && offset < structure.data.length ? structure.data[offset]! : 0;
    return index === 0 ? '' : (structure?.strings[index - 1] ?? '');
  };
  const installed = all.filter((one) => one.type === 17).reduce((sum, one) => sum + deviceMiB(one.data), 0);
  const mapped = all.filter((one) => one.type === 19).reduce((sum, one) => sum + rangeMiB(one.data), 0);
  return {
    firmware: { vendor: text(0, 4), version: text(0, 5), build_date: text(0, 8) },
    manufacturer: text(1, 4),
    product_name: text(1, 5),
    serial_number: text(1, 7),
    physical_mb: installed || mapped || null,
  };
}

/** Memory Device (§7.18): size in MiB, or KiB with bit 15; 0xFFFF unknown; 0x7FFF: in the extended size. */
function deviceMiB(data: Buffer): number {
  if (data.length < 0x0e) return 0;
  const size = data.readUInt16LE(0x0c);
  if (size === 0xffff) return 0;
  if (size === 0x7fff) return data.length >= 0x20 ? data.readUInt32LE(0x1c) & 0x7fffffff : 0;
  return size & 0x8000 ? (size & 0x7fff) / 1024 : size;
}

/** Memory Array Mapped Address (§7.20): KiB addresses, the ending one included; all ones: 64-bit byte addresses follow. */
function rangeMiB(data: Buffer): number {
  if (data.length < 0x0c) return 0;
  const [start, end] = [data.readUInt32LE(4), data.readUInt32LE(8)];
  if (start !== 0xffffffff) return (end - start + 1) / 1024;
  return data.length >= 0x1f ? Number((data.readBigUInt64LE(0x17) - data.readBigUInt64LE(0x0f) + 1n) / 1048576n) : 0;
}
