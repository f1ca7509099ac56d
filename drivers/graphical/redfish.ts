/**
 * The screen of a Redfish machine. As in Ironic, driver_info is all that is checked before. Redfish itself only says that there is a screen
 * (Manager.GraphicalConsole); how to see it is up to the maker. OpenBMC offers RFB over a WebSocket. Others have a page of their own, which
 * the user's browser opens: with temporary credentials where the maker's API gives them, or else with a log-in.
 */
import { Fault } from '../../model/errors';
import { RedfishError, isStatus, linkOf, member, textOf, type RedfishResource } from '../../wire/redfish';
import type { Screen, Task } from '../interfaces';
import { managersOf } from '../redfish/managers';
import { onSystem, REDFISH_PROPERTIES, redfishSystem, type SystemView } from '../redfish/target';
import { graphicalConsole } from './graphical-console';

/** Of bmcweb: the screen of the host, with the BMC's VNC server behind it. */
const OPENBMC_SCREEN = '/kvm/0';
/** Shown in the list of sessions of an iDRAC. */
const SESSION_NAME = 'bloomery';
/** Characters of a temporary user or password. */
const MAX_CREDENTIAL = 512;

interface MakerRow {
  /** Of the manager's Model, FirmwareVersion, Manufacturer and keys of Oem. */
  readonly is: RegExp;
  open(system: SystemView, manager: RedfishResource, task: Task, signal: AbortSignal): Promise<Screen>;
}
const pageOf = ({ target }: SystemView, path: string): Extract<Screen, { readonly kind: 'page' }> => ({
  kind: 'page',
  url: new URL(path, target.address).href,
});

/** DelliDRACCardService.GetKVMSession gives a user and a password that open the console once. */
async function ofIdrac(system: SystemView, manager: RedfishResource): Promise<Screen> {
  const { ask, target } = system;
  const service =
    linkOf(member(manager.body, 'Links', 'Oem', 'Dell', 'DelliDRACCardService')) ?? `${manager.path}/Oem/Dell/DelliDRACCardService`;
  const { body } = await ask('POST', `${service}/Actions/DelliDRACCardService.GetKVMSession`, { body: { SessionTypeName: SESSION_NAME } });
  const [user, password] = [textOf(member(body, 'TempUsername')), textOf(member(body, 'TempPassword'))];
  if (user === undefined || password === undefined || Math.max(user.length, password.length) > MAX_CREDENTIAL)
    throw new RedfishError('protocol', 'The iDRAC gave no temporary credentials for its console');
  const { hostname, port, host } = new URL(target.address);
  const query = new URLSearchParams({ ip: hostname, kvmport: port === '' ? '443' : port, title: host, VCSID: user, VCSID2: password });
  return pageOf(system, `/restgui/vconsole/index.html?${query.toString()}`);
}
async function ofOpenBmc({ target }: SystemView, _: RedfishResource, task: Task, signal: AbortSignal): Promise<Screen> {
  const { redfish } = task.connections;
  if (!redfish.openWebSocket) throw new Fault('DriverOperationError', { message: 'this process opens no WebSockets of BMCs' });
  const timeoutMs = task.options['redfish.read_timeout'] * 1000;
  return { kind: 'rfb', stream: await redfish.openWebSocket(target, OPENBMC_SCREEN, { timeoutMs, signal }), password: '' };
}
/** The BMC's own page, if its firmware does not know how to give a link: an older one, or another licence. */
const orItsPage =
  (open: MakerRow['open']): MakerRow['open'] =>
  (system, ...given) =>
    open(system, ...given).catch((error: unknown) => {
      if (isStatus(error, 400, 403, 404, 405, 501)) return pageOf(system, '/');
      throw error;
    });
