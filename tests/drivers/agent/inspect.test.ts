import { agentInspect, bmcAddresses, kernelParameters } from '../../../drivers/agent/inspect';
import { noopNetwork } from '../../../drivers/noop';
import { fakeBoot } from '../../../drivers/fake/fake';
import type { BootInterface } from '../../../drivers/interfaces';
import { Fault } from '../../../model/errors';
import { testTask } from '../../support/task';

type Given = Parameters<typeof testTask>[0] & {};
/** With a boot interface that can inspect, and notes what happens. */
function inspecting(given: Given = {}, boot: Partial<BootInterface> = { validateInspection: async () => {} }) {
  const args: Record<string, string>[] = [];
  const made = testTask({
    ...given,
    node: { provision_state: 'inspecting', driver_info: { ipmi_address: '10.1.1.1' }, ...given.node },
    driver: {
      boot: {
        ...fakeBoot,
        prepareRamdisk: async (_, value) => void (made.events.push('ramdisk'), args.push(value)),
        cleanUpRamdisk: async () => void made.events.push('no ramdisk'),
        ...boot,
      },
      network: {
        ...noopNetwork,
        addInspectionNetwork: async () => void made.events.push('network'),
        removeInspectionNetwork: async () => void made.events.push('no network'),
      },
      ...given.driver,
    },
  });
  return { ...made, args };
}
const incapable = { validateInspection: async () => Promise.reject(new Fault('Invalid', { message: 'no ramdisk known' })) };
const unmanaged: Given = { options: { 'inspector.require_managed_boot': false } };

describe('inspect', () => {
  it('boots the ramdisk with the callback URL and the extra kernel parameters', async () => {
    const { task, events, args, node } = inspecting({ options: { 'inspector.extra_kernel_params': 'ipa-debug=1 quiet' } });
    expect(await agentInspect.inspect(task)).toEqual({ kind: 'wait' });
    expect(events).toEqual(['power: power off', 'network', 'ramdisk', 'power: power on']);
    expect(args).toEqual([{ 'ipa-debug': '1', quiet: '', 'ipa-inspection-callback-url': 'http://10.0.0.1:6385/v1/continue_inspection' }]);
    expect(node().driver_internal_info).toEqual({ inspector_manage_boot: true, lookup_bmc_addresses: ['10.1.1.1'] });
  });
  it.each([
    ['', '1'],
    ['ipa-collect-lldp=0', '0'],
  ])('requests LLDP collection with force_dhcp, unless extra_kernel_params has %j', async (parameters, collects) => {
    const { task, args } = inspecting({ options: { 'inspector.force_dhcp': true, 'inspector.extra_kernel_params': parameters } });
    await agentInspect.inspect(task);
    expect(args).toMatchObject([{ 'ipa-collect-lldp': collects }]);
  });
  it('reboots a machine with disable_power_off', async () => {
    const { task, events } = inspecting({ node: { disable_power_off: true } });
    await agentInspect.inspect(task);
    expect(events).toEqual(['network', 'ramdisk', 'power: rebooting']);
  });
  it.each([
    ['a fake boot interface', {}],
    ['a boot interface that cannot boot the ramdisk', incapable],
  ])('leaves the boot to the network with require_managed_boot = false and %s', async (_, boot) => {
    const { task, events, node } = inspecting(unmanaged, boot);
    expect(await agentInspect.inspect(task)).toEqual({ kind: 'wait' });
    expect(events).toEqual(['power: power off', 'boot device: pxe once', 'power: power on']);
    expect(node().driver_internal_info).toMatchObject({ inspector_manage_boot: false });
  });
  it('returns a failed outcome with the error of the boot interface', async () => {
    const { task } = inspecting(
      {},
      { validateInspection: async () => {}, prepareRamdisk: async () => Promise.reject(new Error('no file')) },
    );
    expect(await agentInspect.inspect(task)).toEqual({
      kind: 'failed',
      reason: 'Failed to inspect hardware. Reason: unable to start inspection: no file',
    });
  });
});

