/**
 * Where an initiator finds an iSCSI volume: the properties of a volume target (connection information as Cinder writes it), and the root
 * paths of RFC 4173 §5.
 */

export interface IscsiVolume {
  /** One for each path to the volume. */
  readonly rootPaths: readonly string[];
  /** CHAP. Absent: the target needs none. */
  readonly username?: string | undefined;
  readonly password?: string | undefined;
}
/** The volumes of a machine. It boots the first one. */
export interface IscsiBoot {
  /** The name of the initiator. Absent: the initiator's own default. */
  readonly initiator?: string | undefined;
  readonly volumes: readonly IscsiVolume[];
}

/** RFC 3720 §3.2.6: at most 223 bytes, without white space. */
const NAME = /^(?:iqn|eui|naa)\.[\w.:-]{1,219}$/;
const HOST = /^[a-z\d](?:[a-z\d.-]{0,251}[a-z\d])?$/i;
const IPV6 = /^[\da-f:.]{2,45}$/i;
/** The largest flat LUN (SAM-5 §4.7.7.3). */
const MAX_LUN = 0x3fff;
const MAX_PATHS = 16;
/** Bytes; an initiator sends them in one text request. */
const MAX_SECRET = 255;

type Properties = Readonly<Record<string, unknown>>;

/** The values of `target_iqns`, …: lists of the same length; otherwise the single value of `target_iqn`, …. */
function valuesOf(properties: Properties, key: string): readonly unknown[] {
  const many = properties[`${key}s`];
  if (Array.isArray(many) && many.length > 0) return many.slice(0, MAX_PATHS);
  const one = properties[key];
  if (Array.isArray(one)) return one.slice(0, MAX_PATHS);
  return one === undefined || one === null ? [] : [one];
}

/** `host`, `host:port`, `[address]`, `[address]:port`. */
function hostAndPort(portal: unknown): readonly [host: string, port: string] | undefined {
  if (typeof portal !== 'string' || portal.length > 300) return undefined;
  const bracketed = /^\[([^\]]*)\](?::(\d{1,5}))?$/.exec(portal);
  const [, host = '', port = ''] = bracketed ?? /^([^:]*)(?::(\d{1,5}))?$/.exec(portal) ?? [];
  if (!(bracketed ? IPV6 : HOST).test(host) || Number(port) > 65_535) return undefined;
  return [bracketed ? `[${host}]` : host, port];
}

function lunOf(value: unknown): number | undefined {
  const number = typeof value === 'string' && /^\d{1,5}$/.test(value) ? Number(value) : value;
  return typeof number === 'number' && Number.isInteger(number) && number >= 0 && number <= MAX_LUN ? number : undefined;
}

const secretOf = (value: unknown, key: string): string | undefined => {
  if (value === undefined || value === null || value === '') return undefined;
  if (typeof value !== 'string' || value.includes('\0') || Buffer.byteLength(value) > MAX_SECRET)
    throw new Error(`${key} is not a text of at most ${MAX_SECRET} bytes`);
  return value;
};

/** Throws an Error that names the wrong property, and no secret. @internal */
export function iscsiVolume(properties: Properties): IscsiVolume {
  const [portals, names, luns] = ['target_portal', 'target_iqn', 'target_lun'].map((key) => valuesOf(properties, key));
  if (portals!.length === 0) throw new Error('target_portal is missing');
  const rootPaths = portals!.map((portal, index) => {
    const place = hostAndPort(portal);
    if (!place) throw new Error('target_portal is not an address with an optional port');
    const name = names![index] ?? names![0];
    if (typeof name !== 'string' || !NAME.test(name)) throw new Error('target_iqn is not the name of an iSCSI target');
    const lun = lunOf(luns![index] ?? luns![0]);
    if (lun === undefined) throw new Error(`target_lun is not an integer from 0 to ${MAX_LUN}`);
    return `iscsi:${place[0]}::${place[1]}:${lun.toString(16)}:${name}`;
  });
  const username = secretOf(properties['auth_username'], 'auth_username');
  const password = secretOf(properties['auth_password'], 'auth_password');
  return { rootPaths, username, password };
}

interface Connector {
  readonly type: string;
  readonly connector_id: string;
}
interface Target {
  readonly uuid: string;
  readonly volume_type: string;
  readonly boot_index: number;
  readonly properties: Properties;
}
/** Reads a machine's volume connectors and targets. Undefined: there is no iSCSI volume to boot. Throws an Error that names the target. */
export function iscsiBoot(connectors: readonly Connector[], targets: readonly Target[]): IscsiBoot | undefined {
  const iscsi = targets.filter(({ volume_type: type }) => type === 'iscsi').sort((a, b) => a.boot_index - b.boot_index);
  if (iscsi[0]?.boot_index !== 0) return undefined;
  const volumes = iscsi.map(({ uuid, properties }) => {
    try {
      return iscsiVolume(properties);
    } catch (error) {
      throw new Error(`Volume target ${uuid}: ${(error as Error).message}`, { cause: error });
    }
  });
  const initiator = connectors.find(({ type }) => type === 'iqn')?.connector_id;
  if (initiator !== undefined && !NAME.test(initiator)) throw new Error('The volume connector of type iqn is not the name of an initiator');
  return { volumes, initiator };
}
