import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  bootModeOf,
  checkBootMode,
  configureSecureBoot,
  forgetSecureBoot,
  setBootDevice,
  syncBootMode,
} from '../../drivers/common/boot-settings';
import { instanceCapabilities, machineCapabilities, validateCapabilities } from '../../drivers/common/capabilities';
import type { ManagementInterface } from '../../drivers/interfaces';
import { httpIpxeBoot, ipxeBoot } from '../../drivers/boot/network-boot';
import { noopManagement } from '../../drivers/network/noop';
import { Fault } from '../../model/errors';
import type { NodeRecord } from '../../model/records';
import { NODE_UUID, nodeRecord, portRecord, testTask } from '../support/task';

let folder: string;
let kernel: string;
let ramdisk: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'boot-'));
  [kernel, ramdisk] = ['kernel', 'ramdisk'].map((name) => join(folder, name)) as [string, string];
  for (const path of [kernel, ramdisk]) writeFileSync(path, path);
});
afterAll(() => rmSync(folder, { recursive: true }));

const inConfiguration = () => ({ 'conductor.deploy_kernel': kernel, 'conductor.deploy_ramdisk': ramdisk });
const onNode = (more: object = {}) => ({ deploy_kernel: `file://${kernel}`, deploy_ramdisk: `file://${ramdisk}`, ...more });
/** A management interface that knows the boot mode. */
const withBootMode = (found: 'bios' | 'uefi' | null, set: (mode: string) => Promise<void> = async () => {}) => ({
  management: { ...noopManagement, bootMode: { get: async () => found, set: async (_: unknown, mode: string) => set(mode) } },
});

describe('capabilities', () => {
  it('reads those of a machine, passing over what is none', () => {
    const node = nodeRecord({ properties: { capabilities: 'boot_mode:uefi, cpu_vt : true,broken,a:b:c,:x,y:' } });
    expect(machineCapabilities(node)).toEqual({ boot_mode: 'uefi', cpu_vt: 'true' });
  });
  it.each([
    [undefined, {}],
    [{ boot_mode: 'bios' }, { boot_mode: 'bios' }],
    ['{"secure_boot": "true"}', { secure_boot: 'true' }],
  ])('reads those of an instance: %j', (capabilities, expected) => {
    expect(instanceCapabilities(nodeRecord({ instance_info: { capabilities } }))).toEqual(expected);
  });
  it.each(['boot_mode:uefi', [1], '[1]', 5])('refuses %j', (capabilities) => {
    expect(() => instanceCapabilities(nodeRecord({ instance_info: { capabilities } }))).toThrow(
      `Error parsing capabilities from Node ${NODE_UUID} instance_info field. A dictionary or a "jsonified" dictionary is expected.`,
    );
  });
  it.each([
    [
      { properties: { capabilities: 'boot_mode:efi' } },
      "The parameter 'boot_mode' from properties/capabilities has an invalid value: 'efi'. Acceptable values are: bios, uefi.",
    ],
    [
      { instance_info: { capabilities: { disk_label: 'bsd' } } },
      "The parameter 'disk_label' from instance_info['capabilities'] has an invalid value: 'bsd'. Acceptable values are: msdos, gpt.",
    ],
  ])('%j has a bad value', (node, message) => {
    expect(() => validateCapabilities(nodeRecord(node))).toThrow(message);
  });
});

describe('boot device', () => {
  it.each([
    [undefined, false, 'once'],
    [undefined, true, 'for good'],
    ['Default', false, 'once'],
    ['Always', false, 'for good'],
    ['Never', true, 'once'],
    ['True', false, 'for good'],
    [true, false, 'for good'],
    [false, true, 'for good'],
  ])('force_persistent_boot_device %s, persistent %s: %s', async (force, persistent, expected) => {
    const { task, events } = testTask({ node: { driver_info: { force_persistent_boot_device: force } } });
    await setBootDevice(task, 'disk', persistent);
    expect(events).toEqual([`boot device: disk ${expected}`]);
  });
});

