import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { agentFaultsPage } from '../support/pages/agent-faults-page';

it('docs/agent-failures.md lists the faults of the tests (UPDATE_DOCS=1 writes it)', () => {
  const path = join(__dirname, '../../docs/agent-failures.md');
  const [before = ''] = readFileSync(path, 'utf8').split(/(?<=## Tested faults\n\n)/);
  if (process.env['UPDATE_DOCS']) writeFileSync(path, before + agentFaultsPage());
  expect(readFileSync(path, 'utf8')).toBe(before + agentFaultsPage());
});
