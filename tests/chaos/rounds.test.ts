/** Ten rounds of kill -9 under load; `npm run chaos -- --rounds 200` has more. The seed of a failed run repeats its choices. */
import { freePort } from '../support/free-port';
import { reportOf, runRounds } from './rounds';
import { onlyProcess, threeConductors, type Site } from './site';

const sites: Site[] = [];
afterAll(() => Promise.all(sites.map((site) => site.stop(false))), 60_000);

it('the servers lose no acknowledged write and no accepted request in ten rounds of kill -9', async () => {
  sites.push(await threeConductors(await Promise.all([0, 1, 2, 3].map(freePort))), await onlyProcess(await freePort()));
  const seed = Number(process.env['CHAOS_SEED'] ?? 1);
  const reports = await Promise.all(sites.map((site, index) => runRounds(site, { nodes: 5, rounds: 5, seed: seed + index })));
  for (const report of reports) {
    expect(report.journal.findings.length === 0 ? '' : reportOf(report)).toBe('');
    expect(report.journal.counts.get('acknowledged writes')).toBeGreaterThan(50);
  }
}, 1_800_000);
