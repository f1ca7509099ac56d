/** Times as commands take them. */
import { systemClock, timestamp } from '../../model/clock';

const UNITS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };
/** A duration from now, such as 3d or 12h, as a time. Other texts are for the server to check. */
export function timeOf(text: string): string {
  const [, amount, unit] = /^(\d{1,6})([mhd])$/.exec(text) ?? [];
  return amount === undefined || unit === undefined ? text : timestamp(systemClock.now() + Number(amount) * UNITS[unit]!);
}
