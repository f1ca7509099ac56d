import { ipmiManagement } from '../../../drivers/ipmi/management';
import { ipmiPower } from '../../../drivers/ipmi/power';
import { ipmiVendor } from '../../../drivers/ipmi/vendor';
import { ipmiTarget } from '../../../drivers/ipmi/target';
import type { Power } from '../../../drivers/interfaces';
import type { JsonObject, NodeRecord } from '../../../model/records';
import { IpmiError, type IpmiTarget } from '../../../wire/ipmi/client';
import { COMMANDS } from '../../../wire/ipmi/constants';
import { NODE_UUID, nodeRecord } from '../../support/task';
import { bmcTask } from '../bmc-task';
import { setPower } from '../../support/power';

const A = { ipmi_address: '192.0.2.7' };

/** A BMC behind a connection pool: requests as hexadecimal bytes, `NetFn Command data…`. */
function bench(
  given: {
    readonly info?: JsonObject;
    readonly node?: Partial<NodeRecord>;
    readonly options?: object;
    readonly answer?: (words: string, count: number) => Buffer | Error | undefined;
    readonly startsOn?: boolean;
  } = {},
): ReturnType<typeof bmcTask> & { readonly sent: string[]; readonly targets: IpmiTarget[] } {
  const sent: string[] = [];
  const targets: IpmiTarget[] = [];
  let on = given.startsOn ?? true;
  const made = bmcTask({
    node: { driver: 'ipmi', driver_info: { ...A, ...given.info }, ...given.node },
    driver: { power: ipmiPower, management: ipmiManagement },
    options: given.options ?? {},
    connections: {
      ipmi: {
        request: async (target, networkFunction, command, data) => {
          const words = Buffer.from([networkFunction, command, ...data])
            .toString('hex')
            .replace(/(..)(?!$)/g, '$1 ');
          sent.push(words);
          targets.push(target);
          const said = given.answer?.(words, sent.length);
          if (said instanceof Error) throw said;
          if (said) return said;
          if (words === '00 02 00' || words === '00 02 05') on = false;
          if (words === '00 02 01') on = true;
          return words === '00 01' ? Buffer.from([on ? 0x61 : 0x60, 0, 0]) : Buffer.alloc(0);
        },
        close: async () => {},
      },
    },
  });
  return { ...made, sent, targets };
}
const busy = (completionCode: number): IpmiError => new IpmiError('completion', 'node busy', { completionCode });

