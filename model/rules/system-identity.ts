/** Whether a host that wants to register its recorder is the machine of a node, by what the node's inspection found. */
import { objectOf } from '../json';
import type { Json } from '../records';

interface ClaimedIdentity {
  /** As the kernel reads it from SMBIOS. */
  readonly system_uuid?: string | undefined;
  readonly serial_number?: string | undefined;
}
const HEX = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/;
/** A board without a UUID of its own has only zeros or only ones (DSP0134 §7.2.1), or what its firmware's maker delivers for all boards. */
const UUIDS_OF_MANY = /^[0-]+$|^[f-]+$|^03000200-0400-0500-0006-000700080009$|^00020003-0004-0005-0006-000700080009$/;
const uuidOf = (value: Json): string | undefined => {
  const text = typeof value === 'string' ? value.trim().toLowerCase() : '';
  return HEX.test(text) && !UUIDS_OF_MANY.test(text) ? text : undefined;
};
/** What firmware says in place of a serial number: anybody knows it. */
const NO_SERIALS =
  /^(?:[0.x-]+|0?123456789|to be filled by .*|default string|(?:system )?serial number|not (?:applicable|available|specified|provided)|none|unknown|empty|n\/a|invalid)$/i;
const reversed = (hex: string): string => (hex.match(/../g) ?? []).reverse().join('');
/** The first three fields in the other byte order: firmware and BMCs disagree about it (DSP0134 §7.2.1). */
const swapped = (uuid: string): string =>
  uuid
    .split('-')
    .map((field, index) => (index < 3 ? reversed(field) : field))
    .join('-');
const serialOf = (value: Json): string | undefined => {
  const text = typeof value === 'string' ? value.trim() : '';
  return text === '' || NO_SERIALS.test(text) ? undefined : text;
};

/** By the system's UUID if the inspection found one (the real agent's does not), else by its serial number. */
export function isSameSystem(inventory: Json, claimed: ClaimedIdentity): boolean {
  const { system_uuid: uuid, serial_number: serial } = objectOf(objectOf(inventory)['system_vendor']);
  const [known, said] = [uuidOf(uuid), uuidOf(claimed.system_uuid)];
  if (known !== undefined) return said !== undefined && [known, swapped(known)].includes(said);
  const number = serialOf(serial);
  return number !== undefined && number === serialOf(claimed.serial_number);
}
