import { randomBytes } from 'node:crypto';
import {
  PAYLOAD,
  decodeLanMessage,
  decodeOpenSessionRequest,
  decodeOpenSessionResponse,
  decodePacket,
  decodeRakp1,
  decodeRakp2,
  decodeRakp3,
  decodeRakp4,
  decodeResponseHead,
  encodeLanMessage,
  encodeOpenSessionRequest,
  encodeOpenSessionResponse,
  encodePlain,
  encodePong,
  encodeRakp1,
  encodeRakp2,
  encodeRakp3,
  encodeRakp4,
  encodeRefusal,
  encodeRmcpPlus,
  type Packet,
} from '../../../wire/ipmi/codec';
import {
  CIPHER_SUITES,
  acceptSequence,
  newWindow,
  nextSequence,
  rakp2Code,
  rakp3Code,
  rakp4Code,
  seal,
  sessionKeys,
  unseal,
  type Handshake,
  type SequenceWindow,
} from '../../../wire/ipmi/suites';
import { SUITE_17, SUITE_3, type Capture } from './captures';

type RmcpPlus = Packet & { readonly kind: 'rmcp+' };
const bytesOf = (hex: string): Buffer => Buffer.from(hex, 'hex');
const rmcpPlus = (bytes: Buffer): RmcpPlus => {
  const packet = decodePacket(bytes);
  if (packet?.kind !== 'rmcp+') throw new Error('no RMCP+ packet');
  return packet;
};

/** Everything of a captured handshake, read from its packets. */
function handshakeOf(capture: Capture): Handshake & { readonly codes: readonly Buffer[] } {
  const payload = (type: number): Buffer => {
    const found = capture.packets
      .map(([, hex]) => decodePacket(bytesOf(hex)))
      .find((packet) => packet?.kind === 'rmcp+' && packet.payloadType === type);
    if (found?.kind !== 'rmcp+') throw new Error(`no payload ${type}`);
    return found.payload;
  };
  const opened = decodeOpenSessionResponse(payload(PAYLOAD.openSessionResponse))!;
  const [first, second] = [decodeRakp1(payload(PAYLOAD.rakp1))!, decodeRakp2(payload(PAYLOAD.rakp2))!];
  const [third, fourth] = [decodeRakp3(payload(PAYLOAD.rakp3))!, decodeRakp4(payload(PAYLOAD.rakp4))!];
  return {
    suite: CIPHER_SUITES[capture.suite]!,
    password: Buffer.from(capture.password),
    consoleId: opened.consoleId,
    bmcId: opened.bmcId,
    consoleRandom: first.consoleRandom,
    role: first.role,
    username: first.username,
    bmcRandom: second.bmcRandom,
    guid: second.guid,
    codes: [second.code, third.code, fourth.code],
  };
}

