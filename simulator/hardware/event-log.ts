/** The machine's event log: entries of its firmware and its BMC. */
import { hardwarePart, type Hardware } from './hardware';

/** The log holds this many entries; a new one displaces the oldest. */
export const MAX_LOG_ENTRIES = 256;

export interface LogEntry {
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly text: string;
  /** Absent: the entry is about the machine as a whole, and nothing is wrong. */
  readonly about?: { readonly severity: 'OK' | 'Warning' | 'Critical'; readonly message: string; readonly origin: string } | undefined;
}
interface EventLog {
  /** Number of the next entry. */
  readonly next: number;
  readonly entries: readonly LogEntry[];
}
const EVENT_LOG = hardwarePart<EventLog>('log', { next: 1, entries: [] });

export const logEntries = (hardware: Hardware): readonly LogEntry[] => hardware.get(EVENT_LOG).entries;
export function logEvent(hardware: Hardware, at: number, text: string, about?: LogEntry['about']): void {
  const { next, entries } = hardware.get(EVENT_LOG);
  hardware.set(EVENT_LOG, { next: next + 1, entries: [...entries.slice(1 - MAX_LOG_ENTRIES), { id: String(next), at, text, about }] });
}
/** Keeps the number of the next entry, so that no identifier is used twice. */
export const clearLog = (hardware: Hardware): void => hardware.set(EVENT_LOG, { next: hardware.get(EVENT_LOG).next, entries: [] });
