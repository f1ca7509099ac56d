import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { Options } from '../../../config/options';
import { ramdiskDeploy } from '../../../drivers/agent/ramdisk-deploy';
import { redfishManagement } from '../../../drivers/redfish/steps/management';
import { noopNetwork } from '../../../drivers/noop';
import { redfishHttpsBoot, redfishVirtualMediaBoot } from '../../../drivers/boot-interfaces/virtual-media-boot';
import type { Driver, Task } from '../../../drivers/interfaces';
import type { JsonObject, MediumRecord, NodeRecord } from '../../../model/records';
import { createRedfishPool, type RedfishPool } from '../../../wire/redfish';
import type { Services } from '../../../wire/keystone/services';
import { servicesOf } from '../../support/services';
import { NODE_UUID, type TestTask } from '../../support/task';
import { redfishService, SYSTEM, type RedfishService } from '../../wire/redfish/service';
import { bmcTask } from '../bmc-task';
import { virtualDrives, type VirtualDrives } from '../virtual-drives';

const folder = mkdtempSync(join(tmpdir(), 'virtual-media-'));
const file = (name: string): string => `file://${join(folder, name)}`;
for (const name of ['kernel', 'ramdisk', 'esp', 'boot.iso', 'isolinux.bin', 'ldlinux.c32']) writeFileSync(join(folder, name), name);
afterAll(() => rmSync(folder, { recursive: true }));

let service: RedfishService;
let pool: RedfishPool;
let drives: VirtualDrives;
beforeEach(async () => {
  service = await redfishService();
  pool = createRedfishPool();
  drives = virtualDrives(service);
  drives.put(SYSTEM, { Cd: {}, Usb: { types: ['USBStick'] } });
  drives.work();
});
afterEach(async () => {
  await pool.close();
  await service.close();
});

const KERNEL = { deploy_kernel: file('kernel'), deploy_ramdisk: file('ramdisk'), bootloader: file('esp') };
interface Given {
  readonly info?: JsonObject;
  readonly node?: Partial<NodeRecord>;
  readonly options?: Partial<Options>;
  readonly driver?: Partial<Driver>;
  readonly services?: Services;
}
const bench = ({ info = KERNEL, node = {}, options = {}, driver = {}, services }: Given = {}): TestTask =>
  bmcTask({
    node: { driver: 'redfish', ...node, driver_info: { redfish_address: service.url, redfish_system_id: SYSTEM, ...info } },
    driver: { boot: redfishVirtualMediaBoot, management: redfishManagement, ...driver },
    options: {
      'redfish.connection_attempts': 1,
      'conductor.file_url_allowed_paths': [folder],
      'DEFAULT.isolinux_bin': join(folder, 'isolinux.bin'),
      'DEFAULT.ldlinux_c32': join(folder, 'ldlinux.c32'),
      ...options,
    },
    connections: { redfish: pool, ...(services ? { services } : {}) },
  });
const imageOf = (id: string): unknown => drives.at(`${SYSTEM}/VirtualMedia/${id}`)['Image'];
const contentOf = (media: TestTask['media'], role: string): MediumRecord['content'] | undefined => media.get(role)?.content;
const boot = (): JsonObject => (service.resources[SYSTEM] as { readonly Boot: JsonObject }).Boot;

