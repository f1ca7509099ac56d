/** Sensors, event log, inventory and bridging: our client and ipmitool at the same BMCs must have the same results. */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ipmiManagement } from '../../../drivers/ipmi/management';
import { ipmiPower } from '../../../drivers/ipmi/power';
import { ipmiSensors } from '../../../drivers/ipmi/sensors';
import { targetOf } from '../../../drivers/ipmi/target';
import { ipmiVendor } from '../../../drivers/ipmi/vendor';
import { systemClock } from '../../../model/clock';
import { silentLog } from '../../../model/log';
import type { JsonObject } from '../../../model/records';
import type { BootSetting, MachineControl } from '../../../simulator/hardware/control';
import { serveIpmi } from '../../../simulator/ipmi/ipmi';
import { fruBytes } from '../../../simulator/ipmi/fru';
import { compactRecord, controllerLocator, fullRecord } from '../../../simulator/ipmi/sdr';
import { createIpmiPool, type IpmiPool } from '../../../wire/ipmi/client';
import { createIpmitoolPool } from '../../../wire/ipmi/ipmitool';
import { bmcTask } from '../../drivers/bmc-task';
import { freePort } from '../../support/free-port';
import { startIpmiSim } from '../../../demo/lab/ipmi-sim';
import { needs } from '../support/needs';

const run = promisify(execFile);
const machine = (name: string): MachineControl & { on: boolean } => {
  let setting: BootSetting = { device: 'none', persistent: false, mode: null };
  const it = {
    name,
    macs: [],
    on: true,
    boot: () => setting,
    setBoot: (changed: BootSetting) => void (setting = changed),
    isOn: () => it.on,
    act: async (action: string) => void (it.on = action !== 'off' && action !== 'soft'),
  };
  return it;
};
function withoutEvents(fields: Record<string, string>): void {
  for (const key of Object.keys(fields)) if (/^(Event (Status|Enable)|Assertion|Deassertion)/.test(key)) delete fields[key];
}
/** Ironic's parser of `ipmitool sdr -v`, without what our client does not read (the events of each sensor). */
function parsed(text: string): Record<string, Record<string, Record<string, string>>> {
  const found: Record<string, Record<string, Record<string, string>>> = {};
  for (const block of text.split('\n\n')) {
    const pairs = block.split('\n').map((line) => line.split(':').map((part) => part.trim()));
    const fields = Object.fromEntries(pairs.filter((pair) => pair.length === 2)) as Record<string, string>;
    const type = fields['Sensor Type (Threshold)'] ?? fields['Sensor Type (Discrete)'];
    if (type === undefined || fields['Sensor Reading'] === undefined) continue;
    withoutEvents(fields);
    (found[type.split(' ')[0]!] ??= {})[fields['Sensor ID']!] = fields;
  }
  return found;
}

interface RunningBmc {
  readonly port: number;
  readonly username: string;
  readonly password: string;
  stop(): Promise<void>;
}
const folder = mkdtempSync(join(tmpdir(), 'bloomery-ipmi-stores-'));
afterAll(() => rmSync(folder, { recursive: true }));
const words = (bytes: Buffer): string => [...bytes].map((byte) => `0x${byte.toString(16)}`).join(' ');

