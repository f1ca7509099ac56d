/** The attributes of an iDRAC (DellAttributes), and what some of them do. */
import { hardwarePart } from '../../../hardware/hardware';
import { isObject } from '../../../../model/json';
import { refuse } from '../../protocol/messages';
import { link, resource, type Route, type System, type SystemContext } from '../../protocol/routes';

type Values = Readonly<Record<string, string | number>>;
const INITIAL: Values = {
  'IPMILan.1.Enable': 'Enabled',
  'IPv4.1.DHCPEnable': 'Disabled',
  'Lockdown.1.SystemLockdown': 'Disabled',
  'Racadm.1.Enable': 'Enabled',
  'ServerBoot.1.BootOnce': 'Disabled',
  'ServerBoot.1.FirstBootDevice': 'Normal',
  'SSH.1.Enable': 'Enabled',
  'Users.2.UserName': 'root',
  'VirtualMedia.1.Attached': 'AutoAttach',
  'VirtualConsole.1.PluginType': 'HTML5',
  'WebServer.1.HostHeaderCheck': 'Enabled',
};
const CHANGED = hardwarePart<Values>('dellAttributes', {});
export const attributesOf = ({ hardware }: System): Values => ({ ...INITIAL, ...hardware.get(CHANGED) });
export const isAttribute = (name: string): boolean => Object.hasOwn(INITIAL, name);

const DEVICES = { 'VCD-DVD': 'cdrom', PXE: 'pxe', HDD: 'disk' } as const;
/** Sets attributes that exist. ServerBoot.1 determines the next start of the machine. */
export function setAttributes(system: System, changes: Values): void {
  system.hardware.set(CHANGED, { ...system.hardware.get(CHANGED), ...changes });
  const device = changes['ServerBoot.1.FirstBootDevice'];
  if (device === undefined || !Object.hasOwn(DEVICES, device)) return;
  const persistent = attributesOf(system)['ServerBoot.1.BootOnce'] === 'Disabled';
  system.setBoot({ ...system.boot(), device: DEVICES[device as keyof typeof DEVICES], persistent });
}

const show = ({ path, system }: SystemContext, id: string) => ({
  ...resource(path, 'Bios', id, `Attributes of ${id}`, {
    AttributeRegistry: 'ManagerAttributeRegistry.v1_0_0',
    Attributes: attributesOf(system),
  }),
  '@odata.type': '#DellAttributes.v1_0_0.DellAttributes',
});
const attributesRoute = (path: string): Route<SystemContext> => ({
  path,
  get: (at) => show(at, at.path.slice(at.path.lastIndexOf('/') + 1)),
  patch: ({ system }, { Attributes }) => {
    if (!isObject(Attributes)) return refuse('PropertyMissing', 'Attributes');
    const wrong = Object.keys(Attributes).find((name) => !isAttribute(name));
    if (wrong !== undefined) return refuse('PropertyUnknown', wrong);
    setAttributes(system, Attributes as Values);
    return { status: 200, body: {} };
  },
});
const DELL_ATTRIBUTES = '/Managers/{system}/Oem/Dell/DellAttributes/iDRAC.Embedded.1';
export const attributesLink = (name: string) => [link(DELL_ATTRIBUTES.replace('{system}', name))];
export const DELL_ATTRIBUTE_ROUTES: readonly Route<SystemContext>[] = [attributesRoute(DELL_ATTRIBUTES)];
export const MANAGER_ATTRIBUTE_ROUTES: readonly Route<SystemContext>[] = [attributesRoute('/Managers/{system}/Attributes')];
