import { describeMachine, type MachineDescription } from '../../../simulator/hardware/description';
import { newHardware } from '../../../simulator/hardware/hardware';
import { planVolume, subsystemsOf, visibleDisks, type RaidType } from '../../../simulator/hardware/volumes';
import { testBmc, type Answered, type TestBmc } from '../redfish-bmc';

const GIB = 2 ** 30;
const STORAGE = '/Systems/sim-0/Storage/RAID1';
let bmc: TestBmc;
beforeEach(async () => {
  bmc = await testBmc(withDisks(4));
});
afterEach(() => bmc.close());

function withDisks(count: number): MachineDescription {
  const disks = Array.from({ length: count }, (_, index) => ({
    name: `/dev/sd${'abcdefgh'[index]!}`,
    size: 100 * GIB,
    serial: `D${index}`,
    rotational: false,
    model: 'SSD',
  }));
  return { ...describeMachine(0, '127.0.0.1'), disks };
}
const drive = (name: string): object => ({ '@odata.id': `/redfish/v1${STORAGE}/Drives/${name}` });
const create = (raid: string, drives: readonly string[], more: object = {}): Promise<Answered> =>
  bmc.ask('POST', `/redfish/v1${STORAGE}/Volumes`, { RAIDType: raid, Links: { Drives: drives.map(drive) }, ...more });
const volumes = async (): Promise<unknown> => (await bmc.get(`${STORAGE}/Volumes`))['Members@odata.count'];

it('creates and deletes volumes by tasks, and the machine sees them instead of their drives', async () => {
  const made = await create('RAID1', ['sda', 'sdb'], { Name: 'root', CapacityBytes: 50 * GIB });
  expect(made.status).toBe(202);
  expect(await volumes()).toBe(0);
  bmc.now += 10_000;
  expect(await bmc.get(`${STORAGE}/Volumes/1`)).toMatchObject({
    Name: 'root',
    RAIDType: 'RAID1',
    CapacityBytes: 50 * GIB,
    Links: { Drives: [drive('sda'), drive('sdb')] },
  });
  expect((await bmc.ask('GET', made.headers.get('location')!)).body).toMatchObject({ TaskState: 'Completed' });
  const disks = visibleDisks(bmc.system.description, bmc.system.hardware).map(({ name, size }) => [name, size / GIB]);
  expect(disks).toEqual([
    ['/dev/sda', 50],
    ['/dev/sdc', 100],
    ['/dev/sdd', 100],
  ]);
  const gone = await bmc.ask('DELETE', `/redfish/v1${STORAGE}/Volumes/1`, { '@Redfish.OperationApplyTime': 'OnReset' });
  expect(gone.status).toBe(202);
  bmc.now += 100_000;
  expect(await volumes()).toBe(1);
  bmc.start();
  bmc.now += 10_000;
  expect(await volumes()).toBe(0);
});

it.each<[string, RaidType, number, number | undefined, number | string]>([
  ['RAID 0 uses all capacity', 'RAID0', 4, undefined, 400],
  ['RAID 5 loses one drive', 'RAID5', 3, undefined, 200],
  ['RAID 6 loses two drives', 'RAID6', 4, undefined, 200],
  ['RAID 10 loses half of the drives', 'RAID10', 4, undefined, 200],
  ['RAID 60 loses two drives in each span', 'RAID60', 8, undefined, 400],
  ['the requested capacity is used', 'RAID5', 3, 150, 150],
  ['too large a capacity is rejected', 'RAID1', 2, 101, 'PropertyValueOutOfRange'],
  ['too many drives for RAID 1 are rejected', 'RAID1', 3, undefined, 'PropertyValueNotInList'],
  ['too few drives for RAID 5 are rejected', 'RAID5', 2, undefined, 'PropertyValueNotInList'],
  ['an odd number of drives for RAID 10 is rejected', 'RAID10', 5, undefined, 'PropertyValueNotInList'],
])('planVolume: %s', (_, raid, count, gib, expected) => {
  const [subsystem] = subsystemsOf(withDisks(8));
  const names = ['sda', 'sdb', 'sdc', 'sdd', 'sde', 'sdf', 'sdg', 'sdh'].slice(0, count);
  const planned = planVolume(newHardware(), subsystem!, raid, names, gib === undefined ? undefined : gib * GIB);
  expect('bytes' in planned ? planned.bytes / GIB : planned.problem[0]).toBe(expected);
});

it('volumes share drives while these have free space', async () => {
  expect((await create('RAID0', ['sda', 'sdb'], { CapacityBytes: 120 * GIB })).status).toBe(202);
  bmc.now += 10_000;
  expect((await create('RAID1', ['sda', 'sdb'], { CapacityBytes: 41 * GIB })).body.error?.code).toBe('Base.1.8.PropertyValueOutOfRange');
  expect((await create('RAID1', ['sda', 'sdb'], { CapacityBytes: 40 * GIB })).status).toBe(202);
  bmc.now += 10_000;
  expect((await create('RAID0', ['sda'])).status).toBe(409);
  expect(await volumes()).toBe(2);
});

it.each<[string, object, string]>([
  ['no RAIDType', { RAIDType: undefined }, 'CreateFailedMissingReqProperties'],
  ['an unknown RAIDType', { RAIDType: 'RAID7' }, 'PropertyValueNotInList'],
  ['a drive of another subsystem', { Links: { Drives: [{ '@odata.id': '/redfish/v1/Systems/other' }] } }, 'PropertyValueNotInList'],
  ['drives that are no references', { Links: { Drives: ['sda'] } }, 'PropertyValueTypeError'],
  ['a capacity of 0', { CapacityBytes: 0 }, 'PropertyValueOutOfRange'],
  ['an unknown property', { Colour: 'red' }, 'PropertyUnknown'],
])('rejects %s', async (_, body, message) => {
  expect((await create('RAID0', ['sda'], body)).body.error?.code).toBe(`Base.1.8.${message}`);
});

it('sets the indicators of a drive, the system and its chassis', async () => {
  for (const path of [`${STORAGE}/Drives/sda`, '/Systems/sim-0', '/Chassis/sim-0']) {
    expect(await bmc.get(path)).toMatchObject({ IndicatorLED: 'Off', LocationIndicatorActive: false });
    expect((await bmc.ask('PATCH', `/redfish/v1${path}`, { IndicatorLED: 'Lit' })).status).toBe(204);
    expect(await bmc.get(path)).toMatchObject({ IndicatorLED: 'Lit', LocationIndicatorActive: true });
  }
  expect((await bmc.ask('PATCH', '/redfish/v1/Chassis/sim-0', { IndicatorLED: 'Red' })).status).toBe(400);
  // Ironic names an indicator by this UUID.
  expect((await bmc.get('/Chassis/sim-0'))['UUID']).toMatch(/^b100e000-/);
  expect(await bmc.get(`${STORAGE}/Drives/sdb`)).toMatchObject({ IndicatorLED: 'Off' });
});
