/** Prepares UEFI firmware (edk2) before the machine starts: the variables in its flash file, and the authorities that it trusts. */

import { X509Certificate } from 'node:crypto';

/** In their stored byte order: EFI_GLOBAL_VARIABLE, 8be4df61-93ca-11d2-aa0d-00e098032b8c (UEFI 2.10 §3.3). */
const GLOBAL = Buffer.from('61dfe48bca93d211aa0d00e098032b8c', 'hex');
/** edk2's gEfiSecureBootEnableDisableGuid, f0a30bc7-af08-4556-99c4-001009c93a44. */
const SECURE_BOOT = Buffer.from('c70ba3f008af564599c4001009c93a44', 'hex');
/** EFI_SYSTEM_NV_DATA_FV_GUID and EFI_AUTHENTICATED_VARIABLE_GUID, which identify the volume and the variable store in it. */
const VOLUME = Buffer.from('8d2bf1ff96768b4ca9852747075b4f50', 'hex');
const STORE = Buffer.from('782cf3aa7b949a43a1802e144ec37792', 'hex');
const START_OF_VARIABLE = 0x55aa;
const [ADDED, DELETED] = [0x3f, 0x3d];
/** Non-volatile, accessible at boot time, and also at run time. */
const [AT_BOOT, ALWAYS] = [3, 7];
const [HEADER, STORE_HEADER] = [60, 28];
const padded = (bytes: number): number => (bytes + 3) & ~3;

const name16 = (text: string): Buffer => Buffer.from(`${text}\0`, 'utf16le');
interface Variable {
  readonly name: string;
  readonly vendor: Buffer;
  readonly attributes: number;
  readonly data: Buffer;
}
function encoded({ name, vendor, attributes, data }: Variable): Buffer {
  const text = name16(name);
  const bytes = Buffer.alloc(padded(HEADER + text.length + data.length), 0xff);
  bytes.fill(0, 0, HEADER);
  bytes.writeUInt16LE(START_OF_VARIABLE, 0);
  bytes.writeUInt8(ADDED, 2);
  bytes.writeUInt32LE(attributes, 4);
  bytes.writeUInt32LE(text.length, 36);
  bytes.writeUInt32LE(data.length, 40);
  vendor.copy(bytes, 44);
  text.copy(bytes, HEADER);
  data.copy(bytes, HEADER + text.length);
  return bytes;
}

/** EFI_LOAD_OPTION (§3.1.3) with the short form of a path, a URI alone (§3.1.2): the firmware chooses the network card. */
function loadOption(title: string, url: string): Buffer {
  const uri = Buffer.from(url, 'ascii');
  const path = Buffer.alloc(8 + uri.length);
  // Messaging device path, URI (§10.3.4.23), and the end of the path.
  path.writeUInt16LE(0x1803, 0);
  path.writeUInt16LE(4 + uri.length, 2);
  uri.copy(path, 4);
  path.writeUInt32LE(0x0004ff7f, 4 + uri.length);
  const head = Buffer.alloc(6);
  head.writeUInt32LE(1, 0);
  head.writeUInt16LE(path.length, 4);
  return Buffer.concat([head, name16(title), path]);
}

/** EFI_CERT_X509_GUID (§32.4.1), in its stored byte order. */
const X509 = Buffer.from('a159c0a5e494a74a87b5ab155c2bf072', 'hex');
const PEM = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;
/**
 * The authorities that the firmware trusts for HTTPS, in its format: an EFI_SIGNATURE_LIST (§32.4.1) for each certificate.
 * @param text PEM
 * @throws an Error when there is no certificate, or an invalid one
 */
export function signatureLists(text: string): Buffer {
  const found = text.match(PEM) ?? [];
  if (found.length === 0) throw new Error('it contains no certificate (PEM)');
  return Buffer.concat(
    found.map((pem) => {
      const { raw } = new X509Certificate(pem);
      // The sizes of the list, of its header (0) and of a signature follow the type. A signature is an owner (zeros) and the certificate.
      const head = Buffer.alloc(44);
      X509.copy(head);
      head.writeUInt32LE(head.length + raw.length, 16);
      head.writeUInt32LE(16 + raw.length, 24);
      return Buffer.concat([head, raw]);
    }),
  );
}

const MAX_URL = 2048;

/** Writes variables that differ from the present ones. Returns the changed file; undefined: it has no room, or another format. */
function withVariables(file: Buffer, variables: readonly Variable[]): Buffer | undefined {
  const volume = file.indexOf(VOLUME) - 16;
  if (volume < 0) return undefined;
  const store = volume + file.readUInt16LE(volume + 48);
  if (!file.subarray(store, store + 16).equals(STORE)) return undefined;
  const end = Math.min(store + file.readUInt32LE(store + 16), file.length);
  const missing = new Map(variables.map((variable) => [variable.name, variable]));
  const bytes = Buffer.from(file);
  let at = store + STORE_HEADER;
  while (at + HEADER <= end && bytes.readUInt16LE(at) === START_OF_VARIABLE) {
    const [nameSize, dataSize] = [bytes.readUInt32LE(at + 36), bytes.readUInt32LE(at + 40)];
    const name = bytes.toString('utf16le', at + HEADER, at + HEADER + nameSize - 2);
    const [state, data] = [bytes.readUInt8(at + 2), bytes.subarray(at + HEADER + nameSize, at + HEADER + nameSize + dataSize)];
    if (state === ADDED && missing.get(name)?.data.equals(data)) missing.delete(name);
    // In flash a bit can only change from one to zero.
    else if (missing.has(name)) bytes.writeUInt8(state & DELETED, at + 2);
    at += padded(HEADER + nameSize + dataSize);
  }
  const added = Buffer.concat([...missing.values()].map(encoded));
  if (at + added.length > end) return undefined;
  added.copy(bytes, at);
  return bytes;
}

/**
 * Makes the next boot load an image from a URL.
 * @returns the changed file; undefined: the file has no room, or another format
 */
export function withHttpBoot(file: Buffer, url: string): Buffer | undefined {
  if (url.length > MAX_URL) return undefined;
  const global = { vendor: GLOBAL, attributes: ALWAYS };
  return withVariables(file, [
    // The firmware's own options have lower numbers.
    { ...global, name: 'Boot0099', data: loadOption('Redfish UefiHttp', url) },
    { ...global, name: 'BootNext', data: Buffer.from([0x99, 0]) },
  ]);
}

/**
 * Switches Secure Boot on or off, for firmware whose variables have the keys.
 * @returns the changed file; undefined: the file has no room, or another format
 */
export const withSecureBoot = (file: Buffer, on: boolean): Buffer | undefined =>
  withVariables(file, [{ name: 'SecureBootEnable', vendor: SECURE_BOOT, attributes: AT_BOOT, data: Buffer.from([on ? 1 : 0]) }]);
