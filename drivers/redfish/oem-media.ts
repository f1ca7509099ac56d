/** Makers' own ways to virtual media, for services without the standard's, and what makers' BMCs need for media. Facts only; sources beside. */
import { Fault } from '../../model/errors';
import type { Credentials } from '../../model/urls';
import {
  linkOf,
  listOf,
  member,
  numberOf,
  patchResource,
  readResource,
  textOf,
  textsOf,
  RedfishError,
  type RedfishAnswer,
  type RedfishResource,
  type SendRedfishRequest,
} from '../../wire/redfish';
import type { Row } from './quirks';
import type { SystemView } from './target';

export interface MediaQuirks {
  /** Schemes of the URLs from which the BMC takes media. Absent: all. */
  readonly schemes?: readonly string[];
  /** Identifiers of drives that take no medium. */
  readonly unusable?: RegExp;
  /** The licence without which the BMC takes no medium. */
  readonly licence?: string;
  /** The firmware that media need, where the BMC has an older one or does not tell. */
  readonly firmware?: string;
}
/** Later rows take precedence. */
export const MEDIA_ROWS: readonly Row<MediaQuirks>[] = [
  { maker: 'openbmc', quirks: { schemes: ['https', 'smb', 'cifs'] }, source: 'openbmc/bmcweb redfish-core/lib/virtual_media.hpp' },
  {
    maker: 'lenovo',
    quirks: { unusable: /^(?:RDOC|Remote)\d*$/i, firmware: 'XCC 2.50' },
    source: 'ansible community.general _redfish_utils.py, lenovo/python-redfish-lenovo',
  },
  { maker: 'hpe', quirks: { licence: 'iLO Advanced' }, source: 'metal3-io/metal3-docs supported_hardware.md' },
  {
    maker: 'hpe',
    generation: 'iLO 6',
    firmware: { below: '1.57' },
    quirks: { firmware: 'iLO 6 1.57' },
    source: 'metal3-io/metal3-docs supported_hardware.md',
  },
  { maker: 'supermicro', quirks: { licence: 'SFT-OOB-LIC or SFT-DCMS-SINGLE' }, source: 'bmc-toolbox/bmclib providers/supermicro' },
  { maker: 'fujitsu', quirks: { licence: 'iRMC Advanced Pack' }, source: 'fujitsu-ansible-irmc-integration irmc_connectvm.py' },
];
/** What an operator can do about a medium that was not inserted, as the end of a sentence; empty: nothing is known. */
export function mediaAdvice({ licence, firmware, vendor }: MediaQuirks & { readonly vendor?: string | undefined }, errors: string): string {
  const isAboutLicence = licence !== undefined && (errors === '' || /licen[cs]|activation key/i.test(errors));
  const needs = [isAboutLicence ? `the licence ${licence}` : [], firmware === undefined ? [] : `the firmware ${firmware} or later`].flat();
  return needs.length === 0 ? '' : `. Virtual media of ${vendor ?? 'this maker'} need ${needs.join(', and ')}`;
}

export interface OemMedium {
  readonly url: string;
  readonly credentials: Credentials | undefined;
}
/** A maker's own way for one drive. All functions throw RedfishError. */
export interface OemMedia {
  /** For messages: where the maker's way is in the service. */
  readonly field: string;
  readonly schemes: readonly string[];
  /** How often an insertion that the BMC accepted, and then gave up, is tried. */
  readonly tries: number;
  insert(ask: SendRedfishRequest, medium: OemMedium): Promise<RedfishAnswer>;
  eject(ask: SendRedfishRequest): Promise<RedfishAnswer>;
  /** The drive as the standard would show it. Absent: the resource is one. */
  read?(ask: SendRedfishRequest): Promise<RedfishResource>;
}

/** The members of an object that are objects or lists of them. */
const partsOf = (value: unknown): readonly (readonly [string, unknown])[] =>
  typeof value === 'object' && value !== null ? Object.entries(value).slice(0, 100) : [];
const VMM = '#VirtualMedia.VmmControl';
/**
 * iBMC (Huawei, xFusion and others): a drive's action VmmControl, below the Oem of whatever brand the firmware was built for. An image comes
 * from a share, or by https with newer firmware: http gets FileTransferProtocolMismatch. A connection may fail, and the next one work.
 */
