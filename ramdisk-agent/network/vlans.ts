/** VLANs that ipa-enable-vlan-interfaces names, or that switches announce by LLDP. */
import { reasonOf } from '../../model/errors';
import type { Log } from '../../model/log';
import type { Addresses } from '../inventory/interfaces';
import { readInterfaces } from '../inventory/interfaces';
import type { Tlvs } from '../inventory/lldp';
import type { Run } from '../system/run';
import type { Tree } from '../system/tree';

/** Organizationally specific (type 127) of IEEE 802.1 with subtype 3, VLAN Name: its number follows (802.1Q-2018 §D.2.3). */
const VLAN_NAME = '0080c203';
const NUMBER_AT = VLAN_NAME.length;
const MAX_VLANS = 100;

interface VlanHost {
  readonly tree: Tree;
  readonly addresses: () => Addresses;
  readonly run: Run;
  readonly log: Log;
}
interface Vlan {
  readonly parent: string;
  readonly number: number;
}
const announced = (parent: string, tlvs: Tlvs = []): readonly Vlan[] =>
  tlvs
    .filter(([type, value]) => type === 127 && value.startsWith(VLAN_NAME))
    .map(([, value]) => ({ parent, number: parseInt(value.slice(NUMBER_AT, NUMBER_AT + 4), 16) }));

/**
 * Interface → VLANs.
 * @param wanted `eth0.100`, `52:54:00:aa:bb:cc.100`, `eth0` or `all`: the last two take the VLANs that the switch announces
 * @param lldp null: it is not collected
 * @internal
 */
export function vlansOf(
  wanted: readonly string[],
  interfaces: readonly { readonly name: string; readonly mac_address: string }[],
  lldp: Readonly<Record<string, Tlvs>> | null,
  warn: (message: string) => void,
): readonly Vlan[] {
  const named = (name: string): string | undefined =>
    interfaces.find((candidate) => candidate.name === name || candidate.mac_address === name.toLowerCase())?.name;
  const found = wanted.flatMap((word): readonly Vlan[] => {
    const [, start, digits] = /^(.+)\.(\d{1,4})$/.exec(word) ?? [];
    const parent = named(start ?? word);
    if (word !== 'all' && parent === undefined) warn(`ipa-enable-vlan-interfaces: there is no interface ${start ?? word}`);
    if (digits !== undefined) return parent === undefined ? [] : [{ parent, number: Number(digits) }];
    if (lldp === null) warn(`ipa-enable-vlan-interfaces: ${word} needs ipa-collect-lldp=1`);
    const parents = word === 'all' ? interfaces.map(({ name }) => name) : parent === undefined ? [] : [parent];
    return parents.flatMap((name) => announced(name, lldp?.[name]));
  });
  return found.filter(({ number }) => number >= 1 && number <= 4094).slice(0, MAX_VLANS);
}

/** Makes the VLANs, and asks for an address in each. What fails is logged: the machine may reach the API without it. */
export async function addVlans(
  { tree, addresses, run, log }: VlanHost,
  wanted: readonly string[],
  receive: (() => Promise<Readonly<Record<string, Tlvs>>>) | null,
): Promise<void> {
  if (wanted.length === 0) return;
  const lldp = receive === null ? null : await receive();
  const interfaces = readInterfaces(tree, addresses());
  for (const { parent, number } of vlansOf(wanted, interfaces, lldp, (message) => log.warn(message))) {
    const name = `${parent}.${number}`;
    if (interfaces.some((known) => known.name === name)) continue;
    try {
      log.info(`Adding VLAN interface ${name}`);
      await run('ip', ['link', 'add', 'link', parent, 'name', name, 'type', 'vlan', 'id', String(number)]);
      await run('ip', ['link', 'set', 'dev', name, 'up']);
      await run('udhcpc', ['-b', '-R', '-t', '5', '-T', '2', '-i', name, '-s', '/bin/lease']);
    } catch (error) {
      log.warn(`VLAN interface ${name}: ${reasonOf(error)}`);
    }
  }
}
