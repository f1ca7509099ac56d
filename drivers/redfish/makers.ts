/**
 * Who made a service and the BMC behind it, and its generation: what the rows of `quirks.ts` go by. The facts stand in the service root, the
 * manager and the system. Sources of the rules: libredfish, check_redfish and Ansible's community.general (facts only).
 */
import type { NodeRecord } from '../../model/records';
import { shortened } from '../../model/text';
import { RedfishError, listOf, member, readResource, rootPath, textOf, type RedfishResource } from '../../wire/redfish';
import type { Task } from '../interfaces';
import { managersOf } from './managers';
import type { SystemView } from './target';

/** The makers of machines and of BMC software that have something of their own. */
export type Maker =
  | 'ami'
  | 'asrock'
  | 'cisco'
  | 'dell'
  | 'fujitsu'
  | 'gigabyte'
  | 'hpe'
  | 'huawei'
  | 'inspur'
  | 'intel'
  | 'lenovo'
  | 'nvidia'
  | 'openbmc'
  | 'supermicro'
  | 'xfusion';
/** How makers write their names, as whole words. */
const NAMES: readonly (readonly [Maker, RegExp])[] = [
  ['ami', /\b(?:american megatrends|ami|megarac|redfish_compatible)\b/i],
  ['asrock', /\basrock ?(?:rack|industrial)?\b/i],
  ['cisco', /\b(?:cisco|cimc)\b/i],
  ['dell', /\b(?:dell|idrac)\b/i],
  ['fujitsu', /\b(?:fujitsu|fsas|ts_fujitsu|irmc)\b/i],
  ['gigabyte', /\b(?:gigabyte|giga computing|gbt)\b/i],
  ['hpe', /\b(?:hpe?|hewlett[- ]packard|ilo)\b/i],
  ['huawei', /\b(?:huawei|ibmc)\b/i],
  ['inspur', /\b(?:inspur|ieit)\b/i],
  ['intel', /\bintel\b/i],
  ['lenovo', /\b(?:lenovo|xcc)\b/i],
  ['nvidia', /\bnvidia\b/i],
  ['openbmc', /\bopenbmc\b/i],
  ['supermicro', /\bsuper ?micro\b|\bsmci\b/i],
  ['xfusion', /\bxfusion\b/i],
];
/** The makers that a text names. */
const makersIn = (text: string | undefined): readonly Maker[] =>
  text === undefined ? [] : NAMES.filter(([, pattern]) => pattern.test(text)).map(([maker]) => maker);

/** A service, as its rows of quirks see it. */
export interface Identity {
  /** The maker's name as the service or the operator writes it. */
  readonly vendor: string | undefined;
  /** The machine's maker, and the maker of its BMC's software where that is another one: Lenovo and AMI. */
  readonly makers: readonly Maker[];
  /** Product of the service root, Model of the system. */
  readonly product: string | undefined;
  readonly model: string | undefined;
}
/** Read only where a row of quirks goes by it. */
export interface BmcFacts {
  /** `iDRAC 9`, `iLO 5`; undefined: not known. */
  readonly generation: string | undefined;
  /** FirmwareVersion of the manager. */
  readonly firmware: string | undefined;
}

const keysOf = (value: unknown): readonly string[] =>
  typeof value === 'object' && value !== null ? Object.keys(value).filter((key) => !key.includes('@')) : [];
/**
 * The name of the maker: Vendor of the service root, otherwise the system's Manufacturer, which some hide under Oem; otherwise the first key of
 * the root's Oem.
 */
export function vendorName(root: unknown, system: unknown): string | undefined {
  const name =
    textOf(member(root, 'Vendor')) ??
    textOf(member(system, 'Manufacturer')) ??
    textOf(member(system, 'Oem', 'Manufacturer')) ??
    keysOf(member(root, 'Oem'))[0];
  return name && shortened(name, MAX_NAME);
}
/** Characters of a maker's name, which messages and the node's properties contain. */
const MAX_NAME = 200;

/**
 * @param node its properties.vendor overrides what the service says of the machine's maker
 */
