/** Services of an iDRAC besides its jobs: readiness, reset, import and export of the configuration, RAID, switch connections. */
import { BIOS, biosProblem, biosValues, type BiosValue } from '../../../hardware/bios-settings';
import { isObject } from '../../../../model/json';
import { changeTask } from '../../../hardware/task-records';
import { refuse } from '../../protocol/messages';
import { ROOT, link, type ResourceBody, type Route, type ServiceAnswer, type System, type SystemContext } from '../../protocol/routes';
import { problem } from '../change';
import { attributesOf, isAttribute, setAttributes } from './attributes';
import { addJob, biosJobWaits, importRuns } from './jobs';

const MANAGER = '/Managers/{system}/Oem/Dell';
const IMPORT = '/Managers/{system}/Actions/Oem/EID_674_Manager.ImportSystemConfiguration';
const EXPORT = '/Managers/{system}/Actions/Oem/EID_674_Manager.ExportSystemConfiguration';
const of = (path: string, name: string): string => path.replace('{system}', name);
export const serviceLink = (service: string, name: string): ResourceBody => link(of(`${MANAGER}/${service}`, name));
export const configurationActions = (name: string): ResourceBody => ({
  '#OemManager.ImportSystemConfiguration': {
    target: `${ROOT}${of(IMPORT, name)}`,
    'ShutdownType@Redfish.AllowableValues': ['Graceful', 'Forced', 'NoReboot'],
    'ImportSystemConfiguration@Redfish.AllowableValues': ['TimeToWait', 'ImportBuffer'],
  },
  '#OemManager.ExportSystemConfiguration': {
    target: `${ROOT}${of(EXPORT, name)}`,
    'ExportFormat@Redfish.AllowableValues': ['XML', 'JSON'],
    'ExportUse@Redfish.AllowableValues': ['Default', 'Clone', 'Replace'],
    'IncludeInExport@Redfish.AllowableValues': [
      'Default',
      'IncludeReadOnly',
      'IncludePasswordHashValues',
      'IncludeReadOnly,IncludePasswordHashValues',
    ],
    ShareParameters: { 'Target@Redfish.AllowableValues': ['ALL', 'IDRAC', 'BIOS', 'NIC', 'RAID'] },
  },
});

interface Setting {
  readonly component: string;
  readonly name: string;
  readonly value: string;
}
/** The settings of a configuration in XML or JSON; undefined: it is neither. White space between XML elements makes it invalid. */
function readConfiguration(text: string): readonly Setting[] | undefined {
  if (text.startsWith('<')) {
    if (/>\s+</.test(text)) return undefined;
    return text
      .split('<Component FQDD="')
      .slice(1)
      .flatMap((part) => {
        const component = part.slice(0, part.indexOf('"'));
        return part
          .split('<Attribute Name="')
          .slice(1)
          .map((item) => ({
            component,
            name: item.slice(0, item.indexOf('"')),
            value: item.slice(item.indexOf('>') + 1, item.indexOf('</Attribute>')),
          }));
      });
  }
  try {
    const { SystemConfiguration: whole } = JSON.parse(text) as {
      readonly SystemConfiguration?: { readonly Components?: readonly ResourceBody[] };
    };
    return (whole?.Components ?? []).flatMap(({ FQDD, Attributes }) =>
      ((Attributes ?? []) as readonly { readonly Name: string; readonly Value: unknown }[]).map(({ Name, Value }) => ({
        component: String(FQDD),
        name: Name,
        value: String(Value),
      })),
    );
  } catch {
    return undefined;
  }
}
const BIOS_COMPONENT = 'BIOS.Setup.1-1';
const IDRAC = 'iDRAC.Embedded.1';
function importConfiguration(at: SystemContext, body: ResourceBody): ServiceAnswer {
  const { system, service } = at;
  const { ImportBuffer: text, ShareParameters: share } = body;
  if (typeof text !== 'string') return refuse('ActionParameterMissing', 'OemManager.ImportSystemConfiguration', 'ImportBuffer');
  if (!isObject(share)) return refuse('ActionParameterMissing', 'OemManager.ImportSystemConfiguration', 'ShareParameters');
  if (biosJobWaits(system))
    return problem(400, 'IDRAC.2.8.LC068', 'Unable to start the operation because there is a pending configuration job.');
  if (importRuns(system)) return problem(400, 'IDRAC.2.8.RAC0679', 'A configuration job is already in progress.');
  const settings = readConfiguration(text);
  const { task, answer } = addJob(at, 'Configure: Import system configuration XML file', 'ImportConfiguration', 'running');
  if (!task) return answer;
  if (!settings) {
    changeTask(system.hardware, task.id, { phase: 'failed', ended: service.clock.now() });
    return answer;
  }
  const wanted = (component: string): readonly (readonly [string, string])[] =>
    settings.filter((setting) => setting.component === component).map(({ name, value }) => [name, value]);
  setAttributes(
    system,
    Object.fromEntries(
      wanted(IDRAC)
        .map(([name, value]) => [name.replace('#', '.'), value] as const)
        .filter(([name]) => isAttribute(name)),
    ),
  );
  const bios = wanted(BIOS_COMPONENT).filter(([name, value]) => biosProblem(name, value) === undefined);
  const state = system.hardware.get(BIOS);
  if (bios.length > 0)
    system.hardware.set(BIOS, { ...state, current: { ...state.current, ...(Object.fromEntries(bios) as Record<string, BiosValue>) } });
  return answer;
}
const settingsOf = (values: Readonly<Record<string, BiosValue>>): readonly ResourceBody[] =>
  Object.entries(values).map(([Name, Value]) => ({
    Name,
    Value: Value === null ? '******' : String(Value),
    'Set On Import': 'True',
    Comment: 'Read and Write',
  }));
