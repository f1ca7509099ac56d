/**
 * Network cards of NVIDIA (Mellanox), by the maker's programs mstflint(1), mstconfig(1) and mstfwreset(1), which a ramdisk of the site has. The
 * commands and their order are ironic-python-agent's.
 */
import type { Machine } from '../machine';
import type { Run } from '../system/run';

const VENDOR = '15b3';
const TOOLS: readonly (readonly [string, string])[] = [
  ['mstflint', '-v'],
  ['mstconfig', '-v'],
  ['mstfwreset', '-v'],
  ['lspci', '--version'],
];
/** Milliseconds: writing the firmware of a card takes minutes. */
const TOOL_MS = 1_800_000;

/** Whether a network interface of the machine is of this maker. */
export const hasCard = ({ tree }: Pick<Machine, 'tree'>): boolean =>
  tree.list('/sys/class/net').some((name) => tree.text(`/sys/class/net/${name}/device/vendor`) === `0x${VENDOR}`);

export const toolOf =
  ({ run, fetching }: Pick<Machine, 'run' | 'fetching'>): Run =>
  (program, args) =>
    run(program, args, { timeoutMs: TOOL_MS, signal: fetching.signal });

/** Rejects if one of the programs is missing. */
export async function checkTools(tool: Run): Promise<void> {
  for (const [program, word] of TOOLS) await tool(program, [word]);
}

interface FirmwareFacts {
  readonly version: string | undefined;
  /** Absent: the card runs what it has. */
  readonly running: string | undefined;
  /** Parameter-Set ID: the card's model. */
  readonly psid: string | undefined;
}
/** @param output of `mstflint query` */
export function firmwareFacts(output: string): FirmwareFacts {
  const lines = output.split('\n').map((line) => line.trim());
  const after = (name: string, pattern: RegExp): string | undefined => {
    const line = lines.findLast((each) => each.startsWith(`${name}:`));
    return line === undefined ? undefined : pattern.exec(line.slice(name.length + 1).trim())?.[0];
  };
  return {
    version: after('FW Version', /^\d+\.\d+\.\d+/),
    running: after('FW Version(Running)', /^\d+\.\d+\.\d+/),
    psid: after('PSID', /^\w+/),
  };
}
export const queryCard = async (tool: Run, address: string): Promise<FirmwareFacts> =>
  firmwareFacts(await tool('mstflint', ['-d', address, '-qq', 'query']));

export interface Card {
  /** Of a function on the PCI bus: 0000:03:00.0. */
  readonly address: string;
  /** PCI device ID, as lspci has it: 1017. */
  readonly device: string;
  readonly psid: string | undefined;
}
/** Without its function: two functions of one card have the same. */
export const cardOf = ({ address }: Card): string => address.slice(0, -1);

/** The functions of network cards, in lspci's order. */
export async function findCards(tool: Run): Promise<readonly Card[]> {
  const output = await tool('lspci', ['-Dn', '-d', `${VENDOR}:`]);
  const found: Card[] = [];
  for (const line of output.trim().split('\n')) {
    const [, address, device] = /^(\S{1,20}) 02[0-9a-f]{2}: 15b3:([0-9A-Fa-f]{4})\b/.exec(line) ?? [];
    if (address !== undefined && device !== undefined) found.push({ address, device, psid: (await queryCard(tool, address)).psid });
  }
  return found;
}
export const resetCard = (tool: Run, address: string): Promise<string> => tool('mstfwreset', ['-d', address, '-y', '--sync', '1', 'reset']);
