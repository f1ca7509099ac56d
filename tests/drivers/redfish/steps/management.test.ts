import { redfishManagement } from '../../../../drivers/redfish/steps/management';
import { redfishPower } from '../../../../drivers/redfish/power';
import { redfishSystem } from '../../../../drivers/redfish/target';
import type { Power } from '../../../../drivers/interfaces';
import type { JsonObject, NodeRecord } from '../../../../model/records';
import type { RedfishTarget } from '../../../../wire/redfish';
import { NODE_UUID } from '../../../support/task';
import { SYSTEM, redfishError, type RedfishService } from '../../../wire/redfish/service';
import { redfishBench } from '../../redfish-bench';
import { setPower } from '../../../support/power';

const { service: serviceOf, changes, bench } = redfishBench();
let service: RedfishService;
beforeEach(() => {
  service = serviceOf();
});
const system = (): Record<string, Record<string, unknown>> => service.resources[SYSTEM] as Record<string, Record<string, unknown>>;
const reset = (): Record<string, unknown> => system()['Actions']!['#ComputerSystem.Reset'] as Record<string, unknown>;

describe('driver_info', () => {
  const A = { redfish_address: 'https://bmc.example', redfish_system_id: SYSTEM };
  const address = (shown: string): string => `Invalid Redfish address ${shown} set in driver_info/redfish_address on node ${NODE_UUID}`;
  const ca = (shown: string): string =>
    `Invalid value type set in driver_info/redfish_verify_ca on node ${NODE_UUID}. The value should be a Boolean or the path to a file/directory, not "${shown}"`;
  const auth = (shown: string): string =>
    `Invalid value "${shown}" set in driver_info/redfish_auth_type on node ${NODE_UUID}. The value should be one of "basic", "session" or "auto".`;
  const tls = (shown: string): string =>
    `Invalid value "${shown}" set in driver_info/redfish_tls_minimum_version on node ${NODE_UUID}. The value should be one of "1.1", "1.2", or "1.3".`;
  const missing = `Missing the following Redfish properties in node ${NODE_UUID} driver_info: ['redfish_address']`;
  // The messages of real Ironic 39 (GET …/validate).
  it.each<[JsonObject, string]>([
    [{}, missing],
    [{ redfish_system_id: '/x' }, missing],
    [{ ...A, redfish_address: '' }, missing],
    [{ ...A, redfish_address: 5 }, address('5')],
    [{ ...A, redfish_address: 'http://a b' }, address('http://a b')],
    [{ ...A, redfish_address: 'http://aaa:bad' }, address('http://aaa:bad')],
    [{ ...A, redfish_address: '/banana!' }, address('https:///banana!')],
    [
      { ...A, redfish_system_id: 5 },
      `Invalid value "5" set in driver_info/redfish_system_id on node ${NODE_UUID}. The value should be a path (string) to the resource that the driver will interact with. For example: /redfish/v1/Systems/1`,
    ],
    [{ ...A, redfish_verify_ca: 'maybe' }, ca('maybe')],
    [{ ...A, redfish_verify_ca: '/no/such' }, ca('/no/such')],
    [{ ...A, redfish_verify_ca: 5 }, ca('5')],
    [{ ...A, redfish_verify_ca: '' }, ca('')],
    [{ ...A, redfish_verify_ca: null }, ca('None')],
    [{ ...A, redfish_auth_type: 'x' }, auth('x')],
    [{ ...A, redfish_auth_type: 'BASIC' }, auth('BASIC')],
    [{ ...A, redfish_auth_type: 5 }, auth('5')],
    [{ ...A, redfish_auth_type: null }, auth('None')],
    [{ ...A, redfish_tls_minimum_version: '1.0' }, tls('1.0')],
    [{ ...A, redfish_tls_minimum_version: 1.2 }, tls('1.2')],
  ])('validate rejects %j with the message of Ironic', async (info, message) => {
    const { task } = bench({ node: { driver_info: info } });
    for (const item of [redfishPower, redfishManagement])
      await expect(item.validate!(task)).rejects.toMatchObject({ status: 400, message });
  });
  it.each(['ftp://x', 'http://', 'http://h:99999'])('redfishSystem rejects the unreachable address %s', async (bad) => {
    await expect(redfishSystem(bench({ node: { driver_info: { ...A, redfish_address: bad } } }).task)).rejects.toMatchObject({
      message: address(bad),
    });
  });
  it.each<[JsonObject, Partial<RedfishTarget>, string | undefined]>([
    [{}, { address: 'https://bmc.example', authType: 'auto', verifyCa: true }, SYSTEM],
    [{ redfish_address: 'bmc.example' }, { address: 'https://bmc.example' }, SYSTEM],
    [{ redfish_address: 'bmc.example:8443/prefix/' }, { address: 'https://bmc.example:8443/prefix' }, SYSTEM],
    [{ redfish_address: 'https://[::1]:5000' }, { address: 'https://[::1]:5000' }, SYSTEM],
    [{ redfish_address: 'http://u:p@bmc/?x=1' }, { address: 'http://bmc' }, SYSTEM],
    [{ redfish_address: 'HTTP://h_st' }, { address: 'http://h_st' }, SYSTEM],
    [{ redfish_system_id: '' }, {}, undefined],
    [{ redfish_system_id: null }, {}, undefined],
    [{ redfish_system_id: '1' }, {}, '/1'],
    [{ redfish_system_id: '/a b' }, {}, '/a%20b'],
    [{ redfish_verify_ca: false }, { verifyCa: false }, SYSTEM],
    [{ redfish_verify_ca: 'no' }, { verifyCa: false }, SYSTEM],
    [{ redfish_verify_ca: 'True' }, { verifyCa: true }, SYSTEM],
    [{ redfish_verify_ca: '/' }, { verifyCa: '/' }, SYSTEM],
    [{ redfish_username: 5, redfish_password: 6 }, { username: '5', password: '6' }, SYSTEM],
    [{ redfish_auth_type: 'basic' }, { authType: 'basic' }, SYSTEM],
    [{ redfish_tls_minimum_version: '1.3', redfish_tls_ciphers: 'x' }, { tls: { minVersion: 'TLSv1.3', ciphers: 'x' } }, SYSTEM],
  ])('redfishSystem accepts %j', async (info, expected, path) => {
    const found = await redfishSystem(bench({ node: { driver_info: { ...A, ...info } } }).task);
    expect(found).toMatchObject({ target: expected });
    expect(found.system).toBe(path);
  });
});

