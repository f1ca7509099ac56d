import { randomBytes } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { silentLog } from '../../../model/log';
import type { BootSetting, MachineControl } from '../../../simulator/hardware/control';
import { serveIpmi } from '../../../simulator/ipmi/ipmi';
import { createIpmiPool, type IpmiPool, type IpmiTarget } from '../../../wire/ipmi/client';
import { encodeOpenSessionRequest, encodePong, encodeRakp1, encodeRmcpPlus } from '../../../wire/ipmi/codec';
import { COMMANDS, type CommandCode } from '../../../wire/ipmi/constants';
import { SUITE_17, SUITE_3 } from '../../wire/ipmi/captures';
import { sameNumbers } from '../../wire/udp-relay';

interface Bench {
  readonly endpoint: Awaited<ReturnType<typeof serveIpmi>>;
  readonly acts: string[];
  boot: BootSetting;
  on: boolean;
  /** Sets the BMC's clock forward. */
  pass(milliseconds: number): void;
  ask(code: CommandCode, ...data: readonly number[]): Promise<readonly number[]>;
}
let bench: Bench;
let pool: IpmiPool;
const NOTHING: BootSetting = { device: 'none', persistent: false, mode: null };

beforeEach(async () => {
  let now = Date.parse('2026-03-01T00:00:00Z');
  const acts: string[] = [];
  const machine: MachineControl = {
    name: 'node-1',
    macs: [],
    isOn: () => bench.on,
    act: async (action) => {
      if (action === 'diagnostic') throw new Error('broken');
      acts.push(action);
      bench.on = action !== 'off' && action !== 'soft';
    },
    boot: () => bench.boot,
    setBoot: (setting) => (bench.boot = setting),
  };
  const clock = { now: () => now, sleep: async () => {} };
  const endpoint = await serveIpmi({
    host: '127.0.0.1',
    port: 0,
    username: 'admin',
    password: 'secret',
    machine,
    log: silentLog,
    clock,
    random: randomBytes,
  });
  pool = createIpmiPool({ log: silentLog, clock: { now: () => Date.now() }, random: randomBytes, resendMs: 100 });
  const target: IpmiTarget = {
    address: '127.0.0.1',
    port: endpoint.port,
    username: 'admin',
    password: 'secret',
    privilege: 'ADMINISTRATOR',
    cipherSuites: [17],
  };
  bench = {
    endpoint,
    acts,
    boot: NOTHING,
    on: false,
    pass: (milliseconds) => (now += milliseconds),
    ask: async ([networkFunction, command], ...data) => [
      ...(await pool.request(target, networkFunction, command, Buffer.from(data), { timeoutMs: 20_000 })),
    ],
  };
});
afterEach(async () => {
  await pool.close();
  await bench.endpoint.close();
});

const control = (value: number): Promise<readonly number[]> => bench.ask(COMMANDS.chassisControl, value);
const setOption = (...data: readonly number[]): Promise<readonly number[]> => bench.ask(COMMANDS.setSystemBootOptions, ...data);
const getOption = (parameter: number): Promise<readonly number[]> => bench.ask(COMMANDS.getSystemBootOptions, parameter, 0, 0);

describe('chassis commands', () => {
  it('report and change the power state', async () => {
    expect((await bench.ask(COMMANDS.getChassisStatus))[0]! & 1).toBe(0);
    await control(1);
    expect((await bench.ask(COMMANDS.getChassisStatus))[0]! & 1).toBe(1);
    for (const value of [3, 2, 5]) await control(value);
    expect(bench.acts).toEqual(['on', 'reset', 'cycle', 'soft']);
  });
  it.each([2, 3, 4])('refuse the control %i while the machine is off', (value) =>
    expect(control(value)).rejects.toMatchObject({ completionCode: 0xd5 }),
  );
  it('refuse an unknown control', () => expect(control(9)).rejects.toMatchObject({ completionCode: 0xcc }));
  it('return completion code 0xff if the machine fails', async () => {
    bench.on = true;
    await expect(control(4)).rejects.toMatchObject({ completionCode: 0xff });
  });
});

