/** A fleet of `bloomery simulate`, given faults by its own command, and checked with ipmitool and plain HTTP. */
import { execFile, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { promisify } from 'node:util';
import { freePort } from '../../support/free-port';
import { until } from '../../../demo/lab/machines';
import { needs } from '../support/needs';
import { bloomery, startSimulate } from './simulate';

const run = promisify(execFile);
const PATIENCE = 240;
let fleet: ChildProcess;
let ipmiPort: number;
let redfish: string;
let controlUrl: string;
beforeAll(async () => {
  needs({ ipmitool: 'ipmitool' });
  const [first, second, control] = [await freePort(), await freePort(), await freePort()];
  [ipmiPort, redfish, controlUrl] = [first, `http://127.0.0.1:${second}/redfish/v1`, `http://127.0.0.1:${control}`];
  fleet = await startSimulate('--ipmi', String(first), '--redfish', String(second), '--control', String(control));
});
afterAll(async () => {
  if (!fleet || fleet.exitCode !== null) return;
  const ended = once(fleet, 'exit');
  fleet.kill('SIGTERM');
  await ended;
});

const control = async (...words: readonly string[]): Promise<string> =>
  (await run(process.execPath, [bloomery, 'simulate', 'control', '--url', controlUrl, ...words])).stdout;
const ipmi = async (...words: readonly string[]): Promise<string> => {
  const access = ['-I', 'lanplus', '-H', '127.0.0.1', '-p', String(ipmiPort), '-U', 'admin', '-P', 'password', '-C', '17'];
  return (await run('ipmitool', [...access, '-N', '1', '-R', '3', ...words], { timeout: 60_000 })).stdout.trim();
};
const ask = (path: string, headers: Readonly<Record<string, string>>, body?: object): Promise<Response> =>
  fetch(`${redfish}${path}`, {
    ...(body ? { method: 'POST', body: JSON.stringify(body) } : {}),
    headers: { ...headers, 'content-type': 'application/json', connection: 'close' },
  });
const login = async (): Promise<Readonly<Record<string, string>>> => {
  const answer = await ask('/SessionService/Sessions', {}, { UserName: 'admin', Password: 'password' });
  return { 'x-auth-token': answer.headers.get('x-auth-token')! };
};
const answers = async (work: () => Promise<unknown>): Promise<boolean> =>
  work().then(
    () => true,
    () => false,
  );

it.each([
  ['ipmitool mc reset cold', async () => expect(await ipmi('mc', 'reset', 'cold')).toBe('Sent cold reset command to MC')],
  [
    "Redfish's Manager.Reset",
    async () => expect((await ask('/Managers/sim-0/Actions/Manager.Reset', await login(), { ResetType: 'ForceRestart' })).status).toBe(204),
  ],
])('after %s, the BMC answers neither IPMI nor Redfish, and then comes back without its sessions', async (_, reset) => {
  // Long enough for the slowest host to notice that the BMC does not answer.
  expect(await control('sim-0', 'none', 'restart=12000')).toContain('restart=12000');
  const token = await login();
  expect((await ask('/Systems/sim-0', token)).status).toBe(200);
  await reset();
  expect(await answers(() => ask('/Systems/sim-0', token))).toBe(false);
  expect(await answers(() => ipmi('power', 'status'))).toBe(false);
  await until(
    PATIENCE,
    () => 'the BMC to be back',
    () => answers(() => ask('', {})),
  );
  expect((await ask('/Systems/sim-0', token)).status).toBe(401);
  expect((await ask('/Systems/sim-0', await login())).status).toBe(200);
  expect(await ipmi('power', 'status')).toBe('Chassis Power is off');
});

it('`bloomery simulate control` exits with status 0 when the reader of its output ends early', async () => {
  const words = [process.execPath, bloomery, 'simulate', 'control', '--url', controlUrl];
  await run('bash', ['-c', 'set -o pipefail; "$@" | true', 'bash', ...words]);
});
