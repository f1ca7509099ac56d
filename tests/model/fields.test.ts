import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

it('was generated from openapi.yaml as it is', () => {
  execFileSync(process.execPath, [join(__dirname, '../../scripts/types.mjs'), '--check'], { stdio: 'inherit' });
});
