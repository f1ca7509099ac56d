/** SDR, sensors, SEL and FRU: the meaning of a BMC's bytes, and bounds against a BMC that sends nonsense. */
import { fruBytes } from '../../../simulator/ipmi/fru';
import { compactRecord, controllerLocator, eventOnlyRecord, fruLocator, fullRecord } from '../../../simulator/ipmi/sdr';
import type { SendCommand } from '../../../wire/ipmi/record-access';
import { COMMANDS, IpmiError } from '../../../wire/ipmi/constants';
import { decodeFru, readFruBytes } from '../../../wire/ipmi/records/fru';
import { decodeSdr, textOf, type SensorRecord } from '../../../wire/ipmi/records/sdr';
import { createSdrCache, readSdrs } from '../../../wire/ipmi/records/sdr-repository';
import { clearSel, decodeSelEntry, readSel } from '../../../wire/ipmi/records/sel';
import { distanceOf, readSensor, toleranceOf, valueOf, withLimits } from '../../../wire/ipmi/records/sensors';

type AnalogSetup = Parameters<typeof fullRecord>[1];
const code = (completionCode: number): IpmiError => new IpmiError('completion', `code ${completionCode}`, { completionCode });
const setup: AnalogSetup = { number: 9, name: 'Temp', entity: [3, 1], sensorType: 1, unit: 1, m: 1 };
const sensor = (changes: Partial<AnalogSetup> = {}): SensorRecord => decodeSdr(fullRecord(1, { ...setup, ...changes })) as SensorRecord;
const same = (a: readonly [number, number], b: readonly [number, number]): boolean => a[0] === b[0] && a[1] === b[1];

/** A BMC with these records; `most` bytes an answer; every n-th Get SDR finds its reservation cancelled. */
function repository(
  records: readonly Buffer[],
  given: { most?: number; cancelEvery?: number; device?: readonly number[] } = {},
): { ask: SendCommand; asked: string[] } {
  const asked: string[] = [];
  let [reservation, reads] = [0, 0];
  const ask: SendCommand = async (words, data) => {
    asked.push([...words, ...data].join(' '));
    if (same(words, COMMANDS.getDeviceId)) return Buffer.from(given.device ?? [0x20, 1, 1, 0, 2, 0x8f, 0, 0, 0, 0, 0]);
    if (same(words, COMMANDS.reserveSdrRepository) || same(words, COMMANDS.reserveDeviceSdrRepository))
      return Buffer.from([++reservation, 0]);
    const [r0 = 0, , i0 = 0, i1 = 0, offset = 0, count = 0] = data;
    reads++;
    if (given.cancelEvery && reads % given.cancelEvery === 0) reservation++;
    if (offset > 0 && r0 !== reservation) throw code(0xc5);
    if (count > (given.most ?? 255)) throw code(0xca);
    const id = i0 | (i1 << 8);
    const index = id === 0 ? 0 : records.findIndex((record) => record.readUInt16LE(0) === id);
    if (!records[index]) throw code(0xcb);
    const next = records[index + 1]?.readUInt16LE(0) ?? 0xffff;
    return Buffer.from([next & 0xff, next >> 8, ...records[index].subarray(offset, offset + count)]);
  };
  return { ask, asked };
}
const RECORDS = [
  fullRecord(1, setup),
  compactRecord(2, { number: 5, name: 'PSU', entity: [10, 1], sensorType: 8, states: 0x0f }),
  eventOnlyRecord(3, { number: 6, name: 'Event', entity: [7, 1], sensorType: 0x22 }),
  fruLocator(4, 0, 'Board'),
  controllerLocator(5, 'BMC'),
];

