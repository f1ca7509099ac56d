/** What can be wrong with the parts of a simulated machine: the fault `parts`, as NAME.CONDITION. */

/** What a Redfish service reports of a part in this condition. */
const CONDITIONS = {
  failed: 'Critical',
  /** A failure is predicted. */
  failing: 'Warning',
  'no-input': 'Warning',
  /** Errors that were corrected, and that were not. */
  errors: 'Warning',
  fatal: 'Critical',
  hot: 'Critical',
  warm: 'Warning',
  slow: 'Warning',
  low: 'Critical',
  worn: 'OK',
  degraded: 'Warning',
  'redundancy-lost': 'Critical',
  /** The part was removed. */
  gone: 'OK',
} as const satisfies Readonly<Record<string, 'OK' | 'Warning' | 'Critical'>>;
export type PartCondition = keyof typeof CONDITIONS;

const isCondition = (text: string): text is PartCondition => Object.hasOwn(CONDITIONS, text);
/** The conditions of a part, from texts such as `PSU1.failed`. */
export const conditionsOf = (texts: readonly string[], part: string): readonly PartCondition[] =>
  texts
    .filter((text) => text.slice(0, text.lastIndexOf('.')) === part)
    .map((text) => text.slice(text.lastIndexOf('.') + 1))
    .filter(isCondition);
export const healthIn = (conditions: readonly PartCondition[]): 'OK' | 'Warning' | 'Critical' =>
  (['Critical', 'Warning'] as const).find((health) => conditions.some((condition) => CONDITIONS[condition] === health)) ?? 'OK';