describe('power', () => {
  it.each([
    ['On', 'power on'],
    ['PoweringOn', 'power on'],
    ['Off', 'power off'],
    ['PoweringOff', 'power off'],
  ])('get maps %s to "%s"', async (state, expected) => {
    (service.resources[SYSTEM] as Record<string, unknown>)['PowerState'] = state;
    expect(await redfishPower.get(bench().task)).toBe(expected);
  });
  it.each([undefined, null])('get of PowerState %j returns null: some services show none for a while', async (state) => {
    (service.resources[SYSTEM] as Record<string, unknown>)['PowerState'] = state;
    expect(await redfishPower.get(bench().task)).toBeNull();
    expect((await redfishPower.getStatus!(bench().task)).power).toBeNull();
  });
  it.each(['Paused', {}, 'toString'])('get fails on PowerState %j', async (state) => {
    (service.resources[SYSTEM] as Record<string, unknown>)['PowerState'] = state;
    await expect(redfishPower.get(bench().task)).rejects.toMatchObject({ status: 500 });
  });
  it.each<[Power, Partial<NodeRecord>, readonly string[]]>([
    ['power on', {}, ['On']],
    ['power off', {}, ['ForceOff']],
    ['soft power off', {}, ['GracefulShutdown']],
    ['rebooting', {}, ['ForceOff', 'On']],
    ['rebooting', { disable_power_off: true }, ['ForceRestart']],
    ['soft rebooting', {}, ['GracefulRestart']],
    ['soft rebooting', { disable_power_off: true }, ['GracefulRestart']],
  ])('set to "%s" of a machine with %j sends the expected reset types', async (state, node, expected) => {
    await setPower(redfishPower, bench({ node }).task, state);
    expect(changes()).toEqual(expected.map((ResetType) => ({ ResetType })));
  });
  it('set to "soft rebooting" without GracefulRestart shuts the machine down and starts it, if it may be off', async () => {
    reset()['ResetType@Redfish.AllowableValues'] = ['On', 'GracefulShutdown', 'ForceOff'];
    await setPower(redfishPower, bench().task, 'soft rebooting');
    const sent = changes();
    expect(sent).toEqual([{ ResetType: 'GracefulShutdown' }, { ResetType: 'On' }]);
    await expect(setPower(redfishPower, bench({ node: { disable_power_off: true } }).task, 'soft rebooting')).rejects.toMatchObject({
      message: expect.stringContaining('does not offer the reset type GracefulRestart') as unknown,
    });
    expect(changes()).toEqual(sent);
  });
  it('set uses an equivalent reset type that the service offers, or fails', async () => {
    reset()['ResetType@Redfish.AllowableValues'] = ['ForceOn', 'ForceOff'];
    await setPower(redfishPower, bench().task, 'power on');
    expect(changes()).toEqual([{ ResetType: 'ForceOn' }]);
    await expect(setPower(redfishPower, bench().task, 'soft power off')).rejects.toMatchObject({
      message: expect.stringContaining('does not offer the reset type GracefulShutdown') as unknown,
    });
  });
  it('set uses the usual path of the Reset action if the service does not name it', async () => {
    system()['Actions'] = {};
    await setPower(redfishPower, bench().task, 'power off');
    expect(changes()).toEqual([{ ResetType: 'ForceOff' }]);
  });
  const isOff = (): void => void ((service.resources[SYSTEM] as Record<string, unknown>)['PowerState'] = 'Off');
  it('set to "power on" is retried while the machine still powers off', async () => {
    isOff();
    let refused = 0;
    service.reply = ({ method }) => (method === 'POST' && refused++ < 2 ? { status: 409, body: redfishError('busy') } : undefined);
    const { task, slept } = bench();
    await setPower(redfishPower, task, 'power on');
    expect(slept).toEqual([10_000, 10_000]);
    expect(changes().length).toBe(3);
  });
  it.each<[Power, string, number, string]>([
    ['power on', 'On', 409, 'x'],
    ['power on', 'On', 400, 'x'],
    ['power off', 'Off', 400, 'x'],
    ['soft power off', 'Off', 409, 'x'],
    ['power off', 'Paused', 400, 'the host is powered off already'],
    ['power on', 'Paused', 400, 'Already Powered On'],
  ])('"%s" that is refused because the machine is %s already (%i, %s) succeeds', async (order, state, status, words) => {
    (service.resources[SYSTEM] as Record<string, unknown>)['PowerState'] = state;
    service.reply = ({ method }) => (method === 'POST' ? { status, body: redfishError(words) } : undefined);
    await setPower(redfishPower, bench().task, order);
    expect(changes().length).toBe(1);
  });
  it('set fails with the error of the service', async () => {
    isOff();
    service.reply = ({ method }) => (method === 'POST' ? { status: 400, body: redfishError('the action failed because of X') } : undefined);
    await expect(setPower(redfishPower, bench().task, 'power on')).rejects.toMatchObject({
      status: 500,
      message: `HTTP POST ${service.url}${SYSTEM}/Actions/ComputerSystem.Reset returned code 400. Base.1.0.GeneralError: general Extended information: the action failed because of X`,
    });
    expect(changes().length).toBe(1);
  });
});

