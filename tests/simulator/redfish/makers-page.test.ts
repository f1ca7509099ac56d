import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { HABITS } from '../../../simulator/redfish/makers/habits';
import { makersPage } from '../../support/pages/makers-page';

it('docs/reference/makers.md equals the generated page (UPDATE_DOCS=1 writes it)', () => {
  const path = join(__dirname, '../../../docs/reference/makers.md');
  if (process.env['UPDATE_DOCS']) writeFileSync(path, makersPage());
  expect(readFileSync(path, 'utf8')).toBe(makersPage());
});
it('docs/makers.md says of each habit how it is honoured', () => {
  const page = readFileSync(join(__dirname, '../../../docs/makers.md'), 'utf8');
  expect(Object.keys(HABITS).filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
});