describe('records that were read before', () => {
  /** A BMC's information about its repository: the number of records, and the time of the last change. */
  const withInfo = (
    { ask, asked }: ReturnType<typeof repository>,
    info: () => Buffer | IpmiError,
  ): { ask: SendCommand; reads: () => number } => ({
    ask: async (words, data) => {
      if (!same(words, COMMANDS.getSdrRepositoryInfo) && !same(words, COMMANDS.getDeviceSdrInfo)) return ask(words, data);
      const said = info();
      if (said instanceof IpmiError) throw said;
      return said;
    },
    reads: () => asked.filter((line) => line.startsWith(COMMANDS.getSdr.join(' '))).length,
  });
  const info = (changed: number): Buffer => Buffer.from([0x51, 5, 0, 9, 9, changed, 0, 0, 0, 0, 0, 0, 0, 0x22]);
  it('are not read again until the BMC says that they changed, or an hour is over', async () => {
    let [now, changed] = [0, 0];
    const cache = createSdrCache({ now: () => now });
    const bmc = withInfo(repository(RECORDS), () => info(changed));
    const read = async (of = 'a'): Promise<number> => {
      const before = bmc.reads();
      expect((await readSdrs(bmc.ask, { cache, bmc: of })).length).toBe(5);
      return bmc.reads() - before;
    };
    const all = await read();
    expect(all).toBeGreaterThan(5);
    expect([await read(), await read('b'), await read('b')]).toEqual([0, all, 0]);
    changed = 1;
    expect([await read(), await read()]).toEqual([all, 0]);
    now = 3_600_000;
    expect([await read(), await read()]).toEqual([all, 0]);
  });
  it('are always read of a BMC that does not tell', async () => {
    const cache = createSdrCache({ now: () => 0 });
    const bmc = withInfo(repository(RECORDS), () => code(0xc1));
    await readSdrs(bmc.ask, { cache, bmc: 'a' });
    const once = bmc.reads();
    await readSdrs(bmc.ask, { cache, bmc: 'a' });
    expect(bmc.reads()).toBe(2 * once);
  });
  it('take no more than so many bytes: those used longest ago go', () => {
    const cache = createSdrCache({ now: () => 0 }, 100);
    for (const bmc of ['a', 'b', 'c']) cache.remember(bmc, '', Buffer.alloc(30));
    cache.recall('a', '');
    cache.remember('d', '', Buffer.alloc(30));
    expect(['a', 'b', 'c', 'd'].filter((bmc) => cache.recall(bmc, ''))).toEqual(['a', 'c', 'd']);
    cache.remember('a', '', Buffer.alloc(200));
    expect(['a', 'b', 'c', 'd'].filter((bmc) => cache.recall(bmc, ''))).toEqual([]);
  });
});

describe('thresholds', () => {
  const settable = sensor({ thresholds: { unc: 60, ucr: 70, lnc: 5 }, settable: true });
  it('that can be set are asked for, and so is the hysteresis', async () => {
    const asked: string[] = [];
    const ask: SendCommand = async (words, data) => {
      asked.push([...words, ...data].join(' '));
      return same(words, COMMANDS.getSensorThresholds) ? Buffer.from([0b011001, 1, 2, 3, 40, 50, 60]) : Buffer.from([4, 3]);
    };
    const now = await withLimits(ask, settable);
    expect(now.analog?.thresholds).toMatchObject({ lnc: 1, unc: 40, ucr: 50 });
    expect(now.hysteresis).toEqual({ positive: 4, negative: 3 });
    expect(asked).toEqual(['4 39 9', '4 37 9 255']);
  });
  it.each<[string, SensorRecord, () => Promise<Buffer>]>([
    ['that are fixed are those of the record', sensor({ thresholds: { unc: 60 } }), async () => Promise.reject(new Error('asked'))],
    ['that the BMC does not tell are those of the record', settable, async () => Promise.reject(code(0xc1))],
    ['of an answer that is cut are those of the record', settable, async () => Buffer.alloc(0)],
  ])('%s', async (_, record, ask) => expect(await withLimits(ask, record)).toEqual(record));
});

describe('sensor data records', () => {
  it.each([[{}], [{ most: 16 }], [{ most: 9 }], [{ cancelEvery: 7 }], [{ most: 16, cancelEvery: 11 }]])(
    'are read from a BMC with %j',
    async (given) => {
      const records = await readSdrs(repository(RECORDS, given).ask);
      expect(records).toMatchObject([
        { kind: 'full', name: 'Temp', owner: 0x20, number: 9, entity: { id: 3, instance: 1 }, sensorType: 1, eventType: 1 },
        { kind: 'compact', name: 'PSU', number: 5, eventType: 0x6f },
        { kind: 'other', type: 3 },
        { kind: 'fru', name: 'Board', device: 0 },
        { kind: 'other', type: 0x12 },
      ]);
    },
  );
  it('of a controller without a repository are its own', async () => {
    const { ask, asked } = repository(RECORDS.slice(0, 1), { device: [0x20, 0x81, 1, 0, 2, 0x01, 0, 0, 0, 0, 0] });
    expect((await readSdrs(ask)).length).toBe(1);
    expect(asked.some((words) => words.startsWith('4 33'))).toBe(true);
  });
  it('of an empty repository are none', async () => expect(await readSdrs(repository([]).ask)).toEqual([]));
  it('in a circle end with an error', async () => {
    const { ask } = repository([fullRecord(1, setup), fullRecord(2, setup), fullRecord(1, setup)]);
    await expect(readSdrs(ask)).rejects.toMatchObject({ kind: 'protocol', message: 'the chain of sensor data records does not end' });
  });
  it('without end end with an error', async () => {
    const ask: SendCommand = async (words, data) => {
      if (!same(words, COMMANDS.getSdr)) return Buffer.alloc(11);
      const next = (((data[2] ?? 0) | ((data[3] ?? 0) << 8)) + 1) & 0xffff;
      return Buffer.from([next & 0xff, next >> 8, 0, 0, 0x51, 0xc0, 0]);
    };
    await expect(readSdrs(ask)).rejects.toMatchObject({ kind: 'protocol' });
  });
  it('whose reservation is always lost fail', async () => {
    await expect(readSdrs(repository(RECORDS, { cancelEvery: 1 }).ask)).rejects.toMatchObject({ completionCode: 0xc5 });
  });
  it('that end early are left out or cut, and nothing breaks', () => {
    for (const record of RECORDS) for (let length = 0; length < record.length; length++) decodeSdr(record.subarray(0, length));
    expect(decodeSdr(RECORDS[0]!.subarray(0, 40))).toBeUndefined();
  });
  it.each<[number, string, string]>([
    [1, '1234ab', '1234 -'],
    [2, '29dca6', 'IPMI'],
    [3, '50534131', 'PSA1'],
  ])('text of type %i', (type, bytes, expected) => expect(textOf(type, Buffer.from(bytes, 'hex'))).toBe(expected));
});

