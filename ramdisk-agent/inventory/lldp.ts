/** LLDP information of switches (IEEE 802.1AB-2016), as in inventories: each TLV as its type and its value in hexadecimal. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { reasonOf } from '../../model/errors';
import type { Log } from '../../model/log';
import type { Tree } from '../system/tree';
import { type Addresses, isPhysical, readInterfaces } from './interfaces';

export type Tlvs = readonly (readonly [number, string])[];
/** Receives the first frame of a protocol at each interface; interfaces without a frame within `timeoutMs` are missing. */
export type Frames = (
  interfaces: readonly string[],
  etherType: number,
  timeoutMs: number,
  signal: AbortSignal,
) => Promise<ReadonlyMap<string, Buffer>>;

const LLDP = 0x88cc;
const ETHERNET_HEADER = 14;
/** Type and length (§8.4). */
const TLV_HEADER = 2;

/** The TLVs of a frame up to the end of its LLDPDU (type 0, §8.5.1), or up to a truncated TLV. @internal */
export function tlvsOf(frame: Buffer): Tlvs {
  const found: (readonly [number, string])[] = [];
  for (let at = ETHERNET_HEADER; at + TLV_HEADER <= frame.length;) {
    const header = frame.readUInt16BE(at);
    const [type, length] = [header >> 9, header & 0x1ff];
    const value = frame.subarray(at + TLV_HEADER, at + TLV_HEADER + length);
    if (value.length < length) break;
    found.push([type, value.toString('hex')]);
    if (type === 0) break;
    at += TLV_HEADER + length;
  }
  return found;
}

/** Interface → the LLDP TLVs of its switch. Empty for an interface without a link, or without a frame in time. */
export async function receiveLldp(
  environment: { readonly tree: Tree; readonly addresses: () => Addresses; readonly frames: Frames },
  timeoutMs: number,
  signal: AbortSignal,
): Promise<Readonly<Record<string, Tlvs>>> {
  const all = readInterfaces(environment.tree, environment.addresses());
  // Switches send LLDP to interfaces, not to bonds or VLANs.
  const linked = all
    .filter((candidate) => candidate.has_carrier === true && isPhysical(environment.tree, candidate.name))
    .map(({ name }) => name);
  const received = linked.length === 0 ? new Map<string, Buffer>() : await environment.frames(linked, LLDP, timeoutMs, signal);
  return Object.fromEntries(
    all.map(({ name }) => {
      const frame = received.get(name);
      return [name, frame === undefined ? [] : tlvsOf(frame)];
    }),
  );
}

const DEBUG = '/sys/kernel/debug/i40e';
/** Stops the LLDP agent in the firmware of Intel's X710 family (i40e): it takes all LLDP frames, so that the kernel receives none. */
export async function stopFirmwareAgents({
  tree,
  root,
  log,
}: {
  readonly tree: Tree;
  readonly root: string;
  readonly log: Log;
}): Promise<void> {
  for (const card of tree.list(DEBUG)) {
    try {
      await writeFile(join(root, DEBUG, card, 'command'), 'lldp stop', { flag: 'r+' });
      log.info(`The LLDP agent of ${card} is stopped`);
    } catch (error) {
      log.warn(`The LLDP agent of ${card} cannot be stopped: ${reasonOf(error)}`);
    }
  }
}
