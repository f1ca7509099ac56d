import type { Options } from '../../../config/options';
import type { Task } from '../../../drivers/interfaces';
import { withoutTokens } from '../../../drivers/common/media';
import { redfishManagement } from '../../../drivers/redfish/steps/management';
import { ejectMedia, insertMedium, typeOfDrive } from '../../../drivers/redfish/virtual-media';
import { createRedfishPool, type RedfishPool } from '../../../wire/redfish';
import { NODE_UUID, type TestTask } from '../../support/task';
import { redfishError, redfishService, SYSTEM, type RedfishService } from '../../wire/redfish/service';
import { bmcTask } from '../bmc-task';
import { virtualDrives, type VirtualDrives } from '../virtual-drives';

const MANAGER = '/redfish/v1/Managers/1';
const URL = 'http://10.0.0.1:8080/media/AAAAAAAAAAAAAAAAAAAAAAAA/boot.iso';
const SHOWN = 'http://10.0.0.1:8080/media/***/boot.iso';

let service: RedfishService;
let pool: RedfishPool;
beforeEach(async () => {
  service = await redfishService();
  pool = createRedfishPool();
});
afterEach(async () => {
  await pool.close();
  await service.close();
});

const drives: VirtualDrives['put'] = (owner, made) => virtualDrives(service).put(owner, made);
const works: VirtualDrives['work'] = (first, allow) => virtualDrives(service).work(first, allow);
const drive: VirtualDrives['at'] = (path) => virtualDrives(service).at(path);
const sent = (): readonly (readonly [string, string, unknown])[] =>
  service.asked.filter(({ method }) => method !== 'GET').map(({ method, path, body }) => [method, path, body] as const);
const bench = (options: Partial<Options> = {}): TestTask & { readonly slept: readonly number[] } =>
  bmcTask({
    node: { driver: 'redfish', driver_info: { redfish_address: service.url, redfish_system_id: SYSTEM } },
    driver: { management: redfishManagement },
    options: { 'redfish.connection_attempts': 1, ...options },
    connections: { redfish: pool },
  });
const CD = `${SYSTEM}/VirtualMedia/Cd`;
const insertAt = (path: string): string => `${path}/Actions/VirtualMedia.InsertMedia`;
const ejectAt = (path: string): string => `${path}/Actions/VirtualMedia.EjectMedia`;
const managed = (): void => {
  (service.resources[SYSTEM] as Record<string, unknown>)['Links'] = { ManagedBy: [{ '@odata.id': MANAGER }] };
  service.resources[MANAGER] ??= { '@odata.id': MANAGER };
};

it.each([
  [`${URL} failed`, `${SHOWN} failed`],
  ['http://s/c/o?temp_url_sig=0a1B&temp_url_expires=1', 'http://s/c/o?temp_url_sig=***&temp_url_expires=1'],
  ['http%3A%2F%2Fs%2Fo%3Ftemp_url_sig%3D0a1B%26temp_url_expires%3D1', 'http%3A%2F%2Fs%2Fo%3Ftemp_url_sig%3D***%26temp_url_expires%3D1'],
  ['temp_url_sig%253d0a1B%2526', 'temp_url_sig%253d***%2526'],
  [encodeURIComponent(URL), encodeURIComponent(SHOWN.replace('***', 'TOKEN')).replace('TOKEN', '***')],
  ['/media/short', '/media/short'],
])('withoutTokens masks the secret in %s', (text, expected) => {
  expect(withoutTokens(text)).toBe(expected);
});