describe('driver_info', () => {
  // The messages of real Ironic 39 (GET …/validate).
  it.each<[JsonObject, string]>([
    [{}, "Missing the following IPMI credentials in node's driver_info: ['ipmi_address']."],
    [{ ipmi_address: '' }, "Missing the following IPMI credentials in node's driver_info: ['ipmi_address']."],
    [{ ...A, ipmi_port: 'abc' }, 'ipmi_port "abc" is not a valid port.'],
    [{ ...A, ipmi_port: '' }, 'ipmi_port "" is not a valid port.'],
    [{ ...A, ipmi_port: 70000 }, 'ipmi_port "70000" is not a valid port.'],
    [{ ...A, ipmi_port: '70000' }, 'ipmi_port "70000" is not a valid port.'],
    [{ ...A, ipmi_terminal_port: 'abc' }, 'ipmi_terminal_port "abc" is not a valid port.'],
    [
      { ...A, ipmi_priv_level: 'FOO' },
      'Invalid privilege level value:FOO, the valid value can be one of ADMINISTRATOR, CALLBACK, OPERATOR, USER',
    ],
    [
      { ...A, ipmi_priv_level: 'operator' },
      'Invalid privilege level value:operator, the valid value can be one of ADMINISTRATOR, CALLBACK, OPERATOR, USER',
    ],
    [{ ...A, ipmi_protocol_version: '3' }, 'Invalid IPMI protocol version value 3, the valid value can be one of 2.0, 1.5'],
    [{ ...A, ipmi_cipher_suite: 'abc' }, 'Invalid cipher suite abc, expected a number'],
    [{ ...A, ipmi_cipher_suite: '' }, 'Invalid cipher suite , expected a number'],
    [{ ...A, ipmi_cipher_suite: '3', ipmi_protocol_version: '1.5' }, 'Cipher suites cannot be used with IPMI 1.5'],
    [{ ...A, ipmi_hex_kg_key: 'abc' }, 'Number of ipmi_hex_kg_key characters is not even'],
    [{ ...A, ipmi_bridging: 'xx' }, "Invalid value for ipmi_bridging: xx, the valid value can be one of: ['single', 'dual', 'no']"],
    [{ ...A, ipmi_bridging: 'single' }, "['ipmi_target_channel', 'ipmi_target_address'] not provided"],
    [
      { ...A, ipmi_bridging: 'dual' },
      "['ipmi_target_channel', 'ipmi_target_address', 'ipmi_transit_channel', 'ipmi_transit_address'] not provided",
    ],
    [
      { ...A, ipmi_bridging: 'dual', ipmi_target_channel: '1', ipmi_target_address: '2' },
      "['ipmi_transit_channel', 'ipmi_transit_address'] not provided",
    ],
  ])('validate rejects %j with the message of Ironic', async (info, message) => {
    const { task } = bench({ node: { driver_info: info } });
    for (const item of [ipmiPower, ipmiManagement, ipmiVendor])
      await expect(item.validate!(task)).rejects.toMatchObject({ status: 400, message });
  });
  it.each([
    [{ ipmi_bridging: 'single', ipmi_target_channel: '16', ipmi_target_address: '0x20' }, 'ipmi_target_channel "16"'],
    [{ ipmi_bridging: 'single', ipmi_target_channel: '0', ipmi_target_address: '0x100' }, 'ipmi_target_address "0x100"'],
    [{ ipmi_bridging: 'single', ipmi_target_channel: '0', ipmi_target_address: 'x' }, 'ipmi_target_address "x"'],
    [{ ipmi_hex_kg_key: 'zz' }, 'ipmi_hex_kg_key'],
    [{ ipmi_hex_kg_key: '00'.repeat(21) }, 'ipmi_hex_kg_key'],
    [{ ipmi_username: {} }, 'ipmi_username is not a text.'],
    [{ ipmi_password: ['secret'] }, 'ipmi_password is not a text.'],
  ])('validate rejects %j with a message of our own', async (info, part) => {
    await expect(ipmiPower.validate!(bench({ info }).task)).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining(part) as unknown,
    });
  });
  it.each<[JsonObject, Partial<IpmiTarget>]>([
    [{}, { address: '192.0.2.7', port: 623, username: '', password: '', privilege: 'ADMINISTRATOR', cipherSuites: [17, 3] }],
    [{ ipmi_address: 5 }, { address: '5' }],
    [{ ipmi_port: 0 }, { port: 623 }],
    [{ ipmi_port: ' 5 ' }, { port: 5 }],
    [{ ipmi_port: 5.5 }, { port: 5 }],
    [
      { ipmi_username: 5, ipmi_password: 7 },
      { username: '5', password: '7' },
    ],
    [
      { ipmi_priv_level: 'OPERATOR', ipmi_cipher_suite: '17' },
      { privilege: 'OPERATOR', cipherSuites: [17] },
    ],
    [{ ipmi_protocol_version: 2 }, { version: '2.0' }],
    [{ ipmi_protocol_version: '1.5' }, { version: '1.5' }],
    [{ ipmi_protocol_version: 1.5 }, { version: '1.5' }],
    [
      { ipmi_bridging: 'single', ipmi_target_channel: '7', ipmi_target_address: '0x82' },
      { bridge: { hops: [{ channel: 7, address: 0x82 }], localAddress: 0x20 } },
    ],
    [
      {
        ipmi_bridging: 'dual',
        ipmi_transit_channel: 0,
        ipmi_transit_address: '0x82',
        ipmi_target_channel: 7,
        ipmi_target_address: 114,
        ipmi_local_address: '0x2c',
      },
      {
        bridge: {
          hops: [
            { channel: 0, address: 0x82 },
            { channel: 7, address: 114 },
          ],
          localAddress: 0x2c,
        },
      },
    ],
    [{ ipmi_hex_kg_key: '00ff' }, { kg: Buffer.from([0, 255]) }],
    [{ ipmi_bridging: 'no', ipmi_hex_kg_key: '' }, {}],
  ])('ipmiTarget accepts %j', (info, expected) => {
    const target = ipmiTarget(nodeRecord({ driver_info: { ...A, ...info } }));
    expect(target).toMatchObject(expected);
    expect(target.kg).toEqual('kg' in expected ? expected.kg : undefined);
  });
  it.each(['bad host name ;', '-x', 'a b', 'a\nb', '[::1]', 'a_b.c', 'a'.repeat(64), '$x'])(
    'only the power interface rejects the address %j',
    async (address) => {
      const { task } = bench({ info: { ipmi_address: address } });
      await expect(ipmiPower.validate!(task)).rejects.toMatchObject({
        status: 400,
        message: `Invalid IPMI address "${address}" for node ${NODE_UUID}. Must be a valid IP address or hostname.`,
      });
      await ipmiManagement.validate!(task);
    },
  );
  it.each(['::1', 'fe80::1%eth0', '300.1.1.1', 'a.', 'nonexistent.invalid'])('the power interface accepts the address %j', (address) =>
    ipmiPower.validate!(bench({ info: { ipmi_address: address } }).task),
  );
});