describe('sensor values', () => {
  it.each<[string, Partial<AnalogSetup>, number, number]>([
    ['as they are', {}, 40, 40],
    ['two’s complement', { format: 2 }, 0xf6, -10],
    ['one’s complement', { format: 1 }, 0xfe, -1],
    ['with a factor and an exponent', { m: 63, rExponent: -3 }, 192, 12.096],
    ['with an offset', { m: 2, b: -5, bExponent: 1 }, 100, 150],
    ['with a negative factor', { m: -1, b: 100 }, 30, 70],
    ['1/x', { linearization: 7 }, 4, 0.25],
    ['square', { linearization: 8 }, 9, 81],
    ['cube', { linearization: 9 }, 3, 27],
    ['square root', { linearization: 10 }, 81, 9],
    ['cube root', { linearization: 11 }, 27, 3],
    ['ln', { linearization: 1 }, 1, 0],
    ['log10', { linearization: 2 }, 100, 2],
    ['log2', { linearization: 3 }, 8, 3],
    ['e', { linearization: 4 }, 0, 1],
    ['10 to the', { linearization: 5 }, 3, 1000],
    ['2 to the', { linearization: 6 }, 5, 32],
  ])('%s', (_, changes, raw, expected) => expect(valueOf(sensor(changes), raw)).toBeCloseTo(expected, 9));
  it('have a tolerance and hysteresis without offset', () => {
    const it = sensor({ m: 63, b: 10, rExponent: -3, tolerance: 2 });
    expect([toleranceOf(it), distanceOf(it, 2)]).toEqual([0.063, 0.126]);
  });
  it.each<[readonly number[] | IpmiError, object | undefined]>([
    [[40, 0xc0, 0xc0], { raw: 40, scanningDisabled: false, states: 0xc0 }],
    [[0, 0xe0, 0], { scanningDisabled: false }],
    [[0, 0x80], { scanningDisabled: true }],
    [[7], undefined],
    [[], undefined],
    [code(0xcb), undefined],
  ])('the answer %j', async (answer, expected) => {
    const ask: SendCommand = async () => {
      if (answer instanceof Error) throw answer;
      return Buffer.from(answer);
    };
    const reading = await readSensor(ask, sensor());
    if (expected) expect(reading).toMatchObject(expected);
    else expect(reading).toBeUndefined();
  });
  it('that are not linear have factors of their own', async () => {
    const record = sensor({ linearization: 0x70 });
    const factors = [0, 3, 0, 0, 0, 0, 0];
    const reading = await readSensor(
      async (words) => Buffer.from(same(words, COMMANDS.getSensorReadingFactors) ? factors : [5, 0xc0, 0]),
      record,
    );
    expect(valueOf(record, reading!.raw!, reading!.factors)).toBe(15);
  });
});

