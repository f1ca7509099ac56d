/** VirtualMedia (DSP2046): a machine's virtual drives, below both /Systems and /Managers. */
import { flag, oneOf, refuseAction, text, type Checks } from '../protocol/checks';
import { download, isFetchable } from '../protocol/download';
import { DRIVES, MEDIA, isDrive, type Drive } from '../../hardware/boot-media';
import { refuse } from '../protocol/messages';
import { ROOT, collectionRoute, resource, type ServiceAnswer, type Route, type ResourceBody, type SystemContext } from '../protocol/routes';

const INSERT = 'VirtualMedia.InsertMedia';
const EJECT = 'VirtualMedia.EjectMedia';
const PARAMETERS: Checks = {
  Image: text,
  Inserted: flag,
  WriteProtected: flag,
  UserName: text,
  Password: text,
  TransferMethod: oneOf(['Stream']),
  TransferProtocolType: oneOf(['HTTP', 'HTTPS']),
};
const driveOf = ({ values: [, id] }: SystemContext): Drive | undefined => (isDrive(id) ? id : undefined);
const fileName = (url: string): string => new URL(url).pathname.split('/').at(-1)!.slice(0, 200);

function show(at: SystemContext): ResourceBody | undefined {
  const drive = driveOf(at);
  if (!drive) return undefined;
  const { name, types } = DRIVES[drive];
  const medium = at.system.hardware.get(MEDIA)[drive];
  return resource(at.path, 'VirtualMedia', drive, name, {
    MediaTypes: types,
    ConnectedVia: medium ? 'URI' : 'NotConnected',
    Image: medium?.url ?? null,
    ImageName: medium ? fileName(medium.url) : null,
    Inserted: medium !== undefined && !medium.hidden,
    WriteProtected: medium?.writeProtected ?? true,
    TransferMethod: medium ? 'Stream' : null,
    TransferProtocolType: medium ? new URL(medium.url).protocol.slice(0, -1).toUpperCase() : null,
    UserName: medium?.username ?? null,
    Password: null,
    Actions: {
      [`#${INSERT}`]: {
        target: `${ROOT}${at.path}/Actions/${INSERT}`,
        'TransferMethod@Redfish.AllowableValues': ['Stream'],
        'TransferProtocolType@Redfish.AllowableValues': ['HTTP', 'HTTPS'],
      },
      [`#${EJECT}`]: { target: `${ROOT}${at.path}/Actions/${EJECT}` },
    },
  });
}

async function insert(at: SystemContext, body: ResourceBody): Promise<ServiceAnswer | undefined> {
  const { service, system } = at;
  const drive = driveOf(at);
  if (!drive) return refuse('ResourceMissingAtURI', at.path);
  const refused = refuseAction(INSERT, body, PARAMETERS, ['Image']);
  if (refused) return refused;
  const { Image: url, Inserted, WriteProtected = true, UserName, Password } = body;
  if (!isFetchable(url)) return refuse('ActionParameterValueTypeError', String(url), 'Image', INSERT);
  if (system.hardware.get(MEDIA)[drive]) return refuse('ResourceInUse');
  const from = { url, ...(UserName !== undefined && { username: UserName as string, password: (Password ?? '') as string }) };
  const response = await download(service, from, 'HEAD', 0);
  if (typeof response === 'string') return refuse('CouldNotEstablishConnection', url);
  const medium = { ...from, writeProtected: WriteProtected as boolean, ...(Inserted === false && { hidden: true as const }) };
  system.hardware.set(MEDIA, { ...system.hardware.get(MEDIA), [drive]: medium });
  return undefined;
}
function eject(at: SystemContext, body: ResourceBody): ServiceAnswer | undefined {
  const drive = driveOf(at);
  if (!drive) return refuse('ResourceMissingAtURI', at.path);
  const refused = refuseAction(EJECT, body, {});
  if (refused) return refused;
  at.system.hardware.set(MEDIA, { ...at.system.hardware.get(MEDIA), [drive]: undefined });
  return undefined;
}

export const MEDIA_ROUTES: readonly Route<SystemContext>[] = ['/Systems/{system}', '/Managers/{system}'].flatMap((owner) => {
  const path = `${owner}/VirtualMedia`;
  return [
    collectionRoute<SystemContext>(path, 'VirtualMedia', () => Object.keys(DRIVES)),
    { path: `${path}/{drive}`, get: show },
    { path: `${path}/{drive}/Actions/${INSERT}`, post: insert },
    { path: `${path}/{drive}/Actions/${EJECT}`, post: eject },
  ];
});
