/** A serial-over-LAN session from the console's side (IPMI 2.0 §15, §24). It has its own IPMI session, which ends with it. */
import { PAYLOAD } from './codec';
import { COMMANDS, COMPLETION, IpmiError, type CommandCode } from './constants';
import { closeSession, sendCommand, unreachable, type Bounds, type IpmiTarget, type SessionResources, type Session } from './session';
import type { SessionPacket } from './socket';
import { SOL_BITS, createSolStream } from './sol-stream';
import { ACTIVE_ELSEWHERE, PAYLOAD_INSTANCE, createSolWatch, notActivated, type Ask } from './sol-watch';
import { CIPHER_SUITES } from './suites';

export interface SolChannel {
  /** Resolves when the BMC has accepted all of it. */
  write(bytes: Buffer): Promise<void>;
  sendBreak(): Promise<void>;
  /** Settles when the session has ended: with the reason, unless `close` ended it. */
  readonly closed: Promise<IpmiError | undefined>;
  close(): Promise<void>;
}

/** Keeps the session alive, and watches that SOL is active in it: the interval, and the queue for the BMC. */
export interface KeepAlive {
  readonly everyMs: number;
  inTurn<T>(bounds: Bounds, work: () => Promise<T>): Promise<T>;
}

/** §24.1, auxiliary data 1. */
const WITH = { encryption: 0x80, authentication: 0x40 } as const;
const TRIES = 4;
/** Most characters in a packet, whatever the BMC says. */
const MAX = 200;

/** Opens each packet once for all listeners: a second opening would reject its number as a duplicate. */
function sharedOpening(session: Session): { readonly session: Session; readonly acceptAnyNumber: () => void } {
  let last: { readonly packet: SessionPacket; readonly opened: ReturnType<Session['open']> } | undefined;
  let anyNumber = false;
  const shared = Object.assign(Object.create(session) as Session, {
    open: (packet: SessionPacket) => {
      if (last?.packet !== packet) {
        const opened = session.open(packet);
        last = { packet, opened: opened && { ...opened, inOrder: opened.inOrder || anyNumber } };
      }
      return last.opened;
    },
  });
  return { session: shared, acceptAnyNumber: () => (anyNumber = true) };
}

/** SOL that is active elsewhere is ended there first. @returns the response to Activate Payload */
async function activatePayload(
  ask: (code: CommandCode, data: readonly number[]) => Promise<Buffer>,
  activation: readonly number[],
): Promise<Buffer> {
  let answer = await ask(COMMANDS.activatePayload, activation);
  if (answer[0] === ACTIVE_ELSEWHERE) {
    await ask(COMMANDS.deactivatePayload, [...PAYLOAD_INSTANCE, 0, 0, 0, 0]);
    answer = await ask(COMMANDS.activatePayload, activation);
  }
  if (answer[0] !== COMPLETION.ok) throw notActivated(answer[0]!);
  if (answer.length < 11) throw new IpmiError('protocol', 'the BMC answered Activate Payload with too few bytes');
  return answer;
}

/**
 * Starts SOL in the session, and closes the session on failure. SOL that is active elsewhere is ended there first, as consoles do.
 * @param deliver gets the machine's output
 * @throws IpmiError
 */
export async function startSol(
  resources: SessionResources,
  target: IpmiTarget,
  opened: Session,
  bounds: Bounds,
  keepAlive: KeepAlive,
  deliver: (bytes: Buffer) => void,
): Promise<SolChannel> {
  const { session, acceptAnyNumber } = sharedOpening(opened);
  const ask = async (code: CommandCode, data: readonly number[]): Promise<Buffer> => {
    const answer = await sendCommand(resources, session, { code, data: Buffer.from(data) }, TRIES, bounds);
    if (!answer) throw unreachable(target);
    return answer;
  };
  const suite = CIPHER_SUITES[session.cipherSuite ?? 0];
  const auxiliary = (suite?.encrypts ? WITH.encryption : 0) | (suite?.signatureLength ? WITH.authentication : 0);
  const activation = [...PAYLOAD_INSTANCE, auxiliary, 0, 0, 0];
  const answer = await activatePayload(ask, activation).catch(async (error: unknown) => {
    await closeSession(resources, opened);
    throw error;
  });
  /** Such a BMC would never get a word through. Someone on the path to it can repeat its output within the session. */
  const tolerateOdd = (): void => {
    if (session.odd) acceptAnyNumber();
  };
  tolerateOdd();

  let over: (error?: IpmiError) => void = () => {};
  const closed = new Promise<IpmiError | undefined>((done) => (over = done));
  let isOver = false;
  // The inbound size includes the header of four bytes.
  const inboundSize = answer.readUInt16LE(5) - 4;
  const stream = createSolStream({
    maxBytes: inboundSize >= 1 && inboundSize < MAX ? inboundSize : MAX,
    resendMs: resources.resendMs,
    send: (payload) => void resources.sockets.send(session.route.peer, session.seal(PAYLOAD.sol, payload)),
    deliver,
    status: (bits) => {
      if (bits & SOL_BITS.ending) finish(new IpmiError('closed', 'the BMC ended the serial-over-LAN session'));
    },
    failed: (error) => finish(error),
  });
  const stopListening = resources.sockets.listen(
    session.route,
    (packet) => {
      const it = session.open(packet);
      if (it?.payloadType !== PAYLOAD.sol || !it.inOrder) return;
      heard = true;
      stream.receive(it.payload);
    },
    (reason) => finish(reason instanceof IpmiError ? reason : new IpmiError('closed', reason.message)),
  );
  /** SOL packets came since the last look. */
  let heard = false;
  const inTurn = (work: (ask: Ask) => Promise<void>): void => {
    const limits = { deadline: resources.clock.now() + keepAlive.everyMs };
    const send: Ask = (code, data) => sendCommand(resources, session, { code, data: Buffer.from(data) }, TRIES, limits);
    keepAlive.inTurn(limits, async () => (isOver ? undefined : work(send))).catch(() => {});
  };
  const watch = createSolWatch(unreachable(target), activation, () => stream.restart());
  // A session at the privilege level USER begins without a command: the numbers show in the second response.
  inTurn(async (send) => {
    await watch.learn(send);
    tolerateOdd();
  });
  const timer = setInterval(() => {
    const isSilent = !heard;
    heard = false;
    inTurn(async (send) => {
      const alive = async (): Promise<IpmiError | undefined> => ((await send(COMMANDS.getDeviceId, [])) ? undefined : unreachable(target));
      const reason = await (isSilent ? watch.look(send) : alive());
      if (reason) finish(reason);
    });
  }, keepAlive.everyMs).unref();
  const finish = (error?: IpmiError): void => {
    if (isOver) return;
    isOver = true;
    clearInterval(timer);
    stopListening();
    stream.end(error);
    over(error);
  };
  return {
    write: (bytes) => stream.write(bytes),
    sendBreak: () => stream.write(Buffer.alloc(0), SOL_BITS.break),
    closed,
    close: async () => {
      if (isOver) return;
      finish();
      const limits = { deadline: resources.clock.now() + 2 * resources.resendMs };
      const data = Buffer.from([...PAYLOAD_INSTANCE, 0, 0, 0, 0]);
      await sendCommand(resources, session, { code: COMMANDS.deactivatePayload, data }, 2, limits).catch(() => {});
      await closeSession(resources, opened);
    },
  };
}
