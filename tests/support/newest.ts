import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The newest microversion, 1.N, of openapi.yaml. */
export const NEWEST = Number(/^info: .*version: '1\.(\d+)'/m.exec(readFileSync(join(__dirname, '../../openapi.yaml'), 'utf8'))![1]);
/** As in headers. */
export const NEWEST_VERSION = `1.${NEWEST}`;
