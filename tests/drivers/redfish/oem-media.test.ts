/** Virtual media by makers' own ways: against their simulated machines, and what is sent. */
import { redfishManagement } from '../../../drivers/redfish/steps/management';
import { mediaAdvice, schemesAllowed } from '../../../drivers/redfish/oem-media';
import { validateVirtualCd } from '../../../drivers/redfish/media-support';
import { redfishVirtualMediaBoot } from '../../../drivers/boot-interfaces/virtual-media-boot';
import { redfishPower } from '../../../drivers/redfish/power';
import { describeMachine } from '../../../simulator/hardware/description';
import { MEDIA } from '../../../simulator/hardware/boot-media';
import { personalityOf, type MakerChoice } from '../../../simulator/redfish/makers/personalities';
import { createRedfishPool, type RedfishPool } from '../../../wire/redfish';
import type { TestTask } from '../../support/task';
import { testBmc, type TestBmc } from '../../simulator/redfish-bmc';
import { redfishError, redfishService, SYSTEM, type RedfishService } from '../../wire/redfish/service';
import { bmcTask } from '../bmc-task';
import { virtualDrives } from '../virtual-drives';

const { virtualMedia } = redfishManagement;
const NFS = 'nfs://192.0.2.9/images/ironic/boot.iso';
const HTTP = 'http://192.0.2.9/media/boot.iso';
const attach = (task: TestTask['task'], url: string): Promise<void> => virtualMedia!.attach(task, 'cdrom', url, 'http');

let pool: RedfishPool;
beforeEach(() => (pool = createRedfishPool()));
afterEach(() => pool.close());
const benchAt = (address: string, info: object = {}, options: object = {}): TestTask & { readonly slept: readonly number[] } =>
  bmcTask({
    node: {
      driver: 'redfish',
      boot_interface: 'redfish-virtual-media',
      driver_info: {
        redfish_address: address,
        redfish_username: 'admin',
        redfish_password: 'password',
        redfish_verify_ca: false,
        ...info,
      },
    },
    driver: { power: redfishPower, management: redfishManagement },
    options: { 'redfish.connection_attempts': 1, 'redfish.read_timeout': 5, 'deploy.http_url': 'http://192.0.2.9:8080', ...options },
    connections: { redfish: pool },
  });

describe('simulated machines', () => {
  let bmc: TestBmc;
  afterEach(() => bmc.close());
  const start = async (choice: MakerChoice, info: object = {}, options: object = {}): Promise<TestTask> => {
    bmc = await testBmc(describeMachine(0, '127.0.0.1'), choice);
    bmc.files.set('/boot.iso', 'image');
    const bench = benchAt(bmc.url, info, options);
    if (choice.personality) Object.assign(bench.task.node.properties, { vendor: personalityOf(choice.personality).manufacturer });
    return bench;
  };
  const inserted = (): unknown => bmc.system.hardware.get(MEDIA).Cd?.url;
  const shares = { 'nfs.base_url': 'nfs://192.0.2.9', 'nfs.share_path': '/images' };

  it.each<[string, MakerChoice]>([
    ['fujitsu-irmc-s4', { personality: 'fujitsu-irmc-s4' }],
    ['iRMC with FTSVirtualMediaAction', { habits: ['media-of-fujitsu-fts', 'etag-bare', 'etag-demanded'] }],
    ['huawei-ibmc', { personality: 'huawei-ibmc' }],
    ['xfusion-ibmc', { personality: 'xfusion-ibmc' }],
  ])('%s: a CD from a share is inserted, is the boot device, and is ejected', async (_, choice) => {
    const { task } = await start(choice, { vmedia_transport_protocol: 'NFS' }, shares);
    await validateVirtualCd(task);
    await attach(task, NFS);
    expect(inserted()).toBe(NFS);
    expect(await virtualMedia!.get(task)).toContainEqual({
      media_types: expect.arrayContaining(['CD']) as string[],
      inserted: true,
      image: NFS,
    });
    await redfishManagement.setBootDevice(task, 'cdrom', false);
    expect(bmc.boot.device).toBe('cdrom');
    await attach(task, NFS.replace('boot', 'other'));
    expect(inserted()).toBe(NFS.replace('boot', 'other'));
    await virtualMedia!.detach(task, ['cdrom']);
    expect(inserted()).toBeUndefined();
  });
  it.each<[string, MakerChoice, string]>([
    [
      'fujitsu-irmc-s4',
      { personality: 'fujitsu-irmc-s4' },
      '(FUJITSU) takes virtual media by nfs, cifs, smb only (/redfish/v1/Systems/0/Oem/ts_fujitsu/VirtualMedia, Oem VirtualMedia, CDImage)',
    ],
    ['huawei-ibmc', { personality: 'huawei-ibmc' }, '(Huawei) takes virtual media by nfs, cifs, https only'],
    ['openbmc', { personality: 'openbmc' }, '(OpenBMC) takes virtual media by https, smb, cifs only'],
    ['a service without a name that lists HTTPS and CIFS', { habits: ['media-https-only'] }, 'takes virtual media by cifs, https only'],
  ])('%s: a URL of http is refused before the machine is touched', async (_, choice, words) => {
    const { task } = await start(choice);
    const way =
      /takes virtual media by .* only \(.*\), and the image has a URL of http\. To change that, set (?:\[boot\]https_port|driver_info\/vmedia_transport_protocol)/;
    for (const refused of [
      () => attach(task, HTTP),
      () => validateVirtualCd(task),
      () => redfishVirtualMediaBoot.prepareRamdisk(task, {}),
    ]) {
      await expect(refused()).rejects.toThrow(
        expect.objectContaining({ name: 'InvalidParameterValue', message: expect.stringContaining(words) as string }) as Error,
      );
      await expect(refused()).rejects.toThrow(way);
    }
    expect(inserted()).toBeUndefined();
    expect(bmc.acted).toEqual([]);
  });
  it.each<[string, object, object]>([
    ['openbmc', {}, { 'deploy.external_http_url': 'https://192.0.2.9:8443' }],
    ['openbmc', { external_http_url: 'https://192.0.2.9:8443' }, {}],
    ['openbmc', { deploy_iso: 'https://192.0.2.9/deploy.iso' }, {}],
  ])('%s: https is no obstacle with %j %j', async (personality, info, options) => {
    const { task } = await start({ personality: personality as 'openbmc' }, info, options);
    await validateVirtualCd(task);
  });
  it.each(['lenovo-xcc', 'lenovo-xcc3', 'supermicro-x11', 'supermicro-x13', 'hpe-ilo4', 'gigabyte-ami'] as const)(
    '%s: a CD is inserted, is the boot device, and is ejected',
    async (personality) => {
      const { task } = await start({ personality });
      await validateVirtualCd(task);
      await attach(task, `${bmc.filesUrl}/boot.iso`);
      expect(inserted()).toBe(`${bmc.filesUrl}/boot.iso`);
      await redfishManagement.setBootDevice(task, 'cdrom', false);
      expect(bmc.boot.device).toBe('cdrom');
      await virtualMedia!.detach(task, ['cdrom']);
      expect(inserted()).toBeUndefined();
    },
  );
});

