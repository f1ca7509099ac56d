/** A BIOS in the test's Redfish service: settings that wait for a restart, and a registry of attributes. */
import { SYSTEM, type RedfishService } from '../wire/redfish/service';

export const BIOS = `${SYSTEM}/Bios`;
export const SETTINGS = `${BIOS}/Settings`;
export const RESET_BIOS = `${BIOS}/Actions/Bios.ResetBios`;
const FILE = '/redfish/v1/Registries/BiosRegistry.v1_0_0';
const REGISTRY = '/redfish/v1/registries/bios.json';

export interface BiosService {
  /** Restarts the machine: the pending settings (or only those in `only`) take effect. */
  restart(how?: { readonly only?: readonly string[]; readonly messages?: readonly unknown[] }): void;
  progress(state: string): void;
  remove(): void;
  withoutSettings(): void;
  withoutReset(): void;
  registryAt(uri: string): void;
}
const link = (path: string): object => ({ '@odata.id': path });

export function withBios(service: RedfishService): BiosService {
  const { resources } = service;
  const attributes: Record<string, unknown> = {
    BootMode: 'Uefi',
    NumCores: 10,
    Turbo: true,
    AssetTag: '',
    Serial: 'X1',
    SetupPassword: 'shown by mistake',
    Unknown: 'a',
  };
  const system = resources[SYSTEM] as Record<string, unknown>;
  const settings: Record<string, unknown> = {};
  const bios: Record<string, unknown> = {
    AttributeRegistry: 'BiosRegistry.v1_0_0',
    Attributes: attributes,
    Actions: { '#Bios.ResetBios': { target: RESET_BIOS } },
    '@Redfish.Settings': { SettingsObject: link(SETTINGS), SupportedApplyTimes: ['OnReset'] },
  };
  const at = (uri: string): void => {
    resources[FILE] = {
      Id: 'BiosRegistry',
      Registry: 'BiosRegistry.v1_0_0',
      Location: [
        { Language: 'de', Uri: '/de' },
        { Language: 'en-US', Uri: uri },
      ],
    };
  };
  system['Bios'] = link(BIOS);
  (resources['/redfish/v1/'] as Record<string, unknown>)['Registries'] = link('/redfish/v1/Registries');
  resources['/redfish/v1/Registries'] = {
    Members: [link('/redfish/v1/Registries/Base')],
    'Members@odata.nextLink': '/redfish/v1/Registries?page=2',
  };
  resources['/redfish/v1/Registries?page=2'] = { Members: [link(FILE)] };
  resources['/redfish/v1/Registries/Base'] = { Id: 'Base', Registry: 'Base.1.8', Location: [{ Language: 'en', Uri: '/base.json' }] };
  at(REGISTRY);
  resources[REGISTRY] = {
    RegistryEntries: {
      Attributes: [
        {
          AttributeName: 'BootMode',
          Type: 'Enumeration',
          ReadOnly: false,
          ResetRequired: true,
          Value: [{ ValueName: 'Uefi' }, { ValueDisplayName: 'LegacyBios' }, { Other: 1 }],
        },
        { AttributeName: 'NumCores', Type: 'Integer', LowerBound: 1, UpperBound: 64 },
        { AttributeName: 'Turbo', Type: 'Boolean' },
        { AttributeName: 'AssetTag', Type: 'String', MinLength: 0, MaxLength: 8, IsSystemUniqueProperty: true },
        { AttributeName: 'Serial', Type: 'String', ReadOnly: true },
        { AttributeName: 'SetupPassword', Type: 'Password' },
      ],
    },
  };
  Object.assign(resources, { [BIOS]: bios, [SETTINGS]: { '@odata.etag': '"s1"', Attributes: settings }, [RESET_BIOS]: {} });
  const before = service.reply;
  service.reply = (asked, response) => {
    if (asked.method === 'PATCH' && [BIOS, SETTINGS].includes(asked.path)) {
      const { Attributes: wanted } = asked.body as { readonly Attributes: object };
      Object.assign(asked.path === BIOS ? attributes : settings, wanted);
      return { status: 204 };
    }
    return before(asked, response);
  };
  return {
    restart: ({ only = Object.keys(settings), messages } = {}) => {
      for (const name of only) attributes[name] = settings[name];
      for (const name of Object.keys(settings)) delete settings[name];
      if (messages) Object.assign(bios['@Redfish.Settings'] as object, { Time: '2026-02-03T04:10:00Z', Messages: messages });
    },
    progress: (state) => void (system['BootProgress'] = { LastState: state }),
    remove: () => {
      delete system['Bios'];
    },
    withoutSettings: () => {
      delete bios['@Redfish.Settings'];
    },
    withoutReset: () => {
      delete bios['Actions'];
    },
    registryAt: at,
  };
}