const OURS = 'our simulator';
const BMCS: Readonly<Record<string, () => Promise<RunningBmc>>> = {
  [OURS]: async () => {
    const simulated = await serveIpmi({
      host: '127.0.0.1',
      port: 0,
      username: 'admin',
      password: 'secret',
      machine: machine('ours'),
      log: silentLog,
      clock: systemClock,
      random: randomBytes,
    });
    return { port: simulated.port, username: 'admin', password: 'secret', stop: () => simulated.close() };
  },
  "OpenIPMI's ipmi_sim": async () => {
    const analog = { number: 1, name: 'Temp', entity: [3, 1], sensorType: 1, unit: 1 } as const;
    const records = [
      fullRecord(1, { ...analog, m: 1, tolerance: 1, thresholds: { unc: 60, ucr: 70, lnc: 5 } }),
      fullRecord(2, { ...analog, number: 2, name: 'P5V', sensorType: 2, unit: 4, m: 26, rExponent: -3, thresholds: { lcr: 180 } }),
      compactRecord(3, { number: 3, name: 'Watchdog', entity: [7, 1], sensorType: 0x23, states: 0x0f }),
      fullRecord(4, { ...analog, number: 4, name: 'absent', m: 1 }),
      controllerLocator(5, 'BMC'),
    ];
    const fru = fruBytes('SIM-7');
    return startIpmiSim(machine('sim'), {
      address: '127.0.0.1',
      port: await freePort(),
      folder,
      emulation: [
        ...records.map((record) => `main_sdr_add 0x20 ${words(record)}`),
        'sensor_add 0x20 0 1 0x01 0x01',
        'sensor_add 0x20 0 2 0x02 0x01',
        'sensor_add 0x20 0 3 0x23 0x6f',
        'sensor_set_value 0x20 0 1 65 0',
        'sensor_set_value 0x20 0 2 0xc1 0',
        'sensor_set_bit 0x20 0 3 1 1 0',
        'sel_enable 0x20 100 0x0a',
        'sel_add 0x20 0x02 0 0x10 0x5e 0x5f 0x20 0 4 1 1 0x81 0x59 0x2c 0x2b',
        `mc_add_fru_data 0x20 0 ${fru.length} data ${words(fru)}`,
        'mc_add 0x30 0x31 no-device-sdrs 0x03 9 8 0x9f 0x1291 0x0f02',
        'mc_enable 0x30',
      ],
    });
  },
};

/** The device ID in the answer to Get Device ID (IPMI 2.0 §20.1). */
async function deviceId(task: ReturnType<typeof bmcTask>['task']): Promise<number | undefined> {
  const answer = await task.connections.ipmi.request(targetOf(task), 6, 1, Buffer.alloc(0), { timeoutMs: 20_000 });
  return answer[0];
}