function iBmcMedia({ body }: RedfishResource): OemMedia | undefined {
  const places = [
    member(body, 'Actions'),
    member(body, 'Actions', 'Oem'),
    ...partsOf(member(body, 'Oem')).map(([, oem]) => member(oem, 'Actions')),
  ];
  const target = places.map((place) => textOf(member(place, VMM, 'target'))).find((found) => found !== undefined);
  if (target === undefined) return undefined;
  return {
    field: VMM,
    schemes: ['nfs', 'cifs', 'https'],
    tries: 3,
    insert: (ask, { url, credentials }) =>
      ask('POST', target, { body: { VmmControlType: 'Connect', Image: withLogin(url, credentials) }, repeatable: false }),
    eject: (ask) => ask('POST', target, { body: { VmmControlType: 'Disconnect' }, repeatable: true }),
  };
}
const withLogin = (url: string, credentials: Credentials | undefined): string =>
  credentials === undefined
    ? url
    : url.replace('://', `://${encodeURIComponent(credentials.username)}:${encodeURIComponent(credentials.password)}@`);

/** iRMC: what it calls a drive's settings, and its commands. */
const IRMC_DRIVES = [
  { settings: 'CDImage', command: 'CD', types: ['CD', 'DVD'] },
  { settings: 'HDImage', command: 'HD', types: ['USBStick'] },
] as const;
const IRMC_SHARES: Readonly<Record<string, string>> = { nfs: 'NFS', cifs: 'SMB', smb: 'SMB' };
/** `nfs://server/share/folder/boot.iso` as iRMC has it. */
function irmcImage(url: string, credentials: Credentials | undefined): Readonly<Record<string, string>> {
  const [, scheme = '', server = '', path = '', name = ''] = /^(\w+):\/\/([^/]+)(\/.*)?\/([^/]+)$/.exec(url) ?? [];
  const isNfs = scheme.toLowerCase() === 'nfs';
  return {
    Server: server,
    ShareName: isNfs ? path : path.slice(1),
    ImageName: name,
    ShareType: IRMC_SHARES[scheme.toLowerCase()] ?? 'NFS',
    UserName: credentials?.username ?? '',
    Password: credentials?.password ?? '',
    UserDomain: '',
  };
}
interface Irmc {
  readonly target: string;
  /** VirtualMediaAction, FTSVirtualMediaAction: the name depends on the firmware. */
  readonly parameter: string;
  /** The commands of the moment: an inserted drive has Disconnect. Empty without a licence. */
  readonly commands: readonly string[];
}
function irmcOf(system: Pick<RedfishResource, 'body'>): Irmc | undefined {
  const action = partsOf(member(system.body, 'Actions', 'Oem')).find(([name]) => /^#\w+ComputerSystem\.VirtualMedia$/.test(name))?.[1];
  const target = textOf(member(action, 'target'));
  if (target === undefined) return undefined;
  const listed = partsOf(action).find(([name]) => /^\w*VirtualMediaAction@Redfish\.AllowableValues$/.test(name));
  return {
    target,
    parameter: listed?.[0].split('@', 1)[0] ?? 'FTSVirtualMediaAction',
    commands: textsOf(listed?.[1]) ?? [],
  };
}
/**
 * iRMC's own drives: their settings are below the system's Oem, and an action of the system connects them.
 * Undefined: the service has none. A service without a licence lists no commands, and no drives then.
 */
export async function irmcDrives(system: SystemView): Promise<readonly Drive[] | undefined> {
  const irmc = irmcOf(system);
  if (!irmc) return undefined;
  const brand = partsOf(member(system.body, 'Oem')).find(([, oem]) => linkOf(member(oem, 'VirtualMedia')) !== undefined)?.[1];
  const path = linkOf(member(brand, 'VirtualMedia')) ?? `${system.path}/Oem/ts_fujitsu/VirtualMedia`;
  const drives = IRMC_DRIVES.filter(({ command }) => irmc.commands.some((name) => name.endsWith(command)));
  return Promise.all(drives.map((drive) => irmcDrive(system, path, drive)));
}
async function irmcDrive(system: SystemView, path: string, drive: (typeof IRMC_DRIVES)[number]): Promise<Drive> {
  const { settings, command, types } = drive;
  const act = async (ask: SendRedfishRequest, verb: 'Connect' | 'Disconnect'): Promise<RedfishAnswer> => {
    const irmc = irmcOf(await readResource(ask, system.path));
    if (!irmc) throw new RedfishError('protocol', `${system.path} no longer offers to connect virtual media`);
    return ask('POST', irmc.target, { body: { [irmc.parameter]: `${verb}${command}` }, repeatable: true });
  };
  const read = async (ask: SendRedfishRequest): Promise<RedfishResource> => {
    const now = irmcOf(await readResource(ask, system.path));
    const { body, etag } = await readResource(ask, path);
    const Inserted = now?.commands.includes(`Disconnect${command}`) ?? false;
    return { path, etag, body: { Id: settings, MediaTypes: types, Inserted, Image: Inserted ? imageOf(member(body, settings)) : null } };
  };
  const insert = async (ask: SendRedfishRequest, { url, credentials }: OemMedium): Promise<RedfishAnswer> => {
    const resource = await readResource(ask, path);
    const isOff = numberOf(member(resource.body, settings, 'MaximumNumberOfDevices')) === 0;
    await patchResource(ask, resource, {
      [settings]: { ...irmcImage(url, credentials), ...(isOff ? { MaximumNumberOfDevices: 1 } : {}) },
      RemoteMountEnabled: true,
    });
    return act(ask, 'Connect');
  };
  const oem: OemMedia = {
    field: `Oem VirtualMedia, ${settings}`,
    schemes: Object.keys(IRMC_SHARES),
    tries: 1,
    insert,
    eject: (ask) => act(ask, 'Disconnect'),
    read,
  };
  return { ...(await read(system.ask)), oem };
}
function imageOf(settings: unknown): string | null {
  const [server, share, name, type] = ['Server', 'ShareName', 'ImageName', 'ShareType'].map((key) => textOf(member(settings, key)));
  if (server === undefined || name === undefined) return null;
  return `${(type ?? 'NFS').toLowerCase()}://${server}/${(share ?? '').replace(/^\/+/, '')}/${name}`;
}

/** A virtual drive; with `oem`, it is changed by its maker's way. */
export type Drive = RedfishResource & { readonly oem?: OemMedia | undefined };
/** Adds the maker's way to drives without the standard's action. */
export function withOemWay(drive: RedfishResource): Drive {
  if (textOf(member(drive.body, 'Actions', '#VirtualMedia.InsertMedia', 'target')) !== undefined) return drive;
  const oem = iBmcMedia(drive);
  return oem ? { ...drive, oem } : drive;
}
/** Reads a drive again. */
export const readDrive = async (ask: SendRedfishRequest, { path, oem }: Drive): Promise<Drive> =>
  oem?.read ? { ...(await oem.read(ask)), oem } : withOemWay(await readResource(ask, path));

/** What makes the server's URLs of a scheme, for messages. */
const WAYS: readonly (readonly [schemes: readonly string[], way: string])[] = [
  [['https'], 'set [boot]https_port, or an https URL in [deploy]external_http_url or driver_info/external_http_url'],
  [['nfs'], 'set driver_info/vmedia_transport_protocol to NFS, with [nfs]base_url and [nfs]share_path'],
  [['cifs', 'smb'], 'set driver_info/vmedia_transport_protocol to CIFS, with [cifs]base_url and [cifs]share_path'],
];
/** The refusal of a URL that the BMC does not take. @param place the drive's path, and the field that takes the URL */
export function refusedScheme(node: string, vendor: string | undefined, place: string, scheme: string, schemes: readonly string[]): Fault {
  const ways = WAYS.filter(([made]) => made.some((name) => schemes.includes(name))).map(([, way]) => way);
  return new Fault('InvalidParameterValue', {
    message:
      `The BMC of node ${node} (${vendor ?? 'unknown maker'}) takes virtual media by ${schemes.join(', ')} only (${place}), ` +
      `and the image has a URL of ${scheme}. To change that, ${ways.join('; or ')}.`,
  });
}
/** The schemes that a list of TransferProtocolType leaves; undefined: all. */
export const schemesAllowed = (protocols: readonly string[] | undefined): readonly string[] | undefined => {
  // A service that lists HTTPS and not HTTP means it. Lists without both come from services that take any URL.
  const names = listOf(protocols).map((name) => String(name).toLowerCase());
  return names.includes('https') && !names.includes('http') ? names : undefined;
};
