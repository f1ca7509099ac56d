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
import type { ManagementInterface, Task } from '../../drivers/interfaces';
import { httpBoot, httpIpxeBoot, ipxeBoot } from '../../drivers/boot-interfaces/network-boot';
import { redfishHttpsBoot } from '../../drivers/boot-interfaces/virtual-media-boot';
import { fakeDeploy } from '../../drivers/fake/fake';
import { noopManagement } from '../../drivers/noop';
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
  it('machineCapabilities skips malformed entries', () => {
    const node = nodeRecord({ properties: { capabilities: 'boot_mode:uefi, cpu_vt : true,broken,a:b:c,:x,y:' } });
    expect(machineCapabilities(node)).toEqual({ boot_mode: 'uefi', cpu_vt: 'true' });
  });
  it.each([
    [undefined, {}],
    [{ boot_mode: 'bios' }, { boot_mode: 'bios' }],
    ['{"secure_boot": "true"}', { secure_boot: 'true' }],
  ])('instanceCapabilities reads %j', (capabilities, expected) => {
    expect(instanceCapabilities(nodeRecord({ instance_info: { capabilities } }))).toEqual(expected);
  });
  it.each(['boot_mode:uefi', [1], '[1]', 5])('instanceCapabilities rejects %j', (capabilities) => {
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
  ])('validateCapabilities rejects the invalid value in %j', (node, message) => {
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
  ])('setBootDevice with force_persistent_boot_device %s and persistent %s sets it "%s"', async (force, persistent, expected) => {
    const { task, events } = testTask({ node: { driver_info: { force_persistent_boot_device: force } } });
    await setBootDevice(task, 'disk', persistent);
    expect(events).toEqual([`boot device: disk ${expected}`]);
  });
});

