/** Habits with boot devices, boot modes, boot order and reset types. */
import type { Habit } from '../protocol/habits';
import { ROOT, link, type ResourceBody } from '../protocol/routes';
import { RESET, SYSTEM, bootOf, instead, problem, replies, shows, takes, together, without } from './change';

const TARGETS = 'BootSourceOverrideTarget@Redfish.AllowableValues';
const partly = (sent: ResourceBody): boolean => {
  const boot = bootOf(sent);
  const given = ['BootSourceOverrideEnabled', 'BootSourceOverrideTarget', 'BootSourceOverrideMode'].filter(
    (name) => boot[name] !== undefined,
  );
  return given.length > 0 && given.length < 3;
};
const showsBoot = (change: (boot: ResourceBody) => ResourceBody) =>
  shows('ComputerSystem', (body) => (body['Boot'] === undefined ? body : { ...body, Boot: change(bootOf(body)) }));
const notInList = (value: string, name: string) =>
  problem(400, 'Base.1.8.PropertyValueNotInList', `The value '${value}' for the property ${name} is not in the list of acceptable values.`);
const withoutTarget = (boot: ResourceBody, target: string): ResourceBody => ({
  ...boot,
  [TARGETS]: (boot[TARGETS] as readonly string[]).filter((word) => word !== target),
});
/** The machine's resources that have only a part of the values that the action accepts. */
const RESETS = ['On', 'ForceOff', 'GracefulShutdown', 'ForceRestart', 'PowerCycle', 'Nmi'];