describe('validate', () => {
  it.each([
    ['a boot interface that supports inspection', { validateInspection: async () => {} }, {}, undefined],
    [
      'a boot interface that does not support inspection',
      {},
      {},
      'Driver fake-hardware does not support validate_inspection (disabled or not implemented).',
    ],
    ['a boot interface without a ramdisk', incapable, {}, 'no ramdisk known'],
    ['a boot interface without support, with require_managed_boot = false', {}, unmanaged, undefined],
  ])('checks %s', async (_, boot, given, message) => {
    const { task } = inspecting(given, boot);
    const validated = agentInspect.validate!(task);
    if (message === undefined) await expect(validated).resolves.toBeUndefined();
    else await expect(validated).rejects.toMatchObject({ message, status: 400 });
  });
});

describe('finish and abort', () => {
  it.each([
    ['finish', true, {}, ['no ramdisk', 'no network', 'power: power off']],
    ['abort', true, {}, ['no ramdisk', 'no network', 'power: power off']],
    ['finish', false, {}, ['power: power off']],
    ['finish', true, { node: { disable_power_off: true } }, ['no ramdisk', 'no network', 'power: rebooting']],
    ['finish', true, { options: { 'inspector.power_off': false } }, ['no ramdisk', 'no network']],
  ] as const)('%s, boot managed %s, %j: executes the expected clean-up', async (end, managed, given: Given, expected) => {
    const driver_internal_info = { inspector_manage_boot: managed, lookup_bmc_addresses: ['10.1.1.1'], agent_version: '1' };
    const { task, events, node } = inspecting({ ...given, node: { ...given.node, driver_internal_info } });
    await agentInspect[end]!(task);
    expect(events).toEqual(expected);
    expect(node().driver_internal_info).toEqual({ agent_version: '1' });
  });
});

describe('BMC addresses', () => {
  it.each([
    [{ ipmi_address: '10.1.1.1', redfish_username: 'x' }, ['10.1.1.1']],
    [{ redfish_address: 'https://10.1.1.2:8443/redfish' }, ['10.1.1.2']],
    [{ redfish_address: 'https://[fd00::2]:8443' }, ['fd00::2']],
    [{ redfish_address: 'FD00:0::2' }, ['fd00::2']],
    [{ redfish_address: 'https://[FD00:0:0::2]' }, ['fd00::2']],
    [{ redfish_address: '[FD00::2]:8443' }, ['fd00::2']],
    [{ redfish_address: '10.1.1.2:8443' }, ['10.1.1.2']],
    [{ redfish_address: 'bmc.invalid/redfish/v1' }, ['bmc.invalid']],
    [{ redfish_address: 'https://[::ffff:10.1.1.2]' }, ['10.1.1.2']],
    [{ ipmi_address: '::FFFF:10.1.1.1' }, ['10.1.1.1']],
    [{ ipmi_address: 'fe80::A%eth0' }, ['fe80::a']],
    [{ ipmi_address: '10.1.1.1', ipmi_bridging: 'single' }, []],
    [{ ipmi_address: '10.1.1.1', ipmi_bridging: 'no' }, ['10.1.1.1']],
    [{ ipmi_address: '10.1.1.1', ipmi_target_address: '0x24', ipmi_transit_address: '0x20' }, ['10.1.1.1']],
    [{ ipmi_address: '127.0.0.1', redfish_address: 'http://[::1]:1', a_address: 'localhost' }, []],
    [{ ipmi_address: 5, b_address: '' }, []],
    [{ ipmi_address: 'bmc.invalid' }, ['bmc.invalid']],
  ])('bmcAddresses of driver_info %j are %j', async (driver_info, expected) => {
    const { task } = testTask({ node: { driver_info } });
    // The test's clock jumps, so that a name server which does not answer is given up at once.
    expect(await bmcAddresses(task.node, task)).toEqual(expected);
  });
});

it.each([
  ['', {}],
  ['a b=c', { a: '', b: 'c' }],
  ['  x=1=2   y="a b" z ', { x: '1=2', y: '"a b"', z: '' }],
])('kernelParameters parses %j', (text, expected) => {
  expect(kernelParameters(text)).toEqual(expected);
});