describe.each(Object.keys(BMCS))('with %s as the BMC,', (name) => {
  let bmc: RunningBmc;
  let pool: IpmiPool;
  beforeAll(async () => {
    needs({ ipmi_sim: 'openipmi', ipmitool: 'ipmitool' });
    pool = createIpmiPool({ log: silentLog, clock: systemClock, random: randomBytes });
    bmc = await BMCS[name]!();
  });
  afterAll(async () => {
    await pool?.close();
    await bmc?.stop();
  });
  const task = (info: JsonObject = {}, ipmi = pool): ReturnType<typeof bmcTask>['task'] =>
    bmcTask({
      node: {
        driver: 'ipmi',
        driver_info: { ipmi_address: '127.0.0.1', ipmi_port: bmc.port, ipmi_username: bmc.username, ipmi_password: bmc.password, ...info },
      },
      driver: {},
      options: {},
      connections: { ipmi },
    }).task;
  const ipmitool = async (...more: readonly string[]): Promise<string> => {
    const where = ['-I', 'lanplus', '-H', '127.0.0.1', '-p', `${bmc.port}`, '-U', bmc.username, '-P', bmc.password, '-C', '3'];
    return (await run('ipmitool', [...where, ...more], { timeout: 60_000 })).stdout;
  };
  const vendor = (method: string): Promise<JsonObject> => ipmiVendor.methods![method]!.run(task(), {}, 'GET') as Promise<JsonObject>;

  it('our client reads the same sensors as Ironic parses from ipmitool', async () => {
    const theirs = parsed(await ipmitool('-v', 'sdr'));
    const ours = await ipmiSensors(task());
    expect(Object.keys(theirs).length).toBeGreaterThan(1);
    expect(ours).toEqual(theirs);
  });
  it('[ipmi]client = ipmitool has the same results as our client', async () => {
    const tool = createIpmitoolPool({
      log: silentLog,
      clock: systemClock,
      passwordInEnvironment: false,
      ownRetries: false,
      interval: 1,
      killOnTimeout: true,
      debug: false,
    });
    const fallback = task({}, tool);
    expect(await ipmiPower.get(fallback)).toBe('power on');
    await ipmiManagement.setBootDevice(fallback, 'pxe', false);
    expect(await ipmiManagement.getBootDevice(fallback)).toEqual({ device: 'pxe', persistent: false });
    await ipmiVendor.methods!['send_raw']!.run(fallback, { raw_bytes: '0x06 0x01' }, 'POST');
    await expect(ipmiVendor.methods!['send_raw']!.run(fallback, { raw_bytes: '0x0a 0x7f' }, 'POST')).rejects.toThrow('invalid command');
    const sensors = (await ipmiSensors(fallback)) as ReturnType<typeof parsed>;
    for (const them of Object.values(sensors)) for (const fields of Object.values(them)) withoutEvents(fields);
    expect(sensors).toEqual(await ipmiSensors(task()));
    expect((await ipmiVendor.methods!['fru']!.run(fallback, {}, 'GET')) as JsonObject).toEqual(await vendor('fru'));
    await expect(ipmiPower.get(task({ ipmi_password: 'wrong' }, tool))).rejects.toThrow('wrong password');
    await expect(ipmiPower.get(task({ ipmi_username: 'nobody' }, tool))).rejects.toThrow(/wrong user name|wrong password/);
    await tool.close();
  });
  it('the vendor methods sel and clear_sel read and clear the event log', async () => {
    if (name === OURS) for (const control of ['off', 'on']) await ipmitool('power', control);
    const theirs = (await ipmitool('sel', 'list')).split('\n').filter((line) => line !== '');
    const { entries } = (await vendor('sel')) as { entries: JsonObject[] };
    expect(entries.length).toBe(theirs.length);
    expect(entries.length).toBeGreaterThan(0);
    expect(entries[0]).toMatchObject({ type: '0x02', generator: '0x20' });
    await vendor('clear_sel');
    expect((await vendor('sel')).entries).toEqual([]);
    expect(await ipmitool('sel', 'list')).toBe('');
  });
  it('the vendor method fru reads the inventory', async () => {
    const { product, faults } = (await vendor('fru')) as { product: Record<string, string>; faults: unknown };
    expect(faults).toEqual([]);
    expect(await ipmitool('fru', 'print', '0')).toMatch(new RegExp(`Product Serial +: ${product['serial']}\n`));
  });
  it('our client reaches a controller behind the BMC by single bridging', async () => {
    const [address, id] = name === OURS ? ['0x82', 0x82] : ['0x30', 0x31];
    const info = { ipmi_bridging: 'single', ipmi_target_channel: '0', ipmi_target_address: address };
    // The device ID of the bridged controller, not the BMC's.
    expect(await deviceId(task(info))).toBe(id);
  });

  // ipmi_sim can change no thresholds, and has no second bus.
  if (name !== OURS) return;
  it('the sensors show a threshold that ipmitool has changed', async () => {
    await ipmitool('sensor', 'thresh', 'Inlet Temp', 'unc', '40');
    const { Temperature } = (await ipmiSensors(task())) as ReturnType<typeof parsed>;
    expect(Temperature!['Inlet Temp (0x1)']).toMatchObject({ 'Upper non-critical': '40.000', 'Upper critical': '47.000' });
    expect(await ipmitool('sensor', 'get', 'Inlet Temp')).toMatch(/Upper Non-Critical +: 40\.000/);
  });
  it('our client reaches a controller on a second bus by dual bridging, as ipmitool does', async () => {
    const dual = {
      ipmi_bridging: 'dual',
      ipmi_transit_channel: '0',
      ipmi_transit_address: '0x82',
      ipmi_target_channel: '7',
      ipmi_target_address: '0x72',
    };
    expect(await deviceId(task(dual))).toBe(0x72);
    expect(await ipmitool('-b', '0', '-t', '0x82', 'raw', '0x06', '0x01')).toMatch(/^ 82 /);
    expect(await ipmitool('-B', '0', '-T', '0x82', '-b', '7', '-t', '0x72', 'raw', '0x06', '0x01')).toMatch(/^ 72 /);
    expect(await ipmiPower.get(task(dual))).toBe('power on');
  });
});
