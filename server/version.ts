/** The program's version from package.json, which is above this file: of the sources, of the built files, or of the bundle. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export function programVersion(): string {
  const path = ['..', '../..', '../../..']
    .map((folder) => join(__dirname, folder, 'package.json'))
    .find((candidate) => existsSync(candidate));
  return path === undefined ? 'unknown' : (JSON.parse(readFileSync(path, 'utf8')) as { version: string }).version;
}
