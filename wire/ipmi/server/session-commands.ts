/** The commands about channels and sessions (IPMI 2.0 §22), which a BMC answers before and in a session. The caller runs the others. */
import { ok, refuse, type BmcAnswer, type BmcOptions, type BmcRequest, type Privileged, type Satellite } from '../bmc';
import { decodeLanMessage, encodeLanMessage, type LanMessage } from '../codec';
import { COMMANDS, COMPLETION, PRIVILEGE, type CommandCode } from '../constants';
import type { CipherSuite } from '../suites';
import type { createLanSessions } from './lan';

const is = (message: LanMessage, [networkFunction, command]: CommandCode): boolean =>
  message.networkFunction === networkFunction && message.command === command;
const THIS_CHANNEL = 0x0e;
/** The only LAN channel of this BMC. */
const CHANNEL = 1;

interface SessionCommandsSetup {
  readonly options: BmcOptions;
  /** By their numbers. */
  readonly suites: readonly (readonly [number, CipherSuite])[];
  /** Sessions of IPMI 1.5, if the BMC has them. */
  readonly lan: ReturnType<typeof createLanSessions> | undefined;
  /** False: there is no session of this ID. */
  readonly closeSession: (id: number) => boolean;
}
interface SessionCommands {
  /** The answer is `insufficientPrivilege` if the command needs a session. */
  readonly beforeSession: (message: LanMessage) => BmcAnswer;
  readonly run: (session: Privileged, message: LanMessage) => Promise<BmcAnswer>;
}

export function createSessionCommands({ options, suites, lan, closeSession }: SessionCommandsSetup): SessionCommands {
  const { users, guid } = options;

  /** §22.13: the console's first request, before it opens a session. */
  const authenticationCapabilities = (data: Buffer): BmcAnswer => {
    if (data.length !== 2) return refuse(COMPLETION.lengthInvalid);
    const channel = data[0]! & 0x0f;
    if (channel !== THIS_CHANNEL && channel !== CHANNEL) return refuse(COMPLETION.invalidField);
    const named = users.some(({ name }) => name !== '');
    const status =
      (options.oddities?.perMessage ? 0x10 : 0) |
      (options.kg ? 0x20 : 0) |
      (named ? 0x04 : 0) |
      (users.some(({ name }) => name === '') ? 0x01 : 0);
    // Bit 7: IPMI 2.0 data follows; then the types of IPMI 1.5 (password, MD5, none). Data 4: IPMI 2.0 sessions, 1.5 sessions.
    return ok(CHANNEL, 0x80 | (lan ? 0x15 : 0), status, lan ? 0x03 : 0x02, 0, 0, 0, 0);
  };
  /** §22.15.1: records in portions of 16 bytes. */
  const cipherSuiteRecords = Buffer.from(
    suites.flatMap(([number, row]) => [0xc0, number, row.authentication, 0x40 | row.integrity, 0x80 | row.confidentiality]),
  );
  const channelCipherSuites = (data: Buffer): BmcAnswer => {
    if (data.length !== 3) return refuse(COMPLETION.lengthInvalid);
    const start = (data[2]! & 0x3f) * 16;
    return ok(CHANNEL, ...cipherSuiteRecords.subarray(start, start + 16));
  };
  const beforeSession = (message: LanMessage): BmcAnswer => {
    if (is(message, COMMANDS.getChannelAuthenticationCapabilities)) return authenticationCapabilities(message.data);
    if (is(message, COMMANDS.getChannelCipherSuites)) return channelCipherSuites(message.data);
    if (is(message, COMMANDS.getSystemGuid)) return ok(...guid);
    if (lan && is(message, COMMANDS.getSessionChallenge)) return lan.challenge(message.data);
    return refuse(COMPLETION.insufficientPrivilege);
  };

  /** §22.18. */
  const setPrivilege = (session: Privileged, data: Buffer): BmcAnswer => {
    if (data.length !== 1) return refuse(COMPLETION.lengthInvalid);
    const level = data[0]! & 0x0f;
    if (level === 0) return ok(session.privilege);
    if (level < PRIVILEGE.USER || level > PRIVILEGE.ADMINISTRATOR) return refuse(COMPLETION.invalidField);
    // 0x81: exceeds the limit of channel or user.
    if (level > session.limit) return refuse(0x81);
    session.privilege = level;
    return ok(level);
  };
  /** §22.19. 0x87: invalid session ID. */
  const close = (session: Privileged, data: Buffer): BmcAnswer => {
    if (data.length !== 4) return refuse(COMPLETION.lengthInvalid);
    const id = data.readUInt32LE();
    if (id !== session.id && session.privilege < PRIVILEGE.ADMINISTRATOR) return refuse(COMPLETION.insufficientPrivilege);
    return closeSession(id) ? ok() : refuse(0x87);
  };
  const run = async (session: Privileged, message: LanMessage): Promise<BmcAnswer> => {
    if (message.lun !== 0) return refuse(COMPLETION.invalidForLun);
    if (is(message, COMMANDS.setSessionPrivilegeLevel)) return setPrivilege(session, message.data);
    if (is(message, COMMANDS.closeSession)) return close(session, message.data);
    const early = beforeSession(message);
    if (early.completionCode !== COMPLETION.insufficientPrivilege) return early;
    const { networkFunction, command, data } = message;
    try {
      if (is(message, COMMANDS.sendMessage) && options.satellites)
        return await passOn(options.satellites, { ...message, privilege: session.privilege });
      return await options.command({ networkFunction, command, data, privilege: session.privilege });
    } catch {
      return refuse(COMPLETION.unspecified);
    }
  };
  return { beforeSession, run };
}

/** Send Message (§22.10) to a controller behind this one. Data 1: channel, and in bits 7:6 whether the response is tracked. */
async function passOn(
  satellites: readonly Satellite[],
  request: BmcRequest & Pick<LanMessage, 'sequence' | 'requester'>,
): Promise<BmcAnswer> {
  const channel = request.data[0] ?? 0;
  const inner = decodeLanMessage(request.data.subarray(1));
  if (!inner || (inner.networkFunction & 1) !== 0) return refuse(COMPLETION.invalidField);
  const satellite = satellites.find((candidate) => candidate.address === inner.responder && candidate.channel === (channel & 0x0f));
  // 0x83: no controller at that address.
  if (!satellite) return refuse(0x83);
  const { networkFunction, command, data } = inner;
  const response =
    is(inner, COMMANDS.sendMessage) && satellite.satellites
      ? await passOn(satellite.satellites, { ...inner, privilege: request.privilege })
      : await satellite.command({ networkFunction, command, data, privilege: request.privilege });
  // A response from a further hop is inside the response, as with some BMCs. The satellite's own response is a separate message.
  const body = response.after ? Buffer.concat([response.data ?? Buffer.alloc(0), response.after]) : (response.data ?? Buffer.alloc(0));
  const after = encodeLanMessage({
    responder: inner.responder,
    requester: request.requester,
    lun: inner.lun,
    sequence: request.sequence,
    command,
    networkFunction: networkFunction + 1,
    data: Buffer.concat([Buffer.from([response.completionCode]), body]),
  });
  return { completionCode: COMPLETION.ok, after };
}