describe.each([SUITE_3, SUITE_17])('captured handshake of ipmitool with cipher suite $suite', (capture) => {
  const handshake = handshakeOf(capture);
  const keys = sessionKeys(handshake);
  const inSession = capture.packets.map(([from, hex]) => ({ from, bytes: bytesOf(hex) })).filter(({ bytes }) => bytes[5] === 0xc0);

  it('contains the authentication codes that we compute', () => {
    expect([rakp2Code(handshake), rakp3Code(handshake), rakp4Code(handshake)]).toEqual(handshake.codes);
    expect(handshake.username.toString()).toBe('admin');
  });
  it('is decrypted with our session keys', () => {
    const messages = inSession.map(({ bytes }) => decodeLanMessage(unseal(keys, rmcpPlus(bytes))!)!);
    // Set Session Privilege Level to administrator and its answer, then the next request.
    expect(messages[0]).toMatchObject({ networkFunction: 6, command: 0x3b, data: Buffer.from([4]), responder: 0x20, requester: 0x81 });
    expect(messages[1]).toMatchObject({ networkFunction: 7, command: 0x3b, data: Buffer.from([0, 4]), responder: 0x20, requester: 0x81 });
    expect(messages[1]!.sequence).toBe(messages[0]!.sequence);
  });
  it('is identical to what we encode within the session', () => {
    for (const { bytes } of inSession) {
      const packet = rmcpPlus(bytes);
      const message = decodeLanMessage(unseal(keys, packet)!)!;
      const vector = packet.payload.subarray(0, 16);
      const { payloadType, sessionId, sequence } = packet;
      expect(seal(keys, { payloadType, sessionId, sequence }, encodeLanMessage(message), () => vector)).toEqual(bytes);
    }
  });
  it('is identical to what we encode outside the session', () => {
    const codecs: Readonly<Record<number, (payload: Buffer) => Buffer>> = {
      [PAYLOAD.openSessionRequest]: (payload) => encodeOpenSessionRequest(decodeOpenSessionRequest(payload)!),
      [PAYLOAD.openSessionResponse]: (payload) => encodeOpenSessionResponse(decodeOpenSessionResponse(payload)!),
      [PAYLOAD.rakp1]: (payload) => encodeRakp1(decodeRakp1(payload)!),
      [PAYLOAD.rakp2]: (payload) => encodeRakp2(decodeRakp2(payload)!),
      [PAYLOAD.rakp3]: (payload) => encodeRakp3(decodeRakp3(payload)!),
      [PAYLOAD.rakp4]: (payload) => encodeRakp4(decodeRakp4(payload)!),
    };
    let compared = 0;
    for (const [, hex] of capture.packets) {
      const packet = decodePacket(bytesOf(hex))!;
      if (packet.kind === 'lan') expect(encodePlain(encodeLanMessage(decodeLanMessage(packet.payload)!)).toString('hex')).toBe(hex);
      else if (packet.kind === 'rmcp+' && codecs[packet.payloadType]) {
        const payload = codecs[packet.payloadType]!(packet.payload);
        expect(encodeRmcpPlus({ payloadType: packet.payloadType, sessionId: 0, sequence: 0 }, payload).toString('hex')).toBe(hex);
      } else continue;
      compared++;
    }
    expect(compared).toBe(8);
  });
  it('is rejected after a change of any bit', () => {
    const { bytes } = inSession[0]!;
    for (let at = 4; at < bytes.length; at++) {
      const bent = Buffer.from(bytes);
      bent[at]! ^= 0x04;
      const packet = decodePacket(bent);
      if (packet?.kind === 'rmcp+') expect([at, unseal(keys, packet)]).toEqual([at, undefined]);
    }
  });
  it('is rejected when it is truncated or followed by other bytes', () => {
    const { bytes } = inSession[0]!;
    for (let length = 0; length < bytes.length; length++) {
      const packet = decodePacket(bytes.subarray(0, length));
      if (packet?.kind === 'rmcp+') expect(unseal(keys, packet)).toBeUndefined();
    }
    expect(unseal(keys, rmcpPlus(Buffer.concat([bytes, Buffer.from([0])])))).toBeUndefined();
  });
  it('is rejected without the integrity and encryption of the suite', () => {
    const message = encodeLanMessage({
      responder: 0x20,
      requester: 0x81,
      networkFunction: 6,
      lun: 0,
      sequence: 1,
      command: 1,
      data: Buffer.alloc(0),
    });
    const clear = encodeRmcpPlus({ payloadType: PAYLOAD.ipmi, sessionId: handshake.bmcId, sequence: 9 }, message);
    expect(unseal(keys, rmcpPlus(clear))).toBeUndefined();
  });
});