describe('insertMedium', () => {
  it('sends only the required parameter Image', async () => {
    drives(SYSTEM, { Cd: {} });
    works();
    await insertMedium(bench().task, 'CD', URL);
    expect(sent()).toEqual([['POST', insertAt(CD), { Image: URL }]]);
  });
  it('prefers drives of the system to those of the manager', async () => {
    managed();
    drives(MANAGER, { Cd: {} });
    works();
    await insertMedium(bench().task, 'CD', URL);
    drives(SYSTEM, { Cd: {} });
    await insertMedium(bench().task, 'CD', URL);
    expect(sent().map(([, path]) => path)).toEqual([insertAt(`${MANAGER}/VirtualMedia/Cd`), insertAt(CD)]);
  });
  it('selects the first drive with the media type, or a DVD drive for a CD', async () => {
    drives(SYSTEM, { Usb: { types: ['USBStick'] }, Dvd: { types: ['DVD'] }, Cd: {} });
    works();
    await insertMedium(bench().task, 'CD', URL);
    await insertMedium(bench().task, 'USBStick', URL);
    expect(sent().map(([, path]) => path)).toEqual([insertAt(`${SYSTEM}/VirtualMedia/Dvd`), insertAt(`${SYSTEM}/VirtualMedia/Usb`)]);
  });
  it('ejects media in drives of this type first, and continues if that fails', async () => {
    drives(SYSTEM, { Cd: { image: 'http://old' }, Usb: { types: ['USBStick'], image: 'http://usb' } });
    works();
    await insertMedium(bench().task, 'CD', URL);
    expect(sent().map(([, path]) => path)).toEqual([ejectAt(CD), insertAt(CD)]);
    works(({ path }) => (path.endsWith('EjectMedia') ? { status: 403, body: redfishError('not now') } : undefined));
    const { task, complaints } = bench();
    await insertMedium(task, 'CD', URL);
    expect(complaints.join()).toContain('Cannot eject the previous medium');
  });
  it.each<[string, string, object]>([
    ['TransferProtocolType', 'The action requires the parameter TransferProtocolType', { TransferProtocolType: 'HTTP' }],
    ['TransferMethod', 'TransferMethod must be given', { TransferMethod: 'Stream' }],
    ['credentials', 'The action requires the parameter UserName', { UserName: 'none', Password: 'none' }],
  ])('adds %s if the BMC requires it', async (_, message, added) => {
    drives(SYSTEM, { Cd: {} });
    works(({ method, body }) =>
      method === 'POST' && Object.keys(body as object).length === 1 ? { status: 400, body: redfishError(message) } : undefined,
    );
    await insertMedium(bench().task, 'CD', URL);
    expect(sent().map(([, , body]) => body)).toEqual([{ Image: URL }, { Image: URL, ...added }]);
  });
  it('waits for the medium when the BMC answers 202 without a task, and fails when it does not arrive', async () => {
    drives(SYSTEM, { Cd: {} });
    let arrivesAfter = 3;
    works(({ method, path }) => {
      if (path === insertAt(CD)) return { status: 202 };
      if (method === 'GET' && path === CD && arrivesAfter-- === 0) drive(CD)['Inserted'] = true;
      return undefined;
    });
    await insertMedium(bench().task, 'CD', URL);
    expect(sent()).toHaveLength(1);
    drive(CD)['Inserted'] = false;
    await expect(insertMedium(bench().task, 'CD', URL)).rejects.toThrow(/^Timed out after \d+s waiting for virtual media to be mounted/);
  });
  it('reports the first cause, also of a service whose answers are no valid Redfish', async () => {
    drives(SYSTEM, { A: {}, B: { actions: false } });
    works(
      ({ path }) =>
        path === insertAt(`${SYSTEM}/VirtualMedia/A`) ? { status: 301, headers: { location: 'http://elsewhere.example/' } } : undefined,
      'GET',
    );
    await expect(insertMedium(bench().task, 'CD', URL)).rejects.toThrow(/Error: .*answered with code 301 and leads to http:\/\/elsewhere/);
  });
  it('uses the drive as it is after an ejection', async () => {
    drives(SYSTEM, { Cd: { image: 'http://old', actions: false } });
    const etags: unknown[] = [];
    let version = 1;
    works(({ method, path, headers }) => {
      drive(CD)['@odata.etag'] = `"${version}"`;
      if (method !== 'PATCH' || path !== CD) return undefined;
      etags.push(headers['if-match']);
      version++;
      return undefined;
    }, 'GET, PATCH');
    await insertMedium(bench().task, 'CD', URL);
    expect(etags).toEqual(['"1"', '"2"']);
  });
  it('sends credentials and the protocol to the BMC', async () => {
    drives(SYSTEM, { Cd: {} });
    works();
    await insertMedium(bench().task, 'CD', URL, { credentials: { username: 'u', password: 'p' }, protocol: 'HTTPS' });
    expect(sent().map(([, , body]) => body)).toEqual([{ Image: URL, UserName: 'u', Password: 'p', TransferProtocolType: 'HTTPS' }]);
  });
  it('changes the resource with PATCH if there is no action and PATCH is allowed', async () => {
    drives(SYSTEM, { Cd: { actions: false } });
    works(undefined, 'GET, PATCH');
    await insertMedium(bench().task, 'CD', URL);
    expect(sent()).toEqual([['PATCH', CD, { Image: URL, Inserted: true, WriteProtected: true }]]);
    await ejectMedia(bench().task);
    expect(sent()[1]).toEqual(['PATCH', CD, { Image: null, Inserted: false }]);
  });
  it.each([400, 405])('tries the next drive when one answers %d', async (status) => {
    drives(SYSTEM, { Kvm: {}, Cd: {} });
    works(({ path }) => (path === insertAt(`${SYSTEM}/VirtualMedia/Kvm`) ? { status, body: redfishError('internal use') } : undefined));
    await insertMedium(bench().task, 'CD', URL);
    expect(drive(CD)['Image']).toBe(URL);
  });
  it('retries while the BMC is still busy with the ejection', async () => {
    let busy = 0;
    drives(SYSTEM, { Cd: {} });
    works(({ method }) => (method === 'POST' && busy++ < 2 ? { status: 500, body: redfishError('in progress') } : undefined));
    const { task, slept } = bench();
    await insertMedium(task, 'CD', URL);
    expect(slept).toEqual([3000, 3000]);
  });
  it('waits for the task of the BMC, and with enable_vmedia_insert_polling for the drive', async () => {
    drives(SYSTEM, { Cd: {} });
    let looks = 0;
    works(({ method, path }) => {
      if (path === '/redfish/v1/Tasks/1') return { status: 200, body: { TaskState: looks++ < 2 ? 'Running' : 'Completed' } };
      return method === 'POST' ? { status: 202, headers: { location: '/redfish/v1/Tasks/1' } } : undefined;
    });
    await expect(insertMedium(bench({ 'redfish.enable_vmedia_insert_polling': true }).task, 'CD', URL)).rejects.toMatchObject({
      message: `Timed out after 60s waiting for virtual media to be mounted on node ${NODE_UUID}.`,
    });
    expect(looks).toBe(3);
  });
  it.each<[string, () => void, string]>([
    ['no drives', () => works(), `No suitable virtual media device found for node ${NODE_UUID} to mount image ${SHOWN}`],
    [
      'no drive for the media type',
      () => {
        drives(SYSTEM, { Usb: { types: ['USBStick'] } });
        works();
      },
      `No suitable virtual media device found for node ${NODE_UUID} to mount image ${SHOWN}`,
    ],
    [
      'a drive without the action',
      () => {
        drives(SYSTEM, { Cd: { actions: false } });
        works();
      },
      `No suitable virtual media device found for node ${NODE_UUID} to mount image ${SHOWN}`,
    ],
    [
      'a refusal that contains the URL',
      () => {
        drives(SYSTEM, { Cd: {} });
        works(({ method }) => (method === 'POST' ? { status: 400, body: redfishError(`cannot upload ${URL}`) } : undefined));
      },
      `Virtual media mount failed for node ${NODE_UUID} with image ${SHOWN}. Error: `,
    ],
  ])('fails with %s, without the secret of the URL in the error', async (_, given, message) => {
    given();
    const error = await insertMedium(bench().task, 'CD', URL).catch((item: unknown) => item as Error);
    expect(error).toMatchObject({ status: 400, message: expect.stringContaining(message) as unknown });
    expect((error as Error).message).not.toContain('AAAA');
  });
  it('fails with the first and the last of several errors', async () => {
    drives(SYSTEM, { A: {}, B: {} });
    works(({ method, path }) =>
      method === 'POST' ? { status: 400, body: redfishError(path.includes('/A/') ? 'one' : 'two') } : undefined,
    );
    await expect(insertMedium(bench().task, 'CD', URL)).rejects.toMatchObject({
      message: expect.stringMatching(/after multiple attempts\. First error: .*one.* Last error: .*two/) as unknown,
    });
  });
  it('fails with a connection error when the BMC does not answer', async () => {
    const { task } = bench();
    await service.close();
    await expect(insertMedium(task, 'CD', URL)).rejects.toMatchObject({
      status: 500,
      message: expect.stringMatching(/^Redfish connection failed/) as unknown,
    });
  });
});

