/** Hardware managers: who offers steps, in which version, and whose step counts if several offer one of the same name. */
import type { JsonObject } from '../../model/records';
import type { Machine } from '../machine';
import type { ReportProgress } from '../system/progress';

export type StepKind = 'clean' | 'deploy' | 'service';
export const STEP_KINDS: readonly StepKind[] = ['clean', 'deploy', 'service'];

export interface StepRow {
  readonly step: string;
  readonly interface: string;
  /** Absent: not a step of that kind. 0: only on request. */
  readonly priority: Readonly<Partial<Record<StepKind, number>>>;
  readonly abortable: boolean;
  readonly rebootRequested?: true;
  readonly argsinfo?: JsonObject;
  run(machine: Machine, args: JsonObject, progress: ReportProgress): Promise<unknown>;
}

/** How well a manager knows the hardware. The numbers are ironic-python-agent's. */
export const SUPPORT = { none: 0, generic: 1, mainline: 2, 'service-provider': 3 } as const;
export type Support = keyof typeof SUPPORT;

export interface HardwareManager {
  readonly name: string;
  /** Conductors store it and send it with each step, so that the agent detects another set of steps. */
  readonly version: string;
  readonly support: Support;
  readonly steps: readonly StepRow[];
}

interface Offer {
  readonly manager: HardwareManager;
  readonly row: StepRow;
}
/** The best offer first: by support, then by priority, then by the manager's name, as ironic-python-agent decides. */
const compared =
  (kind: StepKind) =>
  (a: Offer, b: Offer): number =>
    SUPPORT[b.manager.support] - SUPPORT[a.manager.support] ||
    b.row.priority[kind]! - a.row.priority[kind]! ||
    Number(a.manager.name > b.manager.name) - Number(a.manager.name < b.manager.name);

/** Step → the offer of that kind which counts. */
export function winningSteps(managers: readonly HardwareManager[], kind: StepKind): ReadonlyMap<string, Offer> {
  const offers = managers.flatMap((manager) => manager.steps.map((row) => ({ manager, row })));
  const ranked = offers.filter(({ row }) => row.priority[kind] !== undefined).sort(compared(kind));
  // Of equal names, the last entry counts.
  return new Map(ranked.reverse().map((offer) => [offer.row.step, offer]));
}

/** Manager → its version. */
export const versionsOf = (managers: readonly HardwareManager[]): Readonly<Record<string, string>> =>
  Object.fromEntries(managers.map(({ name, version }) => [name, version]));

/** The steps of a kind in the API's form: manager → its steps. */
export function offeredSteps(managers: readonly HardwareManager[], kind: StepKind): JsonObject {
  const winning = winningSteps(managers, kind);
  const rowsOf = (manager: HardwareManager): readonly StepRow[] => manager.steps.filter((row) => winning.get(row.step)?.row === row);
  return Object.fromEntries(managers.map((manager) => [manager.name, rowsOf(manager).map((row) => inApi(row, kind))]));
}
const inApi = (row: StepRow, kind: StepKind): JsonObject => ({
  step: row.step,
  priority: row.priority[kind],
  interface: row.interface,
  reboot_requested: row.rebootRequested === true,
  abortable: row.abortable,
  ...(row.argsinfo ? { argsinfo: row.argsinfo } : {}),
});
