/** Mutates a BMC's packets, in the same way in every run, and lets our side decode them. */
import { randomBytes } from 'node:crypto';
import { fruBytes } from '../../../simulator/ipmi/fru';
import { compactRecord, fruLocator, fullRecord } from '../../../simulator/ipmi/sdr';
import {
  decodeResponseHead,
  decodeLanMessage,
  decodeOpenSessionResponse,
  decodePacket,
  decodeRakp2,
  decodeRakp4,
  encodeLanMessage,
  encodePlain,
  encodeRmcpPlus,
} from '../../../wire/ipmi/codec';
import { decodeFru } from '../../../wire/ipmi/records/fru';
import { decodeSdr } from '../../../wire/ipmi/records/sdr';
import { decodeSelEntry } from '../../../wire/ipmi/records/sel';
import { createSolStream } from '../../../wire/ipmi/sol-stream';
import { replyTo } from '../../../wire/ipmi/session';
import { hasAnalogReading, valueOf } from '../../../wire/ipmi/records/sensors';
import { CIPHER_SUITES, acceptSequence, newWindow, seal, sessionKeys, unseal } from '../../../wire/ipmi/suites';
import { sameNumbers } from '../udp-relay';

type Bend = (bytes: Buffer, next: () => number) => Buffer;
const at = (bytes: Buffer, next: () => number): number => Math.floor(next() * bytes.length);
const BENDS: readonly Bend[] = [
  (bytes) => bytes,
  (bytes, next) => {
    if (bytes.length > 0) bytes[at(bytes, next)]! ^= 1 << Math.floor(next() * 8);
    return bytes;
  },
  (bytes, next) => bytes.subarray(0, at(bytes, next)),
  (bytes, next) => bytes.subarray(at(bytes, next)),
  (bytes, next) => Buffer.concat([bytes, bytes.subarray(at(bytes, next))]),
  (bytes, next) => {
    if (bytes.length > 0) bytes[at(bytes, next)] = Math.floor(next() * 256);
    return bytes;
  },
  (bytes, next) => bytes.fill(next() < 0.5 ? 0 : 0xff, at(bytes, next)),
];

/** @returns the number of packets, how many session packets were understood, and how many of these the BMC never sent */
export async function mutate(count: number, seed: number): Promise<{ packets: number; answered: number; falseAnswers: number }> {
  const next = sameNumbers(seed);
  const keys = sessionKeys({
    suite: CIPHER_SUITES[17]!,
    password: Buffer.from('secret'),
    consoleId: 1,
    bmcId: 2,
    role: 0x14,
    username: Buffer.from('admin'),
    consoleRandom: Buffer.alloc(16, 1),
    bmcRandom: Buffer.alloc(16, 2),
    guid: Buffer.alloc(16, 3),
  });
  const command = { code: [0, 1], data: Buffer.alloc(0) } as const;
  const bridge = { hops: [{ channel: 7, address: 0x82 }], localAddress: 0x20 };
  const said = Buffer.from([0, 0x61, 0, 0]);
  const message = encodeLanMessage({ responder: 0x20, requester: 0x81, networkFunction: 1, lun: 0, sequence: 5, command: 1, data: said });
  const session = seal(keys, { payloadType: 0, sessionId: 1, sequence: 9 }, message, randomBytes);
  const packets = [session, encodePlain(message), encodeRmcpPlus({ payloadType: 0x11, sessionId: 0, sequence: 0 }, Buffer.alloc(36, 1))];
  const sensor = { number: 1, name: 'Temp', entity: [3, 1], sensorType: 1 } as const;
  const records = [
    fullRecord(1, { ...sensor, unit: 1, m: 1, thresholds: { unc: 9 } }),
    compactRecord(2, { ...sensor, states: 3 }),
    fruLocator(3, 0, 'FRU'),
  ];
  const stores = [...records, fruBytes('S'), randomBytes(16)];
  let delivered = 0;
  const stream = createSolStream({
    maxBytes: 8,
    resendMs: 1e6,
    send: () => {},
    deliver: ({ length }) => (delivered += length),
    failed: () => {},
  });
  let [answered, falseAnswers] = [0, 0];

  const look = (bytes: Buffer): void => {
    const packet = decodePacket(bytes);
    if (packet?.kind !== 'rmcp+') {
      if (packet?.kind === 'lan') decodeLanMessage(packet.payload);
      return;
    }
    for (const decode of [decodeResponseHead, decodeOpenSessionResponse, decodeRakp2, decodeRakp4, decodeLanMessage])
      decode(packet.payload);
    replyTo({ ...command, bridge }, 5, packet.payload);
    acceptSequence(newWindow, packet.sequence);
    const payload = unseal(keys, packet);
    const answer = payload && replyTo(command, 5, payload);
    if (!answer || answer === 'passed on' || !('answer' in answer)) return;
    answered++;
    if (!answer.answer.equals(said)) falseAnswers++;
  };
  const read = (bytes: Buffer): void => {
    const record = decodeSdr(bytes);
    if (record && (record.kind === 'full' || record.kind === 'compact') && hasAnalogReading(record)) valueOf(record, 0x55);
    decodeFru(bytes);
    decodeSelEntry(bytes);
    stream.receive(bytes);
  };
  for (let n = 0; n < count; n++) {
    const [from, judge] = n % 2 === 0 ? ([packets, look] as const) : ([stores, read] as const);
    let bytes: Buffer = Buffer.from(from[Math.floor(next() * from.length)]!);
    for (let bends = 1 + Math.floor(next() * 3); bends > 0; bends--) bytes = BENDS[Math.floor(next() * BENDS.length)]!(bytes, next);
    judge(bytes);
    // Lets other work run.
    if (n % 10_000 === 0) await new Promise((done) => setImmediate(done));
  }
  stream.end();
  return { packets: count, answered, falseAnswers };
}
