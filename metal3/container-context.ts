/** The facts that a container's settings depend on: its variables, its address, and the files that are mounted. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The folder of ramdisks and images in the volume that the containers share. */
export const IMAGES = '/shared/html/images';

/** The facts that are found in the container. */
interface Findings {
  /** The address on the provisioning network. */
  readonly ip: string;
  /** Undefined: not known, and not needed. */
  readonly interface?: string | undefined;
  /** Whether the host has IPv6. */
  readonly hasIpv6: boolean;
  readonly exists: (path: string) => boolean;
}
/** Certificate and key of a listener. */
interface Pair {
  readonly cert: string;
  readonly key: string;
}
export interface ContainerContext extends Findings {
  /** A variable; an empty one counts as not set, as in shell scripts. */
  readonly get: (name: string, preset?: string) => string;
  /** The address in URLs. */
  readonly host: string;
  /** The wildcard address. */
  readonly everywhere: '::' | '0.0.0.0';
  /** The folder of configuration files. */
  readonly conf: string;
  /** The folder of the database. */
  readonly data: string;
  readonly scheme: 'http' | 'https';
  readonly baseUrl: string;
  /** The API has TLS. */
  readonly tls: boolean;
  /** Of the API. */
  readonly certificate: Pair & { readonly authority: string };
  /** The container `httpd` terminates the API's TLS and checks the passwords. */
  readonly proxy: boolean;
  /** Media for BMCs are served with TLS only. */
  readonly mediaTls: boolean;
  readonly mediaCertificate: Pair;
  /** There is a ramdisk in the shared volume. */
  readonly hasRamdisk: boolean;
  /** The API has users. */
  readonly hasUsers: boolean;
  /** The files of CA certificates that ramdisks need. */
  readonly ramdiskAuthorities: readonly string[];
}

/** The environment cannot be used. The message is for the operator. */
export class Metal3Error extends Error {}

/** Whether the folder has a certificate and its key. @throws Metal3Error for one without the other */
function hasPair(folder: string, exists: Findings['exists']): boolean {
  const [cert, key] = ['tls.crt', 'tls.key'].map((name) => exists(`${folder}/${name}`));
  if (cert !== key) throw new Metal3Error(`${folder} has ${cert ? 'tls.crt' : 'tls.key'} only: a certificate needs its private key`);
  return cert!;
}
const pairIn = (folder: string): Pair => ({ cert: `${folder}/tls.crt`, key: `${folder}/tls.key` });

/** @throws Metal3Error */
export function contextOf(environment: Environment, findings: Findings): ContainerContext {
  const { ip, exists } = findings;
  const get = (name: string, preset = ''): string => environment[name] || preset;
  const host = ip.includes(':') ? `[${ip}]` : ip;
  const conf = get('CUSTOM_CONFIG_DIR', '/conf');
  const named = get('IRONIC_CACERT_FILE', '/certs/ca/ironic/tls.crt');
  const hasCertificate = hasPair('/certs/ironic', exists);
  if (!hasCertificate && exists(named)) throw new Metal3Error(`${named} asks for TLS, and /certs/ironic has no tls.crt and tls.key`);
  if (hasPair('/certs/ipxe', exists)) throw new Metal3Error('/certs/ipxe: iPXE with TLS is not supported; remove the mount');
  const tls = hasCertificate;
  const scheme = tls ? 'https' : 'http';
  const certificate = { ...pairIn('/certs/ironic'), authority: exists(named) ? named : '/certs/ironic/tls.crt' };
  const webServers = get('WEBSERVER_CACERT_FILE');
  const proxy = tls && /^(?:true|1|yes|on)$/i.test(get('IRONIC_REVERSE_PROXY_SETUP'));
  return {
    ...findings,
    get,
    host,
    conf,
    tls,
    scheme,
    certificate,
    proxy,
    everywhere: findings.hasIpv6 ? '::' : '0.0.0.0',
    data: get('CUSTOM_DATA_DIR', '/data'),
    baseUrl: get('IRONIC_BASE_URL', `${scheme}://${host}:${get('IRONIC_ACCESS_PORT', '6385')}`),
    mediaTls: hasPair('/certs/vmedia', exists),
    mediaCertificate: pairIn('/certs/vmedia'),
    hasRamdisk: ['kernel', 'initramfs'].every((name) => exists(`${IMAGES}/ironic-python-agent.${name}`)),
    hasUsers: exists('/auth/ironic/htpasswd') || get('IRONIC_HTPASSWD', get('HTTP_BASIC_HTPASSWD')) !== '',
    ramdiskAuthorities: [...(tls ? [certificate.authority] : []), ...(webServers === '' ? [] : [webServers])],
  };
}
