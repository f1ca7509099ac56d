/** What the operator of a node says about erasing its disks: members of driver_info (docs/erase.md). */
import { eraseProblem, psidsProblem, type EraseChoice } from '../../model/agent/erasure';
import { Fault } from '../../model/errors';
import type { JsonObject, NodeRecord } from '../../model/records';

/** How automated cleaning erases the disks of the node, if no request chooses. */
export const CLEANING_ERASE = 'cleaning_erase';
/** The PSIDs that are printed on disks: secrets. */
export const OPAL_PSIDS = 'opal_psids';
const CHECKS: Readonly<Record<string, (value: unknown) => string | undefined>> = {
  [CLEANING_ERASE]: eraseProblem,
  [OPAL_PSIDS]: psidsProblem,
};

/** Checks the members when they are set. Throws InvalidParameterValue with the name of the field, and without its value. */
export function checkErasure({ driver_info: info }: { readonly driver_info?: JsonObject | null | undefined }): void {
  for (const [name, problemOf] of Object.entries(CHECKS)) {
    const value = info?.[name] ?? null;
    const problem = value === null ? undefined : problemOf(value);
    if (problem !== undefined) throw new Fault('InvalidParameterValue', { message: `driver_info/${name} ${problem}` });
  }
}
/** Undefined: the priorities of the steps decide. A value that was stored before it was checked counts as none. */
export function cleaningErase({ driver_info: info }: Pick<NodeRecord, 'driver_info'>): EraseChoice | undefined {
  const value = info[CLEANING_ERASE] ?? null;
  return value === null || eraseProblem(value) !== undefined ? undefined : (value as EraseChoice);
}