describe('ejectMedia', () => {
  it('ejects once from a drive that the system and its manager show', async () => {
    managed();
    drives(MANAGER, { Cd: { image: 'http://old' } });
    (service.resources[SYSTEM] as Record<string, unknown>)['VirtualMedia'] = { '@odata.id': `${MANAGER}/VirtualMedia` };
    works();
    expect(await ejectMedia(bench().task)).toBe(true);
    expect(sent()).toHaveLength(1);
  });
  it('empties drives with the media type, of the system and its managers', async () => {
    managed();
    drives(SYSTEM, { Cd: { image: 'http://a' }, Usb: { types: ['USBStick'], image: 'http://b' } });
    drives(MANAGER, { Cd: { image: 'http://c' }, Empty: {} });
    works();
    const { task } = bench();
    expect(await ejectMedia(task, ['CD'])).toBe(true);
    expect(sent().map(([, path]) => path)).toEqual([ejectAt(CD), ejectAt(`${MANAGER}/VirtualMedia/Cd`)]);
    expect(await ejectMedia(task)).toBe(true);
    expect(await ejectMedia(task)).toBe(false);
  });
  it('sends an empty object to services that require a body', async () => {
    drives(SYSTEM, { Cd: { image: 'http://a' } });
    works(({ method, body }) => (method === 'POST' && body === undefined ? { status: 415, body: redfishError('a body') } : undefined));
    await ejectMedia(bench().task);
    expect(sent().map(([, , body]) => body)).toEqual([undefined, {}]);
  });
  it('succeeds after an error if the drive is empty, and fails if it is not', async () => {
    drives(SYSTEM, { Cd: { image: 'http://a' } });
    works(({ method }) => {
      if (method !== 'POST') return undefined;
      drive(CD)['Inserted'] = false;
      return { status: 500, body: redfishError('it was out already') };
    });
    await ejectMedia(bench().task);
    drives(SYSTEM, { Cd: { image: 'http://a' } });
    works(({ method }) => (method === 'POST' ? { status: 500, body: redfishError('it is stuck') } : undefined));
    await expect(ejectMedia(bench().task)).rejects.toMatchObject({ message: expect.stringContaining('it is stuck') as unknown });
  });
});