describe('boot mode', () => {
  it.each([
    ['the default', {}, 'uefi'],
    ['deploy_boot_mode', { driver_internal_info: { deploy_boot_mode: 'bios' } }, 'bios'],
    [
      'the capabilities of the machine',
      { properties: { capabilities: 'boot_mode:bios' }, driver_internal_info: { deploy_boot_mode: 'bios' } },
      'bios',
    ],
    ['the capabilities of the instance', { instance_info: { capabilities: { boot_mode: 'BIOS' } } }, 'bios'],
    ['secure boot of the instance', { instance_info: { capabilities: { boot_mode: 'bios', secure_boot: 'true' } } }, 'uefi'],
  ])('bootModeOf determines the boot mode from %s', (_, node, expected) => {
    expect(bootModeOf(testTask({ node }).task)).toBe(expected);
  });
  it('bootModeOf rejects an instance whose boot mode differs from that of the machine', () => {
    const node = { instance_info: { capabilities: { boot_mode: 'bios' } }, properties: { capabilities: 'boot_mode:uefi' } };
    expect(() => bootModeOf(testTask({ node }).task)).toThrow(
      `Node ${NODE_UUID} boot mode bios violates node properties/capabilities uefi`,
    );
  });
  describe('compared with the BMC', () => {
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
      ['accepts a node without boot mode and secure boot', {}, { bootMode: { get: silent, set: silent, supported: silent } }, 'fine'],
      ['accepts a supported boot mode', wanting({ boot_mode: 'uefi' }), only('bios', 'uefi'), 'fine'],
      [
        'rejects an unsupported boot mode of the instance',
        wanting({ boot_mode: 'uefi' }),
        only('bios'),
        refused('boot mode uefi (instance_info/capabilities), and its BMC says that the machine supports bios only'),
      ],
      [
        'rejects an unsupported boot mode of the machine',
        wanting({}, 'boot_mode:bios'),
        only('uefi'),
        refused('boot mode bios (properties/capabilities), and its BMC says that the machine supports uefi only'),
      ],
      [
        'rejects an unsupported boot mode of the image',
        { instance_info: { image_properties: { hw_firmware_type: 'uefi' } } },
        only('bios'),
        refused('boot mode uefi (instance_info/image_properties), and its BMC says that the machine supports bios only'),
      ],
      [
        'rejects secure boot of the instance without UEFI',
        wanting({ secure_boot: 'true' }),
        only('bios'),
        refused('boot mode uefi (secure boot), and its BMC says that the machine supports bios only'),
      ],
      [
        'rejects secure boot of the image without UEFI',
        { instance_info: { image_properties: { os_secure_boot: 'required' } } },
        only('bios'),
        refused('boot mode uefi (secure boot), and its BMC says that the machine supports bios only'),
      ],
      [
        'rejects secure boot together with boot mode bios',
        wanting({ secure_boot: 'true', boot_mode: 'bios' }),
        only('bios', 'uefi'),
        refused('secure boot, which needs UEFI, and for boot mode bios (instance_info/capabilities)'),
      ],
      [
        'rejects secure boot if the machine does not support it',
        wanting({ secure_boot: 'true' }),
        secure(unsupported),
        refused('secure boot, and its BMC says that the machine has none'),
      ],
      ['accepts supported secure boot', wanting({ secure_boot: 'true' }), secure(async () => false), 'fine'],
      [
        'accepts the boot mode if the BMC does not answer',
        wanting({ boot_mode: 'uefi' }),
        { bootMode: { get: silent, set: silent, supported: silent } },
        'fine',
      ],
      [
        'accepts the boot mode if the BMC reports no supported modes',
        wanting({ boot_mode: 'uefi' }),
        { bootMode: { get: silent, set: silent, supported: async () => undefined } },
        'fine',
      ],
      ['accepts the boot mode if the management interface cannot query it', { ...wanting({ boot_mode: 'uefi' }) }, {}, 'fine'],
      [
        'rejects another boot mode than the recorded one if the management interface cannot change it',
        { ...wanting({ boot_mode: 'uefi' }), boot_mode: 'bios', management_interface: 'ipmitool' },
        {},
        refused(
          'boot mode uefi (instance_info/capabilities), and the machine is in boot mode bios, which its management interface ipmitool cannot change',
        ),
      ],
      [
        'rejects different boot modes of instance and machine',
        wanting({ boot_mode: 'bios' }, 'boot_mode:uefi'),
        only('bios', 'uefi'),
        `Node ${NODE_UUID} boot mode bios violates node properties/capabilities uefi`,
      ],
    ])('checkBootMode: %s', async (_, node, management, message) => {
      const { task } = testTask({ node, driver: { management: { ...noopManagement, ...management } } });
      const said = await checkBootMode(task).then(
        () => 'fine',
        (error: unknown) => (error as Error).message,
      );
      expect(said).toBe(message);
    });
    it('secure boot is enabled for an instance that requires it, and disabled by forgetSecureBoot', async () => {
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
    ['sets the default if neither node nor BMC has a boot mode', {}, null, 'uefi', ['uefi']],
    ['records the boot mode of the BMC if the node has none', {}, 'bios', 'bios', []],
    ['changes nothing if node and BMC agree', { properties: { capabilities: 'boot_mode:bios' } }, 'bios', undefined, []],
    [
      'sets the boot mode of the node if the BMC has another',
      { properties: { capabilities: 'boot_mode:bios' } },
      'uefi',
      undefined,
      ['bios'],
    ],
  ] as const)('syncBootMode: %s', async (_, node, found, kept, expected) => {
    const set: string[] = [];
    const { task, node: after } = testTask({ node, driver: withBootMode(found, async (mode) => void set.push(mode)) });
    await syncBootMode(task);
    expect([after().driver_internal_info['deploy_boot_mode'], set]).toEqual([kept, expected]);
  });
  it.each([
    [null, true],
    ['uefi', false],
  ] as const)('syncBootMode with boot mode %s and a BMC that cannot set it: succeeds %s', async (found, fine) => {
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
  ])('accepts %s', async (_, given) => {
    await expect(ipxeBoot.validate!(testTask(given).task)).resolves.toBeUndefined();
  });
  const missing = "Cannot validate PXE bootloader. Some parameters were missing in node's driver_info and configuration. Missing are: ";
  it.each([
    ['no ports', { ports: [] }, 'MissingParameterValue', `Node ${NODE_UUID} does not have any port associated with it`],
    ['no ramdisk', {}, 'MissingParameterValue', `${missing}['deploy_kernel', 'deploy_ramdisk']`],
    [
      'a node with only a kernel',
      { node: { driver_info: { deploy_kernel: 'http://x/k' } } },
      'MissingParameterValue',
      `${missing}['deploy_kernel', 'deploy_ramdisk']`,
    ],
    [
      'a configuration with only a kernel',
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
  ])('rejects %s', async (_, given, name, message) => {
    await expect(ipxeBoot.validate!(testTask(given).task)).rejects.toMatchObject({ name, message, status: 400 });
  });
  it('validateInspection requires a ramdisk, but no ports', async () => {
    await ipxeBoot.validateInspection!(testTask({ ports: [], options: inConfiguration() }).task);
    await expect(ipxeBoot.validateInspection!(testTask({ ports: [] }).task)).rejects.toMatchObject({
      status: 400,
      message: `Insufficient information provided for managed inspection: ${missing}['deploy_kernel', 'deploy_ramdisk']`,
    });
  });
});

describe('ipxe: prepareRamdisk', () => {
  it('creates the boot record and sets the boot device to pxe once', async () => {
    const { task, boots, events, node } = testTask({ options: inConfiguration(), globalRequestId: 'req-1' });
    await ipxeBoot.prepareRamdisk(task, { 'ipa-inspection-callback-url': 'http://10.0.0.1:6385/v1/continue_inspection', quiet: '' });
    expect(boots.get(NODE_UUID)).toEqual({
      node_uuid: NODE_UUID,
      token: NODE_UUID,
      cpu_arch: null,
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
  describe('with kernels of several architectures', () => {
    const kernelFor = (name: string, at: number, magic: string): string => {
      const path = join(folder, name);
      const bytes = Buffer.alloc(2000);
      bytes.write(magic, at, 'latin1');
      writeFileSync(path, bytes);
      return path;
    };
    const x86 = (): string => kernelFor('kernel-x86', 0x202, 'HdrS');
    const arm = (): string => kernelFor('kernel-arm', 0x38, 'ARM\x64');
    const byArch = (forArm: string) => ({
      'conductor.deploy_kernel': x86(),
      'conductor.deploy_ramdisk': ramdisk,
      'conductor.deploy_kernel_by_arch': { aarch64: forArm },
      'conductor.deploy_ramdisk_by_arch': { aarch64: ramdisk },
    });
    const recorded = async (properties: Readonly<Record<string, unknown>>, options: Readonly<Record<string, unknown>> = byArch(arm())) => {
      const { task, boots } = testTask({ node: { properties }, options });
      await ipxeBoot.prepareRamdisk(task, {});
      const { cpu_arch, files } = boots.get(NODE_UUID)!;
      return { cpu_arch, files };
    };
    it('records those of the architecture of the node', async () => {
      expect(await recorded({ cpu_arch: 'aarch64' })).toEqual({ cpu_arch: 'aarch64', files: { kernel: arm(), ramdisk } });
      expect(await recorded({ cpu_arch: 'x86_64' })).toEqual({ cpu_arch: 'x86_64', files: { kernel: x86(), ramdisk } });
    });
    it.each(['i686', 'amd64', 'anything'])('takes a kernel of x86 for the architecture %s', async (cpu_arch) => {
      expect(await recorded({ cpu_arch })).toEqual({ cpu_arch, files: { kernel: x86(), ramdisk } });
    });
    it('records all for a node that does not say its architecture', async () => {
      const files = { kernel: x86(), ramdisk, 'kernel.aarch64': arm(), 'ramdisk.aarch64': ramdisk };
      expect(await recorded({})).toEqual({ cpu_arch: null, files });
    });
    it.each([
      [
        'the kernel of the node',
        { cpu_arch: 'riscv64' },
        'deploy_kernel: %x is a kernel for x86_64, but node %n has the property cpu_arch riscv64',
      ],
      ['the kernel of an option', {}, 'deploy_kernel_by_arch: %x is a kernel for x86_64, but the option is for aarch64'],
    ])('refuses %s that is for another architecture, and writes no boot record', async (_, properties, message) => {
      const { task, boots, events } = testTask({ node: { properties }, options: byArch(x86()) });
      await expect(ipxeBoot.prepareRamdisk(task, {})).rejects.toMatchObject({
        name: 'InvalidParameterValue',
        message: message.replace('%x', x86()).replace('%n', NODE_UUID),
      });
      expect([boots.size, events]).toEqual([0, []]);
    });
  });
  it.each([
    [{}, {}, 'nofb vga=normal'],
    [{ kernel_append_params: 'console=ttyS0 %default%' }, {}, 'console=ttyS0 nofb vga=normal'],
    [{ kernel_append_params: '' }, {}, ''],
    [{ kernel_append_params: 'a' }, { kernel_append_params: ' b="c  d#e"\n' }, 'b="c d#e"'],
    [{ kernel_append_params: '#' }, { kernel_append_params: 'a -- b /c' }, 'a -- b /c'],
  ])('with driver_info %j and instance_info %j, adds the kernel arguments "%s"', async (driver_info, instance_info, append) => {
    const options = { ...inConfiguration(), 'conductor.file_url_allowed_paths': [folder] };
    const { task, boots } = testTask({ node: { driver_info: onNode(driver_info), instance_info }, options });
    await ipxeBoot.prepareRamdisk(task, {});
    const own = append === '' ? '' : `${append} `;
    expect(boots.get(NODE_UUID)!.kernel_args).toBe(`selinux=0 troubleshoot=0 text ${own}ipa-api-url=http://10.0.0.1:6385`);
  });
  it.each(['# x', 'a\nb', 'a="b', '=x', 'a ; b', 'a\0', 'a=b || c', 'a="b || c"', 'é', 7])(
    'refuses the kernel arguments %j, and writes no boot record',
    async (kernel_append_params) => {
      const options = { ...inConfiguration(), 'conductor.file_url_allowed_paths': [folder] };
      for (const place of ['driver_info', 'instance_info'] as const) {
        const fields = { driver_info: onNode({}), instance_info: {} };
        const { task, boots } = testTask({ node: { ...fields, [place]: { ...fields[place], kernel_append_params } }, options });
        await expect(ipxeBoot.prepareRamdisk(task, {})).rejects.toMatchObject({
          name: 'InvalidParameterValue',
          message: `node's ${place}['kernel_append_params'] contains malformed kernel command line`,
        });
        expect(boots.size).toBe(0);
      }
    },
  );
  const validated = [
    ['validate', ipxeBoot],
    ['validateInspection', ipxeBoot],
    ['validateRescue', ipxeBoot],
    ['validateInspection', redfishHttpsBoot],
    ['validateRescue', redfishHttpsBoot],
  ] as const;
  it.each(validated)('%s tells malformed kernel arguments of the node', async (check, boot) => {
    const info = { ...onNode({}), rescue_kernel: 'http://192.0.2.1/k', rescue_ramdisk: 'http://192.0.2.1/r' };
    const options = { ...inConfiguration(), 'conductor.file_url_allowed_paths': [folder] };
    const of = (node: object): Task => testTask({ node: { driver_info: info, ...node }, ports: [portRecord()], options }).task;
    await boot[check]!(of({}));
    await expect(boot[check]!(of({ instance_info: { kernel_append_params: '# x' } }))).rejects.toThrow(
      "node's instance_info['kernel_append_params'] contains malformed kernel command line",
    );
  });
  it('validate tells malformed kernel arguments of an instance in memory', async () => {
    const instance_info = { kernel: 'http://192.0.2.1/k', ramdisk: 'http://192.0.2.1/r', ramdisk_kernel_arguments: 'a ; b' };
    const node = { driver_info: onNode({}), instance_info, automated_clean: false };
    const options = { ...inConfiguration(), 'conductor.file_url_allowed_paths': [folder] };
    const { task } = testTask({ node, ports: [portRecord()], options, driver: { deploy: { ...fakeDeploy, inMemory: true } } });
    await expect(ipxeBoot.validate!(task)).rejects.toThrow("node's instance_info['ramdisk_kernel_arguments'] contains malformed");
  });
  it('refuses a malformed argument from elsewhere', async () => {
    const { task } = testTask({ options: inConfiguration() });
    await expect(ipxeBoot.prepareRamdisk(task, { 'ipa-x': 'a\nb' })).rejects.toThrow(
      'The kernel argument ipa-x of the ramdisk is malformed',
    );
  });
  it.each([
    ['ports with pxe_enabled', [portRecord(), portRecord({ address: '52:54:00:00:00:02', pxe_enabled: false })], ['52:54:00:00:00:01']],
    ['all ports, if none has pxe_enabled', [portRecord({ pxe_enabled: false })], ['52:54:00:00:00:01']],
    ['no port, if the node has none', [], []],
  ])('the boot record lists the MAC addresses of %s', async (_, ports, macs) => {
    const { task, boots } = testTask({ ports, options: inConfiguration() });
    await ipxeBoot.prepareRamdisk(task, {});
    expect(boots.get(NODE_UUID)!.macs).toEqual(macs);
  });
  it.each([
    [
      'a file that does not exist',
      { deploy_kernel: 'file:///var/lib/ironic/none', deploy_ramdisk: 'file:///x' },
      'Specified image file not found.',
    ],
    [
      'a file outside the allowed paths',
      { deploy_kernel: 'file:///usr/x', deploy_ramdisk: 'file:///x' },
      'is not allowed for image source file URLs',
    ],
    [
      'a path without a scheme',
      { deploy_kernel: '/var/lib/ironic/k', deploy_ramdisk: 'file:///x' },
      'Scheme-less image href is not a UUID.',
    ],
    ['a server that cannot be reached', { deploy_kernel: 'http://127.0.0.1:21399/k', deploy_ramdisk: 'file:///x' }, 'ECONNREFUSED'],
  ])('fails for %s, without a boot record or a change of the boot device', async (_, driver_info, message) => {
    const { task, boots, events } = testTask({ node: { driver_info } });
    await expect(ipxeBoot.prepareRamdisk(task, {})).rejects.toMatchObject({ message: expect.stringContaining(message) as string });
    expect([boots.size, events]).toEqual([0, []]);
  });
  it.each([
    ['http-ipxe', httpIpxeBoot, ['pxe', 'disk'], 'pxe'],
    ['http-ipxe', httpIpxeBoot, ['pxe', 'disk', 'uefihttp'], 'uefihttp'],
    ['http', httpBoot, ['pxe', 'disk'], 'pxe'],
    ['http', httpBoot, ['pxe', 'disk', 'uefihttp'], 'uefihttp'],
  ] as const)('%s with the boot devices %j sets %s', async (method, boot, bootDevices, device) => {
    const told: string[] = [];
    const management = { ...noopManagement, bootDevices, setBootDevice: async (_: unknown, value: string) => void told.push(value) };
    const { task, boots } = testTask({ options: inConfiguration(), driver: { management } });
    await boot.prepareRamdisk(task, {});
    expect([boots.get(NODE_UUID)!.method, told]).toEqual([method, [device]]);
  });
  it('keeps the image of the boot record when a step reboots during a deployment', async () => {
    const { task, boots } = testTask({ options: inConfiguration() });
    await ipxeBoot.prepareRamdisk(task, {});
    boots.set(NODE_UUID, { ...boots.get(NODE_UUID)!, files: { kernel: 'old', ramdisk: 'old', image: '/images/a' } });
    await ipxeBoot.prepareRamdisk(task, {});
    expect(boots.get(NODE_UUID)!.files).toEqual({ kernel, ramdisk, image: '/images/a' });
  });
});

describe('ipxe: clean-up and prepareInstance', () => {
  it.each(['cleanUpRamdisk', 'cleanUpInstance'] as const)('%s deletes the boot record', async (end) => {
    const { task, boots } = testTask({ options: inConfiguration() });
    await ipxeBoot.prepareRamdisk(task, {});
    await ipxeBoot[end](task);
    await ipxeBoot[end](task);
    expect(boots.size).toBe(0);
  });
  it.each([
    [false, ['power off', 'boot device: pxe once', 'power on']],
    [true, ['boot device: pxe once', 'rebooting']],
  ])('retryRamdisk of a machine that must stay on: %s', async (disable_power_off, expected) => {
    const { task, events } = testTask({ node: { disable_power_off }, options: inConfiguration() });
    await ipxeBoot.retryRamdisk!(task);
    expect(events.map((event) => event.replace(/^power: /, ''))).toEqual(expected);
  });
  it('prepareInstance with enable_netboot_fallback leaves a boot record for the disk, until the clean-up', async () => {
    const { task, boots } = testTask({ options: { ...inConfiguration(), 'pxe.enable_netboot_fallback': true } });
    await ipxeBoot.prepareRamdisk(task, {});
    await ipxeBoot.prepareInstance(task);
    expect([...boots.values()]).toMatchObject([
      { purpose: 'disk', macs: task.ports.map(({ address }) => address), kernel_args: '', files: {} },
    ]);
    await ipxeBoot.cleanUpInstance(task);
    expect(boots.size).toBe(0);
  });
  it.each([
    ['deploying', ['boot device: disk for good']],
    ['active', []],
  ] as const)(
    'prepareInstance in state %s deletes the boot record and sets the boot device only while deploying',
    async (provision_state, expected) => {
      const { task, boots, events } = testTask({ node: { provision_state }, options: inConfiguration() });
      await ipxeBoot.prepareRamdisk(task, {});
      events.length = 0;
      await ipxeBoot.prepareInstance(task);
      expect([boots.size, events]).toEqual([0, expected]);
    },
  );
});