describe('requests', () => {
  let service: RedfishService;
  beforeEach(async () => (service = await redfishService()));
  afterEach(() => service.close());
  const bench = (vendor?: string): TestTask => {
    const test = benchAt(service.url, { redfish_system_id: SYSTEM });
    if (vendor !== undefined) Object.assign(test.task.node.properties, { vendor });
    return test;
  };
  const sent = (): readonly (readonly [string, unknown])[] =>
    service.asked
      .filter(({ method, path }) => method !== 'GET' && !path.includes('SessionService'))
      .map(({ path, body }) => [path, body] as const);
  const licensed = 'The operation needs a license that is not activated.';

  it.each([
    ['HPE', 'Virtual media of HPE need the licence iLO Advanced'],
    ['Supermicro', 'Virtual media of Supermicro need the licence SFT-OOB-LIC or SFT-DCMS-SINGLE'],
  ])('names the licence of %s when the BMC asks for one', async (vendor, words) => {
    virtualDrives(service).put(SYSTEM, { Cd: {} });
    virtualDrives(service).work(({ method }) => (method === 'POST' ? { status: 400, body: redfishError(licensed) } : undefined));
    await expect(attach(bench(vendor).task, HTTP)).rejects.toThrow(words);
    await expect(attach(bench('Nobody').task, HTTP)).rejects.not.toThrow('need the licence');
  });
  it('sends CIFS credentials to iBMC only, and hides them in errors', async () => {
    virtualDrives(service).put(SYSTEM, { Cd: { actions: false } });
    const target = `${SYSTEM}/VirtualMedia/Cd/Oem/Public/Actions/VirtualMedia.VmmControl`;
    Object.assign(virtualDrives(service).at(`${SYSTEM}/VirtualMedia/Cd`), {
      Oem: { Public: { Actions: { '#VirtualMedia.VmmControl': { target } } } },
    });
    const image = 'cifs://smith:s3cret@192.0.2.9/images/boot.iso';
    virtualDrives(service).work(({ method }) => (method === 'POST' ? { status: 400, body: redfishError(`No ${image}`) } : undefined));
    await expect(attach(bench().task, image)).rejects.toThrow('No cifs://192.0.2.9/images/boot.iso');
    expect(sent()).toEqual([[target, { VmmControlType: 'Connect', Image: image }]]);
  });
  it('passes over the slots RDOC and Remote of XCC', async () => {
    virtualDrives(service).put(SYSTEM, { RDOC1: {}, Remote1: {}, EXT1: {} });
    virtualDrives(service).work();
    await attach(bench('Lenovo').task, HTTP);
    expect(sent().map(([path]) => path)).toEqual([`${SYSTEM}/VirtualMedia/EXT1/Actions/VirtualMedia.InsertMedia`]);
  });
  it('says which firmware of XCC has slots', async () => {
    virtualDrives(service).put(SYSTEM, { RDOC1: {} });
    await expect(validateVirtualCd(bench('Lenovo').task)).rejects.toThrow('Virtual media of Lenovo need the firmware XCC 2.50 or later');
  });
});

it.each([
  [undefined, undefined],
  [['HTTP', 'HTTPS'], undefined],
  [['NFS', 'CIFS'], undefined],
  [
    ['CIFS', 'HTTPS'],
    ['cifs', 'https'],
  ],
])('a service that lists %j takes %j', (listed, schemes) => {
  expect(schemesAllowed(listed)).toEqual(schemes);
});
it.each([
  [{ vendor: 'HPE', licence: 'iLO Advanced' }, 'refused', ''],
  [
    { vendor: 'HPE', licence: 'iLO Advanced', firmware: 'iLO 6 1.57' },
    'iLO.2.15.LicenseKeyRequired',
    '. Virtual media of HPE need the licence iLO Advanced, and the firmware iLO 6 1.57 or later',
  ],
  [{ vendor: undefined }, '', ''],
])('%j after "%s" advises "%s"', (known, errors, advice) => {
  expect(mediaAdvice(known, errors)).toBe(advice);
});
