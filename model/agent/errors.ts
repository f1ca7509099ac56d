/** Errors of the agent's API in the form that conductors read: {type, code, message, details}. */
import { reasonOf } from '../errors';
import { subjectOf } from './subject';

/** Type → [HTTP status, message]. */
const KINDS = {
  CommandExecutionError: [500, 'Command execution failed'],
  InvalidContentError: [400, 'Invalid request body'],
  InvalidCommandError: [400, 'Invalid command'],
  InvalidCommandParamsError: [400, 'Invalid command parameters'],
  RequestedObjectNotFoundError: [404, 'Not found'],
  Unauthorized: [401, '401 Unauthorized'],
  AgentIsBusy: [409, 'Agent is busy'],
  VersionMismatch: [409, 'Hardware managers version mismatch, reload agent with correct version'],
  LookupNodeError: [500, 'Error getting configuration from Ironic'],
  LookupAgentIPError: [500, 'Error finding IP for Ironic Agent'],
  ServiceLookupFailure: [500, 'Service not found by multicast DNS'],
  HeartbeatError: [500, 'Error heartbeating to agent API'],
  InspectionError: [500, 'Inspection failed'],
  ImageDownloadError: [500, 'Error downloading image'],
  ImageChecksumError: [500, 'Error verifying image checksum'],
  ImageWriteError: [500, 'Error writing image to device'],
  InvalidImage: [500, 'The provided image is not valid for use'],
  DeviceNotFound: [404, 'Error finding the disk or partition device to deploy the image onto'],
  ProtectedDeviceError: [500, 'Protected device located, cleaning aborted.'],
  BlockDeviceEraseError: [500, 'Error erasing block device'],
  SoftwareRAIDError: [500, 'Software RAID caused unknown error'],
  CleaningError: [500, 'Clean step failed'],
  DeploymentError: [500, 'Deploy step failed'],
  ServicingError: [500, 'Service step failed'],
  HardwareManagerConfigurationError: [500, 'Hardware manager configuration error'],
  ContainerNotPermittedError: [500, 'Container image not permitted'],
  InvalidFirmwareImageConfig: [500, 'An error occurred'],
  InvalidFirmwareSettingsConfig: [500, 'An error occurred'],
  MismatchChecksumError: [500, 'An error occurred'],
  MismatchComponentFlavor: [500, 'An error occurred'],
  MismatchFWVersion: [500, 'An error occurred'],
  DuplicateComponentFlavor: [500, 'An error occurred'],
  DuplicateDeviceID: [500, 'An error occurred'],
  UnSupportedConfigByMstflintPackage: [500, 'An error occurred'],
  UnSupportedConfigByFW: [500, 'An error occurred'],
  InvalidURLScheme: [500, 'An error occurred'],
} as const satisfies Record<string, readonly [number, string]>;
export type ErrorType = keyof typeof KINDS;

export class AgentError extends Error {
  readonly status: number;
  /** The general error; `message` contains this and the details. */
  readonly kind: string;
  constructor(
    readonly type: ErrorType,
    readonly details: string,
    options?: ErrorOptions,
  ) {
    const [status, kind] = KINDS[type];
    super(`${kind}: ${details}`, options);
    this.status = status;
    this.kind = kind;
  }
}

export interface ErrorBody {
  readonly type: string;
  readonly code: number;
  readonly message: string;
  readonly details: string;
  /** The disk or network interface that the error concerns. Not in ironic-python-agent. */
  readonly subject?: string;
}
/** `command_error` of a failed command. */
export function toBody(error: unknown): ErrorBody {
  const known = error instanceof AgentError ? error : new AgentError('CommandExecutionError', reasonOf(error));
  const subject = subjectOf(error);
  return { type: known.type, code: known.status, message: known.kind, details: known.details, ...(subject ? { subject } : {}) };
}
