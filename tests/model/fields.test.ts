import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

it('model/fields.ts and migrations/index.ts match openapi.yaml and the migrations', () => {
  execFileSync(process.execPath, [join(__dirname, '../../scripts/types.mjs'), '--check'], { stdio: 'inherit' });
});