describe('power', () => {
  it.each([
    [true, 'power on'],
    [false, 'power off'],
  ] as const)('get with the machine on = %s returns %s', async (startsOn, state) => {
    const { task, sent } = bench({ startsOn });
    expect(await ipmiPower.get(task)).toBe(state);
    expect(sent).toEqual(['00 01']);
  });
  it.each<[Power, Partial<NodeRecord>, readonly string[]]>([
    ['power on', {}, ['00 02 01']],
    ['power off', {}, ['00 02 00']],
    ['soft power off', {}, ['00 02 05']],
    ['rebooting', {}, ['00 02 00', '00 01', '00 02 01']],
    ['rebooting', { disable_power_off: true }, ['00 02 03']],
    ['soft rebooting', {}, ['00 02 05', '00 01', '00 02 01']],
  ])('set to "%s" of a machine with %j sends the expected chassis control commands', async (state, node, expected) => {
    const { task, sent } = bench({ node });
    await setPower(ipmiPower, task, state);
    expect(sent).toEqual(expected);
  });
  it('set to "soft rebooting" is refused where the machine must not be off', async () => {
    const { task, sent } = bench({ node: { disable_power_off: true } });
    await expect(setPower(ipmiPower, task, 'soft rebooting')).rejects.toThrow('which disable_power_off forbids');
    expect(sent).toEqual([]);
  });
  it('get fails on an empty response', async () => {
    await expect(ipmiPower.get(bench({ answer: () => Buffer.alloc(0) }).task)).rejects.toMatchObject({ status: 500 });
  });
  it('set fails within the timeout when the machine does not power off', async () => {
    const { task, slept } = bench({ answer: (words) => (words === '00 01' ? Buffer.from([1]) : Buffer.alloc(0)) });
    await expect(setPower(ipmiPower, task, 'rebooting', 10)).rejects.toMatchObject({
      status: 409,
      message: 'Failed to set node power state to power off.',
    });
    expect(slept.reduce((a, b) => a + b, 0)).toBeLessThanOrEqual(10_000);
  });
});

