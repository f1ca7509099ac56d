import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

it('model/fields.ts matches openapi.yaml', () => {
  execFileSync(process.execPath, [join(__dirname, '../../scripts/types.mjs'), '--check'], { stdio: 'inherit' });
});