describe('boot mode', () => {
  it.each([
    ['nothing', {}, 'uefi'],
    ['what was settled', { driver_internal_info: { deploy_boot_mode: 'bios' } }, 'bios'],
    ['the machine', { properties: { capabilities: 'boot_mode:bios' }, driver_internal_info: { deploy_boot_mode: 'bios' } }, 'bios'],
    ['the instance', { instance_info: { capabilities: { boot_mode: 'BIOS' } } }, 'bios'],
    ['secure boot', { instance_info: { capabilities: { boot_mode: 'bios', secure_boot: 'true' } } }, 'uefi'],
  ])('by %s', (_, node, expected) => {
    expect(bootModeOf(testTask({ node }).task)).toBe(expected);
  });
  it('refuses an instance that wants another one than the machine has', () => {
    const node = { instance_info: { capabilities: { boot_mode: 'bios' } }, properties: { capabilities: 'boot_mode:uefi' } };
    expect(() => bootModeOf(testTask({ node }).task)).toThrow(
      `Node ${NODE_UUID} boot mode bios violates node properties/capabilities uefi`,
    );
  });
  describe('against what the BMC says', () => {
    const unsupported = async (): Promise<never> =>
      Promise.reject(new Fault('UnsupportedDriverExtension', { driver: 'x', extension: 'y' }));
    const silent = async (): Promise<never> => Promise.reject(new Fault('DriverOperationError', { message: 'no answer' }));
    const wanting = (capabilities: object, machine = ''): Partial<NodeRecord> => ({
      instance_info: { capabilities },
      ...(machine === '' ? {} : { properties: { capabilities: machine } }),
    });
    const only = (...modes: readonly ('bios' | 'uefi')[]): Partial<ManagementInterface> => ({
      bootMode: { get: async () => null, set: async () => {}, supported: async () => modes },
    });
    const secure = (get: () => Promise<boolean | null>): Partial<ManagementInterface> => ({
      ...only('uefi'),
      secureBoot: { get, set: async () => {} },
    });
    const refused = (rest: string): string => `Node ${NODE_UUID} is asked for ${rest}`;
    it.each<[string, Partial<NodeRecord>, Partial<ManagementInterface>, string]>([
      ['nothing is asked', {}, { bootMode: { get: silent, set: silent, supported: silent } }, 'fine'],
      ['it is supported', wanting({ boot_mode: 'uefi' }), only('bios', 'uefi'), 'fine'],
      [
        'it is not',
        wanting({ boot_mode: 'uefi' }),
        only('bios'),
        refused('boot mode uefi (instance_info/capabilities), and its BMC says that the machine supports bios only'),
      ],
      [
        'the machine asks',
        wanting({}, 'boot_mode:bios'),
        only('uefi'),
        refused('boot mode bios (properties/capabilities), and its BMC says that the machine supports uefi only'),
      ],
      [
        'the image asks',
        { instance_info: { image_properties: { hw_firmware_type: 'uefi' } } },
        only('bios'),
        refused('boot mode uefi (instance_info/image_properties), and its BMC says that the machine supports bios only'),
      ],
      [
        'secure boot is asked for',
        wanting({ secure_boot: 'true' }),
        only('bios'),
        refused('boot mode uefi (secure boot), and its BMC says that the machine supports bios only'),
      ],
      [
        'the image asks for it',
        { instance_info: { image_properties: { os_secure_boot: 'required' } } },
        only('bios'),
        refused('boot mode uefi (secure boot), and its BMC says that the machine supports bios only'),
      ],
      [
        'it contradicts itself',
        wanting({ secure_boot: 'true', boot_mode: 'bios' }),
        only('bios', 'uefi'),
        refused('secure boot, which needs UEFI, and for boot mode bios (instance_info/capabilities)'),
      ],
      [
        'there is no secure boot',
        wanting({ secure_boot: 'true' }),
        secure(unsupported),
        refused('secure boot, and its BMC says that the machine has none'),
      ],
      ['there is', wanting({ secure_boot: 'true' }), secure(async () => false), 'fine'],
      ['the BMC does not answer', wanting({ boot_mode: 'uefi' }), { bootMode: { get: silent, set: silent, supported: silent } }, 'fine'],
      [
        'the BMC does not say',
        wanting({ boot_mode: 'uefi' }),
        { bootMode: { get: silent, set: silent, supported: async () => undefined } },
        'fine',
      ],
      ['nobody can ask', { ...wanting({ boot_mode: 'uefi' }) }, {}, 'fine'],
      [
        'nobody can ask, and it is known',
        { ...wanting({ boot_mode: 'uefi' }), boot_mode: 'bios', management_interface: 'ipmitool' },
        {},
        refused(
          'boot mode uefi (instance_info/capabilities), and the machine is in boot mode bios, which its management interface ipmitool cannot change',
        ),
      ],
      [
        'the instance and the machine differ',
        wanting({ boot_mode: 'bios' }, 'boot_mode:uefi'),
        only('bios', 'uefi'),
        `Node ${NODE_UUID} boot mode bios violates node properties/capabilities uefi`,
      ],
    ])('%s', async (_, node, management, message) => {
      const { task } = testTask({ node, driver: { management: { ...noopManagement, ...management } } });
      const said = await checkBootMode(task).then(
        () => 'fine',
        (error: unknown) => (error as Error).message,
      );
      expect(said).toBe(message);
    });
    it('secure boot is switched on and off for who asks for it', async () => {
      const set: boolean[] = [];
      const security = { get: async () => false, set: async (_: unknown, on: boolean) => void set.push(on) };
      const { task, node } = testTask({
        node: wanting({ secure_boot: 'true' }),
        driver: { management: { ...noopManagement, secureBoot: security } },
      });
      await configureSecureBoot(task);
      expect(node().secure_boot).toBe(true);
      await forgetSecureBoot(task);
      expect(set).toEqual([true, false]);
      const without = testTask({ node: wanting({ secure_boot: 'true' }) });
      await configureSecureBoot(without.task);
      expect(without.complaints.join()).toContain('cannot be set');
      await configureSecureBoot(testTask().task);
    });
  });
  it.each([
    ['nobody says any: the default, set', {}, null, 'uefi', ['uefi']],
    ['only the machine does: kept', {}, 'bios', 'bios', []],
    ['both agree', { properties: { capabilities: 'boot_mode:bios' } }, 'bios', undefined, []],
    ['they differ: set', { properties: { capabilities: 'boot_mode:bios' } }, 'uefi', undefined, ['bios']],
  ] as const)('%s', async (_, node, found, kept, expected) => {
    const set: string[] = [];
    const { task, node: after } = testTask({ node, driver: withBootMode(found, async (mode) => void set.push(mode)) });
    await syncBootMode(task);
    expect([after().driver_internal_info['deploy_boot_mode'], set]).toEqual([kept, expected]);
  });
  it.each([
    [null, true],
    ['uefi', false],
  ] as const)('a machine in %s that cannot be told: fine is %s', async (found, fine) => {
    const unsupported = async () => Promise.reject(new Fault('UnsupportedDriverExtension', { driver: 'x', extension: 'set_boot_mode' }));
    const { task } = testTask({ node: { properties: { capabilities: 'boot_mode:bios' } }, driver: withBootMode(found, unsupported) });
    if (fine) await syncBootMode(task);
    else await expect(syncBootMode(task)).rejects.toThrow('does not support set_boot_mode');
  });
});

