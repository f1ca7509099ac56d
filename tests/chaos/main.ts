/** `npm run chaos -- --rounds 200 --seed 1` runs both sites side by side, and prints a report. */
import { parseArgs } from 'node:util';
import { reportOf, runRounds, type Report } from './rounds';
import { onlyProcess, threeConductors, type Site } from './site';

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      rounds: { type: 'string', default: '20' },
      seed: { type: 'string', default: '1' },
      nodes: { type: 'string', default: '6' },
      port: { type: 'string', default: '21600' },
      site: { type: 'string', default: 'both' },
    },
  });
  const [rounds, seed, nodes, port] = [values.rounds, values.seed, values.nodes, values.port].map(Number) as [
    number,
    number,
    number,
    number,
  ];
  const makers = { three: () => threeConductors([0, 1, 2, 3].map((more) => port + more)), one: () => onlyProcess(port + 10) };
  const chosen = values.site === 'both' ? Object.values(makers) : [makers[values.site as keyof typeof makers]];
  const tell = (line: string): void => console.log(`${new Date().toISOString().slice(11, 19)} ${line}`);
  const run = async (make: () => Promise<Site>, index: number): Promise<Report> => {
    const site = await make();
    let keep = true;
    try {
      const share = Math.floor(rounds / chosen.length) + (index < rounds % chosen.length ? 1 : 0);
      const report = await runRounds(site, { nodes, seed: seed + index, rounds: share, tell });
      keep = report.journal.findings.length > 0;
      if (keep) console.log(`logs: ${site.folder}`);
      return report;
    } finally {
      await site.stop(keep);
    }
  };
  const reports = await Promise.all(chosen.map(run));
  for (const report of reports) console.log(`\n${reportOf(report)}`);
  process.exit(reports.every(({ journal }) => journal.findings.length === 0) ? 0 : 1);
}
void main();
