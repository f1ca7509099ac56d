/** Habits with BIOS settings, further systems and managers, and services of single makers. */
import type { Habit } from '../protocol/habits';
import { refuse } from '../protocol/messages';
import { ROOT, link, type ResourceBody, type Route, type SystemContext } from '../protocol/routes';
import {
  BIOS_SETTINGS,
  RESET,
  SYSTEM,
  bootOf,
  instead,
  merged,
  problem,
  sentBody,
  shows,
  showsAll,
  takes,
  together,
  withSent,
  without,
} from './change';

const more = (type: 'ComputerSystem' | 'Manager' | 'Chassis', folder: string, ids: readonly string[], body: ResourceBody) => ({
  around: shows(`${type}Collection`, (whole) => {
    const members = [...(whole['Members'] as readonly ResourceBody[]), ...ids.map((id) => link(`/${folder}/${id}`))];
    return { ...whole, Members: members, 'Members@odata.count': members.length };
  }),
  routes: ids.map((id): Route<SystemContext> => ({
    path: `/${folder}/${id}`,
    get: ({ path }) => ({ ...link(path), '@odata.type': `#${type}.v1_10_0.${type}`, Id: id, Name: id, ...body }),
  })),
});
const FUTURE = problem(400, 'Base.1.8.OperationSupportedInFutureStateURI', `The operation is supported in the future state URI only.`);
/** The names of BIOS attributes with an ending, as one maker has them. */
const suffixed = (ending: string): Pick<Habit, 'around'> => ({
  around: together(
    shows('Bios', (body) => ({
      ...body,
      Attributes:
        body['Attributes'] === undefined
          ? undefined
          : Object.fromEntries(Object.entries(body['Attributes'] as ResourceBody).map(([name, value]) => [name + ending, value])),
    })),
    shows('AttributeRegistry', (body) => {
      const entries = body['RegistryEntries'] as { readonly Attributes: readonly ResourceBody[] };
      const attributes = entries.Attributes.map((entry) => ({ ...entry, AttributeName: `${String(entry['AttributeName'])}${ending}` }));
      return { ...body, RegistryEntries: { ...entries, Attributes: attributes } };
    }),
    takes('PATCH', BIOS_SETTINGS, (sent) => ({
      ...sent,
      Attributes: Object.fromEntries(
        Object.entries((sent['Attributes'] ?? {}) as ResourceBody).map(([name, value]) => [
          name.endsWith(ending) ? name.slice(0, -ending.length) : `${name}?`,
          value,
        ]),
      ),
    })),
  ),
});