describe('packets', () => {
  it.each([
    ['an empty packet', ''],
    ['a short packet', '0600ff07'],
    ['another RMCP version', '0500ff07000000000000000000092018c88100388e04b5'],
    ['another class', '0600ff08000000000000000000092018c88100388e04b5'],
    ['an authentication type of IPMI 1.5', '0600ff07020000000000000000092018c88100388e04b5'],
    ['a plain payload longer than the packet', '0600ff070000000000000000000a2018c88100388e04b5'],
    [
      'an RMCP+ payload longer than the packet',
      '0600ff0706100000000000000000210000000000a4a3a2a0000000080100000001000008010000000200000801000000',
    ],
    ['an OEM payload', '0600ff0706020000000000000000000000000000000000000000'],
    ['an ASF message other than Presence Ping', '0600ff06000011be40000000'],
    ['a packet of more than a kilobyte', `0600ff07${'00'.repeat(1100)}`],
  ])('decodePacket rejects %s', (_, hex) => expect(decodePacket(bytesOf(hex))).toBeUndefined());

  it('Presence Ping and Pong are encoded as in ASF 2.0', () => {
    // The ping of ipmitool and FreeIPMI's rmcpping (ASF 2.0 §3.2.4.2).
    expect(decodePacket(Buffer.from('0600ff06000011be80170000', 'hex'))).toEqual({ kind: 'presence-ping', tag: 0x17 });
    expect(encodePong(0x17).toString('hex')).toBe('0600ff06000011be40170010000011be000000008100000000000000');
  });
});

describe('LAN messages', () => {
  const request = {
    responder: 0x20,
    requester: 0x81,
    networkFunction: 0,
    lun: 2,
    sequence: 0x3f,
    command: 9,
    data: Buffer.from([5, 0, 0]),
  };
  it.each([request, { ...request, networkFunction: 1, data: Buffer.from([0, 1, 5]) }])('are unchanged after encode and decode', (message) =>
    expect(decodeLanMessage(encodeLanMessage(message))).toEqual(message),
  );
  it('are rejected when a checksum is wrong', () => {
    const good = encodeLanMessage(request);
    for (let at = 0; at < good.length; at++) {
      const bent = Buffer.from(good);
      bent[at]! ^= 1;
      expect([at, decodeLanMessage(bent)]).toEqual([at, undefined]);
    }
  });
  it('are rejected when they are short or are responses without a completion code', () => {
    for (let length = 0; length < 7; length++) expect(decodeLanMessage(Buffer.alloc(length))).toBeUndefined();
    expect(decodeLanMessage(encodeLanMessage({ ...request, networkFunction: 1, data: Buffer.alloc(0) }))).toBeUndefined();
  });
});

describe('session setup messages', () => {
  const algorithms = { authentication: 1, integrity: 1, confidentiality: 1 };
  const head = { tag: 7, status: 0, consoleId: 0xa0a2a3a4 };
  const sixteen = Buffer.alloc(16, 0x5a);
  it.each<[string, Buffer, (bytes: Buffer) => unknown]>([
    ['Open Session Request', encodeOpenSessionRequest({ tag: 1, privilege: 4, consoleId: 1, algorithms }), decodeOpenSessionRequest],
    ['Open Session Response', encodeOpenSessionResponse({ ...head, privilege: 4, bmcId: 2, algorithms }), decodeOpenSessionResponse],
    ['RAKP 1', encodeRakp1({ tag: 1, bmcId: 2, consoleRandom: sixteen, role: 0x14, username: Buffer.from('root') }), decodeRakp1],
    ['RAKP 2', encodeRakp2({ ...head, bmcRandom: sixteen, guid: sixteen, code: Buffer.alloc(0) }), decodeRakp2],
    ['RAKP 3', encodeRakp3({ tag: 1, status: 0, bmcId: 2, code: Buffer.alloc(0) }), decodeRakp3],
    ['RAKP 4', encodeRakp4({ ...head, code: Buffer.alloc(0) }), decodeRakp4],
  ])('%s is rejected when it is truncated', (_, good, decode) => {
    expect(decode(good)).toBeDefined();
    for (let length = 0; length < good.length; length++) expect(decode(good.subarray(0, length))).toBeUndefined();
  });
  it('a refusal may end after its status', () => {
    expect(decodeResponseHead(encodeRefusal({ ...head, status: 0x0d }))).toEqual({ ...head, status: 0x0d });
    // ipmi_sim's answer to a cipher suite that it does not have.
    expect(decodeResponseHead(bytesOf('0004'))).toEqual({ tag: 0, status: 4, consoleId: 0 });
    expect(decodeResponseHead(bytesOf('00'))).toBeUndefined();
  });
  it('RAKP 1 is rejected with a user name of more than 16 bytes', () => {
    const long = encodeRakp1({ tag: 1, bmcId: 2, consoleRandom: sixteen, role: 0x14, username: Buffer.alloc(17, 0x61) });
    expect(decodeRakp1(long)).toBeUndefined();
  });
  it('Open Session Request is rejected with other algorithm payloads', () => {
    const good = encodeOpenSessionRequest({ tag: 1, privilege: 4, consoleId: 1, algorithms });
    for (const at of [8, 11, 16, 19, 24, 27]) {
      const bent = Buffer.from(good);
      bent[at]! ^= 0x40;
      expect(decodeOpenSessionRequest(bent)).toBeUndefined();
    }
  });
});

