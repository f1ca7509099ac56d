/** Deviations of makers' services, as rows with their sources. The makers are those of `makers.ts`. */
import type { Task } from '../interfaces';
import { bmcFacts, identify, type BmcFacts, type Identity, type Maker } from './makers';
import type { SystemView } from './target';

export interface Quirks {
  /** The service accepts boot settings only together: mode, persistence and device. */
  readonly wholeBoot?: true;
  /** The service drops a change without If-Match, and answers with success. */
  readonly dropsUntagged?: true;
  /** The persistence must be sent with each device, changed or not. */
  readonly alwaysEnabled?: true;
  /** Setting a boot device resets the boot mode, which must be set again. */
  readonly forgetsMode?: true;
  /** The target with which the machine boots a virtual CD, if the service offers it. */
  readonly virtualCd?: 'UsbCd' | 'Cd';
}
/** What a table knows of some services. */
export interface Row<Known> {
  readonly maker: Maker;
  /** Absent: all. Compared with Model of the system and Product of the service root. */
  readonly model?: RegExp;
  /** Such as `iDRAC 9`. Absent: all. */
  readonly generation?: string;
  /** Firmware of the BMC. Absent: all. */
  readonly firmware?: { readonly from?: string; readonly below?: string };
  readonly quirks: Known;
  /** Where it is known from. */
  readonly source: string;
}
/** Later rows take precedence. */
const ROWS: readonly Row<Quirks>[] = [
  { maker: 'ami', quirks: { wholeBoot: true, dropsUntagged: true }, source: 'ironic redfish/management.py, Confluent PR 274' },
  { maker: 'asrock', quirks: { wholeBoot: true }, source: 'ironic redfish/management.py' },
  {
    maker: 'supermicro',
    quirks: { alwaysEnabled: true, forgetsMode: true, virtualCd: 'UsbCd' },
    source: 'sushy system.py, storyboard 2008547',
  },
  { maker: 'supermicro', model: /\bARS-111GL-NHR\b/i, quirks: { virtualCd: 'Cd' }, source: 'sushy system.py' },
];

/** The numbers of a version, without the words around it: `iLO 5 v2.30` is 2.30. */
const numbersOf = (version: string): readonly number[] => {
  const [text] = /\d{1,9}(?:\.\d{1,9})+/.exec(version) ?? /\d{1,9}/.exec(version) ?? [''];
  return text.split('.').slice(0, 6).map(Number);
};
/** @internal */
export function isBelow(version: string, limit: string): boolean {
  const [left, right] = [numbersOf(version), numbersOf(limit)];
  const at = right.findIndex((number, index) => (left[index] ?? 0) !== number);
  return at >= 0 && (left[at] ?? 0) < right[at]!;
}

const fitsService = ({ maker, model }: Row<object>, { makers, model: own, product }: Identity): boolean =>
  makers.includes(maker) && (model === undefined || [own, product].some((text) => text !== undefined && model.test(text)));
function fitsBmc({ generation, firmware }: Row<object>, facts: BmcFacts | undefined): boolean {
  if (generation !== undefined && facts?.generation !== generation) return false;
  const { from, below } = firmware ?? {};
  const version = facts?.firmware;
  if (from === undefined && below === undefined) return true;
  return version !== undefined && !(from !== undefined && isBelow(version, from)) && (below === undefined || isBelow(version, below));
}
/** The quirks of the rows that fit. */
export const quirksFor = <Known extends object = Quirks>(
  identity: Identity,
  facts: BmcFacts | undefined,
  rows: readonly Row<Known>[] = ROWS as readonly Row<object>[] as readonly Row<Known>[],
): Partial<Known> =>
  Object.assign(
    {},
    ...rows.filter((row) => fitsService(row, identity) && fitsBmc(row, facts)).map(({ quirks }) => quirks),
  ) as Partial<Known>;

/** @throws RedfishError when a row goes by the BMC, and the BMC cannot be read */
export const quirksOf = (task: Task, system: SystemView): Promise<Quirks & { readonly vendor: string | undefined }> =>
  quirksIn(ROWS, task, system);
/** As `quirksOf`, for a table of its own. */
export async function quirksIn<Known extends object>(
  rows: readonly Row<Known>[],
  task: Task,
  system: SystemView,
): Promise<Partial<Known> & { readonly vendor: string | undefined }> {
  const identity = await identify(task, system);
  const needsBmc = rows.some((row) => (row.generation ?? row.firmware) !== undefined && fitsService(row, identity));
  return { ...quirksFor(identity, needsBmc ? await bmcFacts(task, system) : undefined, rows), vendor: identity.vendor };
}