export const SERVICE_HABITS = {
  'systems-hgx': {
    about: 'There is a second system, the baseboard of the GPUs, which has no boot settings.',
    source: 'NVIDIA/nv-redfish redfish/src/bmc_quirks.rs',
    ...more('ComputerSystem', 'Systems', ['HGX_Baseboard_0'], {
      SystemType: 'Physical',
      Manufacturer: 'NVIDIA',
      Model: 'HGX',
      PowerState: 'On',
      Status: { State: 'Enabled', Health: 'OK' },
    }),
  },
  'managers-hgx': {
    about: 'There is a second manager, that of the GPUs.',
    source: 'NVIDIA/nv-redfish redfish/src/bmc_quirks.rs',
    ...more('Manager', 'Managers', ['HGX_BMC_0'], { ManagerType: 'BMC', Status: { State: 'Enabled', Health: 'OK' } }),
  },
  'managers-empty': {
    about: 'There is a second manager without properties.',
    source: 'bb-Ricardo/check_redfish; stmcginnis/gofish pull request 414 (Cisco)',
    ...more('Manager', 'Managers', ['BMC'], {}),
  },
  'power-control-is-object': {
    about: 'PowerControl of Power is an object, and no list.',
    source: 'bb-Ricardo/check_redfish cr_module (Cisco)',
    around: shows('Power', (body) => ({ ...body, PowerControl: (body['PowerControl'] as readonly unknown[] | undefined)?.[0] ?? {} })),
  },
  'bios-settings-at-sd': {
    about: 'The settings object of the BIOS is Bios/SD.',
    source: 'NVIDIA/libredfish src/ami.rs, src/supermicro.rs',
    paths: { '/Systems/{system}/Bios/Settings': '/Systems/{system}/Bios/SD' },
  },
  'bios-settings-at-pending': {
    about: 'The settings object of the BIOS is Bios/Pending, which tells no apply times.',
    source: 'lenovo/python-redfish-lenovo',
    paths: { '/Systems/{system}/Bios/Settings': '/Systems/{system}/Bios/Pending' },
    around: shows('Bios', (body) =>
      body['@Redfish.Settings'] === undefined
        ? body
        : { ...body, '@Redfish.Settings': without(body['@Redfish.Settings'] as ResourceBody, 'SupportedApplyTimes') },
    ),
  },
  'bios-in-small-letters': {
    about: 'The BIOS is at bios, and its settings object at bios/settings.',
    source: 'openstack/ironic drivers/modules/ilo',
    paths: { '/Systems/{system}/Bios/Settings': '/Systems/{system}/bios/settings', '/Systems/{system}/Bios': '/Systems/{system}/bios' },
  },
  'bios-absent': {
    about: 'The system has no BIOS settings.',
    source: 'NVIDIA/libredfish src/nvidia_gh200.rs; openbmc/bmcweb',
    around: together(
      shows('ComputerSystem', (body) => without(body, 'Bios')),
      instead(/./, /^\/redfish\/v1\/Systems\/[^/]+\/Bios(?:\/|$)/, (_, __, { path }) => refuse('ResourceMissingAtURI', path)),
    ),
  },
  'bios-names-suffixed': {
    about: 'The names of BIOS attributes end in _009F, and are accepted with it only.',
    source: 'NVIDIA/libredfish src/supermicro.rs',
    ...suffixed('_009F'),
  },
  'bios-pending-empty-without-attributes': {
    about: 'The settings object of the BIOS has no Attributes while nothing waits.',
    source: 'NVIDIA/libredfish src/supermicro.rs',
    around: shows('Bios', (body) => (Object.keys(body['Attributes'] ?? {}).length === 0 ? without(body, 'Attributes') : body)),
  },
  'boot-at-sd': {
    about: 'Boot is writable at the future state URI (/SD) only: elsewhere it gets OperationSupportedInFutureStateURI.',
    source: 'DMTF/Redfish-Tacklebox 111, 144 (ASRock)',
    around: together(
      instead('PATCH', SYSTEM, FUTURE, (sent) => Object.keys(bootOf(sent)).length > 0),
      shows('ComputerSystem', (body, { system }) =>
        body['@odata.id'] === `${ROOT}/Systems/${system.name}`
          ? {
              ...body,
              '@Redfish.Settings': { '@odata.type': '#Settings.v1_3_0.Settings', SettingsObject: link(`/Systems/${system.name}/SD`) },
            }
          : body,
      ),
      async (asked, next) => {
        if (!/^\/redfish\/v1\/Systems\/[^/]+\/SD$/.test(asked.path)) return next(asked);
        const answer = await next({ ...asked, path: asked.path.replace(/\/SD$/, '') });
        return answer.body && asked.method === 'GET'
          ? { ...answer, body: { ...without(answer.body, 'Links', 'Actions'), '@odata.id': asked.path, Id: 'SD' } }
          : answer;
      },
    ),
  },
  'boot-cd-is-usb': {
    about: 'The virtual CD boots by the target UsbCd, and Cd is the physical drive.',
    source: 'openstack/sushy resources/system (Supermicro)',
    around: async (asked, next, context) => {
      const { memory, system } = context;
      if (asked.method === 'PATCH' && SYSTEM.test(asked.path)) {
        const sent = await sentBody(asked);
        const boot = bootOf(sent);
        const target = boot['BootSourceOverrideTarget'];
        if (target === 'UsbCd') return next(withSent(asked, { ...sent, Boot: { ...boot, BootSourceOverrideTarget: 'Cd' } }));
        const answer = await next(asked);
        if (target === 'Cd' && answer.status < 300) system.setBoot({ ...system.boot(), device: 'none', persistent: false });
        return answer;
      }
      if (RESET.test(asked.path)) memory.delete('cd');
      return shows('ComputerSystem', (body) => {
        const boot = bootOf(body);
        const words = (boot['BootSourceOverrideTarget@Redfish.AllowableValues'] ?? []) as readonly string[];
        return merged(body, {
          Boot: {
            'BootSourceOverrideTarget@Redfish.AllowableValues': [...words, 'UsbCd'],
            ...(boot['BootSourceOverrideTarget'] === 'Cd' && { BootSourceOverrideTarget: 'UsbCd' }),
          },
        });
      })(asked, next, context);
    },
  },
  'patch-answers-200': {
    about: 'A change is answered with 200 and the resource.',
    source: 'fujitsu-ansible-irmc-integration plugins/module_utils/irmc.py',
    around: async (asked, next) => {
      const answer = await next(asked);
      if (asked.method !== 'PATCH' || answer.status !== 204) return answer;
      return next({ ...asked, method: 'GET' });
    },
  },
  'locates-by-active-only': {
    about: 'There is no IndicatorLED, only LocationIndicatorActive.',
    source: 'openbmc/bmcweb redfish-core/lib',
    around: showsAll((body) => without(body, 'IndicatorLED')),
  },
  'power-and-thermal-absent': {
    about: 'The chassis has no Power and Thermal, only their successors.',
    source: 'openbmc/bmcweb redfish-core/lib',
    around: together(
      shows('Chassis', (body) => without(body, 'Power', 'Thermal')),
      instead('GET', /\/Chassis\/[^/]+\/(?:Power|Thermal)$/, (_, __, { path }) => refuse('ResourceMissingAtURI', path)),
    ),
  },
  'post-state': {
    about: 'The state of the power-on self test is in Oem.Hpe.PostState.',
    source: 'openstack/ironic drivers/modules/ilo/common.py',
    around: shows('ComputerSystem', (body, { system }) =>
      merged(body, { Oem: { Hpe: { PostState: system.isOn() ? 'FinishedPost' : 'PowerOff' } } }),
    ),
  },
  'boot-refused-in-post': {
    about: 'The first change of the boot settings after each start gets 400, as during the power-on self test.',
    source: 'openstack/ironic drivers/modules/redfish/management.py (HPE)',
    around: async (asked, next, context) => {
      const { memory } = context;
      if (RESET.test(asked.path)) memory.set('post', true);
      if (asked.method !== 'PATCH' || !SYSTEM.test(asked.path) || memory.get('post') !== true) return next(asked);
      memory.delete('post');
      return problem(400, 'iLO.2.14.UnableToModifyDuringSystemPOST', 'Unable to modify the value while the system is in POST.');
    },
  },
  'boot-mode-fixed': {
    about: 'The boot mode is not shown, and cannot be changed: BootSourceOverrideMode gets 400.',
    source: 'openstack/ironic drivers/modules/redfish/management.py (HPE Gen9); bmc-toolbox/bmclib pull request 318',
    around: together(
      shows('ComputerSystem', (body) => ({
        ...body,
        Boot: without(bootOf(body), 'BootSourceOverrideMode', 'BootSourceOverrideMode@Redfish.AllowableValues'),
      })),
      instead(
        'PATCH',
        SYSTEM,
        problem(
          400,
          'Base.1.8.PropertyNotWritable',
          'The property BootSourceOverrideMode is a read only property and cannot be assigned a value.',
        ),
        (sent) => bootOf(sent)['BootSourceOverrideMode'] !== undefined,
      ),
    ),
  },
} as const satisfies Readonly<Record<string, Habit>>;
