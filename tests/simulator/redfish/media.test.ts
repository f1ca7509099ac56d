import { HTTP_BOOT_URI, mediumIn } from '../../../simulator/hardware/boot-media';
import { testBmc, type Answered, type TestBmc } from '../redfish-bmc';

const DRIVE = '/redfish/v1/Systems/sim-0/VirtualMedia/Cd';
let bmc: TestBmc;
beforeEach(async () => {
  bmc = await testBmc();
  bmc.files.set('/boot.iso', 'an image');
});
afterEach(() => bmc.close());

const insert = (body: object): Promise<Answered> => bmc.ask('POST', `${DRIVE}/Actions/VirtualMedia.InsertMedia`, body);
const eject = (): Promise<Answered> => bmc.ask('POST', `${DRIVE}/Actions/VirtualMedia.EjectMedia`, {});

it('InsertMedia shows the image at the system and the manager until EjectMedia', async () => {
  const url = `${bmc.filesUrl}/boot.iso`;
  expect((await insert({ Image: url, UserName: 'me', Password: 'secret' })).status).toBe(204);
  for (const owner of ['Systems', 'Managers'])
    expect(await bmc.get(`/${owner}/sim-0/VirtualMedia/Cd`)).toMatchObject({
      Image: url,
      ImageName: 'boot.iso',
      Inserted: true,
      WriteProtected: true,
      ConnectedVia: 'URI',
      UserName: 'me',
      Password: null,
    });
  expect(mediumIn(bmc.system.hardware, 'Cd')).toMatchObject({ url, username: 'me', password: 'secret' });
  expect((await insert({ Image: url })).status).toBe(409);
  expect((await eject()).status).toBe(204);
  expect(await bmc.get('/Managers/sim-0/VirtualMedia/Cd')).toMatchObject({ Image: null, Inserted: false });
  expect(mediumIn(bmc.system.hardware, 'Cd')).toBeUndefined();
});

it('InsertMedia with Inserted = false hides the image from the machine', async () => {
  expect((await insert({ Image: `${bmc.filesUrl}/boot.iso`, Inserted: false })).status).toBe(204);
  expect(await bmc.get('/Systems/sim-0/VirtualMedia/Cd')).toMatchObject({ Inserted: false, ConnectedVia: 'URI' });
  expect(mediumIn(bmc.system.hardware, 'Cd')).toBeUndefined();
});

it.each<[string, object, string]>([
  ['no image', {}, 'ActionParameterMissing'],
  ['a missing image', { Image: 'FILES/none' }, 'CouldNotEstablishConnection'],
  ['a server that does not listen', { Image: 'http://127.0.0.1:1/boot.iso' }, 'CouldNotEstablishConnection'],
  ['a file of the BMC', { Image: 'file:///etc/passwd' }, 'ActionParameterValueTypeError'],
  ['an upload', { Image: 'FILES/boot.iso', TransferMethod: 'Upload' }, 'ActionParameterValueNotInList'],
  ['an unknown parameter', { Image: 'FILES/boot.iso', Colour: 'red' }, 'ActionParameterNotSupported'],
])('InsertMedia rejects %s', async (_, body, message) => {
  const there = JSON.parse(JSON.stringify(body).replace('FILES', bmc.filesUrl)) as object;
  const answer = await insert(there);
  expect([answer.status, answer.body.error?.code]).toEqual([400, `Base.1.8.${message}`]);
  expect(await bmc.get('/Systems/sim-0/VirtualMedia/Cd')).toMatchObject({ Inserted: false });
});

it('a PATCH sets HttpBootUri for UEFI HTTP boot', async () => {
  const Boot = { BootSourceOverrideTarget: 'UefiHttp', BootSourceOverrideEnabled: 'Once', HttpBootUri: 'http://10.0.0.1/x.iso' };
  expect((await bmc.ask('PATCH', '/redfish/v1/Systems/sim-0', { Boot })).status).toBe(204);
  expect(await bmc.get('/Systems/sim-0')).toMatchObject({ Boot });
  expect(bmc.system.hardware.get(HTTP_BOOT_URI)).toBe('http://10.0.0.1/x.iso');
});