describe('system', () => {
  it('is the only one when driver_info names none', async () => {
    expect(await redfishPower.get(bench({ info: { redfish_system_id: undefined } }).task)).toBe('power on');
    expect(service.asked.map(({ path }) => path)).toEqual(['/redfish/v1/', '/redfish/v1/Systems', SYSTEM]);
  });
  it.each(['/redfish/v1/Systems/HGX_Baseboard_0', '/redfish/v1/Systems/DPU.1', '/redfish/v1/Systems/MGX_NVSwitch_0/'])(
    'is the host beside %s',
    async (other) => {
      service.resources['/redfish/v1/Systems'] = { Members: [{ '@odata.id': other }, { '@odata.id': SYSTEM }] };
      expect(await redfishPower.get(bench({ info: { redfish_system_id: null } }).task)).toBe('power on');
    },
  );
  it.each([[[]], [[{ '@odata.id': SYSTEM }, { '@odata.id': '/2' }]], ['x']])('is ambiguous or missing among %j', async (Members) => {
    service.resources['/redfish/v1/Systems'] = { Members };
    await expect(redfishPower.get(bench({ info: { redfish_system_id: undefined } }).task)).rejects.toMatchObject({
      status: 500,
      message: 'Failed at determining default for "ComputerSystem": System count is not exactly one',
    });
  });
  it('fails when it does not exist', async () => {
    await expect(redfishPower.get(bench({ info: { redfish_system_id: '/redfish/v1/Systems/7' } }).task)).rejects.toMatchObject({
      status: 500,
      message: `Redfish exception occurred. Error: Resource ${service.url}/redfish/v1/Systems/7 not found`,
    });
  });
});

