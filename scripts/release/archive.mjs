// Archives whose bytes depend on their contents only: tar, gzip, and ar of Debian packages. Names are sorted, all entries have one time,
// and root owns an entry unless it names another owner. tar has GNU's long names, because dpkg reads no pax records but those of
// capabilities.
import { gzipSync } from 'node:zlib';

const BLOCK = 512;
/** @param {Buffer} bytes @param {number} size */
const padded = (bytes, size) => Buffer.concat([bytes, Buffer.alloc((size - (bytes.length % size)) % size)]);
/** @param {number} value @param {number} length */
const octal = (value, length) => `${value.toString(8).padStart(length - 1, '0')}\0`;
/**
 * @typedef {object} Entry a file, a symbolic link or a folder
 * @property {string} path
 * @property {Buffer} [data]
 * @property {string} [target]
 * @property {boolean} [folder]
 * @property {number} [mode]
 * @property {number} [uid]
 * @property {number} [gid]
 * @property {boolean} [network] with the capabilities for DHCP and low ports
 *
 * @typedef {{ time: number, uid: number, gid: number }} Common
 * @typedef {Common & { name: string, type: keyof typeof TYPES, mode: number, size: number, target?: string | undefined }} Header
 */
const TYPES = { file: '0', link: '2', folder: '5', longName: 'L', longTarget: 'K', extended: 'x' };

/** One header of 512 bytes (tar(5), GNU). `name` and `target` have at most 100 bytes. @param {Header} row */
function header({ name, type, mode, size, time, uid, gid, target = '' }) {
  const block = Buffer.alloc(BLOCK);
  /** @param {string} text @param {number} at */
  const put = (text, at) => block.write(text, at, 'utf8');
  put(name, 0);
  put(octal(mode, 8), 100);
  put(octal(uid, 8), 108);
  put(octal(gid, 8), 116);
  put(octal(size, 12), 124);
  put(octal(time, 12), 136);
  put(' '.repeat(8), 148);
  put(TYPES[type], 156);
  put(target, 157);
  put('ustar  \0', 257);
  const sum = block.reduce((total, byte) => total + byte, 0);
  put(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return block;
}

/**
 * The blocks with the name or the target of the next entry, if that has more than 100 bytes.
 * @param {keyof typeof TYPES} type @param {string} text @param {Common} common
 */
function longText(type, text, common) {
  if (Buffer.byteLength(text) <= 100) return [];
  const bytes = Buffer.from(`${text}\0`);
  return [header({ ...common, name: '././@LongLink', type, mode: 0o644, size: bytes.length }), padded(bytes, BLOCK)];
}

/** CAP_NET_BIND_SERVICE, CAP_NET_ADMIN and CAP_NET_RAW (capability.h). */
const NETWORK = (1 << 10) | (1 << 12) | (1 << 13);
/**
 * A pax record (POSIX.1-2001) with file capabilities as an extended attribute: permitted and effective (vfs_cap_data, revision 2).
 * @param {Common} common
 */
function capabilities(common) {
  const value = Buffer.alloc(20);
  value.writeUInt32LE(0x02000001, 0);
  value.writeUInt32LE(NETWORK, 4);
  const body = Buffer.concat([Buffer.from(' SCHILY.xattr.security.capability='), value, Buffer.from('\n')]);
  // The length of a pax record includes its own digits.
  const length = body.length + String(body.length + 2).length;
  const record = Buffer.concat([Buffer.from(String(length)), body]);
  return [
    header({ ...common, name: 'PaxHeaders/capabilities', type: 'extended', mode: 0o644, size: record.length }),
    padded(record, BLOCK),
  ];
}

/**
 * @param {readonly Entry[]} entries folders above them are added
 * @param {number} time seconds since 1970, of every entry
 * @param prefix before each path, such as `./` in Debian packages
 */
export function tar(entries, time, prefix = '') {
  /** @type {Map<string, Entry>} */
  const all = new Map(entries.map((entry) => [entry.path, entry]));
  for (const { path } of entries)
    for (let at = path.indexOf('/'); at > 0; at = path.indexOf('/', at + 1))
      if (!all.has(path.slice(0, at))) all.set(path.slice(0, at), { path: path.slice(0, at), folder: true });
  /** @type {Buffer[]} */
  const blocks = [];
  for (const path of [...all.keys()].sort((left, right) => (left < right ? -1 : 1))) {
    const {
      data,
      target,
      folder = false,
      mode = folder || target !== undefined ? 0o755 : 0o644,
      uid = 0,
      gid = 0,
      network = false,
    } = all.get(path) ?? { path };
    const type = folder ? 'folder' : target === undefined ? 'file' : 'link';
    const name = `${prefix}${path}${folder ? '/' : ''}`;
    const common = { time, uid, gid };
    if (network) blocks.push(...capabilities(common));
    blocks.push(...longText('longName', name, common), ...longText('longTarget', target ?? '', common));
    const size = data?.length ?? 0;
    blocks.push(header({ ...common, name: name.slice(0, 100), type, mode, size, target: target?.slice(0, 100) }));
    if (data && size > 0) blocks.push(padded(data, BLOCK));
  }
  return Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK)]);
}

/** Gzip without a time or a name (RFC 1952 §2.3.1: MTIME 0). @param {Buffer} bytes */
export const gzip = (bytes) => gzipSync(bytes, { level: 6 });

/** The ar of Debian packages (deb(5)): members in the order given. @param {readonly [name: string, data: Buffer][]} members @param {number} time */
export function ar(members, time) {
  const parts = members.flatMap(([name, data]) => [
    Buffer.from(
      `${name.padEnd(16)}${String(time).padEnd(12)}${'0'.padEnd(6)}${'0'.padEnd(6)}${'100644'.padEnd(8)}${String(data.length).padEnd(10)}\`\n`,
    ),
    data,
    Buffer.from(data.length % 2 === 0 ? '' : '\n'),
  ]);
  return Buffer.concat([Buffer.from('!<arch>\n'), ...parts]);
}
