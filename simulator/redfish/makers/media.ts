/** Habits with virtual media: their places, what an insertion accepts, and how they are changed. */
import { isObject } from '../../../model/json';
import { MEDIA, isDrive, type Drive } from '../../hardware/boot-media';
import { hardwarePart } from '../../hardware/hardware';
import type { Around, Habit, Next } from '../protocol/habits';
import { refuse } from '../protocol/messages';
import { ROOT, type ResourceBody, type ServiceAnswer, type System } from '../protocol/routes';
import { startTask } from '../resources/tasks';
import { EJECT, INSERT, instead, isLoggedIn, merged, problem, replies, sentBody, shows, together, withSent, without } from './change';

const DRIVE = /^\/redfish\/v1\/(?:Systems|Managers)\/[^/]+\/VirtualMedia\/[^/]+$/;
const OF_SYSTEM = /^\/redfish\/v1\/Systems\/[^/]+\/VirtualMedia(?:\/|$)/;
const OF_MANAGER = /^\/redfish\/v1\/Managers\/[^/]+\/VirtualMedia(?:\/|$)/;
const missingAt = (path: RegExp, type: string): Around =>
  together(
    shows(type, (body) => without(body, 'VirtualMedia')),
    instead(/./, path, (_, __, asked) => refuse('ResourceMissingAtURI', asked.path)),
  );