describe('boot device', () => {
  it.each<[string, boolean, object]>([
    ['pxe', false, { BootSourceOverrideTarget: 'Pxe', BootSourceOverrideEnabled: 'Once' }],
    ['disk', true, { BootSourceOverrideTarget: 'Hdd', BootSourceOverrideEnabled: 'Continuous' }],
    ['cdrom', false, { BootSourceOverrideTarget: 'Cd', BootSourceOverrideEnabled: 'Once' }],
    ['bios', false, { BootSourceOverrideTarget: 'BiosSetup', BootSourceOverrideEnabled: 'Once' }],
    ['uefihttp', true, { BootSourceOverrideTarget: 'UefiHttp', BootSourceOverrideEnabled: 'Continuous' }],
  ])('%s, persistent %s, is set and read back', async (device, persistent, Boot) => {
    const { task } = bench();
    await redfishManagement.setBootDevice(task, device, persistent);
    expect(changes()).toEqual([{ Boot }]);
    expect(await redfishManagement.getBootDevice(task)).toEqual({ device, persistent });
  });
  it('get returns null without a boot override', async () => {
    expect(await redfishManagement.getBootDevice(bench().task)).toEqual({ device: null, persistent: null });
    system()['Boot'] = undefined as never;
    expect(await redfishManagement.getBootDevice(bench().task)).toEqual({ device: null, persistent: null });
  });
  it('get returns null for the target that a disabled override left over', async () => {
    Object.assign(system()['Boot']!, { BootSourceOverrideEnabled: 'Disabled', BootSourceOverrideTarget: 'Pxe' });
    expect(await redfishManagement.getBootDevice(bench().task)).toEqual({ device: null, persistent: null });
  });
  it.each([
    ['Continuous', true],
    ['Once', false],
  ])('set does not repeat the value %s of BootSourceOverrideEnabled', async (enabled, persistent) => {
    system()['Boot']!['BootSourceOverrideEnabled'] = enabled;
    await redfishManagement.setBootDevice(bench().task, 'disk', persistent);
    expect(changes()).toEqual([{ Boot: { BootSourceOverrideTarget: 'Hdd' } }]);
  });
  it('set without BootSourceOverrideEnabled, after a refusal, counts only if the override is in effect', async () => {
    service.reply = ({ method, body }) =>
      method === 'PATCH' && JSON.stringify(body).includes('Once') ? { status: 400, body: redfishError('no Once') } : undefined;
    await expect(redfishManagement.setBootDevice(bench().task, 'pxe', false)).rejects.toThrow('no Once');
    expect(changes()).toHaveLength(2);
  });
  it('set takes the offered targets from the settings resource if the system has none', async () => {
    const settings = `${SYSTEM}/Settings`;
    system()['@Redfish.Settings'] = { SettingsObject: { '@odata.id': settings } };
    system()['Boot']!['BootSourceOverrideTarget@Redfish.AllowableValues'] = [];
    service.resources[settings] = {
      Boot: { BootSourceOverrideTarget: 'None', 'BootSourceOverrideTarget@Redfish.AllowableValues': ['Pxe'] },
    };
    await expect(redfishManagement.setBootDevice(bench().task, 'cdrom', false)).rejects.toThrow('the system can boot from Pxe only');
  });
  it('set rejects unknown devices and those that the service does not offer', async () => {
    await expect(redfishManagement.setBootDevice(bench().task, 'floppy', false)).rejects.toMatchObject({ status: 400 });
    expect(redfishManagement.bootDevices).toEqual(['pxe', 'disk', 'cdrom', 'bios', 'uefihttp']);
    system()['Boot']!['BootSourceOverrideTarget@Redfish.AllowableValues'] = ['None', 'Pxe'];
    await expect(redfishManagement.setBootDevice(bench().task, 'cdrom', false)).rejects.toMatchObject({
      status: 500,
      message: expect.stringMatching(
        `^Redfish exception occurred. Error: Redfish set boot device failed for node ${NODE_UUID}. Error: `,
      ) as unknown,
    });
    expect(changes()).toEqual([]);
  });
  it('set sends If-Match with the ETag, and omits it if the service rejects it', async () => {
    service.reply = ({ method, headers }) =>
      method === 'PATCH' && headers['if-match'] ? { status: 412, body: redfishError('etag') } : undefined;
    await redfishManagement.setBootDevice(bench().task, 'pxe', false);
    expect(service.asked.filter(({ method }) => method === 'PATCH').map(({ headers }) => headers['if-match'])).toEqual([
      'W/"1"',
      '"1"',
      '*',
      undefined,
    ]);
  });
  it('without support of Continuous is set again before each power-on', async () => {
    service.reply = ({ method, body }) =>
      method === 'PATCH' && JSON.stringify(body).includes('Continuous') ? { status: 400, body: redfishError('no Continuous') } : undefined;
    const { task, node } = bench();
    await redfishManagement.setBootDevice(task, 'disk', true);
    expect(node().driver_internal_info['redfish_boot_device']).toBe('disk');
    service.asked.length = 0;
    await setPower(redfishPower, task, 'power on');
    expect(changes()).toEqual([{ Boot: { BootSourceOverrideTarget: 'Hdd' } }, { ResetType: 'On' }]);
    // A start has ended it.
    system()['Boot'] = { BootSourceOverrideEnabled: 'Disabled', BootSourceOverrideTarget: 'None' };
    service.asked.length = 0;
    await setPower(redfishPower, task, 'power on');
    const once = { Boot: { BootSourceOverrideTarget: 'Hdd', BootSourceOverrideEnabled: 'Once' } };
    expect(changes()).toEqual([once, { ResetType: 'On' }]);
    await redfishManagement.setBootDevice(task, 'pxe', false);
    expect('redfish_boot_device' in node().driver_internal_info).toBe(false);
  });
  it('set is retried while the machine boots', async () => {
    let refused = 0;
    service.reply = ({ method }) => (method === 'PATCH' && refused++ < 3 ? { status: 503, body: redfishError('POST') } : undefined);
    const { task, slept } = bench();
    await redfishManagement.setBootDevice(task, 'pxe', false);
    expect(slept).toEqual([5000, 5000, 5000]);
  });
});