/** The whole configuration, as the task of an export answers it in the end. */
export function exportedConfiguration(system: System): ResourceBody {
  const idrac = Object.fromEntries(Object.entries(attributesOf(system)).map(([name, value]) => [name.replace(/\.(?=\w+$)/, '#'), value]));
  const nics = system.macs.map((_, index) => ({
    FQDD: `NIC.Integrated.1-${index + 1}-1`,
    Attributes: settingsOf({ LegacyBootProto: index === 0 ? 'PXE' : 'NONE' }),
  }));
  return {
    SystemConfiguration: {
      Comments: [{ Comment: 'Export type is Normal,JSON' }],
      Model: system.description.product,
      ServiceTag: system.description.serial,
      Components: [
        { FQDD: IDRAC, Attributes: settingsOf(idrac) },
        { FQDD: BIOS_COMPONENT, Attributes: settingsOf(biosValues(system.hardware.get(BIOS))) },
        ...nics,
      ],
    },
  };
}

const service = (name: string, type: string, actions: readonly string[], more: ResourceBody = {}): Route<SystemContext> => ({
  path: `${MANAGER}/${name}`,
  get: ({ path }) => ({
    ...link(path),
    '@odata.type': `#${name}.v1_0_0.${name}`,
    Id: type,
    Name: name,
    Actions: Object.fromEntries(
      actions.map((action) => [`#${name}.${action}`, { target: `${ROOT}${path}/Actions/${name}.${action}`, ...more }]),
    ),
  }),
});
const RAID = '/Systems/{system}/Oem/Dell/DellRaidService';
export const raidServiceLink = (name: string): ResourceBody => link(of(RAID, name));
const RAID_ACTIONS = ['ConvertToRAID', 'ConvertToNonRAID', 'ClearForeignConfig'] as const;
const convert =
  (what: string) =>
  (at: SystemContext, body: ResourceBody): ServiceAnswer =>
    Array.isArray(body['PDArray'])
      ? addJob(at, `Configure: ${what}`, 'RAIDConfiguration', 'running').answer
      : refuse('ActionParameterMissing', what, 'PDArray');
const NO_LINK = 'No Link';

export const DELL_SERVICE_ROUTES: readonly Route<SystemContext>[] = [
  service('DellLCService', 'DellLCService', ['GetRemoteServicesAPIStatus']),
  {
    path: `${MANAGER}/DellLCService/Actions/DellLCService.GetRemoteServicesAPIStatus`,
    post: ({ system }) => ({
      status: 200,
      body: {
        LCStatus: 'Ready',
        RTStatus: system.isOn() ? 'Ready' : 'NotReady',
        ServerStatus: system.isOn() ? 'OutOfPOST' : 'PoweredOff',
        Status: system.isOn() ? 'Ready' : 'NotReady',
      },
    }),
  },
  service('DelliDRACCardService', 'DelliDRACCardService', ['iDRACReset'], { 'Force@Redfish.AllowableValues': ['Graceful', 'Force'] }),
  {
    path: `${MANAGER}/DelliDRACCardService/Actions/DelliDRACCardService.iDRACReset`,
    post: (at, { Force }) => {
      if (Force !== 'Graceful' && Force !== 'Force')
        return refuse('ActionParameterValueNotInList', String(Force), 'Force', 'DelliDRACCardService.iDRACReset');
      at.service.restart.begin();
      return { status: 200, body: {} };
    },
  },
  { path: IMPORT, post: importConfiguration },
  {
    path: EXPORT,
    post: (at, { ExportFormat }) =>
      ExportFormat === 'JSON'
        ? addJob(at, 'Export: Server Configuration Profile', 'ExportConfiguration', 'running').answer
        : refuse('ActionParameterValueNotInList', String(ExportFormat), 'ExportFormat', 'OemManager.ExportSystemConfiguration'),
  },
  {
    path: RAID,
    get: ({ path }) => ({
      ...link(path),
      '@odata.type': '#DellRaidService.v1_4_0.DellRaidService',
      Id: 'DellRaidService',
      Name: 'DellRaidService',
      Actions: Object.fromEntries(
        RAID_ACTIONS.map((action) => [`#DellRaidService.${action}`, { target: `${ROOT}${path}/Actions/DellRaidService.${action}` }]),
      ),
    }),
  },
  { path: `${RAID}/Actions/DellRaidService.ConvertToRAID`, post: convert('ConvertToRAID') },
  { path: `${RAID}/Actions/DellRaidService.ConvertToNonRAID`, post: convert('ConvertToNonRAID') },
  {
    path: `${RAID}/Actions/DellRaidService.ClearForeignConfig`,
    post: () => problem(400, 'IDRAC.2.8.STOR018', 'No foreign drives detected.'),
  },
  {
    path: '/Systems/{system}/NetworkPorts/Oem/Dell/DellSwitchConnections',
    get: ({ path, system }) => ({
      ...link(path),
      '@odata.type': '#DellSwitchConnectionCollection.DellSwitchConnectionCollection',
      Name: 'DellSwitchConnectionCollection',
      'Members@odata.count': system.macs.length,
      Members: system.macs.map((_, index) => {
        const fqdd = `NIC.Integrated.1-${index + 1}-1`;
        return {
          ...link(`${path}/${fqdd}`),
          '@odata.type': '#DellSwitchConnection.v1_1_0.DellSwitchConnection',
          Id: fqdd,
          FQDD: fqdd,
          InstanceID: fqdd,
          SwitchConnectionID: index === 0 ? '02:00:5e:00:00:01' : NO_LINK,
          SwitchPortConnectionID: index === 0 ? 'Ethernet1/1' : NO_LINK,
          StaleData: 'NotStale',
        };
      }),
    }),
  },
];
