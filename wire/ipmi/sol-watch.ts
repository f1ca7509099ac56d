/** Whether serial-over-LAN is still active in the console's session (IPMI 2.0 §24.1, §24.4, §24.5). */
import { PAYLOAD } from './codec';
import { COMMANDS, COMPLETION, IpmiError, completionText, type CommandCode } from './constants';

/** Sends a command once in its turn. @returns completion code and data; undefined without a response */
export type Ask = (code: CommandCode, data: readonly number[]) => Promise<Buffer | undefined>;
/** Payload type and instance for §24.1, §24.2, §24.5. */
export const PAYLOAD_INSTANCE = [PAYLOAD.sol, 1] as const;
/** Completion code of Activate Payload. */
export const ACTIVE_ELSEWHERE = 0x80;

/** What a BMC says about SOL. */
interface PayloadState {
  /** Absent: the BMC does not support the question. */
  readonly active?: boolean;
  /** The ID of the session that has it. */
  readonly holder?: number | undefined;
}
/** §24.4, §24.5. @returns undefined without a response */
async function payloadState(ask: Ask): Promise<PayloadState | undefined> {
  const status = await ask(COMMANDS.getPayloadActivationStatus, [PAYLOAD.sol]);
  if (!status) return undefined;
  if (status[0] !== COMPLETION.ok || status.length < 3) return {};
  if ((status[2]! & FIRST_INSTANCE) === 0) return { active: false };
  const info = await ask(COMMANDS.getPayloadInstanceInfo, PAYLOAD_INSTANCE);
  return { active: true, holder: info?.[0] === COMPLETION.ok && info.length >= 5 ? info.readUInt32LE(1) : undefined };
}
const FIRST_INSTANCE = 0x01;

const takenOver = (): IpmiError => new IpmiError('closed', 'another console has taken the serial-over-LAN session over');
export const notActivated = (completionCode: number): IpmiError =>
  new IpmiError('completion', `serial-over-LAN: ${completionText(completionCode, COMMANDS.activatePayload)}`, { completionCode });

interface SolWatch {
  /** Learns the state right after the activation. */
  readonly learn: (send: Ask) => Promise<void>;
  readonly look: (send: Ask) => Promise<IpmiError | undefined>;
}
/**
 * @param silent the error when the BMC does not answer
 * @param activation the data of Activate Payload
 * @param restart is called when the payload was activated again
 */
export function createSolWatch(silent: IpmiError, activation: readonly number[], restart: () => void): SolWatch {
  /** The state right after the activation; undefined as long as the BMC has not answered. */
  let activated: PayloadState | undefined;
  /** @returns why the console ends. After an outage, a BMC may have ended SOL, or another console may have it, while the session is alive. */
  const look = async (send: Ask): Promise<IpmiError | undefined> => {
    const now = await payloadState(send);
    if (!now) return silent;
    // A BMC that says "inactive" right after the activation is not trusted.
    const isTrusted = activated === undefined || activated.active === true;
    if (isTrusted && now.active === false) return reactivate(send);
    if (!activated?.active) activated ??= now;
    else if (now.holder !== undefined && activated.holder !== undefined && now.holder !== activated.holder) return takenOver();
    return undefined;
  };
  const reactivate = async (send: Ask): Promise<IpmiError | undefined> => {
    const again = await send(COMMANDS.activatePayload, activation);
    if (!again) return silent;
    const completionCode = again[0]!;
    if (completionCode === ACTIVE_ELSEWHERE) {
      if (activated) return takenOver();
      // It says "inactive", and refuses because this console has SOL.
      activated = { active: false };
      return undefined;
    }
    if (completionCode !== COMPLETION.ok) return notActivated(completionCode);
    restart();
    activated = await payloadState(send);
    return undefined;
  };
  return {
    learn: async (send) => {
      activated = await payloadState(send);
    },
    look,
  };
}