describe.each(Object.keys(CIPHER_SUITES).map(Number))('cipher suite %i', (number) => {
  const handshake: Handshake = {
    suite: CIPHER_SUITES[number]!,
    password: Buffer.from('pw'),
    kg: Buffer.from('group key'),
    consoleId: 1,
    bmcId: 2,
    role: 0x14,
    username: Buffer.from('u'),
    consoleRandom: Buffer.alloc(16, 1),
    bmcRandom: Buffer.alloc(16, 2),
    guid: Buffer.alloc(16, 3),
  };
  it('seal encrypts payloads of every length, and unseal decrypts them', () => {
    const keys = sessionKeys(handshake);
    for (let length = 0; length < 40; length++) {
      const payload = randomBytes(length);
      const bytes = seal(keys, { payloadType: 0, sessionId: 5, sequence: length + 1 }, payload, randomBytes);
      expect(unseal(keys, rmcpPlus(bytes))).toEqual(payload);
    }
  });
  it('has authentication codes of the lengths that its algorithms have', () => {
    const { suite } = handshake;
    const length = { sha1: 20, md5: 16, sha256: 32, none: 0 }[suite.hash ?? 'none'];
    expect([rakp2Code(handshake).length, rakp3Code(handshake).length]).toEqual([length, length]);
    expect(rakp4Code(handshake).length).toBe(suite.checkLength);
  });
});

describe('sequence numbers of a session', () => {
  const accepted = (...numbers: readonly number[]): readonly boolean[] => {
    let window: SequenceWindow = newWindow;
    return numbers.map((number) => {
      const next = acceptSequence(window, number);
      window = next ?? window;
      return next !== undefined;
    });
  };
  it.each<[string, readonly number[], readonly boolean[]]>([
    ['in order', [1, 2, 3], [true, true, true]],
    ['that are duplicated', [1, 1, 2, 2, 1], [true, false, true, false, false]],
    ['out of order', [1, 4, 3, 2, 3, 2, 5], [true, true, true, true, false, false, true]],
    ['16 ahead, and too far', [1, 17, 34, 18], [true, true, false, true]],
    ['15 behind, and too old', [20, 5, 4], [true, true, false]],
    ['that are 0, outside a session', [0, 1, 0], [false, true, false]],
    ['around the end of 32 bits', [0xffffffff, 1, 2, 0xffffffff, 0xfffffffe], [true, true, true, false, true]],
    ['that begin anywhere', [0x80000000, 0x80000001, 0x80000001], [true, true, false]],
  ])('acceptSequence with numbers %s', (_, numbers, expected) => expect(accepted(...numbers)).toEqual(expected));
  it('nextSequence skips zero', () => {
    expect(nextSequence(0)).toBe(1);
    expect(nextSequence(0xfffffffe)).toBe(0xffffffff);
    expect(nextSequence(0xffffffff)).toBe(1);
  });
});