describe('the SEL', () => {
  const entry = (id: number, type: number, rest: readonly number[]): Buffer =>
    Buffer.concat([Buffer.from([id & 0xff, id >> 8, type, ...rest])], 16);
  const event = entry(1, 0x02, [0x00, 0x10, 0x5e, 0x5f, 0x20, 0x00, 0x04, 0x01, 0x30, 0x81, 0x59, 0x2c, 0x2b]);
  it('has events', () =>
    expect(decodeSelEntry(event)).toMatchObject({
      ...{ id: 1, type: 2, timestamp: 0x5f5e1000 },
      event: { generator: 0x20, sensorType: 1, sensor: 0x30, eventType: 1, deassertion: true, data: [0x59, 0x2c, 0x2b] },
    }));
  it.each<[string, Buffer, object]>([
    ['before the clock was set', entry(2, 0x02, [5, 0, 0, 0]), { id: 2 }],
    ['of a vendor', entry(3, 0xe0, [1, 2, 3, 4]), { id: 3, type: 0xe0 }],
  ])('%s', (_, bytes, expected) => {
    expect(decodeSelEntry(bytes)).toMatchObject(expected);
    expect(decodeSelEntry(bytes)).not.toHaveProperty('timestamp');
  });
  it('is read to its end', async () => {
    const entries = [event, entry(7, 0xe0, []), entry(9, 0x02, [])];
    const ask: SendCommand = async (_, data) => {
      const id = data[2]! | (data[3]! << 8);
      const index = id === 0 ? 0 : entries.findIndex((one) => one.readUInt16LE(0) === id);
      return Buffer.concat([entries[index + 1]?.subarray(0, 2) ?? Buffer.from([0xff, 0xff]), entries[index]!]);
    };
    expect((await readSel(ask)).map(({ id }) => id)).toEqual([1, 7, 9]);
  });
  it('may be empty', async () => expect(await readSel(() => Promise.reject(code(0xcb)))).toEqual([]));
  it('in a circle ends with an error', async () =>
    expect(readSel(async () => Buffer.concat([Buffer.from([1, 0]), event]))).rejects.toMatchObject({ kind: 'protocol' }));
  it('is cleared, and waited for', async () => {
    const sent: string[] = [];
    let polls = 0;
    const ask: SendCommand = async (words, data) => {
      sent.push(Buffer.from([...words, ...data]).toString('hex'));
      return same(words, COMMANDS.reserveSel) ? Buffer.from([7, 0]) : Buffer.from([polls > 1 ? 1 : 0]);
    };
    await clearSel(ask, async () => {
      polls++;
    });
    expect(sent).toEqual(['0a42', '0a470700434c52aa', '0a470700434c5200', '0a470700434c5200']);
  });
  it('whose erasure does not end is given up', async () => {
    await expect(
      clearSel(
        async (words) => Buffer.from(same(words, COMMANDS.reserveSel) ? [7, 0] : [0]),
        async () => {},
      ),
    ).rejects.toMatchObject({ kind: 'protocol' });
  });
});

describe('FRU inventory', () => {
  const bytes = fruBytes('S-1');
  it('has areas', () =>
    expect(decodeFru(bytes)).toEqual({
      chassis: { type: 0x17, part: 'Simulated machine', serial: 'S-1', extra: [] },
      board: {
        manufactured: '2026-01-01T00:00:00.000Z',
        manufacturer: 'Bloomery',
        product: 'Simulated machine',
        serial: 'S-1',
        part: 'SIM-1',
        extra: [],
      },
      product: { manufacturer: 'Bloomery', product: 'Simulated machine', part: 'SIM-1', version: '1.0', serial: 'S-1', extra: [] },
      faults: [],
    }));
  it.each<[string, (bytes: Buffer) => Buffer, readonly string[]]>([
    ['nothing', () => Buffer.alloc(0), ['no common header of format 1']],
    ['zeros', () => Buffer.alloc(64), ['no common header of format 1']],
    ['a wrong header', (it) => it.fill(9, 3, 4), ['the checksum of the common header is wrong']],
    ['a wrong area', (it) => it.fill(0x58, 16, 17), ['the checksum of the chassis area is wrong']],
    ['a cut', (it) => it.subarray(0, it.length - 8), ['the product area is not whole']],
  ])('with %s', (_, change, faults) => expect(decodeFru(change(Buffer.from(bytes))).faults).toEqual(faults));
  it.each([255, 16, 8, 3])('is read in portions of %i at most', async (most) => {
    const ask: SendCommand = async (words, data) => {
      if (same(words, COMMANDS.getFruInventoryAreaInfo)) return Buffer.from([bytes.length & 0xff, bytes.length >> 8, 0]);
      const offset = data[1]! | (data[2]! << 8);
      const part = bytes.subarray(offset, offset + Math.min(most, data[3]!));
      return Buffer.concat([Buffer.from([part.length]), part]);
    };
    expect(await readFruBytes(ask)).toEqual(bytes);
  });
  it('of which nothing comes ends', async () =>
    expect(
      (await readFruBytes(async (words) => (same(words, COMMANDS.readFruData) ? Buffer.from([0]) : Buffer.from([0xff, 0xff, 0])))).length,
    ).toBe(0));
});
