/** Each simulated maker: a probe changes nothing, a recording tells nothing of the site, and a probe of the recording finds the same. */
import { randomBytes } from 'node:crypto';
import { rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { recordingOf, writeNew } from '../../../commands/probe/record';
import { probeIpmi, probeRedfish } from '../../../commands/probe/run-probe';
import { READS } from '../../../commands/probe/ipmi-checks';
import { walkService } from '../../../commands/probe/walk';
import { systemClock } from '../../../model/clock';
import { silentLog } from '../../../model/log';
import { startFleet, type Fleet } from '../../../simulator/fleet/fleet';
import { PERSONALITIES, type PersonalityName } from '../../../simulator/redfish/makers/personalities';
import { serveTree } from '../../../simulator/recorded/serve-tree';
import { createIpmiPool } from '../../../wire/ipmi/client';
import { createRedfishPool, type RedfishTarget } from '../../../wire/redfish';
import { readTree } from '../../../wire/redfish/recorded-tree';
import { proxyOf } from './service';
import { strings, tellingValues } from './telling';

/** Habits of services that refuse good sessions at times, or end them: they get new ones. */
const RENEWED = ['login-refused-at-times', 'sessions-end-in-page', 'sessions-end-403'];
const NAMES = ['standard', ...Object.keys(PERSONALITIES)] as readonly ('standard' | PersonalityName)[];
let fleet: Fleet;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'probe-'));
  fleet = await startFleet({
    count: NAMES.length,
    host: '127.0.0.1',
    log: silentLog,
    clock: systemClock,
    random: randomBytes,
    maker: (index) => (index === 0 ? undefined : { personality: NAMES[index] as PersonalityName }),
  });
}, 60_000);
afterAll(async () => {
  await fleet.close();
  rmSync(folder, { recursive: true });
});

const login = { username: 'admin', password: 'password', authType: 'auto', verifyCa: true } as const;
const surroundings = { signal: new AbortController().signal, now: () => Date.now(), log: silentLog, progress: () => {} };
const stateOf = (index: number): string => JSON.stringify(fleet.machines[index]!.control.snapshot());

describe.each(NAMES.map((name, index) => [name, index] as const))('%s', (name, index) => {
  it('is probed without a change, recorded without a value of its own, and served again', async () => {
    const proxy = await proxyOf(fleet.machines[index]!.redfish.address);
    const target: RedfishTarget = { ...login, address: proxy.url };
    const pool = createRedfishPool();
    const before = stateOf(index);
    const { report, service } = await probeRedfish(pool, target, undefined, surroundings);
    const walked = await walkService(service!, surroundings.signal, () => {});
    await pool.close();
    await proxy.close();

    const changing = proxy.asked.filter((line) => !line.startsWith('GET '));
    expect(changing.filter((line) => !/^(?:POST|DELETE) \/redfish\/v1\/(?:SessionService\/)?Sessions(?:\/|$)/.test(line))).toEqual([]);
    const habits: readonly string[] = name === 'standard' ? [] : PERSONALITIES[name].habits;
    const logins = changing.filter((line) => line.startsWith('POST ')).length;
    if (!RENEWED.some((habit) => habits.includes(habit))) expect(logins).toBe(service!.login === 'session' ? 1 : 0);
    expect(changing.some((line) => line.startsWith('DELETE '))).toBe(service!.login === 'session');
    expect(stateOf(index)).toBe(before);

    const about = { target, program: '1', recorded: new Date().toISOString(), key: randomBytes(32) };
    const recording = recordingOf(walked, about);
    expect(recording.complete).toBe(true);
    const lines = recording.text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown);
    const told = lines
      .flatMap((line) => strings(line).map(([, text]) => text))
      .join('\n')
      .toLowerCase();
    const telling = tellingValues(walked.resources);
    expect(telling.size).toBeGreaterThan(0);
    expect([...telling].filter((value) => told.includes(value))).toEqual([]);

    const file = join(folder, `${name}.jsonl`);
    await writeNew(file, recording.text);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    await expect(writeNew(file, '')).rejects.toThrow(/EEXIST/);
    const tree = await readTree(file);
    const { username, password } = login;
    const served = await serveTree({ tree, host: '127.0.0.1', port: 0, username, password, clock: systemClock, random: randomBytes });
    const again = createRedfishPool();
    const second = await probeRedfish(again, { ...login, address: `http://127.0.0.1:${served.port}` }, undefined, surroundings);
    await again.close();
    await served.close();
    // Names of machines in links have replacements too.
    const plain = (text: string): string => text.replace(/\/redfish\/\S+/g, 'PATH');
    const shown = (findings: typeof report.findings): unknown =>
      findings.map(({ check, result, text, todo }) => ({ check, result, text: plain(text), todo }));
    expect(shown(second.report.findings)).toEqual(shown(report.findings));
    expect(second.report.machine).toEqual(report.machine);
    expect(second.report.quirks).toEqual(report.quirks);
  }, 120_000);
});

it('asks IPMI by commands that read, and tries a wrong password once', async () => {
  const { address, port } = fleet.machines[0]!.ipmi;
  const target = { address, port, username: 'admin', password: 'password', privilege: 'ADMINISTRATOR', cipherSuites: [17, 3] } as const;
  const pool = createIpmiPool({ log: silentLog, clock: systemClock, random: randomBytes });
  const sent: string[] = [];
  const watched: typeof pool = {
    ...pool,
    request: (to, networkFunction, command, data, options) => {
      sent.push(`${networkFunction} ${command}`);
      return pool.request(to, networkFunction, command, data, options);
    },
  };
  const report = await probeIpmi(watched, target, surroundings);
  expect(report.findings.filter(({ optional, result }) => !optional && result !== 'ok')).toEqual([]);
  expect([...new Set(sent)].filter((code) => !READS.map((read) => read.join(' ')).includes(code))).toEqual([]);

  sent.length = 0;
  const refused = await probeIpmi(watched, { ...target, password: 'wrong-pass' }, surroundings);
  expect(refused.findings).toHaveLength(1);
  expect(refused.findings[0]).toMatchObject({ check: 'login', result: 'wrong', text: expect.stringContaining('wrong password') as string });
  expect(sent).toHaveLength(1);
  await pool.close();
}, 60_000);
