/**
 * An agent's own certificate: X.509 v3 (RFC 5280 §4.1), self-signed, EC P-256 with ECDSA and SHA-256, with the agent's address or name as
 * its only alternative name. It is encoded as DER here: Node creates keys and signatures, but no certificates.
 */
import { createSign, generateKeyPairSync } from 'node:crypto';
import { isIP } from 'node:net';
import { addressBytes } from '../ipv6';

export interface OwnCertificate {
  /** PEM. */
  readonly certificate: string;
  /** PEM, PKCS #8. */
  readonly privateKey: string;
}

const BACKDATED_MS = 3_600_000;
const DAY_MS = 86_400_000;
const VALID_DAYS = 90;

/** `now`: milliseconds since the epoch, by the clock of the verifier. `random` provides the 16 bytes of the serial number. */
export function ownCertificate(
  address: string,
  commonName: string,
  now: number,
  random: (bytes: number) => Buffer,
  { days = VALID_DAYS, curve = 'prime256v1' }: { readonly days?: number; readonly curve?: 'prime256v1' | 'secp384r1' | undefined } = {},
): OwnCertificate {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: curve });
  const serial = random(16);
  serial[0] = (serial[0]! & 0x7f) | 0x01;
  const name = sequence(set(sequence(oid('2.5.4.3'), der(0x0c, Buffer.from(commonName, 'utf8')))));
  const toBeSigned = sequence(
    der(0xa0, der(0x02, Buffer.of(2))),
    der(0x02, serial),
    SIGNATURE_ALGORITHM,
    name,
    sequence(time(now - BACKDATED_MS), time(now + days * DAY_MS)),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(subjectAlternativeName(address))),
  );
  const signature = createSign('sha256').update(toBeSigned).sign(privateKey);
  const certificate = sequence(toBeSigned, SIGNATURE_ALGORITHM, der(0x03, Buffer.concat([Buffer.of(0), signature])));
  return {
    certificate: `-----BEGIN CERTIFICATE-----\n${certificate.toString('base64').replace(/(.{64})(?!$)/g, '$1\n')}\n-----END CERTIFICATE-----\n`,
    privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}

/** One DER element: tag, length (short or long form), content (X.690 §8.1). */
function der(tag: number, ...content: readonly Buffer[]): Buffer {
  const body = Buffer.concat(content);
  const length: number[] = [];
  for (let rest = body.length; rest > 0; rest >>= 8) length.unshift(rest & 0xff);
  const head = body.length < 0x80 ? [body.length] : [0x80 | length.length, ...length];
  return Buffer.concat([Buffer.of(tag, ...head), body]);
}
const sequence = (...content: readonly Buffer[]): Buffer => der(0x30, ...content);
const set = (...content: readonly Buffer[]): Buffer => der(0x31, ...content);

function oid(dotted: string): Buffer {
  const [first, second, ...rest] = dotted.split('.').map(Number);
  const base128 = (value: number): number[] => (value < 0x80 ? [value] : [...base128(value >> 7).map((byte) => byte | 0x80), value & 0x7f]);
  return der(0x06, Buffer.from([first! * 40 + second!, ...rest.flatMap(base128)]));
}

/** UTCTime until 2049, GeneralizedTime after (RFC 5280 §4.1.2.5). */
function time(milliseconds: number): Buffer {
  const text = new Date(milliseconds).toISOString().replace(/[-:T]|\.\d+/g, '');
  return text < '2050' ? der(0x17, Buffer.from(text.slice(2))) : der(0x18, Buffer.from(text));
}

/** id-ce-subjectAltName, critical, one iPAddress of 4 or 16 bytes, or one dNSName (RFC 5280 §4.2.1.6). */
function subjectAlternativeName(address: string): Buffer {
  const name = isIP(address) === 0 ? der(0x82, Buffer.from(address, 'latin1')) : der(0x87, addressBytes(address));
  return sequence(oid('2.5.29.17'), der(0x01, Buffer.of(0xff)), der(0x04, sequence(name)));
}

/** ecdsa-with-SHA256 (RFC 5758 §3.2). */
const SIGNATURE_ALGORITHM = sequence(oid('1.2.840.10045.4.3.2'));