export function identityOf(node: Pick<NodeRecord, 'properties'>, root: unknown, system: unknown): Identity {
  const given = textOf(node.properties['vendor']);
  const vendor = given ?? vendorName(root, system);
  const machine = makersIn(vendor).length > 0 ? makersIn(vendor) : makersIn(textOf(member(system, 'Manufacturer')));
  // Vendors that only sell a machine leave the name of its BMC's software in Oem.
  const software = keysOf(member(root, 'Oem')).flatMap((key) => makersIn(key));
  return {
    vendor,
    makers: [...new Set([...machine, ...software])],
    product: textOf(member(root, 'Product')),
    model: textOf(member(system, 'Model')),
  };
}

/**
 * Whether a Dell machine with this firmware of its BMC boots a virtual CD by the standard's settings: iDRAC 9 from 6.0 on. Earlier ones and
 * iDRAC 10 (1.x) do not.
 */
export const dellBootsVirtualCd = (firmware: string): boolean => ['6', '7'].includes(firmware.split('.', 1)[0]!);

/** Dell's generation of servers → iDRAC. Its versions began anew with iDRAC 10. */
const IDRACS: readonly (readonly [number, number])[] = [
  [12, 7],
  [13, 8],
  [16, 9],
  [Infinity, 10],
];
/**
 * Generation and version of the BMC.
 * @param root has the generation of iLO; undefined: not read
 */
export function bmcFactsOf(manager: unknown, root: unknown): BmcFacts {
  const firmware = textOf(member(manager, 'FirmwareVersion'));
  const model = textOf(member(manager, 'Model')) ?? '';
  const [, servers] = /\b(\d{2})G\b/.exec(model) ?? [];
  const idrac = servers === undefined ? /\biDRAC ?(\d{1,2})\b/i.exec(model)?.[1] : IDRACS.find(([last]) => Number(servers) <= last)?.[1];
  if (idrac !== undefined) return { generation: `iDRAC ${idrac}`, firmware };
  const oem = member(root, 'Oem', 'Hpe') ?? member(root, 'Oem', 'Hp');
  const told = [member(listOf(member(oem, 'Manager'))[0], 'ManagerType'), member(oem, 'Moniker', 'PRODGEN'), model, firmware];
  const ilo = told.map((text) => /\biLO ?(\d)\b/i.exec(textOf(text) ?? '')?.[1]).find((number) => number !== undefined);
  return { generation: ilo === undefined ? undefined : `iLO ${ilo}`, firmware };
}

/** How long what a service says of itself is kept, in milliseconds: an update may change it. */
const KEPT_MS = 600_000;
const MAX_KEPT = 10_000;
/** Characters of a root that is kept. Real ones have less than 10,000; a larger one is read each time. */
const MAX_ROOT = 50_000;
interface Kept {
  readonly root: unknown;
  readonly until: number;
}
/** Service roots by the pool of connections, then by the address. */
const roots = new WeakMap<object, Map<string, Kept>>();

/** The service root, read at most once in ten minutes; undefined: it does not show it. */
async function rootOf(task: Task, { ask, target }: SystemView): Promise<unknown> {
  const pool = task.connections.redfish;
  const known = roots.get(pool) ?? new Map<string, Kept>();
  roots.set(pool, known);
  const kept = known.get(target.address);
  if (kept && kept.until > task.clock.now()) return kept.root;
  const root = await readResource(ask, rootPath(target)).catch((error: unknown) => {
    if (error instanceof RedfishError && error.kind !== 'closed') return undefined;
    throw error;
  });
  known.delete(target.address);
  if (known.size >= MAX_KEPT) known.delete(known.keys().next().value!);
  if (root && JSON.stringify(root.body ?? null).length <= MAX_ROOT)
    known.set(target.address, { root: root.body, until: task.clock.now() + KEPT_MS });
  return root?.body;
}

/** Who made the node's service. One request in ten minutes. */
export const identify = async (task: Task, system: SystemView): Promise<Identity> =>
  identityOf(task.node, await rootOf(task, system), system.body);
/** Generation and version of the system's BMC. */
export async function bmcFacts(task: Task, system: SystemView): Promise<BmcFacts> {
  const managers: readonly RedfishResource[] = await managersOf(system);
  const bmc = managers.find(({ body }) => member(body, 'ManagerType') === 'BMC') ?? managers[0];
  return bmcFactsOf(bmc?.body, await rootOf(task, system));
}
