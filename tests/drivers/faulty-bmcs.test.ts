/** Half-broken BMCs whose power the drivers read: a driver reports the true state, or an error. Silence is never "power off". */
import { randomBytes } from 'node:crypto';
import { ipmiPower } from '../../drivers/ipmi/power';
import { redfishPower } from '../../drivers/redfish/power';
import { systemClock } from '../../model/clock';
import { silentLog } from '../../model/log';
import type { JsonObject } from '../../model/records';
import { parseFaults, readFaults } from '../../simulator/bmc/faults';
import { startFleet, type Fleet, type Protocol } from '../../simulator/fleet/fleet';
import { nodeOf } from '../../simulator/fleet/describe-node';
import { createIpmiPool, type IpmiTarget } from '../../wire/ipmi/client';
import { COMMANDS } from '../../wire/ipmi/constants';
import { createRedfishPool, type RedfishTarget } from '../../wire/redfish';
import { bmcTask } from './bmc-task';

let fleet: Fleet;
/** Milliseconds by which the clock of the BMCs was turned on. */
let ahead = 0;
const clock = { ...systemClock, now: () => Date.now() + ahead };
const ipmi = createIpmiPool({ log: silentLog, clock: systemClock, random: randomBytes, resendMs: 20 });
const redfish = createRedfishPool();
beforeAll(async () => {
  fleet = await startFleet({ count: 1, host: '127.0.0.1', log: silentLog, clock, random: randomBytes });
  await fleet.machines[0]!.control.act('on');
});
afterAll(async () => {
  await Promise.all([ipmi.close(), redfish.close()]);
  await fleet.close();
});

/** What each driver answers; undefined: it throws. */
const answers = async (faults: string): Promise<Readonly<Record<Protocol, string | null | undefined>>> => {
  const machine = fleet.machines[0]!;
  machine.faults.now = readFaults(parseFaults(faults));
  const ask = (driver: Protocol, power: typeof ipmiPower): Promise<string | null | undefined> => {
    const { task } = bmcTask({
      node: { driver, driver_info: nodeOf(machine, driver).node['driver_info'] as JsonObject },
      driver: { power },
      options: { 'ipmi.command_retry_timeout': 1, 'redfish.read_timeout': 1, 'redfish.connection_attempts': 2 },
      connections: { ipmi, redfish },
    });
    return power.get(task).catch(() => undefined);
  };
  const [first, second] = await Promise.all([ask('ipmi', ipmiPower), ask('redfish', redfishPower)]);
  return { ipmi: first, redfish: second };
};

it.each([
  ['none', 'power on', 'power on'],
  ['latency=30', 'power on', 'power on'],
  ['loss=1', undefined, undefined],
  ['hang', undefined, undefined],
  ['redfish_missing=Systems', 'power on', undefined],
  ['redfish_error=Systems', 'power on', undefined],
  ['redfish_garbage=Systems', 'power on', undefined],
  ['none', 'power on', 'power on'],
])('with the fault "%s", each driver reports the true power state or an error', async (faults, byIpmi, byRedfish) => {
  expect(await answers(faults)).toEqual({ ipmi: byIpmi, redfish: byRedfish });
});
it('the redfish driver reports no power state for a PowerState of another type', async () => {
  const { redfish: told } = await answers('redfish_types=Systems');
  expect(told ?? null).toBeNull();
});
it('the redfish driver fails on a rejected password instead of reporting a power state', async () => {
  // The IPMI session is still valid; Redfish checks the login at each request.
  expect((await answers('wrong_password')).redfish).toBeUndefined();
});

describe('BMC reset', () => {
  const HOUR = 3_600_000;
  const cold = async (): Promise<void> => {
    const { address, port, username, password } = fleet.machines[0]!.ipmi;
    const target: IpmiTarget = { address, port, username, password, privilege: 'ADMINISTRATOR', cipherSuites: [17] };
    await ipmi.request(target, ...COMMANDS.coldReset, Buffer.alloc(0), { timeoutMs: 5000 });
  };
  const manager = async (): Promise<void> => {
    const { address, username, password } = fleet.machines[0]!.redfish;
    const target: RedfishTarget = { address, username, password, authType: 'session', verifyCa: false };
    const path = '/redfish/v1/Managers/sim-0/Actions/Manager.Reset';
    await redfish.request(target, 'POST', path, { timeoutMs: 5000, body: { ResetType: 'ForceRestart' } });
  };
  it.each([
    ['an IPMI cold reset', cold],
    ['a Redfish Manager.Reset', manager],
  ])('after %s both drivers fail, and work again with new sessions after the restart', async (_, reset) => {
    expect(await answers('none')).toEqual({ ipmi: 'power on', redfish: 'power on' });
    fleet.machines[0]!.faults.now = { restart: HOUR };
    await reset();
    expect(await answers('none')).toEqual({ ipmi: undefined, redfish: undefined });
    ahead += HOUR;
    expect(await answers('none')).toEqual({ ipmi: 'power on', redfish: 'power on' });
  });
});
