/** The BMC's side of serial-over-LAN (IPMI 2.0 §15, §24), for one console at a time. */
import { ok, refuse, type BmcAnswer, type SolOptions } from '../bmc';
import { PAYLOAD, type LanMessage } from '../codec';
import { COMMANDS, COMPLETION, type CommandCode } from '../constants';
import { SOL_BITS, createSolStream, type SolStream } from '../sol-stream';

interface SolServer {
  /** Undefined: not a payload command. */
  command(sessionId: number, message: LanMessage, send: (payload: Buffer) => void): BmcAnswer | undefined;
  receive(sessionId: number, payload: Buffer, send: (payload: Buffer) => void): void;
  /** The session has ended. */
  forget(sessionId: number): void;
}

const SIZE = 200;
const RESEND_MS = 250;
/** Characters that are buffered while the console accepts none. More is lost, as on a real line. */
const MAX_WAITING = 64 * 1024;

export function createSolServer({ serial, port, resendMs = RESEND_MS }: SolOptions): SolServer {
  let active:
    | { readonly sessionId: number; readonly stream: SolStream; send: (payload: Buffer) => void; readonly stopListening: () => void }
    | undefined;
  const detach = (): void => {
    active?.stopListening();
    active?.stream.end();
    active = undefined;
  };
  const attach = (sessionId: number, send: (payload: Buffer) => void): void => {
    const stream = createSolStream({
      maxBytes: SIZE,
      resendMs,
      send: (payload) => active?.send(payload),
      deliver: (bytes) => serial.input(bytes),
      status: (bits) => {
        if (bits & SOL_BITS.break) serial.break();
      },
      failed: detach,
    });
    // Buffered, because machines write single characters, and only one packet at a time is unacknowledged.
    let waiting = Buffer.alloc(0);
    let writing = false;
    const write = async (): Promise<void> => {
      if (writing) return;
      writing = true;
      while (waiting.length > 0) {
        const bytes = waiting;
        waiting = Buffer.alloc(0);
        await stream.write(bytes);
      }
      writing = false;
    };
    const stopListening = serial.listen((bytes) => {
      waiting = Buffer.concat([waiting, bytes.subarray(0, MAX_WAITING - waiting.length)]);
      // It fails when the console has disconnected, which also detaches this.
      write().catch(() => {});
    });
    active = { sessionId, stream, send, stopListening };
  };
  const isSol = (data: Buffer): boolean => data[0] === PAYLOAD.sol;
  const rows: readonly (readonly [CommandCode, SolServer['command']])[] = [
    [
      COMMANDS.activatePayload,
      (sessionId, { data }, send) => {
        if (data.length !== 6) return refuse(COMPLETION.lengthInvalid);
        if (!isSol(data) || data[1] !== 1) return refuse(COMPLETION.invalidField);
        if (active && active.sessionId !== sessionId) return refuse(0x80);
        detach();
        attach(sessionId, send);
        // No VLAN (FFFFh).
        return ok(0, 0, 0, 0, SIZE + 4, 0, SIZE + 4, 0, port & 0xff, port >> 8, 0xff, 0xff);
      },
    ],
    [
      COMMANDS.deactivatePayload,
      (_, { data }) => {
        if (!isSol(data)) return refuse(COMPLETION.invalidField);
        if (!active) return refuse(0x80);
        active.send(Buffer.from([0, 0, 0, SOL_BITS.ending]));
        detach();
        return ok();
      },
    ],
    [COMMANDS.getPayloadActivationStatus, (_, { data }) => (isSol(data) ? ok(1, active ? 1 : 0, 0) : refuse(COMPLETION.invalidField))],
    [
      COMMANDS.getPayloadInstanceInfo,
      () => {
        const id = Buffer.alloc(4);
        id.writeUInt32LE(active?.sessionId ?? 0);
        return ok(...id, 0, 0, 0, 0, 0, 0, 0, 0);
      },
    ],
    // Standard payloads 0 (IPMI) and 1 (SOL), and the messages that open a session.
    [COMMANDS.getChannelPayloadSupport, () => ok(0x03, 0x00, 0x3f, 0, 0, 0, 0, 0)],
    [COMMANDS.getSolConfigurationParameters, (_, { data }) => solParameter(data[1] ?? 0, port)],
  ];
  return {
    command: (sessionId, message, send) =>
      rows.find(([[networkFunction, command]]) => networkFunction === message.networkFunction && command === message.command)?.[1](
        sessionId,
        message,
        send,
      ),
    receive: (sessionId, payload, send) => {
      if (active?.sessionId !== sessionId) return;
      active.send = send;
      active.stream.receive(payload);
    },
    forget: (sessionId) => {
      if (active?.sessionId === sessionId) detach();
    },
  };
}

/** §26.3: switched on, for administrators, 115.2 kbps. */
function solParameter(parameter: number, port: number): BmcAnswer {
  const values: Readonly<Record<number, readonly number[]>> = {
    0: [0],
    1: [1],
    2: [0xc4],
    3: [12, 96],
    4: [7, 50],
    5: [0x0a],
    6: [0x0a],
    7: [1],
    8: [port & 0xff, port >> 8],
  };
  const value = values[parameter];
  return value ? ok(0x11, ...value) : refuse(0x80);
}
