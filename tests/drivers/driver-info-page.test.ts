import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { driverInfoPage } from '../support/pages/driver-info-page';

it('docs/reference/driver-info.md equals the generated page', () => {
  const path = join(__dirname, '../../docs/reference/driver-info.md');
  if (process.env['UPDATE_DOCS']) writeFileSync(path, driverInfoPage());
  expect(readFileSync(path, 'utf8')).toBe(driverInfoPage());
});
