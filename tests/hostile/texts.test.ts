/** Long texts, as requests, agents and image servers may send them, take linear time. */
import { loggableUrl } from '../../boot/cache';
import { queryOf } from '../../api/http/target';
import { lldpFacts, tlvOf } from '../../conductor/inspection/hooks/lldp';
import { httpBasic } from '../../api/auth/http-basic';
import { findChecksum } from '../../drivers/common/images';
import { isHostName, isLogicalName, isUuid } from '../../model/idents';
import { maskSecrets, withoutSecrets } from '../../model/masks';
import { oneLine, printable, printableText, silentLog } from '../../model/log';
import { systemClock } from '../../model/clock';
import { evaluate } from '../../wire/redfish/transport';
import { cpuMsOf } from '../support/cpu-time';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const LENGTH = 500_000;
/** Quadratic work on such a text takes minutes. */
const MAX_CPU_MS = 2000;
const folder = mkdtempSync(join(tmpdir(), 'bloomery-texts-'));
const users = join(folder, 'users');
writeFileSync(users, '');
const auth = httpBasic({ users, roles: null }, silentLog, systemClock);
afterAll(() => rmSync(folder, { recursive: true }));

const outcome = async (work: () => unknown): Promise<void> => {
  try {
    await work();
  } catch {
    // A refusal is fine, too.
  }
};
const login = (authorization: string) => () => auth.identify({ authorization }, '/v1/nodes', 'GET', 'test');
it.each<[string, () => unknown]>([
  ['isUuid() of braces', () => isUuid(`${'}'.repeat(LENGTH)}x`)],
  ['isLogicalName()', () => isLogicalName('a'.repeat(LENGTH))],
  ['isHostName()', () => isHostName('a.'.repeat(LENGTH))],
  ['a login of spaces', login(`a${' '.repeat(LENGTH)}b${' '.repeat(LENGTH)}c\u0001`)],
  ['a login of letters', login('a'.repeat(LENGTH))],
  ['a login of base64', login(`Basic ${'A'.repeat(LENGTH)}!`)],
  ['a checksum file of brackets', () => findChecksum(`${'() '.repeat(LENGTH)} a`, 'http://x/a', 'http://x/b')],
  ['a checksum file of closing brackets', () => findChecksum(`(${') '.repeat(LENGTH)}${'a'.repeat(32)}x y`, 'http://x/a', 'http://x/b')],
  ['a checksum file of digits', () => findChecksum(`${'a'.repeat(LENGTH)} b`, 'http://x/a', 'http://x/b')],
  ['a URL of question marks', () => loggableUrl(`http://x/${'?'.repeat(LENGTH)}\n`)],
  ['the removal of quoted secrets from a message', () => withoutSecrets([{ text: 'password="'.repeat(LENGTH / 10) }])],
  ['the masking of secrets in a text', () => maskSecrets({ text: 'password="'.repeat(LENGTH / 10) })],
  ['the escaping of a text for the log', () => printable('\u001b\u202e'.repeat(LENGTH))],
  ['the escaping of a page for a terminal', () => printableText('\n\u009b\t'.repeat(LENGTH))],
  ['the removal of blanks from a text', () => oneLine('\u0007 a '.repeat(LENGTH))],
])('%s takes linear time', async (_, work) => {
  expect(await cpuMsOf(() => outcome(work), MAX_CPU_MS)).toBeLessThan(MAX_CPU_MS);
});

it('a query that repeats a parameter 500,000 times takes linear time', async () => {
  const read = (): void => {
    const { a, b } = queryOf(`${'a=&'.repeat(LENGTH)}b=1`);
    expect(a).toHaveLength(LENGTH);
    expect(b).toBe('1');
  };
  expect(await cpuMsOf(read, 2 * MAX_CPU_MS)).toBeLessThan(2 * MAX_CPU_MS);
});

it('the decoding of thousands of LLDP TLVs of an interface takes linear time', async () => {
  const tlvs = Array.from({ length: 25_000 }, () => [127, '0080c203000100']);
  expect(await cpuMsOf(() => lldpFacts(tlvs.map((tlv) => tlvOf(tlv)!)), MAX_CPU_MS)).toBeLessThan(MAX_CPU_MS);
});

it.each([
  ['objects', `[${'{},'.repeat(2_600_000)}{}]`],
  ['names', `{${Array.from({ length: 600_000 }, (_, at) => `"n${at}":1`).join()}}`],
  ['nesting', '['.repeat(8_000_000)],
  ['digits', '1'.repeat(8_000_000)],
])('an answer of a BMC with eight megabytes of %s is refused in linear time', async (_, text) => {
  const bytes = Buffer.from(text);
  const read = () => expect(evaluate('GET', 'http://bmc/redfish/v1/', 200, {}, bytes)).rejects.toThrow('answered with more than is read');
  expect(await cpuMsOf(read, MAX_CPU_MS)).toBeLessThan(MAX_CPU_MS);
});
