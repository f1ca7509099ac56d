/** The faults of an inspection that fails, in Ironic's words. */
import { Fault } from '../../model/errors';

/** In just these words. */
export const plainFailure = (message: string): Fault => new Fault('HardwareInspectionFailure', { message });
export const inspectionFailure = (reason: string): Fault => plainFailure(`Failed to inspect hardware. Reason: ${reason}`);
