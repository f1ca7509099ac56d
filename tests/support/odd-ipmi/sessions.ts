/** Odd behaviours of real BMCs in sessions, by name. Each row changes one thing of an otherwise correct BMC. */
import type { BmcOptions, Oddities } from '../../../wire/ipmi/bmc';
import type { IpmiTarget } from '../../../wire/ipmi/client';
import { decodeLanMessage, encodeLanMessage, type LanMessage } from '../../../wire/ipmi/codec';

interface OddSession {
  readonly bmc: Partial<BmcOptions>;
  readonly target?: Partial<IpmiTarget>;
}
const rmcpPlus = (oddities: Oddities): OddSession => ({ bmc: { oddities } });
const old = (oddities: Oddities, target: Partial<IpmiTarget> = {}): OddSession => ({
  bmc: { oddities },
  target: { ...target, version: '1.5' },
});
const changed = (change: (message: LanMessage) => Partial<LanMessage>) => (bytes: Buffer) => {
  const message = decodeLanMessage(bytes)!;
  return [encodeLanMessage({ ...message, ...change(message) })];
};
const spoilt = (at: (bytes: Buffer) => number) => (bytes: Buffer) => {
  const copy = Buffer.from(bytes);
  const index = at(copy);
  copy[index] = copy[index]! ^ 0x5a;
  return [copy];
};
const uint32 = (value: number): number => value >>> 0;
const user = { username: 'guest', password: 'guest', privilege: 'USER' } as const;

/** In these, a session serves 63 commands. */
export const ODD_NUMBERS: Readonly<Record<string, OddSession>> = {
  'RMCP+ numbers that never rise': rmcpPlus({ sequence: () => 7 }),
  'RMCP+ numbers that are zero': rmcpPlus({ sequence: () => 0 }),
  'RMCP+ numbers that jump': rmcpPlus({ sequence: (due) => uint32(due * 1000) }),
  'RMCP+ numbers that fall': rmcpPlus({ sequence: (due) => uint32(-due) }),
  'RMCP+ numbers in the wrong byte order': rmcpPlus({ sequence: (due) => uint32(due << 24) }),
  'IPMI 1.5 numbers that never rise': old({ sequence: () => 7 }),
  'IPMI 1.5 numbers that are zero': old({ sequence: () => 0 }),
  'IPMI 1.5 numbers that jump': old({ sequence: (due) => uint32(due * 1000) }),
};
export const ODD_SESSIONS: Readonly<Record<string, OddSession>> = {
  'IPMI 1.5 packets with the session ID 0': old({ sessionIdZero: true }),
  'IPMI 1.5 without codes': old({ perMessage: 'off' }),
  'IPMI 1.5 without codes, with numbers that are zero': old({ perMessage: 'off', sequence: () => 0 }),
  'IPMI 1.5 with unexpected codes': old({ perMessage: 'unexpected' }),
  'IPMI 1.5 with unexpected codes and the session ID 0': old({ perMessage: 'unexpected', sessionIdZero: true }),
  'IPMI 1.5 that requires the codes that it said to be needless': old({ perMessage: 'required' }),
  'the same for a user': old({ perMessage: 'required' }, user),
  'each response twice': rmcpPlus({ responses: (message) => [message, message] }),
  'a response with another requester address': rmcpPlus({ responses: changed(() => ({ requester: 0x20 })) }),
  'a response with another responder address': rmcpPlus({ responses: changed(() => ({ responder: 0x24 })) }),
  'a response with another LUN': rmcpPlus({ responses: changed(() => ({ lun: 3 })) }),
  'a response with a wrong checksum of the addresses': rmcpPlus({ responses: spoilt(() => 2) }),
  'a response with a wrong checksum of the data': rmcpPlus({ responses: spoilt(({ length }) => length - 1) }),
  'IPMI 1.5: a response with a wrong checksum': old({ responses: spoilt(({ length }) => length - 1) }),
  'a response to another request before each': rmcpPlus({
    responses: (message) => [...changed(({ sequence }) => ({ sequence: (sequence + 63) % 64 }))(message), message],
  }),
  'a response of another command before each': rmcpPlus({
    responses: (message) => [...changed(({ command }) => ({ command: command ^ 1 }))(message), message],
  }),
  'an empty response before each': rmcpPlus({ responses: (message) => [Buffer.alloc(0), message] }),
};