describe('a BMC that accepts media and keeps nothing', () => {
  it('is told of, after a second insertion', async () => {
    drives(SYSTEM, { Cd: {} });
    Object.assign(service.resources[SYSTEM] as object, { Manufacturer: 'ACME' });
    works(({ method }) => (method === 'POST' ? { status: 204 } : undefined));
    await expect(insertMedium(bench().task, 'CD', URL)).rejects.toMatchObject({
      message: expect.stringContaining(
        `the medium for ${CD} is accepted, not kept by the service (ACME): Inserted was set to true and is false`,
      ) as unknown,
    });
    expect(sent().map(([, path]) => path)).toEqual([insertAt(CD), insertAt(CD)]);
  });
  it('takes the medium at the second insertion, or at a PATCH with If-Match: *', async () => {
    drives(SYSTEM, { Cd: {} });
    let posts = 0;
    works(({ method }) => (method === 'POST' && ++posts === 1 ? { status: 204 } : undefined));
    await insertMedium(bench().task, 'CD', URL);
    expect(drive(CD)).toMatchObject({ Inserted: true, Image: URL });
    drives(SYSTEM, { Cd: { actions: false } });
    works(({ method, headers }) => (method === 'PATCH' && headers['if-match'] !== '*' ? { status: 204 } : undefined), 'GET, PATCH');
    await insertMedium(bench().task, 'CD', URL);
    expect(drive(CD)).toMatchObject({ Inserted: true, Image: URL });
  });
  it.each([{ Inserted: undefined }, { Inserted: null }, { Inserted: false, Image: URL }, { Inserted: false, ConnectedVia: 'URI' }])(
    'is not meant by a drive that shows %j',
    async (shown) => {
      drives(SYSTEM, { Cd: {} });
      works(({ method }) => {
        if (method !== 'POST') return undefined;
        Object.assign(drive(CD), shown);
        return { status: 204 };
      });
      await insertMedium(bench().task, 'CD', URL);
      expect(sent()).toHaveLength(1);
    },
  );
  it('gets an ejection twice, and the failure says that the medium stays', async () => {
    drives(SYSTEM, { Cd: { image: 'http://a' } });
    let posts = 0;
    works(({ method }) => (method === 'POST' && ++posts === 1 ? { status: 204 } : undefined));
    await ejectMedia(bench().task);
    expect([posts, drive(CD)['Inserted']]).toEqual([2, false]);
    drives(SYSTEM, { Cd: { image: 'http://a' } });
    works(({ method }) => (method === 'POST' ? { status: 204 } : undefined));
    await expect(ejectMedia(bench().task)).rejects.toThrow('still has its medium after an ejection, which the service accepted');
  });
  it('may show the old medium for a while, and the name of the image for ever', async () => {
    drives(SYSTEM, { Cd: { image: 'http://a' } });
    let reads = 0;
    works(({ method, path }) => {
      if (method === 'POST') {
        reads = 1;
        return { status: 204 };
      }
      if (method !== 'GET' || path !== CD || reads === 0) return undefined;
      return { status: 200, body: { ...drive(CD), Inserted: reads++ < 3, Image: 'http://a', ImageName: 'a' } };
    });
    const { task, slept } = bench();
    await ejectMedia(task);
    expect([sent().length, slept]).toEqual([1, [3000, 3000]]);
  });
});

