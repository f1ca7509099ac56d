import { addTask, failDownloads, findTask } from '../../../simulator/hardware/task-records';
import { testBmc, type Answered, type TestBmc } from '../redfish-bmc';

let bmc: TestBmc;
beforeEach(async () => {
  bmc = await testBmc();
  bmc.files.set('/bios', 'firmware bios 2.1\nrest').set('/bmc', 'firmware bmc 3.0\n').set('/text', 'hello');
});
afterEach(() => bmc.close());

const update = (body: object): Promise<Answered> => bmc.ask('POST', '/redfish/v1/UpdateService/Actions/UpdateService.SimpleUpdate', body);
const started = async (file: string): Promise<string> => {
  const { status, headers } = await update({ ImageURI: `${bmc.filesUrl}${file}`, TransferProtocol: 'HTTP' });
  expect(status).toBe(202);
  return headers.get('location')!;
};

it('updates the BMC at once, and reports the progress of its task', async () => {
  const monitor = await started('/bmc');
  await bmc.idle(monitor, 'Running');
  bmc.now += 5000;
  const half = await bmc.ask('GET', monitor);
  expect([half.status, half.headers.get('retry-after'), half.body]).toEqual([
    202,
    new Date(bmc.now + 1000).toUTCString(),
    expect.objectContaining({ TaskState: 'Running', PercentComplete: 50 }),
  ]);
  expect(await bmc.get('/Managers/sim-0')).toMatchObject({ FirmwareVersion: '1.0' });
  expect((await bmc.ask('DELETE', monitor)).status).toBe(409);
  bmc.now += 5000;
  expect(await bmc.get('/Managers/sim-0')).toMatchObject({ FirmwareVersion: '3.0' });
  expect(await bmc.get('/UpdateService/FirmwareInventory/bmc-sim-0')).toMatchObject({ Version: '3.0' });
  const over = await bmc.ask('GET', monitor);
  expect([over.status, over.body]).toEqual([
    200,
    expect.objectContaining({ TaskState: 'Completed', TaskStatus: 'OK', PercentComplete: 100 }),
  ]);
  const [task] = (await bmc.get('/TaskService/Tasks'))['Members'] as readonly { readonly '@odata.id': string }[];
  expect((await bmc.ask('DELETE', task!['@odata.id'])).status).toBe(204);
  expect((await bmc.ask('GET', monitor)).status).toBe(404);
});

it('updates the BIOS at the next boot', async () => {
  const monitor = await started('/bios');
  await bmc.idle(monitor, 'Starting');
  bmc.now += 100_000;
  expect((await bmc.ask('GET', monitor)).body).toMatchObject({ TaskState: 'Starting' });
  bmc.start();
  expect((await bmc.ask('GET', monitor)).body).toMatchObject({ TaskState: 'Running', PercentComplete: 0 });
  bmc.now += 10_000;
  expect(await bmc.get('/Systems/sim-0')).toMatchObject({ BiosVersion: '2.1' });
});

it.each([
  ['/none', 'Update.1.0.TransferFailed'],
  ['/text', 'Update.1.0.VerificationFailed'],
])('an update task fails with the reason: %s', async (file, id) => {
  const body = await bmc.idle(await started(file), 'Exception');
  expect(body).toMatchObject({ TaskStatus: 'Critical', Messages: [{ MessageId: id }] });
});

it.each<[string, object, string]>([
  ['no image', {}, 'ActionParameterMissing'],
  ['a file of the BMC', { ImageURI: 'file:///etc/passwd' }, 'ActionParameterValueTypeError'],
  ['an unknown protocol', { ImageURI: 'http://127.0.0.1/x', TransferProtocol: 'CIFS' }, 'ActionParameterValueNotInList'],
  ['another machine', { ImageURI: 'http://127.0.0.1/x', Targets: ['/redfish/v1/Systems/other'] }, 'ActionParameterValueNotInList'],
  ['an unknown parameter', { ImageURI: 'http://127.0.0.1/x', Colour: 'red' }, 'ActionParameterNotSupported'],
])('rejects %s', async (_, body, message) => {
  const answer = await update(body);
  expect([answer.status, answer.body.error?.code]).toEqual([400, `Base.1.8.${message}`]);
});

it('failDownloads fails tasks that were downloading when the BMC stopped, and keeps staged ones', () => {
  const { hardware } = bmc.system;
  const started = { name: 'Firmware update', started: bmc.now, takes: 1 } as const;
  const work = { kind: 'fetch', url: 'http://192.0.2.1/bios' } as const;
  const fetching = addTask(hardware, 'sim-0', { ...started, phase: 'new', work })!;
  const staged = addTask(hardware, 'sim-0', { ...started, phase: 'staged', work: { kind: 'firmware', component: 'bios', version: '2' } })!;
  failDownloads(hardware, bmc.now);
  expect(findTask(hardware, fetching.id)).toMatchObject({
    phase: 'failed',
    message: ['Update.TransferFailed', work.url, 'a BMC that was restarted'],
  });
  expect(findTask(hardware, staged.id)).toEqual(staged);
});