describe('shares', () => {
  const info = (protocol: string): JsonObject => ({ ...KERNEL, vmedia_transport_protocol: protocol });
  const share = join(folder, 'share');
  const options = {
    'nfs.base_url': 'nfs://192.0.2.9/',
    'nfs.share_path': share,
    'cifs.base_url': 'cifs://192.0.2.9',
    'cifs.share_path': share,

    'cifs.username': 'smith',
    'cifs.password': 'secret',
  };
  let boots: Server;
  let http: string;
  beforeEach(async () => {
    boots = createServer((_, response) => response.writeHead(200, { 'content-length': 3 }).end('iso'));
    await new Promise<void>((listening) => boots.listen(0, '127.0.0.1', listening));
    http = `http://127.0.0.1:${(boots.address() as AddressInfo).port}`;
  });
  afterEach(() => new Promise((closed) => boots.close(closed)));
  it.each<[string, string, object]>([
    ['NFS', 'nfs', {}],
    ['CIFS', 'cifs', { UserName: 'smith', Password: 'secret' }],
  ])('%s: the image is on the share until the ramdisk is no longer needed', async (protocol, scheme, login) => {
    const { task, node } = bench({ info: info(protocol), options: { ...options, 'deploy.http_url': http } });
    await redfishVirtualMediaBoot.prepareRamdisk(task, {});
    const insertion = service.asked.find(({ path }) => path.endsWith('InsertMedia'))!.body;
    const name = `boot-${NODE_UUID}.iso`;
    expect(insertion).toEqual({ Image: `${scheme}://192.0.2.9${share}/${name}`, TransferProtocolType: protocol, ...login });
    expect([readdirSync(share), readFileSync(join(share, name), 'utf8')]).toEqual([[name], 'iso']);
    await redfishVirtualMediaBoot.cleanUpRamdisk(task);
    expect(readdirSync(share)).toEqual([]);
    expect(node().driver_internal_info).not.toHaveProperty('vmedia_transport_protocol');
  });
  it('a share that is not configured, or a protocol that the BMC does not offer, is refused', async () => {
    await expect(redfishVirtualMediaBoot.validate!(bench({ info: info('NFS') }).task)).rejects.toThrow(
      `NFS transport protocol requested for node ${NODE_UUID} but [nfs]base_url and [nfs]share_path are not both configured.`,
    );
    const actions = drives.at(`${SYSTEM}/VirtualMedia/Cd`)['Actions'] as Record<string, Record<string, unknown>>;
    actions['#VirtualMedia.InsertMedia']!['TransferProtocolType@Redfish.AllowableValues'] = ['HTTP', 'CIFS'];
    await expect(redfishVirtualMediaBoot.prepareRamdisk(bench({ info: info('HTTPS') }).task, {})).rejects.toThrow(
      "requested transport protocol HTTPS via driver_info, but BMC only supports ['HTTP', 'CIFS'].",
    );
  });
  it('a copy that fails leaves no file', async () => {
    boots.removeAllListeners('request').on('request', (_, response: ServerResponse) => response.writeHead(500).end());
    const { task } = bench({ info: info('NFS'), options: { ...options, 'deploy.http_url': http } });
    await expect(redfishVirtualMediaBoot.prepareRamdisk(task, {})).rejects.toThrow(`cannot be written to the share ${share}`);
    expect(readdirSync(share)).toEqual([]);
  });
});

describe('validation of the machine', () => {
  const checks = ['validate', 'validateInspection', 'validateRescue'] as const;
  const RESCUE = { ...KERNEL, rescue_kernel: file('kernel'), rescue_ramdisk: file('ramdisk') };
  const check = (name: (typeof checks)[number], given: Given = {}): Promise<void> =>
    redfishVirtualMediaBoot[name]!(
      bench({ info: RESCUE, ...given, node: { boot_interface: 'redfish-virtual-media', ...given.node } }).task,
    );
  it.each(checks)('%s refuses a machine without a virtual CD drive', async (name) => {
    await check(name);
    drives.put(SYSTEM, { Usb: { types: ['USBStick'] } });
    await expect(check(name)).rejects.toMatchObject({
      name: 'InvalidParameterValue',
      message: `The BMC of node ${NODE_UUID} has no virtual CD or DVD drive, which the boot interface redfish-virtual-media needs`,
    });
  });
  const MANAGER = '/redfish/v1/Managers/1';
  const isDell = (version: unknown): Given => {
    (service.resources[SYSTEM] as Record<string, unknown>)['Links'] = { ManagedBy: [{ '@odata.id': MANAGER }] };
    service.resources[MANAGER] = { ManagerType: 'BMC', FirmwareVersion: version };
    return { node: { properties: { vendor: 'Dell Inc.' } } };
  };
  it.each(['6.10.30.00', '7.00.00.171', undefined, null])('accepts the version %s of a Dell BMC', (version) =>
    check('validate', isDell(version)),
  );
  it.each(checks)('%s refuses an iDRAC that boots another medium', async (name) => {
    for (const version of ['2.84.84.84', '5.10.50.00', '1.20.25.00'])
      await expect(check(name, isDell(version))).rejects.toMatchObject({
        name: 'InvalidParameterValue',
        message: expect.stringContaining(
          `The redfish-virtual-media boot interface is not suitable for node ${NODE_UUID} with vendor Dell Inc. and BMC version ${version}`,
        ) as unknown,
      });
    await check(name, { ...isDell('5.10'), node: { properties: { vendor: 'Landell' } } });
  });
  it('such an iDRAC gets no ramdisk either, and keeps its power', async () => {
    const { task, events } = bench({ ...isDell('5.10.50.00') });
    await expect(redfishVirtualMediaBoot.prepareRamdisk(task, {})).rejects.toThrow('boot interface is not suitable for node');
    expect(events).toEqual([]);
    expect(service.asked.filter(({ method }) => method !== 'GET')).toEqual([]);
  });
  it.each(['ftp', 5, ['HTTP']])('refuses the vmedia_transport_protocol %j', async (protocol) => {
    await expect(check('validate', { info: { ...KERNEL, vmedia_transport_protocol: protocol } })).rejects.toThrow(
      'vmedia_transport_protocol',
    );
  });
});

