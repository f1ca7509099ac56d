/** The folder of the checkout, or of the installation. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';

const rootAbove = (folder: string): string => (existsSync(join(folder, 'package.json')) ? folder : rootAbove(join(folder, '..')));
/** Also when this file runs from dist/. */
export const root = rootAbove(__dirname);