const ofBoth = (slots: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
  Object.fromEntries(
    ['/Systems/{system}', '/Managers/{manager}'].flatMap((owner) =>
      Object.entries(slots).map(([ours, theirs]) => [`${owner}/VirtualMedia/${ours}`, `${owner}/VirtualMedia/${theirs}`]),
    ),
  );
const notSupported = (name: string): ServiceAnswer =>
  problem(
    400,
    'Base.1.8.ActionParameterNotSupported',
    `The parameter ${name} for the action InsertMedia is not supported on the target resource.`,
  );
const refusesParameters = (...names: readonly string[]): Around =>
  instead(
    'POST',
    INSERT,
    (sent) => notSupported(names.find((name) => sent[name] !== undefined)!),
    (sent) => names.some((name) => sent[name] !== undefined),
  );
const announcesPatch = replies('GET', DRIVE, (answer) => ({ ...answer, headers: { ...answer.headers, allow: 'GET, HEAD, PATCH' } }));
const withoutActions = (body: ResourceBody): ResourceBody => without(body, 'Actions');
/** An insertion or ejection by another request than the standard action. */
const insertion = (next: Next, asked: Parameters<Next>[0], path: string, body: ResourceBody): Promise<ServiceAnswer> =>
  next({ ...withSent(asked, body), method: 'POST', path: `${path}/Actions/VirtualMedia.InsertMedia` });
const ejection = (next: Next, asked: Parameters<Next>[0], path: string): Promise<ServiceAnswer> =>
  next({ ...withSent(asked, {}), method: 'POST', path: `${path}/Actions/VirtualMedia.EjectMedia` });
const answered = (answer: ServiceAnswer): ServiceAnswer => (answer.status === 204 ? { status: 200, body: {} } : answer);
/** Connects an image of a share, which nobody reads. */
const connect = ({ hardware }: System, drive: Drive, url: string): void =>
  hardware.set(MEDIA, { ...hardware.get(MEDIA), [drive]: { url, writeProtected: true } });

/** iRMC's name of a drive's settings, and of the drive in its commands. */
const IRMC_DRIVES = [
  ['Cd', 'CDImage', 'CD'],
  ['Usb', 'HDImage', 'HD'],
] as const;
const IRMC_SETTINGS = hardwarePart<Readonly<Record<string, ResourceBody>>>('irmcMedia', {});
const IRMC_EMPTY = { Server: '', ShareName: '', ImageName: '', ShareType: 'NFS', UserName: '', UserDomain: '', MaximumNumberOfDevices: 0 };
const IRMC_RESOURCE = '/Systems/{system}/Oem/ts_fujitsu/VirtualMedia';
const IRMC_ACTION = 'FTSComputerSystem.VirtualMedia';
const irmcCommands = ({ hardware }: System): readonly string[] =>
  IRMC_DRIVES.map(([drive, , name]) => `${hardware.get(MEDIA)[drive] ? 'Disconnect' : 'Connect'}${name}`);
const irmcSettings = ({ hardware }: System, name: string): ResourceBody => ({ ...IRMC_EMPTY, ...hardware.get(IRMC_SETTINGS)[name] });
/** @param parameter of the action: its name depends on the firmware */
function ofFujitsu(parameter: string, source: string): Habit {
  return {
    about:
      `Media are connected by the Oem action ${IRMC_ACTION} (${parameter}), from shares (NFS, SMB) that the Oem resource VirtualMedia names; ` +
      'there are no standard slots.',
    source,
    around: together(
      shows('VirtualMediaCollection', (body) => ({ ...body, Members: [], 'Members@odata.count': 0 })),
      shows('ComputerSystem', (body, { system }) =>
        merged(body, {
          Oem: { ts_fujitsu: { VirtualMedia: { '@odata.id': ROOT + IRMC_RESOURCE.replace('{system}', system.name) } } },
          Actions: {
            Oem: {
              [`#${IRMC_ACTION}`]: {
                target: `${ROOT}/Systems/${system.name}/Actions/Oem/${IRMC_ACTION}`,
                [`${parameter}@Redfish.AllowableValues`]: irmcCommands(system),
              },
            },
          },
        }),
      ),
    ),
    routes: [
      {
        path: IRMC_RESOURCE,
        get: ({ path, system }) => ({
          '@odata.id': ROOT + path,
          '@odata.type': '#FTSVirtualMedia.v1_0_0.FTSVirtualMedia',
          Id: 'VirtualMedia',
          Name: 'Virtual media',
          RemoteMountEnabled: system.hardware.get(IRMC_SETTINGS)['on'] !== undefined,
          ...Object.fromEntries(IRMC_DRIVES.map(([, name]) => [name, irmcSettings(system, name)])),
        }),
        patch: ({ system }, sent) => {
          const changes = IRMC_DRIVES.flatMap(([, name]) => {
            const change = sent[name];
            return isObject(change) ? [[name, without({ ...irmcSettings(system, name), ...change }, 'Password')] as const] : [];
          });
          const bad = changes.find(([, { ShareType: type }]) => type !== 'NFS' && type !== 'SMB');
          if (bad) return refuse('PropertyValueNotInList', String(bad[1]['ShareType']), 'ShareType');
          const isOn = sent['RemoteMountEnabled'] === true;
          system.hardware.set(IRMC_SETTINGS, {
            ...system.hardware.get(IRMC_SETTINGS),
            ...Object.fromEntries(changes),
            ...(isOn && { on: {} }),
          });
          return undefined;
        },
      },
      {
        path: `/Systems/{system}/Actions/Oem/${IRMC_ACTION}`,
        post: ({ system }, sent) => {
          const command = sent[parameter];
          if (typeof command !== 'string') return refuse('ActionParameterMissing', IRMC_ACTION, parameter);
          const drive = IRMC_DRIVES.find(([, , name]) => command.endsWith(name));
          if (!drive || !irmcCommands(system).includes(command))
            return refuse('ActionParameterValueNotInList', command, parameter, IRMC_ACTION);
          const [ours, name] = drive;
          const { Server, ShareName, ImageName, ShareType, MaximumNumberOfDevices: devices } = irmcSettings(system, name);
          const isReady = system.hardware.get(IRMC_SETTINGS)['on'] !== undefined && devices !== 0 && Server !== '' && ImageName !== '';
          if (!isReady) return refuse('ResourceInUse');
          if (command.startsWith('Connect'))
            connect(
              system,
              ours,
              `${String(ShareType).toLowerCase()}://${String(Server)}/${String(ShareName).replace(/^\//, '')}/${String(ImageName)}`,
            );
          else system.hardware.set(MEDIA, { ...system.hardware.get(MEDIA), [ours]: undefined });
          return undefined;
        },
      },
    ],
  };
}
/** Whether the slots for virtual media are switched on. */
const SWITCHED_ON = hardwarePart<boolean>('virtualMediaOn', false);

export const MEDIA_HABITS = {
  'media-of-manager-only': {
    about: 'Virtual media are below the manager only.',
    source: 'openstack/ironic drivers/modules/redfish/boot.py (iDRAC below 6.00)',
    around: missingAt(OF_SYSTEM, 'ComputerSystem'),
  },
  'media-of-system-only': {
    about: 'Virtual media are below the system only.',
    source: 'openstack/ironic drivers/modules/drac/boot.py (iDRAC 10)',
    around: missingAt(OF_MANAGER, 'Manager'),
  },
  'media-slots-numbered': {
    about: 'The slots are 1 and 2, both for CDs and USB sticks; the machine boots a CD in slot 1 only.',
    source: 'openstack/ironic drivers/modules/drac/boot.py',
    paths: {
      '/Systems/{system}/VirtualMedia/Cd': '/Systems/{system}/VirtualMedia/1',
      '/Systems/{system}/VirtualMedia/Usb': '/Systems/{system}/VirtualMedia/2',
      '/Managers/{manager}/VirtualMedia/Cd': '/Managers/{manager}/VirtualMedia/CD',
      '/Managers/{manager}/VirtualMedia/Usb': '/Managers/{manager}/VirtualMedia/RemovableDisk',
    },
    around: shows('VirtualMedia', (body) => ({ ...body, MediaTypes: ['CD', 'DVD', 'USBStick'] })),
  },
  'media-slots-usb-first': {
    about: 'Slot 1 is for USB sticks and floppies, slot 2 for CDs.',
    source: 'openstack/ironic drivers/modules/ilo',
    paths: ofBoth({ Usb: '1', Cd: '2' }),
    around: shows('VirtualMediaCollection', (body) => ({ ...body, Members: [...(body['Members'] as readonly unknown[])].reverse() })),
  },
  'media-slots-cd1': {
    about: 'The slot for CDs is CD1.',
    source: 'bmc-toolbox/bmclib internal/redfishwrapper',
    paths: ofBoth({ Cd: 'CD1', Usb: 'HD1' }),
  },
  'media-slots-ext': {
    about: 'Besides the slots EXT1 and EXT2, there are RDOC1 and Remote1, which accept nothing.',
    source: 'ansible community.general _redfish_utils.py; lenovo/python-redfish-lenovo',
    paths: ofBoth({ Cd: 'EXT1', Usb: 'EXT2' }),
    around: shows('VirtualMediaCollection', (body) => {
      const more = ['RDOC1', 'Remote1'].map((slot) => ({ '@odata.id': `${String(body['@odata.id'])}/${slot}` }));
      const members = [...more, ...(body['Members'] as readonly ResourceBody[])];
      return { ...body, Members: members, 'Members@odata.count': members.length };
    }),
    routes: ['/Systems/{system}', '/Managers/{system}'].flatMap((owner) =>
      ['RDOC1', 'Remote1'].map((slot) => ({
        path: `${owner}/VirtualMedia/${slot}`,
        get: ({ path }) => ({
          '@odata.id': ROOT + path,
          '@odata.type': '#VirtualMedia.v1_3_0.VirtualMedia',
          Id: slot,
          Name: slot,
          MediaTypes: ['CD', 'DVD'],
          Inserted: false,
          Image: null,
          ConnectedVia: 'NotConnected',
        }),
        patch: () => refuse('PropertyNotWritable', 'Image'),
      })),
    ),
  },
  'media-by-patch': {
    about: 'A slot has no actions: a PATCH of Image inserts and ejects.',
    source: 'lenovo/python-redfish-lenovo; ansible community.general _redfish_utils.py',
    around: together(shows('VirtualMedia', withoutActions), announcesPatch, async (asked, next) => {
      if (asked.method === 'POST' && (INSERT.test(asked.path) || EJECT.test(asked.path))) return refuse('ResourceMissingAtURI', asked.path);
      if (!/\/VirtualMedia\/(?:Cd|Usb)$/.test(asked.path)) return next(asked);
      if (asked.method !== 'PATCH') return next(asked);
      const sent = await sentBody(asked);
      const answer =
        typeof sent['Image'] === 'string' ? await insertion(next, asked, asked.path, sent) : await ejection(next, asked, asked.path);
      return answer.status === 204 ? { status: 200, body: {} } : answer;
    }),
  },
  'media-image-only': {
    about: 'An insertion with Inserted or WriteProtected gets 400.',
    source: 'openstack/ironic drivers/modules/redfish/boot.py (Supermicro)',
    around: refusesParameters('Inserted', 'WriteProtected'),
  },
  'media-without-inserted': {
    about: 'An insertion with Inserted gets 400.',
    source: 'ansible community.general _redfish_utils.py (iLO 4)',
    around: refusesParameters('Inserted'),
  },
  'media-plain-urls': {
    about: 'An image whose URL has ?, & or = gets 400.',
    source: 'openstack/ironic release notes (Supermicro X12)',
    around: instead(
      'POST',
      INSERT,
      problem(
        400,
        'Base.1.8.ActionParameterValueFormatError',
        'The value for the parameter Image in the action InsertMedia is of a different format than the parameter can accept.',
      ),
      ({ Image }) => /[?&=]/.test(String(Image)),
    ),
  },
  'media-https-only': {
    about: 'An image by http gets 400; TransferProtocolType has HTTPS and CIFS only.',
    source: 'openbmc/bmcweb redfish-core/lib/virtual_media.hpp',
    around: together(
      shows('VirtualMedia', (body) =>
        merged(body, { Actions: { '#VirtualMedia.InsertMedia': { 'TransferProtocolType@Redfish.AllowableValues': ['CIFS', 'HTTPS'] } } }),
      ),
      instead(
        'POST',
        INSERT,
        problem(400, 'Base.1.8.ActionParameterNotSupported', 'The URL scheme http of the parameter Image is not supported.'),
        ({ Image }) => String(Image).startsWith('http:'),
      ),
    ),
  },
  'media-demands-transfer': {
    about: 'An insertion without TransferMethod, or without TransferProtocolType, gets 400.',
    source: 'openbmc/bmcweb redfish-core/lib/virtual_media.hpp',
    around: instead(
      'POST',
      INSERT,
      (sent) => {
        const name = sent['TransferProtocolType'] === undefined ? 'TransferProtocolType' : 'TransferMethod';
        return problem(
          400,
          'Base.1.8.ActionParameterMissing',
          `The action InsertMedia requires the parameter ${name} to be present in the request body.`,
        );
      },
      (sent) => sent['TransferProtocolType'] === undefined || sent['TransferMethod'] === undefined,
    ),
  },
  'media-eject-stale': {
    about: 'After an ejection, the first two reads still show the medium.',
    source: 'openstack/ironic drivers/modules/redfish/boot.py (iDRAC)',
    around: together(
      async (asked, next, { memory }) => {
        if (!EJECT.test(asked.path)) return next(asked);
        const drive = asked.path.replace(EJECT, '');
        const before = (await next({ ...asked, method: 'GET', path: drive })).body;
        const answer = await next(asked);
        if (answer.status < 300 && before?.['Inserted'] === true)
          memory.set(`stale ${drive}`, { left: 2, Inserted: true, Image: before['Image'] });
        return answer;
      },
      replies('GET', DRIVE, (answer, { memory }, { path }) => {
        const stale = memory.get(`stale ${path}`) as { left: number; Inserted: true; Image: unknown } | undefined;
        if (!stale || stale.left-- <= 0 || !answer.body) return answer;
        return { ...answer, body: { ...answer.body, Inserted: true, Image: stale.Image } };
      }),
    ),
  },
  'media-name-stays': {
    about: 'ImageName stays after an ejection: only Inserted counts.',
    source: 'ansible community.general _redfish_utils.py (Supermicro)',
    around: shows('VirtualMedia', (body) => ({ ...body, ImageName: body['ImageName'] ?? 'old.iso' })),
  },
  'media-after-enable': {
    about: 'There are no slots until the action EnableRMedia of the manager has switched them on.',
    source: 'NVIDIA/libredfish src/ami.rs; lenovo/python-redfish-lenovo',
    around: together(
      shows('Manager', (body, { system }) =>
        merged(body, {
          Actions: {
            Oem: {
              '#AMIVirtualMedia.EnableRMedia': {
                target: `${ROOT}/Managers/${system.name}/Actions/Oem/AMIVirtualMedia.EnableRMedia`,
                'RMediaState@Redfish.AllowableValues': ['Enable', 'Disable'],
              },
            },
          },
        }),
      ),
      shows('VirtualMediaCollection', (body, { system }) =>
        system.hardware.get(SWITCHED_ON) ? body : { ...body, Members: [], 'Members@odata.count': 0 },
      ),
    ),
    routes: [
      {
        path: '/Managers/{system}/Actions/Oem/AMIVirtualMedia.EnableRMedia',
        post: ({ system }, { RMediaState: state }) => {
          if (state !== 'Enable' && state !== 'Disable')
            return refuse('ActionParameterValueNotInList', String(state), 'RMediaState', 'AMIVirtualMedia.EnableRMedia');
          system.hardware.set(SWITCHED_ON, state === 'Enable');
          return { status: 200, body: {} };
        },
      },
    ],
  },
  'media-ejected-by-reset': {
    about: 'A reset of the BMC ejects all media.',
    source: 'openstack/ironic drivers/modules/ilo',
    around: replies('POST', /\/Managers\/[^/]+\/Actions\/Manager\.Reset$/, (answer, { system }) => {
      if (answer.status < 300) system.hardware.set(MEDIA, {});
      return answer;
    }),
  },
  'media-of-fujitsu': ofFujitsu('VirtualMediaAction', 'fujitsu-ansible-irmc-integration irmc_setvm.py, irmc_connectvm.py (iRMC S4)'),
  'media-of-fujitsu-fts': ofFujitsu('FTSVirtualMediaAction', 'fujitsu-ansible-irmc-integration irmc_connectvm.py (iRMC S5 and newer)'),
  'media-of-huawei': {
    about: 'Media are connected by the Oem action VmmControl in a task, whose first attempt fails; http gets 400, unlike shares and https.',
    source: 'Huawei/Server_Management_Plugin_Ansible ibmc_ansible; stmcginnis/gofish pull request 177',
    around: together(
      shows('VirtualMedia', (body) => ({
        ...withoutActions(body),
        Oem: {
          Huawei: {
            Actions: { '#VirtualMedia.VmmControl': { target: `${String(body['@odata.id'])}/Oem/Huawei/Actions/VirtualMedia.VmmControl` } },
          },
        },
      })),
      async (asked, next, context) => {
        const control = /\/Oem\/Huawei\/Actions\/VirtualMedia\.VmmControl$/;
        if (INSERT.test(asked.path) || EJECT.test(asked.path)) return refuse('ResourceMissingAtURI', asked.path);
        if (!control.test(asked.path) || asked.method !== 'POST' || !isLoggedIn(context, asked)) return next(asked);
        const sent = await sentBody(asked);
        const slot = asked.path.replace(control, '');
        if (sent['VmmControlType'] !== 'Connect') return answered(await ejection(next, asked, slot));
        const image = String(sent['Image']);
        const drive = slot.split('/').at(-1);
        if (!isDrive(drive) || !/^(?:nfs|cifs|https):/i.test(image))
          return problem(400, 'iBMC.1.0.FileTransferProtocolMismatch', `The protocol of the image URI and the parameter do not match.`);
        const isFirst = context.memory.get('connected') === undefined;
        context.memory.set('connected', true);
        if (!isFirst && /^https:/i.test(image)) {
          const { status, body } = await insertion(next, asked, slot, { Image: image });
          if (status >= 400) return { status, body: body! };
        } else if (!isFirst) connect(context.system, drive, image);
        return startTask(context.service, context.system, {
          name: 'VmmControl',
          phase: isFirst ? 'failed' : 'completed',
          work: { kind: 'done', what: 'VmmControl' },
          takes: 0,
          ended: context.service.clock.now(),
          ...(isFirst && { message: ['CouldNotEstablishConnection', image] }),
        }).answer;
      },
    ),
  },
} as const satisfies Readonly<Record<string, Habit>>;
