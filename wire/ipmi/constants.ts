/** The numbers of IPMI 2.0 (revision 1.1) for both sides, under their names in the specification. */

/** Network functions of requests (table 5-1). A response has the next number. */
const NET_FN = { chassis: 0x00, sensor: 0x04, app: 0x06, storage: 0x0a, transport: 0x0c } as const;

/** The code of a command (appendix G). */
export type CommandCode = readonly [networkFunction: number, command: number];
export const COMMANDS = {
  getChassisCapabilities: [NET_FN.chassis, 0x00],
  getChassisStatus: [NET_FN.chassis, 0x01],
  chassisControl: [NET_FN.chassis, 0x02],
  setSystemBootOptions: [NET_FN.chassis, 0x08],
  getSystemBootOptions: [NET_FN.chassis, 0x09],
  getDeviceId: [NET_FN.app, 0x01],
  coldReset: [NET_FN.app, 0x02],
  warmReset: [NET_FN.app, 0x03],
  getSelfTestResults: [NET_FN.app, 0x04],
  sendMessage: [NET_FN.app, 0x34],
  getSystemGuid: [NET_FN.app, 0x37],
  getChannelAuthenticationCapabilities: [NET_FN.app, 0x38],
  getSessionChallenge: [NET_FN.app, 0x39],
  activateSession: [NET_FN.app, 0x3a],
  setSessionPrivilegeLevel: [NET_FN.app, 0x3b],
  closeSession: [NET_FN.app, 0x3c],
  getChannelInfo: [NET_FN.app, 0x42],
  activatePayload: [NET_FN.app, 0x48],
  deactivatePayload: [NET_FN.app, 0x49],
  getPayloadActivationStatus: [NET_FN.app, 0x4a],
  getPayloadInstanceInfo: [NET_FN.app, 0x4b],
  getChannelPayloadSupport: [NET_FN.app, 0x4e],
  getChannelCipherSuites: [NET_FN.app, 0x54],
  getDeviceSdrInfo: [NET_FN.sensor, 0x20],
  getDeviceSdr: [NET_FN.sensor, 0x21],
  reserveDeviceSdrRepository: [NET_FN.sensor, 0x22],
  getSensorReadingFactors: [NET_FN.sensor, 0x23],
  getSensorHysteresis: [NET_FN.sensor, 0x25],
  setSensorThresholds: [NET_FN.sensor, 0x26],
  getSensorThresholds: [NET_FN.sensor, 0x27],
  getSensorReading: [NET_FN.sensor, 0x2d],
  getFruInventoryAreaInfo: [NET_FN.storage, 0x10],
  readFruData: [NET_FN.storage, 0x11],
  getSdrRepositoryInfo: [NET_FN.storage, 0x20],
  reserveSdrRepository: [NET_FN.storage, 0x22],
  getSdr: [NET_FN.storage, 0x23],
  getSelInfo: [NET_FN.storage, 0x40],
  reserveSel: [NET_FN.storage, 0x42],
  getSelEntry: [NET_FN.storage, 0x43],
  addSelEntry: [NET_FN.storage, 0x44],
  clearSel: [NET_FN.storage, 0x47],
  getSelTime: [NET_FN.storage, 0x48],
  getSolConfigurationParameters: [NET_FN.transport, 0x22],
} as const satisfies Record<string, CommandCode>;

/** Chassis Control, data 1 (§28.3). */
export const CHASSIS_CONTROL = { off: 0, on: 1, cycle: 2, reset: 3, diagnostic: 4, soft: 5 } as const;

/** Set and Get System Boot Options, parameter selectors (table 28-14). */
export const BOOT_PARAMETER = {
  setInProgress: 0,
  servicePartitionSelector: 1,
  servicePartitionScan: 2,
  validBitClearing: 3,
  infoAcknowledge: 4,
  flags: 5,
} as const;
/** Boot flags (parameter 5): data 1, and the device selector in bits 5:2 of data 2. */
export const BOOT_FLAG = { valid: 0x80, persistent: 0x40, uefi: 0x20 } as const;
/** Parameter 3, bit 3: the flags stay valid without a Chassis Control within 60 seconds. */
export const KEEP_WITHOUT_CHASSIS_CONTROL = 0x08;
export const BOOT_DEVICE = { none: 0, pxe: 1, disk: 2, safe: 3, diagnosticPartition: 4, cdrom: 5, bios: 6, remoteDisk: 0xb } as const;

/** Privilege levels (table 22-18, …). */
export const PRIVILEGE = { CALLBACK: 1, USER: 2, OPERATOR: 3, ADMINISTRATOR: 4 } as const;

