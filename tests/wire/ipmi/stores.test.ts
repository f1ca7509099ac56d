/** SDR, sensors, SEL and FRU: the meaning of a BMC's bytes, and limits for a BMC that sends invalid data. */
import { fruBytes } from '../../../simulator/ipmi/fru';
import { compactRecord, controllerLocator, eventOnlyRecord, fruLocator, fullRecord } from '../../../simulator/ipmi/sdr';
import type { SendCommand } from '../../../wire/ipmi/record-access';
import { COMMANDS, IpmiError, type CommandCode } from '../../../wire/ipmi/constants';
import { decodeFru, readFruBytes } from '../../../wire/ipmi/records/fru';
import { decodeSdr, textOf, type SensorRecord } from '../../../wire/ipmi/records/sdr';
import { createSdrCache, readSdrs } from '../../../wire/ipmi/records/sdr-repository';
import { clearSel, decodeSelEntry, readSel } from '../../../wire/ipmi/records/sel';
import { distanceOf, readSensor, toleranceOf, valueOf, withLimits } from '../../../wire/ipmi/records/sensors';

type AnalogSetup = Parameters<typeof fullRecord>[1];
const code = (completionCode: number): IpmiError => new IpmiError('completion', `code ${completionCode}`, { completionCode });
const setup: AnalogSetup = { number: 9, name: 'Temp', entity: [3, 1], sensorType: 1, unit: 1, m: 1 };
const sensor = (changes: Partial<AnalogSetup> = {}): SensorRecord => decodeSdr(fullRecord(1, { ...setup, ...changes })) as SensorRecord;
const same = (a: CommandCode, b: CommandCode): boolean => a[0] === b[0] && a[1] === b[1];