describe('ipxe: validate', () => {
  it.each([
    ['ports and a ramdisk of the node', { node: { driver_info: { deploy_kernel: 'http://x/k', deploy_ramdisk: 'http://x/r' } } }],
    ['ports and a ramdisk of the configuration', { options: { 'conductor.deploy_kernel': '/k', 'conductor.deploy_ramdisk': '/r' } }],
  ])('takes %s', async (_, given) => {
    await expect(ipxeBoot.validate!(testTask(given).task)).resolves.toBeUndefined();
  });
  const missing = "Cannot validate PXE bootloader. Some parameters were missing in node's driver_info and configuration. Missing are: ";
  it.each([
    ['no ports', { ports: [] }, 'MissingParameterValue', `Node ${NODE_UUID} does not have any port associated with it`],
    ['no ramdisk', {}, 'MissingParameterValue', `${missing}['deploy_kernel', 'deploy_ramdisk']`],
    [
      'half a ramdisk',
      { node: { driver_info: { deploy_kernel: 'http://x/k' } } },
      'MissingParameterValue',
      `${missing}['deploy_kernel', 'deploy_ramdisk']`,
    ],
    [
      'half a ramdisk in the configuration',
      { options: { 'conductor.deploy_kernel': '/k' } },
      'MissingParameterValue',
      `${missing}['deploy_ramdisk']`,
    ],
    [
      'an image and an ISO',
      { node: { instance_info: { image_source: 'http://x', boot_iso: 'http://y' } } },
      'InvalidParameterValue',
      "An 'image_source' and 'boot_iso' parameter may not be specified at the same time",
    ],
  ])('refuses %s', async (_, given, name, message) => {
    await expect(ipxeBoot.validate!(testTask(given).task)).rejects.toMatchObject({ name, message, status: 400 });
  });
  it('needs no ports for inspection', async () => {
    await ipxeBoot.validateInspection!(testTask({ ports: [], options: inConfiguration() }).task);
    await expect(ipxeBoot.validateInspection!(testTask({ ports: [] }).task)).rejects.toMatchObject({
      status: 400,
      message: `Insufficient information provided for managed inspection: ${missing}['deploy_kernel', 'deploy_ramdisk']`,
    });
  });
});

