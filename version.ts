/** The program's version from package.json, which is beside the sources, or one folder above the built program. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export function programVersion(): string {
  const path = [join(__dirname, 'package.json'), join(__dirname, '../package.json')].find((candidate) => existsSync(candidate));
  return path === undefined ? 'unknown' : (JSON.parse(readFileSync(path, 'utf8')) as { version: string }).version;
}