/** Completion codes (table 5-2). Codes 0x80–0xBE depend on the command. */
export const COMPLETION = {
  ok: 0x00,
  nodeBusy: 0xc0,
  invalidCommand: 0xc1,
  invalidForLun: 0xc2,
  timeout: 0xc3,
  outOfSpace: 0xc4,
  reservationInvalid: 0xc5,
  lengthInvalid: 0xc7,
  lengthExceeded: 0xc8,
  outOfRange: 0xc9,
  cannotReturnBytes: 0xca,
  notPresent: 0xcb,
  invalidField: 0xcc,
  noResponse: 0xce,
  repositoryInUpdate: 0xd0,
  initialising: 0xd2,
  insufficientPrivilege: 0xd4,
  notInPresentState: 0xd5,
  unspecified: 0xff,
} as const;
const COMPLETION_TEXT: Readonly<Record<number, string>> = {
  0xc0: 'node busy',
  0xc1: 'invalid command',
  0xc2: 'command invalid for the given LUN',
  0xc3: 'timeout while processing the command',
  0xc4: 'out of space',
  0xc5: 'reservation cancelled or invalid',
  0xc6: 'request data truncated',
  0xc7: 'request data length invalid',
  0xc8: 'request data field length limit exceeded',
  0xc9: 'parameter out of range',
  0xca: 'cannot return that many bytes',
  0xcb: 'requested sensor, data or record not present',
  0xcc: 'invalid data field in the request',
  0xcd: 'command illegal for this sensor or record type',
  0xce: 'response could not be provided',
  0xcf: 'duplicated request',
  0xd0: 'response could not be provided: SDR repository in update mode',
  0xd1: 'response could not be provided: device in firmware update mode',
  0xd2: 'response could not be provided: BMC initialization in progress',
  0xd3: 'destination unavailable',
  0xd4: 'insufficient privilege level',
  0xd5: 'not supported in the present state',
  0xd6: 'sub-function disabled or unavailable',
  0xff: 'unspecified error',
};

/** RMCP+ and RAKP message status codes (table 13-15). */
export const RAKP_STATUS = {
  ok: 0x00,
  insufficientResources: 0x01,
  invalidSessionId: 0x02,
  noAuthenticationAlgorithm: 0x04,
  noIntegrityAlgorithm: 0x05,
  invalidRole: 0x09,
  unauthorizedRole: 0x0a,
  insufficientResourcesForRole: 0x0b,
  invalidNameLength: 0x0c,
  unauthorizedName: 0x0d,
  invalidIntegrityCheck: 0x0f,
  noConfidentialityAlgorithm: 0x10,
  noCipherSuiteMatch: 0x11,
  illegalParameter: 0x12,
} as const;
const RAKP_STATUS_TEXT: Readonly<Record<number, string>> = {
  0x01: 'the BMC has no free session',
  0x02: 'invalid session ID',
  0x03: 'invalid payload type',
  0x04: 'the BMC does not offer the authentication algorithm of the cipher suite',
  0x05: 'the BMC does not offer the integrity algorithm of the cipher suite',
  0x06: 'no matching authentication payload',
  0x07: 'no matching integrity payload',
  0x08: 'inactive session ID',
  0x09: 'invalid role',
  0x0a: 'the user may not have the privilege level asked for',
  0x0b: 'the BMC has no free session for the privilege level asked for',
  0x0c: 'wrong user name (its length)',
  0x0d: 'wrong user name',
  0x0e: 'wrong GUID',
  0x0f: 'wrong password or K_g key (integrity check value)',
  0x10: 'the BMC does not offer the confidentiality algorithm of the cipher suite',
  0x11: 'the BMC does not offer the cipher suite',
  0x12: 'illegal or unrecognized parameter',
};

