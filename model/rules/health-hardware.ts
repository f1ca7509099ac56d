/** Observations for the rules of health from changes of hardware, which recorders and inspections find (docs/recorder.md). */
import type { HardwareChange } from '../hardware-records';
import { subjectText, type Signal, type SignalKind } from './health-rules';

/** Components whose loss is a matter of health. A machine's other components are moved and renamed too often. */
const KINDS: Readonly<Partial<Record<HardwareChange['component'], readonly [kind: SignalKind, name: string]>>> = {
  disk: ['drive', 'disk'],
  memory_module: ['memory', 'memory module'],
};

/** Losses in one report. A machine that loses more has another trouble, and a hostile one invents them. */
const MAX_LOSSES = 50;
export const hardwareSignals = (changes: readonly HardwareChange[]): readonly Signal[] => {
  let losses = 0;
  return changes.flatMap(({ kind, component, key }): readonly Signal[] => {
    const known = KINDS[component];
    if (known === undefined || kind === 'changed') return [];
    if (kind === 'vanished' && ++losses > MAX_LOSSES) return [];
    const [of, name] = known;
    return [{ source: 'hardware', kind: of, subject: subjectText(`${name} ${key}`), states: kind === 'vanished' ? ['vanished'] : [] }];
  });
};
