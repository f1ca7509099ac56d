/** Bios (DSP2046): the settings, their registry, and the settings object with the changes that the machine's next start applies. */
import { isObject } from '../../../model/json';
import {
  BIOS,
  BIOS_ATTRIBUTES,
  biosProblem,
  biosValues,
  type BiosAttribute,
  type BiosState,
  type BiosValue,
} from '../../hardware/bios-settings';
import { anything, members, oneOf, refuseAction, refusePatch, text, type Check } from '../protocol/checks';
import { ROOT, dateTime, link, resource, type Route, type ResourceBody, type SystemContext } from '../protocol/routes';

export const BIOS_REGISTRY = 'BiosAttributeRegistrySimulated.v1_0_0';
const PATH = '/Systems/{system}/Bios';

const stateOf = ({ system }: SystemContext): BiosState => system.hardware.get(BIOS);

function bios(at: SystemContext): ResourceBody {
  const state = stateOf(at);
  return resource(at.path, 'Bios', 'Bios', 'BIOS configuration', {
    AttributeRegistry: BIOS_REGISTRY,
    Attributes: biosValues(state),
    '@Redfish.Settings': {
      '@odata.type': '#Settings.v1_3_0.Settings',
      SettingsObject: link(`${at.path}/Settings`),
      SupportedApplyTimes: ['OnReset'],
      Time: state.taken === undefined ? undefined : dateTime(state.taken),
      Messages: [],
    },
    Actions: {
      '#Bios.ResetBios': { target: `${ROOT}${at.path}/Actions/Bios.ResetBios` },
      '#Bios.ChangePassword': {
        target: `${ROOT}${at.path}/Actions/Bios.ChangePassword`,
        'PasswordName@Redfish.AllowableValues': ['AdminPassword'],
      },
    },
  });
}
function settings(at: SystemContext): ResourceBody {
  const { pending } = stateOf(at);
  const shown = Object.fromEntries(Object.entries(pending ?? {}).map(([name, value]) => [name, isPassword(name) ? null : value]));
  return resource(at.path, 'Bios', 'Settings', 'BIOS settings that wait for a reset', {
    AttributeRegistry: BIOS_REGISTRY,
    Attributes: shown,
  });
}
const isPassword = (name: string): boolean =>
  BIOS_ATTRIBUTES.some((biosAttribute) => biosAttribute.name === name && biosAttribute.type === 'Password');

const attributes: Check = (value, name) =>
  isObject(value)
    ? Object.entries(value)
        .map(([attribute, setting]) => biosProblem(attribute, setting))
        .find((problem) => problem !== undefined)
    : ['PropertyValueTypeError', JSON.stringify(value), name];
/** Without the MaintenanceWindow… members: this service offers no such apply times. */
const APPLY_TIME = members({ '@odata.type': anything, ApplyTime: oneOf(['OnReset']) });

export const BIOS_ROUTES: readonly Route<SystemContext>[] = [
  { path: PATH, get: bios },
  {
    path: `${PATH}/Settings`,
    get: settings,
    patch: (at, body) => {
      const refused = refusePatch(body, { Attributes: attributes, '@Redfish.SettingsApplyTime': APPLY_TIME }, settings(at));
      if (refused) return refused;
      const state = stateOf(at);
      const changes = (body['Attributes'] ?? {}) as Readonly<Record<string, BiosValue>>;
      at.system.hardware.set(BIOS, { ...state, pending: { ...state.pending, ...changes } });
      return undefined;
    },
  },
  {
    path: `${PATH}/Actions/Bios.ResetBios`,
    post: (at, body) => {
      const refused = refuseAction('Bios.ResetBios', body, {});
      if (refused) return refused;
      at.system.hardware.set(BIOS, { current: stateOf(at).current, reset: true });
      return undefined;
    },
  },
  {
    path: `${PATH}/Actions/Bios.ChangePassword`,
    post: (_, body) =>
      refuseAction('Bios.ChangePassword', body, { PasswordName: oneOf(['AdminPassword']), OldPassword: text, NewPassword: text }, [
        'PasswordName',
        'OldPassword',
        'NewPassword',
      ]),
  },
];

const entry = (attribute: BiosAttribute, index: number): ResourceBody => {
  const { name, label, type, initial, values, least, most, minLength, maxLength, readOnly, unique } = attribute;
  return {
    AttributeName: name,
    DisplayName: label,
    HelpText: `${label} of the machine.`,
    Type: type,
    DefaultValue: initial,
    DisplayOrder: index,
    ReadOnly: readOnly ?? false,
    Immutable: readOnly ?? false,
    Hidden: false,
    IsSystemUniqueProperty: unique ?? false,
    ResetRequired: readOnly === undefined,
    Value: values?.map((value) => ({ ValueName: value, ValueDisplayName: value })),
    LowerBound: least,
    UpperBound: most,
    ScalarIncrement: type === 'Integer' ? 1 : undefined,
    MinLength: minLength,
    MaxLength: maxLength,
  };
};
/** The AttributeRegistry: a separate file, to which /redfish/v1/Registries refers. */
export const biosRegistry = (): ResourceBody => ({
  '@odata.type': '#AttributeRegistry.v1_3_0.AttributeRegistry',
  Id: BIOS_REGISTRY,
  Name: 'Simulated BIOS attributes',
  Language: 'en',
  OwningEntity: 'Bloomery',
  RegistryVersion: '1.0.0',
  RegistryEntries: { Attributes: BIOS_ATTRIBUTES.map(entry), Menus: [], Dependencies: [] },
});
