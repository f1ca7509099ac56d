/**
 * What disks say of themselves (SMART), as a recorder or an inspection reports it (docs/health.md), and the observations that follow for the
 * rules of health.
 */
import { isObject } from '../json';
import { storable } from '../text';
import { subjectText, type FoundParts, type Signal, type SignalState } from './health-rules';

/** One disk. A null or an absent value: the disk does not tell it. */
export interface DiskHealth {
  /** In /dev. */
  readonly name: string;
  readonly serial?: string | null | undefined;
  readonly model?: string | null | undefined;
  /** Why nothing could be read; the following members are absent then. */
  readonly unread?: string | undefined;
  /** The disk's own assessment: false means that it expects to fail. */
  readonly passed?: boolean | null | undefined;
  /** The bits of an NVMe disk: CRITICAL_WARNINGS. */
  readonly critical_warning?: number | null | undefined;
  /** Percent of the life that the maker foresaw; more than 100 is possible. */
  readonly life_used?: number | null | undefined;
  readonly reallocated_sectors?: number | null | undefined;
  readonly pending_sectors?: number | null | undefined;
  /** °C */
  readonly temperature?: number | null | undefined;
  readonly power_on_hours?: number | null | undefined;
}
/** Disks of one machine; further ones are left out. */
export const MAX_DISKS = 256;
const MAX_TEXT = 255;
const TEXTS = ['serial', 'model', 'unread'] as const;
const NUMBERS = [
  'critical_warning',
  'life_used',
  'reallocated_sectors',
  'pending_sectors',
  'temperature',
  'power_on_hours',
] as const satisfies readonly (keyof DiskHealth)[];

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' ? storable(value.replace(/\p{Cc}/gu, ' ').slice(0, MAX_TEXT)) : undefined;
/** What is of use in a report from outside. Everything else is left out. */
export function diskHealthOf(given: unknown): readonly DiskHealth[] {
  if (!Array.isArray(given)) return [];
  return (given as readonly unknown[]).slice(0, MAX_DISKS).flatMap((disk): readonly DiskHealth[] => {
    if (!isObject(disk)) return [];
    const name = textOf(disk['name']);
    if (name === undefined || name === '') return [];
    const known: Record<string, unknown> = { name };
    for (const member of TEXTS) if (typeof disk[member] === 'string') known[member] = textOf(disk[member]);
    for (const member of NUMBERS) if (Number.isFinite(disk[member])) known[member] = disk[member];
    if (typeof disk['passed'] === 'boolean') known['passed'] = disk['passed'];
    return [known as unknown as DiskHealth];
  });
}

/** NVM Express base specification 2.0, figure 207: the bits of Critical Warning. */
const CRITICAL_WARNINGS: readonly (readonly [bit: number, of: 'drive' | 'temperature', state: SignalState])[] = [
  // The available spare is below the threshold.
  [0, 'drive', 'predicted failure'],
  [1, 'temperature', 'warning'],
  // The reliability is degraded by errors of the media or of the disk itself.
  [2, 'drive', 'predicted failure'],
  // The media is read-only.
  [3, 'drive', 'failed'],
  // The backup of the volatile memory has failed.
  [4, 'drive', 'warning'],
  // The persistent memory region is read-only or unreliable.
  [5, 'drive', 'warning'],
];
const warned = (of: 'drive' | 'temperature', { critical_warning: bits }: DiskHealth): readonly SignalState[] =>
  CRITICAL_WARNINGS.flatMap(([bit, kind, state]) => (kind === of && ((bits ?? 0) >> bit) % 2 === 1 ? [state] : []));

interface SmartRead {
  readonly signals: readonly Signal[];
  readonly found: FoundParts;
}
/** A disk is known by its serial number, which is on its label; by its name if it has none, or if another disk has it too. */
export function smartSignals(disks: readonly DiskHealth[]): SmartRead {
  const counts = new Map<string, number>();
  for (const { serial } of disks) if (serial) counts.set(serial, (counts.get(serial) ?? 0) + 1);
  const present = new Set<string>();
  const signals = disks.flatMap((disk): readonly Signal[] => {
    const { serial, name, passed, life_used: life, reallocated_sectors: reallocated, pending_sectors: pending, temperature } = disk;
    const subject = subjectText(`disk ${serial && counts.get(serial) === 1 ? serial : name}`);
    if (present.has(subject)) return [];
    present.add(subject);
    if (disk.unread !== undefined) return [];
    const states = new Set([...(passed === false ? (['predicted failure'] as const) : []), ...warned('drive', disk)]);
    const values = [
      ['percent', life == null ? null : Math.max(0, 100 - life)],
      ['reallocated sectors', reallocated],
      ['pending sectors', pending],
    ] as const;
    const more = values.flatMap(([unit, value]) => (value == null ? [] : [{ unit, value }]));
    const hot = { unit: 'celsius', value: temperature ?? undefined };
    return [
      { source: 'smart', kind: 'drive', subject, states: [...states], more },
      { source: 'smart', kind: 'temperature', subject, states: warned('temperature', disk), ...(temperature == null ? {} : hot) },
    ];
  });
  return { signals, found: { source: 'smart', present, isRead: () => true } };
}
