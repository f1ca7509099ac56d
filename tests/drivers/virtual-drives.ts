/** Virtual drives below the resources of a test's Redfish service, which insert and eject images. */
import type { RedfishRequest, RedfishService, RedfishReply } from '../wire/redfish/service';

interface DriveMade {
  readonly types?: readonly string[];
  readonly image?: string;
  /** false: the drive has no actions, and is changed by PATCH if `allow` permits it. */
  readonly actions?: boolean;
}
export interface VirtualDrives {
  /** Puts drives below a resource (the system, a manager). */
  put(owner: string, made: Readonly<Record<string, DriveMade>>): void;
  /** The drive as it is now. */
  at(path: string): Record<string, unknown>;
  /** From then on the drives insert and eject images. `first` may answer before them. `allow`: the methods that a drive announces. */
  work(first?: (asked: RedfishRequest) => RedfishReply | undefined, allow?: string): void;
}

export function virtualDrives(service: RedfishService): VirtualDrives {
  const drives = (owner: string, made: Readonly<Record<string, DriveMade>>): void => {
    const collection = `${owner}/VirtualMedia`;
    const resource = (service.resources[owner] ??= {}) as Record<string, unknown>;
    resource['VirtualMedia'] = { '@odata.id': collection };
    service.resources[collection] = { Members: Object.keys(made).map((id) => ({ '@odata.id': `${collection}/${id}` })) };
    for (const [id, { types = ['CD', 'DVD'], image, actions = true }] of Object.entries(made)) {
      const path = `${collection}/${id}`;
      const action = (name: string): object => ({ [`#VirtualMedia.${name}`]: { target: `${path}/Actions/VirtualMedia.${name}` } });
      service.resources[path] = {
        '@odata.id': path,
        MediaTypes: types,
        Inserted: image !== undefined,
        Image: image ?? null,
        ...(actions ? { Actions: { ...action('InsertMedia'), ...action('EjectMedia') } } : {}),
      };
    }
  };
  const drive = (path: string): Record<string, unknown> => service.resources[path] as Record<string, unknown>;
  /** The drives' answers; `first` may answer before them. */
  const works = (first: (asked: RedfishRequest) => RedfishReply | undefined = () => undefined, allow?: string): void => {
    service.reply = (asked) => {
      const said = first(asked);
      if (said) return said;
      const path = asked.path.replace(/\/Actions\/.*/, '');
      const body = asked.body as { readonly Image?: string | null } | undefined;
      if (!path.includes('/VirtualMedia/') || !(path in service.resources)) return undefined;
      if (asked.method === 'GET') return { status: 200, body: drive(path), headers: allow === undefined ? {} : { allow } };
      const image = asked.path.endsWith('EjectMedia') ? null : (body?.Image ?? null);
      Object.assign(drive(path), { Image: image, Inserted: image !== null });
      return { status: 204 };
    };
  };
  return { put: drives, at: drive, work: works };
}
