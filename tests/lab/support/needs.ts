/** Programs that a test of the lab starts: a missing one fails the test with the package that has it. */
import { missingPrograms } from '../../../simulator/qemu/programs';

/** @param programs name → Debian package (those of packages.txt). Throws when one is not on the path. */
export function needs(programs: Readonly<Record<string, string>>): void {
  const missing = missingPrograms(programs);
  if (missing.length > 0) throw new Error(missing.join('\n'));
}
