/** Services that end or refuse good sessions while they are probed: the findings are those of a service that does not. */
import { randomBytes } from 'node:crypto';
import { probeRedfish } from '../../../commands/probe/run-probe';
import { systemClock } from '../../../model/clock';
import { silentLog } from '../../../model/log';
import { startFleet, type Fleet } from '../../../simulator/fleet/fleet';
import { createRedfishPool } from '../../../wire/redfish';
import { proxyOf } from './service';

const HABITS = ['sessions-end-403', 'sessions-end-in-page', 'login-refused-at-times'] as const;
let fleet: Fleet;
beforeAll(async () => {
  fleet = await startFleet({
    count: HABITS.length + 1,
    host: '127.0.0.1',
    log: silentLog,
    clock: systemClock,
    random: randomBytes,
    maker: (index) => (index === 0 ? undefined : { habits: [HABITS[index - 1]!] }),
  });
}, 60_000);
afterAll(() => fleet.close());

async function probed(index: number): Promise<{ readonly findings: unknown; readonly logins: number }> {
  const pool = createRedfishPool();
  const proxy = await proxyOf(fleet.machines[index]!.redfish.address);
  const target = { address: proxy.url, username: 'admin', password: 'password', authType: 'auto', verifyCa: true } as const;
  const around = { signal: new AbortController().signal, now: () => Date.now(), log: silentLog, progress: () => {} };
  const { report } = await probeRedfish(pool, target, undefined, around);
  await pool.close();
  await proxy.close();
  const logins = proxy.asked.filter((line) => line.startsWith('POST ')).length;
  return { findings: report.findings.map(({ check, result }) => [check, result]), logins };
}
it.each(HABITS.map((habit, index) => [habit, index + 1] as const))(
  'a service with the habit %s shows all that it has',
  async (_, index) => {
    const standard = await probed(0);
    const odd = await probed(index);
    expect(odd.findings).toEqual(standard.findings);
    expect(odd.logins).toBeGreaterThan(standard.logins);
  },
);