describe('ipxe: prepareRamdisk', () => {
  it('writes what the machine gets, and has it ask', async () => {
    const { task, boots, events, node } = testTask({ options: inConfiguration(), globalRequestId: 'req-1' });
    await ipxeBoot.prepareRamdisk(task, { 'ipa-inspection-callback-url': 'http://10.0.0.1:6385/v1/continue_inspection', quiet: '' });
    expect(boots.get(NODE_UUID)).toEqual({
      node_uuid: NODE_UUID,
      token: NODE_UUID,
      macs: ['52:54:00:00:00:01'],
      method: 'ipxe',
      purpose: 'ramdisk',
      kernel_args:
        'selinux=0 troubleshoot=0 text nofb vga=normal ipa-api-url=http://10.0.0.1:6385 ipa-global-request-id=req-1 ' +
        'ipa-inspection-callback-url=http://10.0.0.1:6385/v1/continue_inspection quiet',
      files: { kernel, ramdisk },
    });
    expect(events).toEqual(['boot device: pxe once']);
    expect(node().driver_internal_info).toEqual({ deploy_boot_mode: 'uefi' });
  });
  it.each([
    [{}, {}, 'nofb vga=normal'],
    [{ kernel_append_params: 'console=ttyS0 %default%' }, {}, 'console=ttyS0 nofb vga=normal'],
    [{ kernel_append_params: '' }, {}, ''],
    [{ kernel_append_params: 'a' }, { kernel_append_params: 'b\n\0c' }, 'bc'],
  ])('driver_info %j, instance_info %j: kernel arguments with "%s"', async (driver_info, instance_info, append) => {
    const options = { ...inConfiguration(), 'conductor.file_url_allowed_paths': [folder] };
    const { task, boots } = testTask({ node: { driver_info: onNode(driver_info), instance_info }, options });
    await ipxeBoot.prepareRamdisk(task, {});
    const own = append === '' ? '' : `${append} `;
    expect(boots.get(NODE_UUID)!.kernel_args).toBe(`selinux=0 troubleshoot=0 text ${own}ipa-api-url=http://10.0.0.1:6385`);
  });
  it.each([
    ['those that may boot', [portRecord(), portRecord({ address: '52:54:00:00:00:02', pxe_enabled: false })], ['52:54:00:00:00:01']],
    ['all, when none may', [portRecord({ pxe_enabled: false })], ['52:54:00:00:00:01']],
    ['none: any unknown machine', [], []],
  ])('is found by %s', async (_, ports, macs) => {
    const { task, boots } = testTask({ ports, options: inConfiguration() });
    await ipxeBoot.prepareRamdisk(task, {});
    expect(boots.get(NODE_UUID)!.macs).toEqual(macs);
  });
  it.each([
    [
      'a file that is not there',
      { deploy_kernel: 'file:///var/lib/ironic/none', deploy_ramdisk: 'file:///x' },
      'Specified image file not found.',
    ],
    ['a file elsewhere', { deploy_kernel: 'file:///usr/x', deploy_ramdisk: 'file:///x' }, 'is not allowed for image source file URLs'],
    ['a path', { deploy_kernel: '/var/lib/ironic/k', deploy_ramdisk: 'file:///x' }, 'Scheme-less image href is not a UUID.'],
    ['a server that is not there', { deploy_kernel: 'http://127.0.0.1:21399/k', deploy_ramdisk: 'file:///x' }, 'ECONNREFUSED'],
  ])('fails for %s before anything is changed', async (_, driver_info, message) => {
    const { task, boots, events } = testTask({ node: { driver_info } });
    await expect(ipxeBoot.prepareRamdisk(task, {})).rejects.toMatchObject({ message: expect.stringContaining(message) as string });
    expect([boots.size, events]).toEqual([0, []]);
  });
  it.each([
    [['pxe', 'disk'], 'pxe'],
    [['pxe', 'disk', 'uefihttp'], 'uefihttp'],
  ])('over HTTP, with boot devices %j: %s', async (bootDevices, device) => {
    const told: string[] = [];
    const management = { ...noopManagement, bootDevices, setBootDevice: async (_: unknown, one: string) => void told.push(one) };
    const { task, boots } = testTask({ options: inConfiguration(), driver: { management } });
    await httpIpxeBoot.prepareRamdisk(task, {});
    expect([boots.get(NODE_UUID)!.method, told]).toEqual(['http-ipxe', [device]]);
  });
  it('keeps the image of a deployment in which a step reboots', async () => {
    const { task, boots } = testTask({ options: inConfiguration() });
    await ipxeBoot.prepareRamdisk(task, {});
    boots.set(NODE_UUID, { ...boots.get(NODE_UUID)!, files: { kernel: 'old', ramdisk: 'old', image: '/images/a' } });
    await ipxeBoot.prepareRamdisk(task, {});
    expect(boots.get(NODE_UUID)!.files).toEqual({ kernel, ramdisk, image: '/images/a' });
  });
});

describe('ipxe: afterwards', () => {
  it.each(['cleanUpRamdisk', 'cleanUpInstance'] as const)('%s leaves nothing to boot', async (end) => {
    const { task, boots } = testTask({ options: inConfiguration() });
    await ipxeBoot.prepareRamdisk(task, {});
    await ipxeBoot[end](task);
    await ipxeBoot[end](task);
    expect(boots.size).toBe(0);
  });
  it.each([
    ['deploying', ['boot device: disk for good']],
    ['active', []],
  ] as const)('prepareInstance of a node %s', async (provision_state, expected) => {
    const { task, boots, events } = testTask({ node: { provision_state }, options: inConfiguration() });
    await ipxeBoot.prepareRamdisk(task, {});
    events.length = 0;
    await ipxeBoot.prepareInstance(task);
    expect([boots.size, events]).toEqual([0, expected]);
  });
});
