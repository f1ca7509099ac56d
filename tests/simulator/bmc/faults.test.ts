/** Faults of simulated BMCs, and their effect on the server's own clients. */
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { systemClock } from '../../../model/clock';
import { silentLog } from '../../../model/log';
import { corruptResponses } from '../../../simulator/bmc/altered-answers';
import { parseFaults, readFaults, type Faults } from '../../../simulator/bmc/faults';
import { startFleet, type Fleet } from '../../../simulator/fleet/fleet';
import { listenOn, sendJson } from '../../../simulator/http';
import { createIpmiPool, type IpmiPool, type IpmiTarget } from '../../../wire/ipmi/client';
import { COMMANDS } from '../../../wire/ipmi/constants';
import { timeoutSignal } from '../../../wire/timeout-signal';

describe('readFaults', () => {
  it.each([
    ['latency=300,loss=0.2', { latency: 300, loss: 0.2 }],
    ['hang wrong_password=false redfish_missing=Bios+Storage', { hang: true, redfish_missing: ['Bios', 'Storage'] }],
    ['redfish_error=*,flap=5000', { redfish_error: ['*'], flap: 5000 }],
    ['latency=0,hang=false,redfish_types=', {}],
    ['none', {}],
  ])('parses %s', (text, faults) => {
    expect(readFaults(parseFaults(text))).toEqual(faults);
  });
  it.each([
    ['speed=3', 'there is no fault "speed"'],
    ['latency=soon', 'latency needs a number'],
    ['latency', 'latency needs a number'],
    ['loss=2', 'loss needs a number, 1 at most'],
    ['hang=maybe', 'hang needs true or false'],
    ['redfish_missing=a/b', 'redfish_missing needs names of resources'],
    ['toString=1', 'there is no fault "toString"'],
  ])('rejects %s', (text, message) => {
    expect(() => readFaults(parseFaults(text))).toThrow(message);
  });
});

it('corruptResponses changes the type of each value but keeps links', async () => {
  const body = { '@odata.id': '/redfish/v1', Name: 'x', Count: 3, On: true, Nothing: null, Members: [{ '@odata.id': '/a' }] };
  const server = createServer((_, response) => {
    corruptResponses(response, 'types');
    sendJson(response, 200, body);
  });
  const { port, close } = await listenOn(server, 0, '127.0.0.1');
  try {
    expect(await (await fetch(`http://127.0.0.1:${port}/`)).json()).toEqual({
      '@odata.id': '/redfish/v1',
      Name: ['x'],
      Count: '3',
      On: 'yes',
      Nothing: 0,
      Members: { 0: { '@odata.id': '/a' } },
    });
  } finally {
    await close();
  }
});

describe('BMC with the fault', () => {
  let fleet: Fleet;
  let pool: IpmiPool;
  /** The next random choices; later choices have no effect. */
  let chances: number[];
  const begin = async (now: Faults): Promise<void> => {
    chances = [];
    fleet = await startFleet({
      count: 1,
      host: '127.0.0.1',
      log: silentLog,
      clock: systemClock,
      faults: () => now,
      random: (bytes) => {
        if (bytes !== 4) return randomBytes(bytes);
        // Session identifiers are random too, and no two may be the same.
        const chance = randomBytes(4);
        chance[3] = Math.floor((chances.shift() ?? 0.99) * 256);
        return chance;
      },
    });
    pool = createIpmiPool({ log: silentLog, clock: systemClock, random: randomBytes, resendMs: 30 });
  };
  afterEach(async () => {
    await pool.close();
    await fleet.close();
  });
  const status = (timeoutMs = 5000): Promise<Buffer> => {
    const { address, port, username, password } = fleet.machines[0]!.ipmi;
    const target: IpmiTarget = { address, port, username, password, privilege: 'ADMINISTRATOR', cipherSuites: [3] };
    return pool.request(target, ...COMMANDS.getChassisStatus, Buffer.alloc(0), { timeoutMs });
  };
  const get = async (path: string, signal?: AbortSignal): Promise<{ readonly status: number; readonly text: string }> => {
    const { address, username, password } = fleet.machines[0]!.redfish;
    const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
    const answer = await fetch(`${address}${path}`, { headers: { authorization, connection: 'close' }, ...(signal ? { signal } : {}) });
    return { status: answer.status, text: await answer.text() };
  };
  const SYSTEM = '/redfish/v1/Systems/sim-0';

  it('latency: responds later', async () => {
    await begin({ latency: 20 });
    const before = performance.now();
    expect((await get(SYSTEM)).status).toBe(200);
    expect(performance.now() - before).toBeGreaterThan(18);
    expect((await status())[0]! & 1).toBe(0);
  });
  it('loss: an IPMI request succeeds after its packet is sent again', async () => {
    await begin({ loss: 0.5 });
    chances = [0.1, 0.9, 0.1];
    expect((await status())[0]! & 1).toBe(0);
  });
  it.each([
    ['before the request is handled', [0.1, 0.1]],
    ['after the request is handled', [0.1, 0.9]],
  ])('loss: the connection of an HTTP request breaks %s', async (_, first) => {
    await begin({ loss: 0.5 });
    chances = [...first];
    await expect(get(SYSTEM)).rejects.toThrow();
    expect((await get(SYSTEM)).status).toBe(200);
  });
  it('hang: does not respond until the fault is removed', async () => {
    await begin({ hang: true });
    await expect(status(100)).rejects.toThrow();
    await expect(get(SYSTEM, timeoutSignal(100))).rejects.toThrow();
    fleet.machines[0]!.faults.now = {};
    expect((await status())[0]! & 1).toBe(0);
    expect((await get(SYSTEM)).status).toBe(200);
  });
  it('wrong_password: refuses the password over IPMI and Redfish', async () => {
    await begin({ wrong_password: true });
    await expect(status()).rejects.toThrow();
    expect((await get('/redfish/v1')).status).toBe(200);
    expect((await get(SYSTEM)).status).toBe(401);
  });
  it('flap: reports alternating power states while the machine stays off', async () => {
    await begin({ flap: 1 });
    const states = new Set<unknown>();
    while (states.size < 2) states.add((JSON.parse((await get(SYSTEM)).text) as { readonly PowerState: string }).PowerState);
    expect(fleet.machines[0]!.control.isOn()).toBe(false);
  });
  it('redfish_missing, redfish_error, redfish_types, redfish_garbage: corrupts the named resources', async () => {
    await begin({
      redfish_missing: ['Managers'],
      redfish_error: ['Chassis'],
      redfish_types: ['Systems'],
      redfish_garbage: ['SessionService'],
    });
    expect((await get('/redfish/v1/Managers')).status).toBe(404);
    expect((await get('/redfish/v1/Chassis/sim-0')).status).toBe(500);
    expect(JSON.parse((await get(SYSTEM)).text)).toMatchObject({ PowerState: ['Off'], '@odata.id': SYSTEM });
    const { status: garbage, text } = await get('/redfish/v1/SessionService');
    expect(garbage).toBe(200);
    expect(() => {
      JSON.parse(text);
    }).toThrow();
    fleet.machines[0]!.faults.now = { redfish_missing: ['*'] };
    expect((await get('/redfish/v1')).status).toBe(200);
    expect((await get(SYSTEM)).status).toBe(404);
  });
});