describe('ramdisk', () => {
  it.each([
    ['HTTPS', 'HTTPS'],
    ['https', 'HTTPS'],
    ['', undefined],
    [null, undefined],
  ])('the BMC is told the vmedia_transport_protocol %j', async (protocol, sent) => {
    await redfishVirtualMediaBoot.prepareRamdisk(bench({ info: { ...KERNEL, vmedia_transport_protocol: protocol } }).task, {});
    const insertion = service.asked.find(({ path }) => path.endsWith('InsertMedia'))!.body as JsonObject;
    expect(insertion['TransferProtocolType']).toBe(sent);
  });

  it('boots from a CD image built for the node with a pregenerated agent token', async () => {
    const { task, media, events, node } = bench();
    await redfishVirtualMediaBoot.prepareRamdisk(task, { 'ipa-debug': '1' });
    const { agent_secret_token: token, agent_secret_token_pregenerated: pregenerated } = node().driver_internal_info;
    expect(pregenerated).toBe(true);
    const content = contentOf(media, 'boot');
    expect(content).toMatchObject({
      kind: 'iso',
      kernel: join(folder, 'kernel'),
      ramdisk: join(folder, 'ramdisk'),
      bootloader: join(folder, 'esp'),
      isolinux: join(folder, 'isolinux.bin'),
      ldlinux: join(folder, 'ldlinux.c32'),
    });
    const args = (content as { readonly kernel_args: string }).kernel_args.split(' ');
    expect(args).toEqual(
      expect.arrayContaining([
        'ipa-api-url=http://10.0.0.1:6385',
        'ipa-debug=1',
        'boot_method=vmedia',
        `ipa-agent-token=${String(token)}`,
        'vga=normal',
      ]),
    );
    expect(imageOf('Cd')).toBe(`http://10.0.0.1:8080/media/${media.get('boot')!.token}/boot.iso`);
    expect(events[0]).toBe('power: power off');
    expect(boot()).toMatchObject({ BootSourceOverrideTarget: 'Cd', BootSourceOverrideEnabled: 'Once' });
  });
  it('gives the CD image what the boot loader loads from its folder', async () => {
    const { task, media } = bench({ options: { 'conductor.bootloader_files': { 'grubx64.efi': join(folder, 'kernel') } } });
    await redfishVirtualMediaBoot.prepareRamdisk(task, {});
    expect(contentOf(media, 'boot')).toMatchObject({ bootloader_files: { 'grubx64.efi': join(folder, 'kernel') } });
    const { task: wrong } = bench({ options: { 'conductor.bootloader_files': { 'grubx64.efi': join(folder, 'none') } } });
    await expect(redfishVirtualMediaBoot.prepareRamdisk(wrong, {})).rejects.toMatchObject({ name: 'InvalidParameterValue' });
  });
  it('uses external_http_url for the image and external_callback_url for the API', async () => {
    const { task, media } = bench({
      info: { ...KERNEL, external_http_url: 'http://outside:1/' },
      options: { 'deploy.external_callback_url': 'http://callback:2/' },
    });
    await redfishVirtualMediaBoot.prepareRamdisk(task, { 'ipa-inspection-callback-url': 'http://10.0.0.1:6385/v1/continue_inspection' });
    expect(imageOf('Cd')).toMatch(/^http:\/\/outside:1\/media\//);
    const { kernel_args: args } = contentOf(media, 'boot') as { readonly kernel_args: string };
    expect(args).toContain('ipa-api-url=http://callback:2 ');
    expect(args).toContain('ipa-inspection-callback-url=http://callback:2/v1/continue_inspection ');
  });
  it('is a given deploy_iso without changes, so that there is no pregenerated token', async () => {
    const { task, media, node } = bench({ info: { deploy_iso: file('boot.iso') } });
    await redfishVirtualMediaBoot.prepareRamdisk(task, {});
    expect(contentOf(media, 'boot')).toEqual({ kind: 'image', source: join(folder, 'boot.iso') });
    expect(node().driver_internal_info).not.toHaveProperty('agent_secret_token');
  });
  it('gets its parameters from a USB image with config_via_removable', async () => {
    const { task, media } = bench({ info: { deploy_iso: file('boot.iso'), config_via_removable: 'true' } });
    await redfishVirtualMediaBoot.prepareRamdisk(task, {});
    expect(contentOf(media, 'parameters')).toMatchObject({
      kind: 'parameters',
      parameters: { 'ipa-api-url': 'http://10.0.0.1:6385', boot_method: 'vmedia', 'ipa-agent-token': expect.any(String) as unknown },
    });
    expect(imageOf('Usb')).toMatch(/parameters\.img$/);
    await redfishVirtualMediaBoot.cleanUpRamdisk(task);
    expect([imageOf('Cd'), imageOf('Usb'), media.size]).toEqual([null, null, 0]);
  });
  it('gets network_data.json of the node on its CD', async () => {
    const { task, media } = bench({ node: { network_data: { links: [] } } });
    await redfishVirtualMediaBoot.prepareRamdisk(task, {});
    expect(Object.keys((contentOf(media, 'boot') as { readonly files: object }).files)).toEqual(['openstack/latest/network_data.json']);
  });
  it.each([
    ['deploying', {}, { own: 1 }],
    ['inspecting', {}, undefined],
    ['inspect wait', {}, undefined],
    ['deploying', { networkData: async () => ({ neutron: 1 }) }, { neutron: 1 }],
    ['deploying', { networkData: async () => ({}) }, undefined],
  ] as const)(
    'gets the network data of the network interface or node, but not for inspection with force_dhcp: state %s, %j',
    async (state, interfaceParts, expected) => {
      const { task, media } = bench({
        node: { network_data: { own: 1 }, provision_state: state },
        options: { 'inspector.force_dhcp': true },
        driver: { network: { ...noopNetwork, ...interfaceParts } },
      });
      await redfishVirtualMediaBoot.prepareRamdisk(task, {});
      const text = (contentOf(media, 'boot') as { readonly files: Record<string, string> }).files['openstack/latest/network_data.json'];
      expect(text === undefined ? undefined : JSON.parse(text)).toEqual(expected);
    },
  );
  it('gets [agent]api_ca_file on its CD at the paths where agents read it', async () => {
    const options = { 'agent.api_ca_file': join(folder, 'api.pem') };
    const { task, media } = bench({ options });
    await expect(redfishVirtualMediaBoot.prepareRamdisk(task, {})).rejects.toThrow(/\[agent\]api_ca_file: cannot read .*api\.pem: ENOENT/);
    writeFileSync(join(folder, 'api.pem'), 'the authority');
    await redfishVirtualMediaBoot.prepareRamdisk(task, {});
    expect((contentOf(media, 'boot') as { readonly files: object }).files).toEqual({
      'etc/ironic-python-agent/ironic.crt': 'the authority',
      'etc/ironic-python-agent.d/ironic-tls.conf': '[DEFAULT]\ncafile = /etc/ironic-python-agent/ironic.crt\n',
    });
  });
  it('cleanUpRamdisk powers the machine off, but not in rescue', async () => {
    const { task, events } = bench();
    await redfishVirtualMediaBoot.prepareRamdisk(task, {});
    await redfishVirtualMediaBoot.cleanUpRamdisk(task);
    expect(events).toEqual(['power: power off', 'power: power off']);
    const rescued = bench({ node: { provision_state: 'rescue wait' } });
    await redfishVirtualMediaBoot.cleanUpRamdisk(rescued.task);
    expect(rescued.events).toEqual([]);
  });
});

describe('instance', () => {
  it("boots from disk, after the ejection of the ramdisk's CD", async () => {
    const { task, media } = bench();
    await redfishVirtualMediaBoot.prepareRamdisk(task, {});
    await redfishVirtualMediaBoot.prepareInstance(task);
    expect([imageOf('Cd'), media.size]).toEqual([null, 0]);
    expect(boot()).toMatchObject({ BootSourceOverrideTarget: 'Hdd', BootSourceOverrideEnabled: 'Continuous' });
  });
  it('that is already active causes no request to the BMC', async () => {
    await redfishVirtualMediaBoot.prepareInstance(bench({ node: { provision_state: 'active' } }).task);
    expect(service.asked).toEqual([]);
  });
  const inMemory = { driver: { deploy: ramdiskDeploy } };
  it('in memory boots from a CD, with its config drive as a USB image', async () => {
    const data = gzipSync('config drive').toString('base64');
    const { task, media } = bench({ ...inMemory, node: { instance_info: { boot_iso: file('boot.iso'), configdrive: data } } });
    await redfishVirtualMediaBoot.prepareInstance(task);
    expect(contentOf(media, 'boot')).toEqual({ kind: 'image', source: join(folder, 'boot.iso') });
    expect(contentOf(media, 'configdrive')).toEqual({ kind: 'packed', data });
    expect(imageOf('Usb')).toMatch(/configdrive\.img$/);
    expect(boot()).toMatchObject({ BootSourceOverrideTarget: 'Cd', BootSourceOverrideEnabled: 'Continuous' });
    await redfishVirtualMediaBoot.cleanUpInstance(task);
    expect([imageOf('Cd'), imageOf('Usb'), media.size]).toEqual([null, null, 0]);
  });
  it('in memory may consist of a kernel and a ramdisk', async () => {
    const instance = { kernel: file('kernel'), ramdisk: file('ramdisk'), ramdisk_kernel_arguments: 'quiet' };
    const { task, media } = bench({ ...inMemory, node: { instance_info: instance } });
    await redfishVirtualMediaBoot.prepareInstance(task);
    expect(contentOf(media, 'boot')).toMatchObject({
      kind: 'iso',
      kernel_args: expect.stringMatching(/root=\/dev\/ram0 .*quiet$/) as unknown,
    });
  });
  it('in memory fails if there is no virtual USB drive for its config drive', async () => {
    drives.put(SYSTEM, { Cd: {} });
    const { task } = bench({ ...inMemory, node: { instance_info: { boot_iso: file('boot.iso'), configdrive: 'H4sI' } } });
    await expect(redfishVirtualMediaBoot.prepareInstance(task)).rejects.toMatchObject({
      message: expect.stringContaining(
        `Cannot attach configdrive for node ${NODE_UUID}: no suitable virtual USB slot has been found`,
      ) as unknown,
    });
  });
});

describe('validate', () => {
  const error = (given: Given): Promise<unknown> =>
    redfishVirtualMediaBoot.validate!(bench(given).task).then(
      () => 'fine',
      (item: unknown) => (item as Error).message,
    );
  it.each<[string, Given, string]>([
    ['kernel and ramdisk', {}, 'fine'],
    ['an ISO', { info: { deploy_iso: 'http://h/x.iso' } }, 'fine'],
    ['an ISO under its older name', { info: { redfish_deploy_iso: 'http://h/x.iso' } }, 'fine'],
    [
      'no ramdisk',
      { info: {} },
      "Error validating Redfish virtual media. Some parameters were missing in node's driver_info. Missing are: ['deploy_kernel', 'deploy_ramdisk']",
    ],
    [
      'use_swift without [swift]auth_type',
      { options: { 'redfish.use_swift': true } },
      '[redfish]use_swift needs [swift]auth_type: images for virtual media are uploaded to Swift',
    ],
  ])('checks the boot settings: %s', async (_, given, message) => {
    expect(await error(given)).toBe(message);
  });
  it('prepareRamdisk without a UEFI boot loader fails before anything is inserted', async () => {
    const uefi = bench({ info: { ...KERNEL, bootloader: '' } });
    await expect(redfishVirtualMediaBoot.prepareRamdisk(uefi.task, {})).rejects.toMatchObject({
      message: `Creating a UEFI bootable ISO image for node ${NODE_UUID} needs a boot loader: driver_info/bootloader or [conductor]bootloader, an image of an EFI system partition or an EFI program`,
    });
    expect(imageOf('Cd')).toBeNull();
  });
});

describe('by HTTP', () => {
  const http = { driver: { boot: redfishHttpsBoot } };
  beforeEach(() => {
    Object.assign(boot(), { 'BootSourceOverrideTarget@Redfish.AllowableValues': ['Hdd', 'UefiHttp'], HttpBootUri: null });
  });
  it('sets HttpBootUri for the ramdisk, and removes it for the instance', async () => {
    const { task, media, node } = bench(http);
    await redfishHttpsBoot.validate!(task);
    await redfishHttpsBoot.prepareRamdisk(task, {});
    expect(boot()).toMatchObject({
      BootSourceOverrideTarget: 'UefiHttp',
      BootSourceOverrideEnabled: 'Once',
      HttpBootUri: `http://10.0.0.1:8080/media/${media.get('boot')!.token}/boot.iso`,
    });
    expect(JSON.stringify(node().driver_internal_info)).not.toContain('/media/');
    await redfishHttpsBoot.prepareInstance(task);
    expect(boot()).toMatchObject({ BootSourceOverrideTarget: 'Hdd', HttpBootUri: null });
    expect(media.size).toBe(0);
  });
  it('validate rejects firmware without UefiHttp', async () => {
    Object.assign(boot(), { 'BootSourceOverrideTarget@Redfish.AllowableValues': ['Hdd', 'Pxe'] });
    await expect(redfishHttpsBoot.validate!(bench(http).task)).rejects.toMatchObject({
      status: 400,
      message: `Node ${NODE_UUID} hardware does not support feature UefiHttp boot, which is required based upon the requested configuration.`,
    });
  });
});

describe('[redfish]use_swift', () => {
  /** The HTTP boot service, and a Swift: `PUT /v1/AUTH_p/c/o` and the bytes of objects. */
  let server: Server;
  let url: string;
  let requests: string[];
  let objects: Map<string, string>;
  /** Path → its status; absent: 200. */
  let refused: Readonly<Record<string, number>>;
  /** The account's key for temporary URLs. */
  let key: string;
  const MEDIUM = 'an image that is generated';
  beforeEach(async () => {
    requests = [];
    objects = new Map();
    refused = {};
    key = 'key';
    server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => void chunks.push(chunk));
      request.on('end', () => {
        const [method, path] = [request.method!, request.url!];
        requests.push(`${method} ${path.replace(/(\/media\/)[\w-]+/, '$1TOKEN')}`);
        if (method === 'PUT') objects.set(path, `${Buffer.concat(chunks).toString()} for ${String(request.headers['x-delete-after'])} s`);
        if (method === 'DELETE') objects.delete(path);
        const [, kind = ''] = path.split('/');
        const body = kind === 'media' ? MEDIUM : '';
        response.writeHead(refused[kind] ?? 200, { 'x-account-meta-temp-url-key': key, 'content-length': body.length }).end(body);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterEach(() => {
    server.close();
    server.closeAllConnections();
  });
  const swiftBench = (info: JsonObject = KERNEL, more: Partial<Options> = {}): TestTask => {
    const services = servicesOf({ 'swift.auth_type': 'none', 'swift.endpoint_override': `${url}/v1/AUTH_p` });
    const options = {
      'redfish.use_swift': true,
      'redfish.swift_container': 'c',
      'deploy.http_url': url,
      'deploy.external_http_url': 'http://outside',
    };
    return bench({ options: { ...options, ...more }, services, info });
  };
  it('uploads images to Swift, inserts their temporary URLs, and deletes them on clean-up', async () => {
    const { task } = swiftBench({ ...KERNEL, config_via_removable: 'true' });
    await redfishVirtualMediaBoot.validate!(task);
    await redfishVirtualMediaBoot.prepareRamdisk(task, {});
    const boot = `/v1/AUTH_p/c/boot-${NODE_UUID}.iso`;
    const parameters = `/v1/AUTH_p/c/parameters-${NODE_UUID}.img`;
    expect([...objects].filter(([path]) => path !== '/v1/AUTH_p/c')).toEqual([
      [boot, `${MEDIUM} for 900 s`],
      [parameters, `${MEDIUM} for 900 s`],
    ]);
    const expires = Math.floor(task.clock.now() / 1000) + 900;
    const ends = `temp_url_expires=${expires}&filename=boot-${NODE_UUID}.iso`;
    expect(String(imageOf('Cd'))).toMatch(new RegExp(`^${url}${boot}\\?temp_url_sig=[0-9a-f]{64}&${ends}$`));
    expect(String(imageOf('Usb'))).toMatch(new RegExp(`^${url}${parameters}\\?`));
    expect(requests.filter((line) => line.startsWith('GET'))).toEqual(['GET /media/TOKEN/boot.iso', 'GET /media/TOKEN/parameters.img']);
    await redfishVirtualMediaBoot.cleanUpRamdisk(task);
    expect([...objects.keys()]).toEqual(['/v1/AUTH_p/c']);
  });
  it('does not upload an ISO that the BMC downloads directly', async () => {
    const { task } = swiftBench({ deploy_iso: `${url}/x.iso` }, { 'deploy.ramdisk_image_download_source': 'http' });
    await redfishVirtualMediaBoot.prepareRamdisk(task, {});
    expect(imageOf('Cd')).toBe(`${url}/x.iso`);
    expect(requests).toEqual(['HEAD /x.iso']);
  });
  it.each([
    ['v1', "Swift operation 'put object' failed: [swift] HTTP status 403"],
    ['media', "Swift operation 'put object' failed: Got HTTP code 403 instead of 200 in response to GET request."],
  ])('fails when %s refuses the request, and inserts nothing', async (kind, message) => {
    refused = { [kind]: 403 };
    await expect(redfishVirtualMediaBoot.prepareRamdisk(swiftBench().task, {})).rejects.toMatchObject({
      name: 'SwiftOperationError',
      message,
    });
    expect(imageOf('Cd')).toBeNull();
  });
  it.each<readonly [string, Partial<Options>]>([
    ['use_swift', { 'redfish.use_swift': false }],
    ['the container', { 'redfish.swift_container': 'another' }],
  ])('removes an image from its container after a change of %s', async (_, changed) => {
    const { task } = swiftBench();
    await redfishVirtualMediaBoot.prepareRamdisk(task, {});
    expect([...objects.keys()]).toContain(`/v1/AUTH_p/c/boot-${NODE_UUID}.iso`);
    const later = Object.create(task, { options: { value: { ...task.options, ...changed } } }) as Task;
    await redfishVirtualMediaBoot.cleanUpRamdisk(later);
    expect([...objects.keys()]).toEqual(['/v1/AUTH_p/c']);
  });
  it('removes the uploaded image after its temporary URL could not be made', async () => {
    const { task } = swiftBench();
    key = '';
    await expect(redfishVirtualMediaBoot.prepareRamdisk(task, {})).rejects.toMatchObject({ name: 'MissingParameterValue' });
    await redfishVirtualMediaBoot.cleanUpRamdisk(task);
    expect([...objects.keys()]).toEqual(['/v1/AUTH_p/c']);
  });
  it('logs a warning and deletes the media row when Swift does not delete an image', async () => {
    const { task, media, complaints } = swiftBench();
    await redfishVirtualMediaBoot.prepareRamdisk(task, {});
    refused = { v1: 503 };
    await redfishVirtualMediaBoot.cleanUpRamdisk(task);
    expect(media.size).toBe(0);
    expect(complaints.join()).toContain('cannot be removed from Swift');
  });
});