describe('system boot options', () => {
  it.each<[string, readonly number[], BootSetting]>([
    ['pxe once, UEFI', [0xa0, 0x04], { device: 'pxe', persistent: false, mode: 'uefi' }],
    ['pxe persistent, UEFI', [0xe0, 0x04], { device: 'pxe', persistent: true, mode: 'uefi' }],
    ['disk persistent, BIOS', [0xc0, 0x08], { device: 'disk', persistent: true, mode: 'bios' }],
    ['safe', [0x80, 0x0c], { device: 'safe', persistent: false, mode: 'bios' }],
    ['cdrom', [0x80, 0x14], { device: 'cdrom', persistent: false, mode: 'bios' }],
    ['bios', [0x80, 0x18], { device: 'bios', persistent: false, mode: 'bios' }],
  ])('set and return the boot flags: %s', async (_, flags, setting) => {
    await setOption(5, ...flags, 0, 0, 0);
    expect(bench.boot).toEqual(setting);
    expect(await getOption(5)).toEqual([1, 5, ...flags, 0, 0, 0]);
  });
  it('end the override for flags without the valid bit or without a device', async () => {
    for (const flags of [
      [0x40, 0x04],
      [0xe0, 0x00],
    ]) {
      bench.boot = { device: 'pxe', persistent: true, mode: 'uefi' };
      await setOption(5, ...flags, 0, 0, 0);
      expect(bench.boot).toEqual(NOTHING);
    }
    expect(await getOption(5)).toEqual([1, 5, 0, 0, 0, 0, 0]);
  });
  it('clear the boot flags after 60 s', async () => {
    await setOption(5, 0xe0, 0x04, 0, 0, 0);
    bench.pass(59_000);
    expect((await getOption(5))[2]).toBe(0xe0);
    bench.pass(1000);
    expect((await getOption(5))[2]).toBe(0);
    expect(bench.boot).toEqual(NOTHING);
  });
  it('keep the boot flags with the "do not clear" parameter, and after a Chassis Control', async () => {
    await setOption(3, 0x08);
    expect(await getOption(3)).toEqual([1, 3, 8]);
    await setOption(5, 0xe0, 0x04, 0, 0, 0);
    bench.pass(59_000);
    await setOption(3, 0x00);
    await control(1);
    bench.pass(59_000);
    expect((await getOption(5))[2]).toBe(0xe0);
  });
  it('support the parameters 0, 1, 2 and 4', async () => {
    await setOption(4, 0x01, 0x01);
    expect(await getOption(4)).toEqual([1, 4, 1, 1]);
    await setOption(0, 1);
    await expect(setOption(0, 1)).rejects.toMatchObject({ completionCode: 0x81 });
    await setOption(0, 0);
    await setOption(1, 0);
    await setOption(2, 0);
    for (const parameter of [0, 1, 2]) expect(await getOption(parameter)).toEqual([1, parameter, 0]);
  });
  it.each<[string, readonly number[], number]>([
    ['no data', [], 0xc7],
    ['short flags', [5, 0x80], 0xc7],
    ['an unsupported device', [5, 0x80, 0x1c, 0, 0, 0], 0xcc],
    ['an unknown parameter', [96, 0], 0x80],
  ])('refuse %s', (_, data, completionCode) => expect(setOption(...data)).rejects.toMatchObject({ completionCode }));
});

describe('other commands', () => {
  it('return device ID, self-test result, authentication capabilities and cipher suites', async () => {
    expect((await bench.ask(COMMANDS.getDeviceId))[4]).toBe(0x02);
    expect(await bench.ask(COMMANDS.getSelfTestResults)).toEqual([0x55, 0]);
    expect(await bench.ask(COMMANDS.getChannelAuthenticationCapabilities, 0x8e, 4)).toEqual([1, 0x95, 4, 3, 0, 0, 0, 0]);
    // Suites 3 to 17 as records of five bytes (§22.15.1), sixteen bytes at a time.
    const portions = [];
    for (const index of [0x80, 0x81, 0x82]) portions.push(await bench.ask(COMMANDS.getChannelCipherSuites, 0x0e, 0, index));
    const records = portions.flatMap((portion) => portion.slice(1));
    expect(records.slice(0, 5)).toEqual([0xc0, 3, 1, 0x41, 0x81]);
    expect(records.slice(-5)).toEqual([0xc0, 17, 3, 0x44, 0x81]);
    expect(records.length).toBe(9 * 5);
  });
  it('return completion code 0xc1 if unknown', () => expect(bench.ask([0x0a, 0x7f])).rejects.toMatchObject({ completionCode: 0xc1 }));
});