describe('boot mode', () => {
  it('is read and set', async () => {
    const { task } = bench();
    expect(await redfishManagement.bootMode!.get(task)).toBe('uefi');
    await redfishManagement.bootMode!.set(task, 'bios');
    expect(changes()).toEqual([{ Boot: { BootSourceOverrideMode: 'Legacy' } }]);
    expect(await redfishManagement.bootMode!.get(task)).toBe('bios');
    system()['Boot'] = {};
    expect(await redfishManagement.bootMode!.get(task)).toBeNull();
  });
});

describe('injectNmi', () => {
  it('uses the reset type Nmi, and fails if it is not offered', async () => {
    reset()['ResetType@Redfish.AllowableValues'] = ['On', 'Nmi'];
    await redfishManagement.injectNmi!(bench().task);
    expect(changes()).toEqual([{ ResetType: 'Nmi' }]);
    reset()['ResetType@Redfish.AllowableValues'] = ['On'];
    await expect(redfishManagement.injectNmi!(bench().task)).rejects.toThrow('Error: Redfish inject NMI failed for node');
  });
});

describe('connection errors', () => {
  it('of an unreachable service are retried connection_attempts times', async () => {
    const { url } = service;
    await service.close();
    const { task, slept } = bench({ options: { 'redfish.connection_attempts': 3, 'redfish.connection_retry_interval': 7 } });
    await expect(redfishPower.get(task)).rejects.toMatchObject({
      status: 500,
      message: expect.stringMatching(
        `^Redfish connection failed for node ${NODE_UUID}: Unable to connect to ${url}${SYSTEM}. Error: `,
      ) as unknown,
    });
    expect(slept).toEqual([7000, 7000]);
  });
  it('in the middle of a response are repeated at once for GET, and not for POST', async () => {
    let broken = 0;
    service.reply = ({ method }, response) => {
      if (method === 'GET' && broken++ > 0) return undefined;
      response.destroy();
      return 'hang';
    };
    const { task, slept } = bench();
    await expect(setPower(redfishPower, task, 'power off')).rejects.toMatchObject({ status: 500 });
    expect(slept.length).toBe(0);
    expect(changes().length).toBe(1);
  });
  it('with status 503 are retried after Retry-After, even for POST', async () => {
    let busy = 0;
    service.reply = ({ method }) => (method === 'POST' && busy++ === 0 ? { status: 503, headers: { 'Retry-After': '9' } } : undefined);
    const { task, slept } = bench();
    await setPower(redfishPower, task, 'power off');
    expect([slept, changes().length]).toEqual([[9000], 2]);
  });
  it('with a refused password are not retried', async () => {
    service.reply = () => ({ status: 401, body: redfishError('who are you') });
    const { task, slept } = bench({ info: { redfish_username: 'a', redfish_password: 'b', redfish_auth_type: 'basic' } });
    const error: unknown = await redfishPower.get(task).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    expect(error).toMatchObject({ status: 500, message: expect.stringContaining('returned code 401') as unknown });
    expect(slept).toEqual([]);
  });
});
