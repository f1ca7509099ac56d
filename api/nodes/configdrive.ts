/** Checks the config drive of a request: its format, and whether an agent can use it. */
import { invalid } from '../../model/errors';
import { isObject } from '../../model/json';
import type { ApiContext } from '../pipeline/handler';
import { describeAtLength } from '../schema/schema';
import { userDataProblem } from './user-data';

const isEmpty = (drive: unknown): boolean => !drive || (typeof drive === 'object' && Object.keys(drive).length === 0);

/** Whitespace is common in base64. */
const BASE64 = /^[A-Za-z0-9+/=\n\r\t ]*$/;
/** Checks the verb, the type and the version, with Ironic's messages. */
export function checkConfigdrive(target: string, drive: unknown, minor: number, { validators, document }: ApiContext): void {
  if (isEmpty(drive)) return;
  const targets = minor >= 35 ? ['active', 'rebuild'] : ['active'];
  if (!targets.includes(target))
    throw invalid(`Adding a config drive is only supported when setting provision state to ${targets.join(', ')}`);
  const problem = validators('Configdrive', () => document.schemas['Configdrive']!, describeAtLength)(drive);
  if (problem !== undefined) throw invalid(`Invalid configdrive format: ${problem}`);
  if (typeof drive === 'object' && drive !== null) {
    if (minor < 56) throw invalid('Providing a JSON object for configdrive is only supported starting with API version 1.56');
    if ('vendor_data' in drive && minor < 59)
      throw invalid('Providing vendor_data in configdrive is only supported starting with API version 1.59');
  } else if (typeof drive === 'string' && !drive.includes('://') && !BASE64.test(drive))
    throw invalid('Invalid configdrive format: it is neither a JSON, nor a URL, nor a base64 string');
}

/** The largest partition that ramdisks create for a config drive. */
const MAX_MIB = 64;
const GZIP = [0x1f, 0x8b];
/** RFC 1952 §2.3.1: ISIZE, the last four bytes. */
const contentLength = (gzip: Buffer): number => gzip.readUInt32LE(gzip.length - 4);
/** RFC 1952 §2.3: a header of ten bytes and a trailer of eight. */
const MIN_GZIP_LENGTH = 18;

function problemOf(drive: string): string | undefined {
  if (drive.includes('://'))
    return URL.canParse(drive) && /^https?:/i.test(drive) ? undefined : 'ramdisks fetch it from http and https URLs only';
  const text = drive.replace(/\s+/g, '');
  if (text.length % 4 !== 0 || !/^[^=]*={0,2}$/.test(text)) return 'it is not a whole base64 string';
  const bytes = Buffer.from(text, 'base64');
  if (bytes.length < MIN_GZIP_LENGTH || GZIP.some((byte, index) => bytes[index] !== byte))
    return 'the base64 string is not that of a gzip file';
  if (contentLength(bytes) > MAX_MIB * 1024 * 1024) return `Config drive size exceeds maximum limit of ${MAX_MIB}MiB.`;
  return undefined;
}
/** Refuses config drives that Ironic accepts, and that no agent or no system can use, before the conductor is called. */
export function checkDrive(drive: unknown): void {
  if (drive === '') return;
  const problem = typeof drive === 'string' ? problemOf(drive) : isObject(drive) ? userDataProblem(drive['user_data']) : undefined;
  if (problem !== undefined) throw invalid(`Invalid configdrive: ${problem}`);
}
