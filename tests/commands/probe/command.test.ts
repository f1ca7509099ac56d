/** `bloomery probe` and `bloomery simulate --tree` as commands: arguments, passwords, files, statuses. */
import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { simulateTrees } from '../../../commands/simulate-tree';
import { systemClock } from '../../../model/clock';
import { silentLog } from '../../../model/log';
import { startFleet, type Fleet } from '../../../simulator/fleet/fleet';
import { runCommand } from '../../support/command';
import { testService, send } from './service';

let fleet: Fleet;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'probe-'));
  fleet = await startFleet({ count: 1, host: '127.0.0.1', log: silentLog, clock: systemClock, random: randomBytes });
});
afterAll(async () => {
  await fleet.close();
  rmSync(folder, { recursive: true });
});
const address = (): string => fleet.machines[0]!.redfish.address;
const WITH_PASSWORD = { BLOOMERY_BMC_PASSWORD: 'password' };
const ofAdmin = (...words: readonly string[]): readonly string[] => ['probe', address(), '--username', 'admin', ...words];

it('says what works, with a password of the environment or of a file', async () => {
  const { code, output, errors } = await runCommand(ofAdmin(), WITH_PASSWORD);
  expect(errors).toBe('');
  expect(output).toMatch(/^ {2}ok {7}login {10}/m);
  expect(output).toContain('It changed nothing.');
  expect(code).toBe(0);
  const file = join(folder, 'password');
  writeFileSync(file, 'password\nmore');
  const json = await runCommand(ofAdmin('--password-file', file, '--auth', 'basic', '--json'));
  expect(json.code).toBe(0);
  const report = JSON.parse(json.output) as { readonly protocol: string; readonly findings: readonly { readonly result: string }[] };
  expect(report).toMatchObject({
    protocol: 'redfish',
    findings: expect.arrayContaining([expect.objectContaining({ check: 'power', result: 'ok' })]) as unknown,
  });
});

it('records to a new file only, and simulate serves it', async () => {
  const file = join(folder, 'machine.jsonl');
  const { code, errors } = await runCommand(ofAdmin('--record', file), WITH_PASSWORD);
  expect(code).toBe(0);
  expect(errors).toMatch(/resources\.\nReplaced: .*serial number.*Look through the file/s);
  const before = readFileSync(file, 'utf8');
  const again = await runCommand(ofAdmin('--record', file), WITH_PASSWORD);
  expect(again).toMatchObject({ code: 2, errors: expect.stringContaining('is not overwritten') as string });
  expect(readFileSync(file, 'utf8')).toBe(before);

  let stop = (): void => {};
  const stopped = new Promise<void>((done) => (stop = done));
  const said = jest.spyOn(process.stderr, 'write').mockImplementation(() => true);
  const place = new Promise<string>((done) =>
    said.mockImplementation((text) => {
      const url = /is at (\S+),/.exec(String(text))?.[1];
      if (url !== undefined) done(url);
      return true;
    }),
  );
  const served = simulateTrees({ tree: [file], redfish: '0', host: '127.0.0.1' }, stopped);
  const url = await place;
  said.mockRestore();
  const second = await runCommand(['probe', url, '--username', 'admin'], WITH_PASSWORD);
  stop();
  await served;
  expect(second.code).toBe(0);
});

it.each<readonly [string, readonly string[], Readonly<Record<string, string | undefined>>, RegExp]>([
  ['an account in the URL', ['http://admin:x@127.0.0.1'], {}, /must have no account/],
  ['no password', ['http://127.0.0.1:1', '--username', 'admin'], { BLOOMERY_BMC_PASSWORD: undefined }, /set BLOOMERY_BMC_PASSWORD/],
  ['a recording by IPMI', ['ipmi://127.0.0.1:1', '--record', '/nowhere/x'], {}, /--record is for Redfish only/],
  ['no time', ['http://127.0.0.1', '--timeout', '0'], {}, /expected seconds/],
])('refuses %s', async (_name, words, environment, reason) => {
  const { code, errors } = await runCommand(['probe', ...words], environment);
  expect(code).toBe(2);
  expect(errors).toMatch(reason);
});

it('a login that fails ends with the status 1, and leaves no recording', async () => {
  const file = join(folder, 'none.jsonl');
  const { code, output } = await runCommand(ofAdmin('--record', file), { BLOOMERY_BMC_PASSWORD: 'wrong-password' });
  expect(code).toBe(1);
  expect(output).toMatch(/wrong {4}login .*tried once/);
  expect(output).not.toContain('wrong-password');
  expect(existsSync(file)).toBe(false);
});

it('a BMC that does not answer, or has another certificate, is said', async () => {
  const service = await testService((_request, response) => send(response, 404, {}));
  const none = await runCommand(['probe', service.url]);
  const tls = await runCommand(['probe', service.url.replace('http:', 'https:')]);
  await service.close();
  const gone = await runCommand(['probe', service.url]);
  expect([none.code, tls.code, gone.code]).toEqual([1, 1, 1]);
  expect(none.output).toContain('Check that a Redfish service is at this address.');
  expect(tls.output).toContain('speaks no TLS');
  expect(gone.output).toMatch(/ECONNREFUSED/);
});