export const BOOT_HABITS = {
  'boot-whole': {
    about: 'A PATCH of the boot settings needs mode, persistence and target together, or gets 400.',
    source: 'openstack/ironic drivers/modules/redfish/management.py (AMI)',
    around: instead(
      'PATCH',
      SYSTEM,
      problem(
        400,
        'Base.1.8.PropertyMissing',
        'The property BootSourceOverrideMode is a required property and must be included in the request.',
      ),
      partly,
    ),
  },
  'boot-once-only': {
    about: 'BootSourceOverrideEnabled has no Continuous.',
    source: 'lenovo/python-redfish-lenovo; openstack/ironic redfish/management.py',
    around: together(
      showsBoot((boot) => ({ ...boot, 'BootSourceOverrideEnabled@Redfish.AllowableValues': ['Once', 'Disabled'] })),
      instead(
        'PATCH',
        SYSTEM,
        notInList('Continuous', 'BootSourceOverrideEnabled'),
        (sent) => bootOf(sent)['BootSourceOverrideEnabled'] === 'Continuous',
      ),
    ),
  },
  'boot-enabled-always': {
    about: 'A boot target without BootSourceOverrideEnabled in the same request gets 400.',
    source: 'openstack/ironic drivers/modules/redfish/management.py (Supermicro)',
    around: instead(
      'PATCH',
      SYSTEM,
      problem(
        400,
        'Base.1.8.PropertyMissing',
        'The property BootSourceOverrideEnabled is a required property and must be included in the request.',
      ),
      (sent) => {
        const boot = bootOf(sent);
        return boot['BootSourceOverrideTarget'] !== undefined && boot['BootSourceOverrideEnabled'] === undefined;
      },
    ),
  },
  'boot-mode-reverts': {
    about: 'A boot target without BootSourceOverrideMode in the same request sets the mode to Legacy.',
    source: 'DMTF/Redfishtool 106; ironcore-dev/metal-operator bmc/redfish_supermicro.go',
    around: takes('PATCH', SYSTEM, (sent) => {
      const boot = bootOf(sent);
      const isBare = boot['BootSourceOverrideTarget'] !== undefined && boot['BootSourceOverrideMode'] === undefined;
      return isBare ? { ...sent, Boot: { ...boot, BootSourceOverrideMode: 'Legacy' } } : sent;
    }),
  },
  'boot-target-stays': {
    about: 'A disabled override still shows the last target.',
    source: 'openstack/ironic drivers/modules/redfish/management.py',
    around: async (asked, next, context) => {
      if (asked.method === 'PATCH' && SYSTEM.test(asked.path)) {
        const boot = bootOf((await asked.body().catch(() => ({}))) as ResourceBody);
        if (boot['BootSourceOverrideTarget'] !== undefined) context.memory.set('target', boot['BootSourceOverrideTarget']);
      }
      const leftover = context.memory.get('target');
      return showsBoot((boot) =>
        boot['BootSourceOverrideEnabled'] === 'Disabled' && leftover !== undefined ? { ...boot, BootSourceOverrideTarget: leftover } : boot,
      )(asked, next, context);
    },
  },
  'boot-targets-untold': {
    about: 'The list of boot targets is empty.',
    source: 'OpenCHAMI/smd pkg/redfish; openstack/sushy',
    around: showsBoot((boot) => ({ ...boot, [TARGETS]: [] })),
  },
  'boot-none-alone': {
    about: 'The boot target None together with a mode or Enabled gets 500.',
    source: 'fujitsu-ansible-irmc-integration plugins/modules/irmc_setnextboot.py',
    around: instead(
      'PATCH',
      SYSTEM,
      problem(500, 'Base.1.8.InternalError', 'The request failed due to an internal service error.'),
      (sent) => {
        const boot = bootOf(sent);
        return (
          boot['BootSourceOverrideTarget'] === 'None' &&
          (boot['BootSourceOverrideEnabled'] !== undefined || boot['BootSourceOverrideMode'] !== undefined)
        );
      },
    ),
  },
  'boot-settings-only': {
    about: 'Boot is writable in /Settings only, and the boot targets are there only.',
    source: 'openstack/sushy notes; dell/iDRAC-Redfish-Scripting 324; stmcginnis/gofish pull request 511',
    around: together(
      instead(
        'PATCH',
        SYSTEM,
        problem(400, 'Base.1.8.PropertyNotWritable', 'The property Boot is a read only property and cannot be assigned a value.'),
        (sent) => sent['Boot'] !== undefined,
      ),
      shows('ComputerSystem', (body, { system }) => {
        const boot = without(bootOf(body), TARGETS, 'BootSourceOverrideMode@Redfish.AllowableValues');
        const path = `/Systems/${system.name}/Settings`;
        const settings = { '@odata.type': '#Settings.v1_3_0.Settings', SettingsObject: link(path), SupportedApplyTimes: ['OnReset'] };
        return body['@odata.id'] === `${ROOT}/Systems/${system.name}` ? { ...body, Boot: boot, '@Redfish.Settings': settings } : body;
      }),
      async (asked, next) => {
        const isSettings = /^\/redfish\/v1\/Systems\/[^/]+\/Settings$/.test(asked.path);
        if (!isSettings) return next(asked);
        const answer = await next({ ...asked, path: asked.path.replace(/\/Settings$/, '') });
        if (asked.method !== 'GET' || !answer.body) return answer;
        const { Boot } = answer.body;
        return {
          ...answer,
          body: { '@odata.id': asked.path, '@odata.type': answer.body['@odata.type'], Id: 'Settings', Name: 'Settings', Boot },
        };
      },
    ),
  },
  'boot-options-in-other-order': {
    about: 'The members of BootOptions are in another order than BootOrder.',
    source: 'NVIDIA/infra-controller 5836',
    around: shows('BootOptionCollection', (body) => ({ ...body, Members: [...(body['Members'] as readonly unknown[])].reverse() })),
  },
  'uefi-http-unlisted': {
    about: 'The boot targets do not have UefiHttp, which gets 400.',
    source: 'xcat2/confluent aiohmi/redfish/oem/generic.py',
    around: together(
      showsBoot((boot) => withoutTarget(boot, 'UefiHttp')),
      instead(
        'PATCH',
        SYSTEM,
        notInList('UefiHttp', 'BootSourceOverrideTarget'),
        (sent) => bootOf(sent)['BootSourceOverrideTarget'] === 'UefiHttp',
      ),
    ),
  },
  'reset-types-in-action-info': {
    about: 'The reset types are in an ActionInfo, and not beside the action.',
    source: 'OpenCHAMI/smd pkg/redfish',
    around: together(
      shows('ComputerSystem', (body) => {
        if (body['Actions'] === undefined) return body;
        const { '#ComputerSystem.Reset': reset, ...others } = body['Actions'] as Readonly<Record<string, ResourceBody>>;
        const info = { target: reset!['target'], '@Redfish.ActionInfo': `${String(body['@odata.id'])}/ResetActionInfo` };
        return { ...body, Actions: { ...others, '#ComputerSystem.Reset': info } };
      }),
    ),
    routes: [
      {
        path: '/Systems/{system}/ResetActionInfo',
        get: ({ path }) => ({
          '@odata.id': `${ROOT}${path}`,
          '@odata.type': '#ActionInfo.v1_4_0.ActionInfo',
          Id: 'ResetActionInfo',
          Name: 'Reset of the system',
          Parameters: [{ Name: 'ResetType', Required: true, DataType: 'String', AllowableValues: RESETS }],
        }),
      },
    ],
  },
  'power-state-null': {
    about: 'The first two reads after a reset show no power state.',
    source: 'dell/iDRAC-Redfish-Scripting',
    around: together(
      replies('POST', RESET, (answer, { memory }) => {
        memory.set('blank', 2);
        return answer;
      }),
      shows('ComputerSystem', (body, { memory }) => {
        const left = (memory.get('blank') as number | undefined) ?? 0;
        memory.set('blank', left - 1);
        return left > 0 ? { ...body, PowerState: null } : body;
      }),
    ),
  },
  'power-actions-refused-when-needless': {
    about: 'On of a machine that is on, and ForceOff of one that is off, get 409.',
    source: 'dell/iDRAC-Redfish-Scripting; openstack/sushy',
    around: instead(
      'POST',
      RESET,
      problem(409, 'IDRAC.2.8.PSU501', 'The server is already in the requested power state.'),
      ({ ResetType: type }, { system }) => (type === 'On' && system.isOn()) || (type === 'ForceOff' && !system.isOn()),
    ),
  },
} as const satisfies Readonly<Record<string, Habit>>;
