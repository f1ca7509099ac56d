/** Indicator lights of the machine, its chassis and its drives. */
import { hardwarePart, type Hardware } from '../../hardware/hardware';
import { flag, oneOf, type Checks } from '../protocol/checks';
import type { ResourceBody, System } from '../protocol/routes';

const INDICATOR_WORDS = ['Off', 'Lit', 'Blinking'] as const;
type Indicator = (typeof INDICATOR_WORDS)[number];
/** Name of the part that the light marks → state of the light. */
const INDICATORS = hardwarePart<Readonly<Record<string, Indicator>>>('indicators', {});

export const INDICATOR_CHECKS: Checks = { IndicatorLED: oneOf(INDICATOR_WORDS), LocationIndicatorActive: flag };
/** Redfish has two properties for a light: IndicatorLED, and LocationIndicatorActive, which replaced it. */
export function indicator(hardware: Hardware, part: string): ResourceBody {
  const now = hardware.get(INDICATORS)[part] ?? 'Off';
  return { IndicatorLED: now, LocationIndicatorActive: now !== 'Off' };
}
/** Sets the light if the body of the PATCH has one of the two properties. */
export function setIndicator({ hardware }: System, part: string, body: ResourceBody): void {
  const { IndicatorLED: word, LocationIndicatorActive: active } = body as { IndicatorLED?: Indicator; LocationIndicatorActive?: boolean };
  const next = word ?? (active === undefined ? undefined : active ? 'Blinking' : 'Off');
  if (next !== undefined) hardware.set(INDICATORS, { ...hardware.get(INDICATORS), [part]: next });
}
