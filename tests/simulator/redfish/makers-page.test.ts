import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makersPage } from '../../support/pages/makers-page';

it('docs/reference/makers.md equals the generated page (UPDATE_DOCS=1 writes it)', () => {
  const path = join(__dirname, '../../../docs/reference/makers.md');
  if (process.env['UPDATE_DOCS']) writeFileSync(path, makersPage());
  expect(readFileSync(path, 'utf8')).toBe(makersPage());
});
