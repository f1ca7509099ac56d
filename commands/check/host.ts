/** Checks of the host itself: its disk and its clock. */
import { existsSync, statfsSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { checkFolder } from '../../server/settings';
import type { HostCheck, Result } from './check-row';

const MIB = 2 ** 20;
/** Below these, the disk of the state directory is reported. */
const LITTLE_SPACE = 2048 * MIB;
const NO_SPACE = 200 * MIB;
const DAY_MS = 86_400_000;

/** The path itself, or the nearest folder above it that exists. */
const existing = (path: string): string => (existsSync(path) ? path : existing(dirname(path)));

/** @internal */
export function spaceFinding(freeBytes: number): Result {
  const free = `${Math.round(freeBytes / MIB)} MiB free`;
  if (freeBytes < NO_SPACE) return ['warning', `${free}: the database needs more to work`];
  return freeBytes < LITTLE_SPACE ? ['warning', `${free}: images that are cached there need more`] : ['ok', free];
}

export const stateDirectory: HostCheck = {
  what: 'state directory',
  check: ({ stateDir }) => {
    try {
      checkFolder(stateDir, 'the state directory');
    } catch {
      // The checks of the settings say it.
      return [];
    }
    const folder = existing(resolve(stateDir));
    const { bavail, bsize } = statfsSync(folder);
    const [severity, message] = spaceFinding(bavail * bsize);
    return [[severity, `${stateDir}: ${message}`]];
  },
};

export const clock: HostCheck = {
  what: 'clock',
  check: () => {
    const built = statSync(__filename).mtimeMs;
    return Date.now() < built - DAY_MS
      ? [['warning', `it shows ${new Date().toISOString()}, before this program was built: certificates and tokens do not work`]]
      : [['ok', new Date().toISOString()]];
  },
};
