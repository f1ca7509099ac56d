/** What a deployment needs of a BMC with IPMI, as a table of checks: read commands of IPMI 2.0 only. */
import { IpmiError, type IpmiPool, type IpmiTarget } from '../../wire/ipmi/client';
import { BOOT_PARAMETER, COMMANDS, PRIVILEGE, type CommandCode } from '../../wire/ipmi/constants';
import { manufacturerOf } from '../../wire/ipmi/records/manufacturers';
import { decodeFru, readFruBytes } from '../../wire/ipmi/records/fru';
import { ProbeEnd, missing, ok, unknown, wrong, type Check, type Outcome } from './check';

/** The commands of a probe. Each reads. @internal */
export const READS: readonly CommandCode[] = [
  COMMANDS.getDeviceId,
  COMMANDS.getChassisStatus,
  COMMANDS.getSystemBootOptions,
  COMMANDS.getSdrRepositoryInfo,
  COMMANDS.getDeviceSdrInfo,
  COMMANDS.getSelInfo,
  COMMANDS.getSelTime,
  COMMANDS.getFruInventoryAreaInfo,
  COMMANDS.readFruData,
  COMMANDS.getSolConfigurationParameters,
  COMMANDS.getSystemGuid,
];
const REQUEST_MS = 10_000;

interface ProbedIpmi {
  readonly ask: (code: CommandCode, data: readonly number[]) => Promise<Buffer>;
  readonly target: IpmiTarget;
  readonly now: () => number;
}
/** @throws IpmiError; Error for a command that may change something */
export function probedIpmi(pool: IpmiPool, target: IpmiTarget, signal: AbortSignal, now: () => number): ProbedIpmi {
  return {
    target,
    now,
    ask: async (code, data) => {
      if (!READS.includes(code)) throw new Error(`a probe does not send the command ${code.join(' ')}`);
      return pool.request(target, code[0], code[1], Buffer.from(data), { timeoutMs: REQUEST_MS, signal });
    },
  };
}
/** What a failed command means for a check. */
export function ipmiOutcome(error: unknown): Outcome | undefined {
  if (!(error instanceof IpmiError)) return undefined;
  return error.kind === 'completion' ? missing(error.message) : unknown(error.message);
}
/** Whatever fails at the login ends the probe: an account may be locked after few attempts. */
async function login({ ask, target }: ProbedIpmi): Promise<Outcome> {
  try {
    await ask(COMMANDS.getDeviceId, []);
  } catch (error) {
    if (!(error instanceof IpmiError) || error.kind === 'completion') throw error;
    const todo =
      error.kind === 'refused'
        ? 'Check the account, its password, its privilege and the cipher suites. Another try with a wrong password may lock the account.'
        : 'Check the address, the port, and whether IPMI over LAN is enabled.';
    throw new ProbeEnd(wrong(error.message, todo));
  }
  return ok(`By RMCP+ as ${target.privilege.toLowerCase()}.`);
}
/** Texts of the BMC about the machine. */
export async function ipmiMachine({ ask }: ProbedIpmi): Promise<Readonly<Record<string, string | null>>> {
  const id = await ask(COMMANDS.getDeviceId, []);
  const fru = await readFruBytes(ask).then(decodeFru, (error: unknown) => {
    if (error instanceof IpmiError) return undefined;
    throw error;
  });
  const [board, product] = [fru?.board, fru?.product];
  return {
    manufacturer: product?.manufacturer ?? board?.manufacturer ?? (id.length >= 9 ? manufacturerOf(id) : undefined) ?? null,
    model: product?.product ?? board?.product ?? null,
    bmc: id.length >= 4 ? `${id[2]! & 0x7f}.${id[3]!.toString(16).padStart(2, '0')}` : null,
  };
}