const hex = (value: number): string => `0x${value.toString(16).padStart(2, '0')}`;
/** The meaning of codes 0x80–0xBE depends on the command (§22, §24, §28, §31). */
const COMMAND_COMPLETION_TEXT: readonly (readonly [CommandCode, Readonly<Record<number, string>>])[] = [
  [
    COMMANDS.sendMessage,
    { 0x80: 'invalid session handle', 0x81: 'lost arbitration', 0x82: 'bus error', 0x83: 'nothing answers at that address' },
  ],
  [COMMANDS.getSessionChallenge, { 0x81: 'wrong user name', 0x82: 'the BMC has no user without a name' }],
  [
    COMMANDS.activateSession,
    {
      0x81: 'the BMC has no free session',
      0x82: 'the BMC has no free session for that user',
      0x83: 'the BMC has no free session for the privilege level asked for',
      0x84: 'session sequence number out of range',
      0x85: 'invalid session ID',
      0x86: 'the user may not have the privilege level asked for',
    },
  ],
  [
    COMMANDS.setSessionPrivilegeLevel,
    {
      0x80: 'the user does not have it',
      0x81: 'above the limit of the user or the channel',
      0x82: 'user level authentication cannot be switched off',
    },
  ],
  [COMMANDS.closeSession, { 0x87: 'invalid session ID' }],
  [
    COMMANDS.activatePayload,
    {
      0x80: 'it is active in another session',
      0x81: 'it is switched off',
      0x82: 'no more of them can be active',
      0x83: 'not with encryption',
      0x84: 'not without encryption',
    },
  ],
  [COMMANDS.deactivatePayload, { 0x80: 'it is not active', 0x81: 'it is switched off' }],
  [
    COMMANDS.setSystemBootOptions,
    { 0x80: 'parameter not supported', 0x81: 'another change is in progress', 0x82: 'the parameter is read-only' },
  ],
  [COMMANDS.getSystemBootOptions, { 0x80: 'parameter not supported' }],
  [COMMANDS.getSelEntry, { 0x81: 'the SEL is being erased' }],
  [COMMANDS.clearSel, { 0x80: 'not supported', 0x81: 'the SEL is being erased' }],
  [COMMANDS.readFruData, { 0x81: 'the FRU device is busy' }],
];
/** Completion codes of a command that may succeed later. `notInPresentState` is not one: the machine's state does not pass by waiting. */
const MAY_PASS: readonly number[] = [
  COMPLETION.nodeBusy,
  COMPLETION.timeout,
  COMPLETION.outOfSpace,
  COMPLETION.noResponse,
  COMPLETION.repositoryInUpdate,
  COMPLETION.initialising,
];
/**
 * The same for single commands: the SEL is being erased, a FRU device is busy, another change of the boot options is in progress, no session is
 * free.
 */
const COMMAND_MAY_PASS: readonly (readonly [CommandCode, number])[] = [
  [COMMANDS.getSelEntry, 0x81],
  [COMMANDS.clearSel, 0x81],
  [COMMANDS.readFruData, 0x81],
  [COMMANDS.setSystemBootOptions, 0x81],
  [COMMANDS.activateSession, 0x81],
  [COMMANDS.activateSession, 0x82],
  [COMMANDS.activateSession, 0x83],
];
/** No session is free. */
const STATUS_MAY_PASS: readonly number[] = [RAKP_STATUS.insufficientResources, RAKP_STATUS.insufficientResourcesForRole];
/** BMCs give these codes for sensors of absent parts, too, and there are many of those. */
const SENSOR_MAY_PASS: readonly number[] = [COMPLETION.nodeBusy, COMPLETION.initialising];

/** Whether the command may succeed if it is sent again later. @param refusal an IpmiError, or the facts of one */
export function mayPass({ completionCode, command, rakpStatus }: Refusal): boolean {
  if (completionCode === undefined) return rakpStatus !== undefined && STATUS_MAY_PASS.includes(rakpStatus);
  if (command?.[0] === NET_FN.sensor) return SENSOR_MAY_PASS.includes(completionCode);
  return (
    MAY_PASS.includes(completionCode) ||
    COMMAND_MAY_PASS.some(([candidate, own]) => own === completionCode && candidate[0] === command?.[0] && candidate[1] === command[1])
  );
}
/** @param command for completion codes that depend on the command */
export function completionText(completionCode: number, command?: CommandCode): string {
  const own = COMMAND_COMPLETION_TEXT.find(([candidate]) => candidate[0] === command?.[0] && candidate[1] === command[1])?.[1];
  const text = own?.[completionCode] ?? COMPLETION_TEXT[completionCode] ?? 'command-specific or OEM code';
  return `${text} (completion code ${hex(completionCode)})`;
}
export const rakpStatusText = (status: number): string => `${RAKP_STATUS_TEXT[status] ?? 'unknown reason'} (RMCP+ status ${hex(status)})`;

/**
 * Failures of a BMC: `unreachable` no response; `refused` no session; `completion` a completion code for the command; `protocol` an invalid
 * response; `closed` the pool is closed or full.
 */
export type IpmiFailure = 'unreachable' | 'refused' | 'completion' | 'protocol' | 'closed';
export interface Refusal {
  /** Set when `kind` is `completion`, and when a command that opens a session was refused. */
  readonly completionCode?: number;
  /** The command that the BMC refused: that of the caller, or one that opens a session. */
  readonly command?: CommandCode;
  /** The RMCP+ status, set when the BMC itself refused the session. */
  readonly rakpStatus?: number;
}
export class IpmiError extends Error implements Refusal {
  override readonly name = 'IpmiError';
  readonly completionCode?: number;
  readonly command?: CommandCode;
  readonly rakpStatus?: number;
  constructor(
    readonly kind: IpmiFailure,
    message: string,
    more: Refusal & { readonly cause?: unknown } = {},
  ) {
    super(message, more.cause === undefined ? {} : { cause: more.cause });
    if (more.completionCode !== undefined) this.completionCode = more.completionCode;
    if (more.command !== undefined) this.command = more.command;
    if (more.rakpStatus !== undefined) this.rakpStatus = more.rakpStatus;
  }
}