describe("AMI's switch for remote media", () => {
  const ENABLE = `${MANAGER}/Actions/Oem/AMIVirtualMedia.EnableRMedia`;
  const withSwitch = (status = 'Disabled'): void => {
    managed();
    Object.assign(service.resources[MANAGER] as object, {
      Oem: { Ami: { VirtualMedia: { RMediaStatus: status } } },
      Actions: { Oem: { '#AMIVirtualMedia.EnableRMedia': { target: ENABLE } } },
      VirtualMedia: { '@odata.id': `${MANAGER}/VirtualMedia` },
    });
    service.resources[`${MANAGER}/VirtualMedia`] = { Members: [] };
  };
  it('is switched on for the first medium, and the drives are waited for', async () => {
    withSwitch();
    let reads = 0;
    works(({ method, path }) => {
      if (path === ENABLE) return { status: 200, body: {} };
      if (method === 'GET' && path === `${MANAGER}/VirtualMedia` && sent().length > 0 && ++reads === 3) drives(MANAGER, { Cd: {} });
      return undefined;
    });
    const { task } = bench();
    expect(await typeOfDrive(task, ['CD'])).toBe('CD');
    expect(sent()).toEqual([]);
    await insertMedium(task, 'CD', URL);
    expect(sent().map(([, path, body]) => [path, body])).toEqual([
      [ENABLE, { RMediaState: 'Enable' }],
      [insertAt(`${MANAGER}/VirtualMedia/Cd`), { Image: URL }],
    ]);
  });
  it.each([
    ['is on', 'Enabled', 200],
    ['is refused', 'Disabled', 404],
  ])('changes nothing where it %s', async (_, status, answer) => {
    withSwitch(status);
    works(({ path }) => (path === ENABLE ? { status: answer, body: {} } : undefined));
    await expect(insertMedium(bench().task, 'CD', URL)).rejects.toThrow('No suitable virtual media device found');
  });
});