describe('hostile packets', () => {
  const LAST = 250;
  const encodePing = (tag: number): Buffer => Buffer.from([6, 0, 0xff, 6, 0, 0, 0x11, 0xbe, 0x80, tag, 0, 0]);
  /** Sends packets from a new socket, waits for the answer to a last ping, and then checks that the BMC still works. */
  const throwAt = async (packets: readonly Buffer[]): Promise<readonly Buffer[]> => {
    const socket = createSocket('udp4');
    const answers: Buffer[] = [];
    socket.on('message', (bytes) => answers.push(bytes));
    await new Promise<void>((done) => socket.bind(0, '127.0.0.1', done));
    const send = (packet: Buffer) => new Promise<void>((done) => socket.send(packet, bench.endpoint.port, '127.0.0.1', () => done()));
    for (const packet of packets) await send(packet);
    const last = encodePong(LAST);
    while (!answers.some((bytes) => bytes.equals(last))) {
      await send(encodePing(LAST));
      await new Promise((done) => setTimeout(done, 50));
    }
    await new Promise<void>((done) => socket.close(() => done()));
    expect((await bench.ask(COMMANDS.getChassisStatus))[0]! & 1).toBe(0);
    return answers.filter((bytes) => !bytes.equals(last));
  };
  it('cause no response or a refusal, and no failure of the BMC', async () => {
    const next = sameNumbers(17);
    const good = [...SUITE_3.packets, ...SUITE_17.packets].map(([, hex]) => Buffer.from(hex, 'hex'));
    const bent = good.flatMap((packet) =>
      Array.from({ length: 20 }, () => {
        const bytes = Buffer.from(packet.subarray(0, Math.floor(next() * packet.length) + 1));
        for (let n = 0; n < 3; n++) bytes[Math.floor(next() * bytes.length)] = Math.floor(next() * 256);
        return bytes;
      }),
    );
    await throwAt([Buffer.alloc(0), Buffer.alloc(2000), ...good, ...bent]);
    expect(bench.acts).toEqual([]);
  });
  it('cannot occupy all sessions permanently', async () => {
    const algorithms = { authentication: 1, integrity: 1, confidentiality: 1 };
    const open = (consoleId: number): Buffer =>
      encodeRmcpPlus(
        { payloadType: 0x10, sessionId: 0, sequence: 0 },
        encodeOpenSessionRequest({ tag: 0, privilege: 4, consoleId, algorithms }),
      );
    // A session of our own, open before the flood.
    await bench.ask(COMMANDS.getDeviceId);
    const answers = await throwAt(Array.from({ length: 30 }, (_, i) => open(i + 1)));
    expect(answers.filter((bytes) => bytes[17] === 1).length).toBeGreaterThanOrEqual(14);
    // The handshakes of the flood time out, and a new console can connect.
    bench.pass(11_000);
    await pool.close();
    pool = createIpmiPool({ log: silentLog, clock: { now: () => Date.now() }, random: randomBytes, resendMs: 100 });
    expect((await bench.ask(COMMANDS.getDeviceId))[4]).toBe(0x02);
  });
  it('a RAKP 1 message without a session gets no response', async () => {
    const rakp1 = encodeRakp1({ tag: 0, bmcId: 77, consoleRandom: Buffer.alloc(16), role: 0x14, username: Buffer.from('admin') });
    expect(await throwAt([encodeRmcpPlus({ payloadType: 0x12, sessionId: 0, sequence: 0 }, rakp1)])).toEqual([]);
  });
  it('a presence ping gets a pong', async () => expect(await throwAt([encodePing(5)])).toEqual([encodePong(5)]));
});

it('serveIpmi fails if the port is in use', async () => {
  const { port } = bench.endpoint;
  const machine: MachineControl = { name: 'm', macs: [], isOn: () => false, act: async () => {}, boot: () => NOTHING, setBoot: () => {} };
  const clock = { now: () => 0, sleep: async () => {} };
  await expect(
    serveIpmi({ host: '127.0.0.1', port, username: 'u', password: 'p', machine, log: silentLog, clock, random: randomBytes }),
  ).rejects.toMatchObject({ code: 'EADDRINUSE' });
});
