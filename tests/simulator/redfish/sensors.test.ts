import { testBmc, type TestBmc } from '../redfish-bmc';

let bmc: TestBmc;
beforeEach(async () => {
  bmc = await testBmc();
});
afterEach(() => bmc.close());

interface Sensor {
  readonly '@odata.id': string;
  readonly Id: string;
  readonly Reading: number | null;
  readonly ReadingUnits: string;
  readonly ReadingRangeMax: number;
  readonly Thresholds: Readonly<Partial<Record<'UpperCaution' | 'UpperCritical', { readonly Reading: number }>>>;
}
const sensors = async (): Promise<readonly Sensor[]> => {
  const members = (await bmc.get('/Chassis/sim-0/Sensors'))['Members'] as readonly Sensor[];
  return Promise.all(members.map(async (member) => (await bmc.ask('GET', member['@odata.id'])).body as unknown as Sensor));
};

it('Redfish sensors convert the raw readings of IPMI to values', async () => {
  const off = await sensors();
  bmc.on = true;
  const on = await sensors();
  const rows = on.map(({ Id, ReadingUnits, Reading, ReadingRangeMax, Thresholds: { UpperCaution, UpperCritical } }, index) => [
    Id,
    ReadingUnits,
    Reading,
    off[index]!.Reading,
    UpperCaution?.Reading,
    UpperCritical?.Reading,
    ReadingRangeMax,
  ]);
  expect(rows).toEqual([
    ['InletTemp', 'Cel', 24, 21, 42, 47, 127],
    ['CPU1Temp', 'Cel', 48, null, 90, 95, 255],
    ['Fan1', '{rev}/min', 6100, 0, undefined, undefined, 12_000],
    ['Fan2', '{rev}/min', 6000, 0, undefined, undefined, 12_000],
    ['P12V', 'V', 12.096, null, 13.104, 13.356, 16.065],
    ['PSU1Power', 'W', 182, 10, undefined, undefined, 750],
  ]);
});
