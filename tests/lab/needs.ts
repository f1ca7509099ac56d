/** Programs that a test of the lab starts: a missing one fails the test with the package that has it. */
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** @param programs name → Debian package (those of packages.txt). Throws when one is not on the path. */
export function needs(programs: Readonly<Record<string, string>>): void {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/sbin'];
  const isThere = (name: string): boolean =>
    folders.some((folder) => {
      try {
        accessSync(join(folder, name), constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
  const missing = Object.entries(programs).filter(([name]) => !isThere(name));
  if (missing.length > 0)
    throw new Error(missing.map(([name, debian]) => `${name} is not installed: it is in the Debian package ${debian}`).join('\n'));
}