describe('boot device', () => {
  const uefi = { properties: { capabilities: 'boot_mode:uefi' } };
  const bios = { properties: { capabilities: 'boot_mode:bios' } };
  it.each<[string, boolean, Partial<NodeRecord>, string]>([
    ['pxe', false, uefi, '00 08 05 a0 04 00 00 00'],
    ['pxe', true, uefi, '00 08 05 e0 04 00 00 00'],
    ['disk', true, uefi, '00 08 05 e0 08 00 00 00'],
    ['disk', true, { properties: { ...uefi.properties, vendor: 'Supermicro' } }, '00 08 05 e0 24 00 00 00'],
    ['disk', true, { properties: { ...bios.properties, vendor: 'Supermicro' } }, '00 08 05 c0 08 00 00 00'],
    ['disk', true, { properties: { ...uefi.properties, vendor: 'super micro computer inc.' } }, '00 08 05 e0 24 00 00 00'],
    ['cdrom', false, bios, '00 08 05 80 14 00 00 00'],
    ['bios', false, bios, '00 08 05 80 18 00 00 00'],
    ['safe', true, bios, '00 08 05 c0 0c 00 00 00'],
  ])('setBootDevice of %s, persistent %s, for a node with %j sends the expected boot flags', async (device, persistent, node, expected) => {
    const { task, sent } = bench({ node });
    await ipmiManagement.setBootDevice(task, device, persistent);
    expect(sent).toEqual(['00 08 03 08', expected]);
  });
  it.each<[JsonObject, boolean, number]>([
    [{}, true, 2],
    [{}, false, 1],
    [{ ipmi_disable_boot_timeout: 'False' }, true, 1],
    [{ ipmi_disable_boot_timeout: true }, false, 2],
    [{ ipmi_disable_boot_timeout: 'maybe' }, true, 1],
  ])('setBootDevice disables the 60 s timer according to driver_info %j and the option %s', async (info, option, commands) => {
    const { task, sent } = bench({ info, options: { 'ipmi.disable_boot_timeout': option } });
    await ipmiManagement.setBootDevice(task, 'pxe', false);
    expect(sent.length).toBe(commands);
  });
  it('setBootDevice rejects an unknown device', async () => {
    await expect(ipmiManagement.setBootDevice(bench().task, 'floppy', false)).rejects.toMatchObject({
      status: 400,
      message: 'Invalid boot device floppy specified.',
    });
    expect(ipmiManagement.bootDevices).toEqual(['pxe', 'disk', 'cdrom', 'bios', 'safe']);
  });
  it.each<[readonly number[], object]>([
    [[0xe0, 0x04], { device: 'pxe', persistent: true }],
    [[0x80, 0x08], { device: 'disk', persistent: false }],
    [[0x80, 0x0c], { device: 'safe', persistent: false }],
    [[0, 0], { device: null, persistent: false }],
    [[], { device: null, persistent: false }],
  ])('getBootDevice decodes the boot flags %j as %j', async (flags, expected) => {
    const { task, sent } = bench({ answer: () => Buffer.from([1, 5, ...flags]) });
    expect(await ipmiManagement.getBootDevice(task)).toEqual(expected);
    expect(sent).toEqual(['00 09 05 00 00']);
  });
  it('is set again before each power-on with ipmi_force_boot_device', async () => {
    const { task, sent, node } = bench({ info: { ipmi_force_boot_device: 'true', ipmi_disable_boot_timeout: false } });
    await ipmiManagement.setBootDevice(task, 'disk', true);
    expect(node().driver_internal_info).toMatchObject({ persistent_boot_device: 'disk' });
    expect(await ipmiManagement.getBootDevice(task)).toEqual({ device: 'disk', persistent: true });
    await setPower(ipmiPower, task, 'power on');
    await setPower(ipmiPower, task, 'rebooting');
    const said = '00 08 05 a0 08 00 00 00';
    expect(sent).toEqual([said, said, '00 02 01', '00 02 00', '00 01', said, '00 02 01']);
    sent.length = 0;
    await ipmiManagement.setBootDevice(task, 'pxe', false);
    await setPower(ipmiPower, task, 'power on');
    await setPower(ipmiPower, task, 'power on');
    expect(sent).toEqual(['00 08 05 a0 04 00 00 00', '00 02 01', said, '00 02 01']);
  });
});

describe('BMC errors', () => {
  it.each([0xc0, 0xc3, 0xc4, 0xce, 0xd0, 0xd2])('completion code %i is retried every min_command_interval', async (code) => {
    const { task, sent, slept } = bench({ answer: (_, count) => (count < 4 ? busy(code) : undefined) });
    expect(await ipmiPower.get(task)).toBe('power on');
    expect(sent.length).toBe(4);
    expect(slept).toEqual([5000, 5000, 5000]);
  });
  it.each([
    ['of its own command', COMMANDS.setSystemBootOptions, 2],
    ['of a command that opens a session', COMMANDS.getSessionChallenge, 1],
  ] as const)('a completion code %s has the meaning of that command', async (_, command, times) => {
    const refusal = new IpmiError('completion', 'refused', { completionCode: 0x81, command });
    const { task, sent } = bench({ answer: (_words, count) => (count < 2 ? refusal : undefined), node: { properties: {} } });
    await ipmiManagement.setBootDevice(task, 'pxe', false).catch(() => {});
    expect(sent.filter((words) => words === sent[0]).length).toBe(times);
  });
  it.each([
    { rakpStatus: 0x01 },
    { rakpStatus: 0x0b },
    ...[0x81, 0x82, 0x83].map((completionCode) => ({ completionCode, command: COMMANDS.activateSession })),
  ])('"no free session" is retried: %j', async (refusal) => {
    const { task, sent } = bench({
      answer: (_, count) => (count < 2 ? new IpmiError('refused', 'no free session', refusal) : undefined),
    });
    await ipmiPower.get(task);
    expect(sent.length).toBe(2);
  });
  it('retries end after command_retry_timeout', async () => {
    const { task, sent } = bench({ answer: () => busy(0xc0), options: { 'ipmi.command_retry_timeout': 20 } });
    await expect(ipmiPower.get(task)).rejects.toMatchObject({ status: 500, message: 'IPMI call failed: power status. Reason: node busy' });
    expect(sent.length).toBe(4);
  });
  it.each<[string, (task: ReturnType<typeof bench>['task']) => Promise<unknown>]>([
    ['power status', (task) => ipmiPower.get(task)],
    ['power soft', (task) => setPower(ipmiPower, task, 'soft power off')],
    ['chassis bootparam get 5', (task) => ipmiManagement.getBootDevice(task)],
    ['raw 0x00 0x08 0x03 0x08', (task) => ipmiManagement.setBootDevice(task, 'pxe', false)],
  ])('the failure of %s names the operation', async (what, act) => {
    const { task, sent } = bench({ answer: () => new IpmiError('refused', 'wrong password (RAKP 2 HMAC)') });
    await expect(act(task)).rejects.toMatchObject({ message: `IPMI call failed: ${what}. Reason: wrong password (RAKP 2 HMAC)` });
    expect(sent.length).toBe(1);
  });
  it('retries end when the conductor stops', async () => {
    const { task, stop } = bench({ answer: () => busy(0xc0) });
    stop(new Error('shutting down'));
    await expect(ipmiPower.get(task)).rejects.toThrow('shutting down');
  });
});

