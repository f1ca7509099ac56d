/** How messages name a disk or a network interface, so that an operator finds the part in the machine. The agent and the conductor use it. */
import { oneLine } from '../log';
import { shortened } from '../text';

/** Characters of a description. */
export const MAX_SUBJECT = 300;
const GIB = 2 ** 30;

/** A disk may have several, such as those of its controller and of itself. */
type Names = string | readonly string[] | null | undefined;
/** `disk /dev/sda (serial S1, WWN 0x5000c5…, model ACME Disk, 5.0 GiB)`. Texts of the hardware are bounded, and on one line. */
export function describeDisk(disk: {
  readonly name: string;
  readonly size?: number | undefined;
  readonly serial?: Names;
  readonly wwn?: Names;
  readonly model?: Names;
}): string {
  const { name, size } = disk;
  const [serial, wwn, model] = [disk.serial, disk.wwn, disk.model].map((names) => [names ?? []].flat()[0]);
  const facts = [
    serial ? `serial ${serial}` : 'no serial number',
    wwn ? `WWN ${wwn}` : '',
    model ? `model ${model}` : '',
    typeof size === 'number' ? `${(size / GIB).toFixed(1)} GiB` : '',
  ];
  return described(`disk ${name}`, facts);
}

/** All disks of a machine, one of which was wanted. */
export const describeDisks = (disks: readonly Parameters<typeof describeDisk>[0][]): string =>
  disks.length === 0 ? 'the machine has no disk' : shortened(disks.map(describeDisk).join('; '), MAX_SUBJECT);

/** `NIC eth0 (MAC 52:54:00:00:00:01, address 192.0.2.5, no link)`. @param nic its name may be unknown */
export function describeNic(nic: {
  readonly name?: string | undefined;
  readonly mac_address: string;
  readonly ipv4_address?: string | null | undefined;
  readonly ipv6_address?: string | null | undefined;
  readonly has_carrier?: boolean | undefined;
}): string {
  const { name, mac_address: mac, ipv4_address: v4, ipv6_address: v6, has_carrier: linked } = nic;
  const address = v4 ?? v6;
  return described(['NIC', name ?? ''].join(' ').trim(), [
    `MAC ${mac}`,
    address ? `address ${address}` : '',
    linked === false ? 'no link' : '',
  ]);
}

const described = (what: string, facts: readonly string[]): string =>
  shortened(oneLine(`${what} (${facts.filter((fact) => fact !== '').join(', ')})`), MAX_SUBJECT);

const SUBJECTS = new WeakMap<object, string>();
const isObject = (error: unknown): error is { readonly cause?: unknown } => typeof error === 'object' && error !== null;
/** Causes of an error that are searched. */
const MAX_CAUSES = 8;
/** The disk or interface that the error, or one of its causes, concerns. */
export function subjectOf(error: unknown): string | undefined {
  let current = error;
  for (let depth = 0; depth < MAX_CAUSES && isObject(current); depth++) {
    const subject = SUBJECTS.get(current);
    if (subject !== undefined) return subject;
    current = current.cause;
  }
  return undefined;
}
/** Runs `work`, whose errors concern this part of the machine, unless something in it knows better. */
export async function concerning<T>(subject: (error: unknown) => Promise<string> | string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (isObject(error) && subjectOf(error) === undefined) SUBJECTS.set(error, await subject(error));
    throw error;
  }
}
