/** Indicator lights: of the machine, its chassis and its drives, by the name of what they are at. */
import { change, type HardwareState } from '../../hardware/hardware';
import { flag, oneOf, type Checks } from '../protocol/checks';
import type { Shown, System } from '../protocol/routes';

const INDICATOR_WORDS = ['Off', 'Lit', 'Blinking'] as const;
export type Indicator = (typeof INDICATOR_WORDS)[number];
export type Indicators = Readonly<Record<string, Indicator>>;

export const INDICATOR_CHECKS: Checks = { IndicatorLED: oneOf(INDICATOR_WORDS), LocationIndicatorActive: flag };
/** Both ways that Redfish has to tell it: the old word, and the flag that came after it. */
export function indicator({ indicators }: HardwareState, at: string): Shown {
  const now = indicators?.[at] ?? 'Off';
  return { IndicatorLED: now, LocationIndicatorActive: now !== 'Off' };
}
/** What a PATCH asks of it, if it does. */
export function setIndicator({ hardware }: System, at: string, body: Shown): void {
  const { IndicatorLED: word, LocationIndicatorActive: active } = body as { IndicatorLED?: Indicator; LocationIndicatorActive?: boolean };
  const wanted = word ?? (active === undefined ? undefined : active ? 'Blinking' : 'Off');
  if (wanted !== undefined) change(hardware, { indicators: { ...hardware.state.indicators, [at]: wanted } });
}