describe('injectNmi', () => {
  it('sends the chassis control "diagnostic interrupt"', async () => {
    const { task, sent } = bench();
    await ipmiManagement.injectNmi!(task);
    expect(sent).toEqual(['00 02 04']);
  });
});

describe('detectVendor', () => {
  const deviceId = (manufacturer: string): Buffer => Buffer.from(`2001010002bf${manufacturer}`, 'hex');
  it.each([
    ['7c2a00', 'super micro computer inc.'],
    ['a20200', 'dell inc.'],
    ['5cb800', 'hewlett packard enterprise'],
    ['570130', 'intel corporation'],
    ['000000', undefined],
    ['ffff0f', undefined],
    ['a2', undefined],
  ])('maps the manufacturer ID %s to %s', async (manufacturer, vendor) => {
    const { task, sent } = bench({ answer: () => deviceId(manufacturer) });
    expect(await ipmiManagement.detectVendor!(task)).toBe(vendor);
    expect(sent).toEqual(['06 01']);
  });
});

describe('vendor methods', () => {
  it.each<[method: string, args: JsonObject, sent: string]>([
    ['send_raw', { raw_bytes: '0x06 0x01' }, '06 01'],
    ['send_raw', { raw_bytes: ' 0x2E 1   255 ' }, '2e 01 ff'],
    ['bmc_reset', {}, '06 03'],
    ['bmc_reset', { warm: 'true' }, '06 03'],
    ['bmc_reset', { warm: false }, '06 02'],
  ])('%s with %j sends %s', async (name, args, words) => {
    const { task, sent } = bench();
    const method = ipmiVendor.methods![name]!;
    await method.validate!(task, args);
    await method.run(task, args, 'POST');
    expect(sent).toEqual([words]);
  });
  it.each([undefined, '', 5, '0x06', '0x06 0x100', '6 256', '0x06 zz', '-1 2', '0x06 ; 0x01', '1 '.repeat(300)])(
    'send_raw rejects raw_bytes %j',
    async (raw) => {
      const { task, sent } = bench();
      await expect(ipmiVendor.methods!.send_raw!.validate!(task, { raw_bytes: raw })).rejects.toMatchObject({ status: 400 });
      await expect(ipmiVendor.steps![0]!.run(task, { raw_bytes: raw })).rejects.toMatchObject({ status: 400 });
      expect(sent).toEqual([]);
    },
  );
  it('send_raw fails with the error of the BMC', async () => {
    const { task } = bench({ answer: () => new IpmiError('completion', 'invalid command', { completionCode: 0xc1 }) });
    await expect(ipmiVendor.methods!.send_raw!.run(task, { raw_bytes: '0x30 0x01' }, 'POST')).rejects.toThrow(
      'IPMI call failed: raw 0x30 0x01. Reason: invalid command',
    );
  });
});
