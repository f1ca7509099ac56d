/** Whether a host that wants to register its recorder is the machine of a node, by what the node's inspection found. */
import { objectOf } from '../json';
import type { Json } from '../records';

interface ClaimedIdentity {
  /** As the kernel reads it from SMBIOS. */
  readonly system_uuid?: string | undefined;
  readonly serial_number?: string | undefined;
}
const HEX = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/;
/** A board without a UUID of its own has only zeros or only ones (DSP0134 §7.2.1). */
const uuidOf = (value: Json): string | undefined => {
  const text = typeof value === 'string' ? value.trim().toLowerCase() : '';
  return HEX.test(text) && !/^[0-]+$|^[f-]+$/.test(text) ? text : undefined;
};
const reversed = (hex: string): string => (hex.match(/../g) ?? []).reverse().join('');
/** The first three fields in the other byte order: firmware and BMCs disagree about it (DSP0134 §7.2.1). */
const swapped = (uuid: string): string =>
  uuid
    .split('-')
    .map((field, index) => (index < 3 ? reversed(field) : field))
    .join('-');
const serialOf = (value: Json): string | undefined => (typeof value === 'string' && value.trim() !== '' ? value.trim() : undefined);

/** By the system's UUID if the inspection found one (the real agent's does not), else by its serial number. */
export function isSameSystem(inventory: Json, claimed: ClaimedIdentity): boolean {
  const { system_uuid: uuid, serial_number: serial } = objectOf(objectOf(inventory)['system_vendor']);
  const [known, said] = [uuidOf(uuid), uuidOf(claimed.system_uuid)];
  if (known !== undefined) return said !== undefined && [known, swapped(known)].includes(said);
  const number = serialOf(serial);
  return number !== undefined && number === serialOf(claimed.serial_number);
}