/** A BMC with these records; `most` bytes an answer; every n-th Get SDR finds its reservation cancelled. */
function repository(
  records: readonly Buffer[],
  given: { most?: number; cancelEvery?: number; device?: readonly number[] } = {},
): { ask: SendCommand; asked: string[] } {
  const asked: string[] = [];
  let [reservation, reads] = [0, 0];
  const ask: SendCommand = async (command, data) => {
    asked.push([...command, ...data].join(' '));
    if (same(command, COMMANDS.getDeviceId)) return Buffer.from(given.device ?? [0x20, 1, 1, 0, 2, 0x8f, 0, 0, 0, 0, 0]);
    if (same(command, COMMANDS.reserveSdrRepository) || same(command, COMMANDS.reserveDeviceSdrRepository))
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

describe('cached sensor data records', () => {
  /** A BMC's information about its repository: the number of records, and the time of the last change. */
  const withInfo = (
    { ask, asked }: ReturnType<typeof repository>,
    info: () => Buffer | IpmiError,
  ): { ask: SendCommand; reads: () => number } => ({
    ask: async (command, data) => {
      if (!same(command, COMMANDS.getSdrRepositoryInfo) && !same(command, COMMANDS.getDeviceSdrInfo)) return ask(command, data);
      const said = info();
      if (said instanceof IpmiError) throw said;
      return said;
    },
    reads: () => asked.filter((line) => line.startsWith(COMMANDS.getSdr.join(' '))).length,
  });
  const info = (changed: number): Buffer => Buffer.from([0x51, 5, 0, 9, 9, changed, 0, 0, 0, 0, 0, 0, 0, 0x22]);
  it('are read again only after the BMC reports a change, or after an hour', async () => {
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
  it('are always read again if the BMC does not report changes', async () => {
    const cache = createSdrCache({ now: () => 0 });
    const bmc = withInfo(repository(RECORDS), () => code(0xc1));
    await readSdrs(bmc.ask, { cache, bmc: 'a' });
    const once = bmc.reads();
    await readSdrs(bmc.ask, { cache, bmc: 'a' });
    expect(bmc.reads()).toBe(2 * once);
  });
  it('are limited in size: the least recently used ones are discarded', () => {
    const cache = createSdrCache({ now: () => 0 }, 100);
    for (const bmc of ['a', 'b', 'c']) cache.remember(bmc, '', Buffer.alloc(30));
    cache.recall('a', '');
    cache.remember('d', '', Buffer.alloc(30));
    expect(['a', 'b', 'c', 'd'].filter((bmc) => cache.recall(bmc, ''))).toEqual(['a', 'c', 'd']);
    cache.remember('a', '', Buffer.alloc(200));
    expect(['a', 'b', 'c', 'd'].filter((bmc) => cache.recall(bmc, ''))).toEqual(['c', 'd']);
  });
});

describe('withLimits', () => {
  const settable = sensor({ thresholds: { unc: 60, ucr: 70, lnc: 5 }, settable: true });
  it('reads settable thresholds and the hysteresis from the BMC', async () => {
    const asked: string[] = [];
    const ask: SendCommand = async (command, data) => {
      asked.push([...command, ...data].join(' '));
      return same(command, COMMANDS.getSensorThresholds) ? Buffer.from([0b011001, 1, 2, 3, 40, 50, 60]) : Buffer.from([4, 3]);
    };
    const now = await withLimits(ask, settable);
    expect(now.analog?.thresholds).toMatchObject({ lnc: 1, unc: 40, ucr: 50 });
    expect(now.hysteresis).toEqual({ positive: 4, negative: 3 });
    expect(asked).toEqual(['4 39 9', '4 37 9 255']);
  });
  it.each<[string, SensorRecord, () => Promise<Buffer>]>([
    ['if they are not settable', sensor({ thresholds: { unc: 60 } }), async () => Promise.reject(new Error('asked'))],
    ['if the BMC refuses them', settable, async () => Promise.reject(code(0xc1))],
    ['if the response is truncated', settable, async () => Buffer.alloc(0)],
  ])('keeps the thresholds of the record %s', async (_, record, ask) => expect(await withLimits(ask, record)).toEqual(record));
});

describe('readSdrs', () => {
  it.each([[{}], [{ most: 16 }], [{ most: 9 }], [{ cancelEvery: 7 }], [{ most: 16, cancelEvery: 11 }]])(
    'reads all records from a BMC with %j',
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
  it('reads the device SDRs of a controller without a repository', async () => {
    const { ask, asked } = repository(RECORDS.slice(0, 1), { device: [0x20, 0x81, 1, 0, 2, 0x01, 0, 0, 0, 0, 0] });
    expect((await readSdrs(ask)).length).toBe(1);
    expect(asked.some((words) => words.startsWith('4 33'))).toBe(true);
  });
  it('returns nothing from an empty repository', async () => expect(await readSdrs(repository([]).ask)).toEqual([]));
  it('ends if the chain of records does not', async () => {
    let reads = 0;
    const ask: SendCommand = async (command, data) => {
      if (!same(command, COMMANDS.getSdr)) return Buffer.alloc(11);
      const next = (((data[2] ?? 0) | ((data[3] ?? 0) << 8)) + 1) & 0xffff;
      reads++;
      return Buffer.from([next & 0xff, next >> 8, 0, 0, 0x51, 0xc0, 0]);
    };
    expect((await readSdrs(ask)).length).toBe(4096);
    expect(reads).toBe(4096);
  });
  it('fails if each reservation is cancelled', async () => {
    await expect(readSdrs(repository(RECORDS, { cancelEvery: 1 }).ask)).rejects.toMatchObject({ completionCode: 0xc5 });
  });
  it('decodeSdr tolerates truncated records', () => {
    for (const record of RECORDS) for (let length = 0; length < record.length; length++) decodeSdr(record.subarray(0, length));
    expect(decodeSdr(RECORDS[0]!.subarray(0, 40))).toBeUndefined();
  });
  it.each<[number, string, string]>([
    [1, '1234ab', '1234 -'],
    [2, '29dca6', 'IPMI'],
    [3, '50534131', 'PSA1'],
  ])('textOf decodes type %i', (type, bytes, expected) => expect(textOf(type, Buffer.from(bytes, 'hex'))).toBe(expected));
});

describe('sensor values', () => {
  it.each<[string, Partial<AnalogSetup>, number, number]>([
    ['without conversion', {}, 40, 40],
    ['in two’s complement', { format: 2 }, 0xf6, -10],
    ['in one’s complement', { format: 1 }, 0xfe, -1],
    ['with a factor and an exponent', { m: 63, rExponent: -3 }, 192, 12.096],
    ['with an offset', { m: 2, b: -5, bExponent: 1 }, 100, 150],
    ['with a negative factor', { m: -1, b: 100 }, 30, 70],
    ['for 1/x', { linearization: 7 }, 4, 0.25],
    ['for the square', { linearization: 8 }, 9, 81],
    ['for the cube', { linearization: 9 }, 3, 27],
    ['for the square root', { linearization: 10 }, 81, 9],
    ['for the cube root', { linearization: 11 }, 27, 3],
    ['for ln', { linearization: 1 }, 1, 0],
    ['for log10', { linearization: 2 }, 100, 2],
    ['for log2', { linearization: 3 }, 8, 3],
    ['for e to the x', { linearization: 4 }, 0, 1],
    ['for 10 to the x', { linearization: 5 }, 3, 1000],
    ['for 2 to the x', { linearization: 6 }, 5, 32],
  ])('valueOf is correct %s', (_, changes, raw, expected) => expect(valueOf(sensor(changes), raw)).toBeCloseTo(expected, 9));
  it('toleranceOf and distanceOf apply the factor without the offset', () => {
    const scaled = sensor({ m: 63, b: 10, rExponent: -3, tolerance: 2 });
    expect([toleranceOf(scaled), distanceOf(scaled, 2)]).toEqual([0.063, 0.126]);
  });
  it.each<[readonly number[] | IpmiError, object | undefined]>([
    [[40, 0xc0, 0xc0], { raw: 40, scanningDisabled: false, states: 0xc0 }],
    [[0, 0xe0, 0], { scanningDisabled: false }],
    [[0, 0x80], { scanningDisabled: true }],
    [[7], undefined],
    [[], undefined],
    [code(0xcb), undefined],
  ])('readSensor decodes %j', async (answer, expected) => {
    const ask: SendCommand = async () => {
      if (answer instanceof Error) throw answer;
      return Buffer.from(answer);
    };
    const reading = await readSensor(ask, sensor());
    if (expected) expect(reading).toMatchObject(expected);
    else expect(reading).toBeUndefined();
  });
  it('readSensor reads the factors of a sensor that is not linear', async () => {
    const record = sensor({ linearization: 0x70 });
    const factors = [0, 3, 0, 0, 0, 0, 0];
    const reading = await readSensor(
      async (command) => Buffer.from(same(command, COMMANDS.getSensorReadingFactors) ? factors : [5, 0xc0, 0]),
      record,
    );
    expect(valueOf(record, reading!.raw!, reading!.factors)).toBe(15);
  });
});

describe('system event log (SEL)', () => {
  const entry = (id: number, type: number, rest: readonly number[]): Buffer =>
    Buffer.concat([Buffer.from([id & 0xff, id >> 8, type, ...rest])], 16);
  const event = entry(1, 0x02, [0x00, 0x10, 0x5e, 0x5f, 0x20, 0x00, 0x04, 0x01, 0x30, 0x81, 0x59, 0x2c, 0x2b]);
  it('decodeSelEntry decodes an event', () =>
    expect(decodeSelEntry(event)).toMatchObject({
      id: 1,
      type: 2,
      timestamp: 0x5f5e1000,
      event: { generator: 0x20, sensorType: 1, sensor: 0x30, eventType: 1, deassertion: true, data: [0x59, 0x2c, 0x2b] },
    }));
  it.each<[string, Buffer, object]>([
    ['made before the clock was set', entry(2, 0x02, [5, 0, 0, 0]), { id: 2 }],
    ['of a vendor', entry(3, 0xe0, [1, 2, 3, 4]), { id: 3, type: 0xe0 }],
  ])('decodeSelEntry omits the timestamp of an entry %s', (_, bytes, expected) => {
    expect(decodeSelEntry(bytes)).toMatchObject(expected);
    expect(decodeSelEntry(bytes)?.timestamp).toBeUndefined();
  });
  it('readSel reads all entries', async () => {
    const entries = [event, entry(7, 0xe0, []), entry(9, 0x02, [])];
    const ask: SendCommand = async (_, data) => {
      const id = data[2]! | (data[3]! << 8);
      const index = id === 0 ? 0 : entries.findIndex((candidate) => candidate.readUInt16LE(0) === id);
      return Buffer.concat([entries[index + 1]?.subarray(0, 2) ?? Buffer.from([0xff, 0xff]), entries[index]!]);
    };
    const { entries: read, isWhole } = await readSel(ask);
    expect([isWhole, ...read.map(({ id }) => id)]).toEqual([true, 1, 7, 9]);
  });
  it('readSel returns nothing from an empty log', async () =>
    expect(await readSel(() => Promise.reject(code(0xcb)))).toEqual({ entries: [], isWhole: true }));
  it('clearSel starts the erasure and waits for its end', async () => {
    const sent: string[] = [];
    let polls = 0;
    const ask: SendCommand = async (command, data) => {
      sent.push(Buffer.from([...command, ...data]).toString('hex'));
      return same(command, COMMANDS.reserveSel) ? Buffer.from([7, 0]) : Buffer.from([polls > 1 ? 1 : 0]);
    };
    await clearSel(ask, async () => {
      polls++;
    });
    expect(sent).toEqual(['0a42', '0a470700434c52aa', '0a470700434c5200', '0a470700434c5200']);
  });
  it('clearSel fails if the erasure does not end', async () => {
    await expect(
      clearSel(
        async (command) => Buffer.from(same(command, COMMANDS.reserveSel) ? [7, 0] : [0]),
        async () => {},
      ),
    ).rejects.toMatchObject({ kind: 'protocol' });
  });
});

describe('FRU inventory', () => {
  const bytes = fruBytes('S-1');
  it('decodeFru decodes the chassis, board and product areas', () =>
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
    ['empty data', () => Buffer.alloc(0), ['no common header of format 1']],
    ['only zeros', () => Buffer.alloc(64), ['no common header of format 1']],
    ['a header with a wrong checksum', (copy) => copy.fill(9, 3, 4), ['the checksum of the common header is wrong']],
    ['an area with a wrong checksum', (copy) => copy.fill(0x58, 16, 17), ['the checksum of the chassis area is wrong']],
    ['truncated data', (copy) => copy.subarray(0, copy.length - 8), ['the product area is not whole']],
  ])('decodeFru reports the faults of %s', (_, change, faults) => expect(decodeFru(change(Buffer.from(bytes))).faults).toEqual(faults));
  it.each([
    ['chassis', 0],
    ['chassis', 0xff],
    ['board', 0],
    ['product', 0xff],
  ] as const)('decodeFru decodes the %s area in spite of the wrong length %i', (name, units) => {
    const copy = Buffer.from(bytes);
    copy[copy[{ chassis: 2, board: 3, product: 4 }[name]]! * 8 + 1] = units;
    const { faults, ...areas } = decodeFru(copy);
    expect(faults).toEqual([`the ${name} area is not whole`]);
    const { faults: none, ...whole } = decodeFru(bytes);
    expect([areas, none]).toEqual([whole, []]);
  });
  it.each([255, 16, 8, 3])('readFruBytes reads in portions of at most %i bytes', async (most) => {
    const ask: SendCommand = async (command, data) => {
      if (same(command, COMMANDS.getFruInventoryAreaInfo)) return Buffer.from([bytes.length & 0xff, bytes.length >> 8, 0]);
      const offset = data[1]! | (data[2]! << 8);
      const part = bytes.subarray(offset, offset + Math.min(most, data[3]!));
      return Buffer.concat([Buffer.from([part.length]), part]);
    };
    expect(await readFruBytes(ask)).toEqual(bytes);
  });
  it('readFruBytes ends when the BMC returns no data', async () =>
    expect(
      (await readFruBytes(async (command) => (same(command, COMMANDS.readFruData) ? Buffer.from([0]) : Buffer.from([0xff, 0xff, 0]))))
        .length,
    ).toBe(0));
});