export const IPMI_CHECKS: readonly Check<ProbedIpmi>[] = [
  { name: 'login', neededFor: ['everything'], run: login },
  {
    name: 'privilege',
    neededFor: ['power', 'boot device'],
    run: ({ target: { privilege } }) =>
      PRIVILEGE[privilege] >= PRIVILEGE.OPERATOR
        ? ok(`The session has the privilege ${privilege}.`)
        : wrong(`The session has the privilege ${privilege} only.`, 'Use --privilege OPERATOR or ADMINISTRATOR.'),
  },
  {
    name: 'power',
    neededFor: ['power'],
    run: async ({ ask }) => {
      const [state] = await ask(COMMANDS.getChassisStatus, []);
      return state === undefined ? unknown('The BMC answers without a power state.') : ok(`The machine is ${state & 1 ? 'on' : 'off'}.`);
    },
  },
  {
    name: 'network boot',
    neededFor: ['PXE', 'boot device'],
    run: async ({ ask }) => {
      const answer = await ask(COMMANDS.getSystemBootOptions, [BOOT_PARAMETER.flags, 0, 0]);
      return answer.length >= 7
        ? ok('The BMC has boot flags.')
        : wrong('The boot flags of the BMC are too short.', 'Set the order in the menu of the firmware.');
    },
  },
  {
    name: 'boot mode',
    neededFor: ['boot mode'],
    optional: true,
    run: async ({ ask }) => {
      const answer = await ask(COMMANDS.getSystemBootOptions, [BOOT_PARAMETER.flags, 0, 0]);
      const flags = answer[2];
      if (flags === undefined) return unknown('The BMC does not tell the boot flags.');
      return ok(`The flags of the next boot ask for ${flags & 0x20 ? 'UEFI' : 'BIOS'}; IPMI does not tell how the machine runs.`);
    },
  },
  {
    name: 'sensors',
    neededFor: ['sensors', 'health'],
    optional: true,
    run: async ({ ask }) => {
      const info = await ask(COMMANDS.getSdrRepositoryInfo, []);
      const count = info.length >= 3 ? info.readUInt16LE(1) : 0;
      return count > 0
        ? ok(`${count} records in the SDR repository.`)
        : missing('The SDR repository is empty.', 'Some BMCs fill it while the machine is on.');
    },
  },
  {
    name: 'logs',
    neededFor: ['logs', 'health'],
    optional: true,
    run: async ({ ask }) => {
      const info = await ask(COMMANDS.getSelInfo, []);
      if (info.length < 14) return unknown('The BMC answers about its log with too few bytes.');
      return info[13]! & 0x80
        ? wrong(`The log has ${info.readUInt16LE(1)} entries and is full.`, 'Clear it: newer events are lost.')
        : ok(`The log has ${info.readUInt16LE(1)} entries.`);
    },
  },
  {
    name: 'clock',
    neededFor: ['logs'],
    optional: true,
    run: async ({ ask, now }) => {
      const answer = await ask(COMMANDS.getSelTime, []);
      if (answer.length < 4) return unknown('The BMC does not tell the time of its log.');
      const minutes = Math.round((answer.readUInt32LE() * 1000 - now()) / 60_000);
      return Math.abs(minutes) <= 5
        ? ok('The clock of the log is right to within 5 minutes.')
        : wrong(
            `The clock of the log is ${Math.abs(minutes)} minutes ${minutes < 0 ? 'slow' : 'fast'}, or in local time.`,
            'Set it at the BMC.',
          );
    },
  },
  {
    name: 'inspection',
    neededFor: ['inspection'],
    optional: true,
    run: async ({ ask }) => {
      const bytes = await readFruBytes(ask);
      return bytes.length > 8
        ? ok('The FRU data name the machine. Memory, disks and MAC addresses come from the agent.')
        : missing('There are no FRU data.', 'Inspect by the agent.');
    },
  },
  {
    name: 'console',
    neededFor: ['console'],
    optional: true,
    run: async ({ ask }) => {
      // Channel: the present one. Parameter 1: SOL enable (IPMI 2.0 table 26-5).
      const answer = await ask(COMMANDS.getSolConfigurationParameters, [0x0e, 1, 0, 0]);
      return (answer[1] ?? 0) & 1
        ? ok('Serial-over-LAN is enabled.')
        : wrong('Serial-over-LAN is disabled.', 'Enable it: ipmitool sol set enabled true.');
    },
  },
];