describe('virtual media for clients', () => {
  const media = redfishManagement.virtualMedia!;
  it('listMedia returns the drives without secrets', async () => {
    drives(SYSTEM, { Cd: { image: URL }, Usb: { types: ['USBStick', 'Oem'] } });
    works();
    expect(await media.get(bench().task)).toEqual([
      { media_types: ['CD', 'DVD'], inserted: true, image: SHOWN },
      { media_types: ['USBStick', 'Oem'], inserted: false, image: null },
    ]);
  });
  it('listMedia fails without drives', async () => {
    await expect(media.get(bench().task)).rejects.toMatchObject({ status: 400, message: 'No suitable virtual media device found' });
  });
  it.each(['local', 'http'] as const)('attach and detach an image with image_download_source "%s"', async (source) => {
    drives(SYSTEM, { Cd: {} });
    works();
    const { task, media: published } = bench();
    await media.attach(task, 'cdrom', 'http://images/x.iso', source);
    const image = drive(CD)['Image'] as string;
    if (source === 'http') expect(image).toBe('http://images/x.iso');
    else {
      expect(image).toMatch(/^http:\/\/10\.0\.0\.1:8080\/media\/[\w-]{43}\/cdrom\.iso$/);
      expect(published.get('cdrom')?.content).toEqual({ kind: 'image', source: 'http://images/x.iso' });
    }
    await media.detach(task, ['cdrom']);
    expect([drive(CD)['Inserted'], published.size]).toEqual([false, 0]);
  });
  it("credentials in the URL are sent only to the image's server, and hidden in errors", async () => {
    drives(SYSTEM, { Cd: {} });
    works();
    const { task, media: published } = bench();
    await media.attach(task, 'cdrom', 'http://u:p%40ss@images/x.iso', 'http');
    expect(sent()).toEqual([['POST', insertAt(CD), { Image: 'http://images/x.iso', UserName: 'u', Password: 'p@ss' }]]);
    await media.attach(task, 'cdrom', 'http://u:p%40ss@images/x.iso', 'local');
    expect(published.get('cdrom')?.content).toEqual({ kind: 'image', source: 'http://u:p%40ss@images/x.iso' });
    expect(sent().at(-1)?.[2]).toEqual({ Image: expect.stringMatching(/^http:\/\/10\.0\.0\.1:8080\/media\//) as unknown });
    works(() => ({ status: 403, body: redfishError('no') }));
    const refused = await media.attach(task, 'cdrom', 'http://u:p%40ss@images/x.iso', 'http').catch((error: unknown) => String(error));
    expect(refused).not.toMatch(/u:|p%40ss|p@ss/);
    expect(String(await media.attach(task, 'cdrom', 'nfs://u:p@host/x', 'local').catch(String))).toContain('URL nfs://host/x uses');
  });
  it('typeOfDrive returns the first type with a drive', async () => {
    drives(SYSTEM, { Floppy: { types: ['Floppy'] }, Cd: { image: URL } });
    works();
    const { task }: { readonly task: Task } = bench();
    expect(await typeOfDrive(task, ['USBStick', 'Floppy'])).toBe('Floppy');
    expect(await typeOfDrive(task, ['CD', 'Floppy'], true)).toBe('CD');
    expect(await typeOfDrive(task, ['Floppy'], true)).toBeUndefined();
  });
});

it('attach rejects an nfs URL with image_download_source "local"', async () => {
  const { task } = bench();
  await expect(redfishManagement.virtualMedia!.attach(task, 'cdrom', 'nfs://host/x.iso', 'local')).rejects.toThrow(
    "image_download_source is set to 'local' but the image URL nfs://host/x.iso uses the nfs protocol",
  );
});