/** Oem.Supermicro.IKVM has the address of a console that is opened for some time; none, if the BMC is set to Java. */
async function ofSupermicro(system: SystemView, manager: RedfishResource): Promise<Screen> {
  const link = linkOf(member(manager.body, 'Oem', 'Supermicro', 'IKVM')) ?? `${manager.path}/Oem/Supermicro/IKVM`;
  const { body } = await system.ask('GET', link);
  const uri = textOf(member(body, 'URI'));
  if (uri === undefined) return pageOf(system, '/');
  const page = pageOf(system, uri);
  if (uri.length > MAX_CREDENTIAL || new URL(page.url).origin !== new URL(system.target.address).origin)
    throw new RedfishError('protocol', 'The BMC named a console that is not its own');
  return page;
}
/** LenovoRemoteControlService.GetRemoteConsoleToken gives a token that logs in once. */
async function ofLenovo(system: SystemView, manager: RedfishResource): Promise<Screen> {
  const service = linkOf(member(manager.body, 'Oem', 'Lenovo', 'RemoteControl')) ?? `${manager.path}/Oem/Lenovo/RemoteControl`;
  const { body } = await system.ask('POST', `${service}/Actions/LenovoRemoteControlService.GetRemoteConsoleToken`, { body: {} });
  const token = textOf(member(body, 'Token'));
  if (token === undefined || !TOKEN.test(token)) throw new RedfishError('protocol', 'The BMC gave no token for its console');
  return pageOf(system, `/#/login?${token}&context=remote&mode=multi`);
}
/** KvmService.SetKvmKey takes a key, which then opens the console once. */
async function ofHuawei(system: SystemView, manager: RedfishResource, { random }: Task): Promise<Screen> {
  const link = linkOf(member(manager.body, 'Oem', 'Huawei', 'KvmService')) ?? `${manager.path}/KvmService`;
  const { body: service } = await system.ask('GET', link);
  const action = textOf(member(service, 'Actions', '#KvmService.SetKvmKey', 'target')) ?? `${link}/Actions/KvmService.SetKvmKey`;
  const number = 1 + (random(4).readUInt32BE(0) % MAX_KEY_NUMBER);
  const secret = random(32).toString('hex');
  const body = { Id: number, IdExt: random(16).toString('hex'), SecretKey: secret, Mode: 'Shared' };
  await system.ask('POST', action, { body });
  const key = member(service, 'EncryptionEnabled') === false ? String(number) : `${number.toString(16).padStart(8, '0')}${secret}`;
  return pageOf(system, `/remote_access.asp?authParam=${key}&lp=en&openway=html5`);
}
const TOKEN = /^[\w.~+/=-]{1,512}$/;
const MAX_KEY_NUMBER = 100_000;

/** The first that fits. Those of makers other than OpenBMC are made from what is public about them, and were never tried on hardware. */
const MAKERS: readonly MakerRow[] = [
  { is: /\bopenbmc\b/i, open: ofOpenBmc },
  { is: /\b(?:dell|idrac)\b/i, open: ofIdrac },
  { is: /\bsupermicro\b/i, open: orItsPage(ofSupermicro) },
  { is: /\b(?:lenovo|xclarity)\b/i, open: orItsPage(ofLenovo) },
  { is: /\b(?:huawei|ibmc)\b/i, open: orItsPage(ofHuawei) },
  { is: /\bilo [67]\b/i, open: async (system) => pageOf(system, '/irc.html') },
  { is: /(?:)/, open: async (system) => pageOf(system, '/') },
];
const wordsOf = ({ body }: RedfishResource): string =>
  [
    ...['Model', 'Manufacturer', 'FirmwareVersion', 'Name'].map((name) => textOf(member(body, name)) ?? ''),
    ...Object.keys(member(body, 'Oem') ?? {}),
  ].join(' ');

async function open(task: Task, signal: AbortSignal): Promise<Screen> {
  return onSystem(task, 'opening the graphical console', async (system) => {
    const managers = await managersOf(system);
    const manager = managers.find(({ body }) => member(body, 'GraphicalConsole') !== undefined) ?? managers[0];
    if (!manager) throw new RedfishError('protocol', 'The service has no manager of the system');
    const isOn = member(system.body, 'GraphicalConsole', 'ServiceEnabled') ?? member(manager.body, 'GraphicalConsole', 'ServiceEnabled');
    if (isOn === false)
      throw new RedfishError('protocol', 'The graphical console of the BMC is disabled (GraphicalConsole.ServiceEnabled)');
    const words = wordsOf(manager);
    return MAKERS.find(({ is }) => is.test(words))!.open(system, manager, task, signal);
  });
}

export const redfishGraphicalConsole = graphicalConsole({
  properties: REDFISH_PROPERTIES,
  validate: async (task) => {
    await redfishSystem(task);
  },
  screen: open,
});
