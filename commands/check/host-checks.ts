/** What `bloomery check` finds about this host: a table of checks. It changes nothing, and uses what the start of the server uses. */
import { X509Certificate } from 'node:crypto';
import { createSocket, type Socket } from 'node:dgram';
import { accessSync, constants, existsSync, readFileSync, statfsSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openServedFile } from '../../boot/files';
import { loadersOf, planSubnets } from '../../boot/dhcp/setup';
import { planSubnets6 } from '../../boot/dhcp/setup6';
import { readInspectionFiles } from '../../conductor/index';
import { listenHosts } from '../../config/access';
import type { LoadedOptions, Options } from '../../config/options';
import { tlsOf } from '../../config/tls';
import { systemClock } from '../../model/clock';
import { reasonOf } from '../../model/errors';
import { silentLog } from '../../model/log';
import { basicAuthorization, credentialsOf, withoutCredentials, withoutUrlCredentials } from '../../model/urls';
import { startEnforcer } from '../../policy/live';
import {
  bootHostsOf,
  checkUsers,
  resolveConfigured,
  SETTING_CHECKS,
  sharesDatabaseOf,
  tlsListeners,
  warningLog,
} from '../../server/settings';
import { findEmbedded } from '../../store/embedded/embedded';
import { connect } from '../../store/sql/connection';
import { schemaState, stepsDone, type SchemaState } from '../../store/sql/schema';
import { tlsContextOf } from '../../wire/http/listener-tls';
import { imageServerLogin } from '../../wire/image-servers';
import { createKeystoneSession } from '../../wire/keystone/session';
import { keystoneSettings } from '../../wire/keystone/settings';
import { glanceId } from '../../wire/openstack/glance';
import { listenError } from '../../wire/sockets/listen-errors';
import { openUdp, openUdp6, readLinks } from '../../wire/sockets/link';
import { timeoutSignal } from '../../wire/timeout-signal';

/** `refused`: the server does not start. */
type Severity = 'ok' | 'note' | 'warning' | 'refused';
interface Finding {
  readonly what: string;
  readonly severity: Severity;
  readonly message: string;
}
interface HostToCheck {
  readonly options: LoadedOptions;
  readonly roles: readonly string[];
  readonly stateDir: string;
  readonly databaseUrl: string | undefined;
}
interface CheckContext extends HostToCheck {
  /** With the values of this host. */
  readonly resolved: Options;
  /** The process of a server on this state directory, whose ports are in use. */
  readonly running: string | undefined;
  /** The addresses of a boot service; none where they cannot be determined, which is a finding of its own. */
  readonly bootHosts: (option: Parameters<typeof bootHostsOf>[1]) => readonly string[];
}
type Result = readonly [Severity, string];
interface HostCheck {
  readonly what: string;
  /** The check applies only with one of these roles. */
  readonly roles?: readonly string[];
  /** Returns what it found; nothing: all is well. An error is a refusal. */
  readonly check: (context: CheckContext) => Promise<readonly Result[]> | readonly Result[];
}

const REQUEST_TIMEOUT_MS = 5_000;
const MIB = 2 ** 20;
/** Below these, the disk of the state directory is reported. */
const LITTLE_SPACE = 2048 * MIB;
const NO_SPACE = 200 * MIB;
const DAY_MS = 86_400_000;
const SOON_DAYS = 30;
/** Clocks that differ more confuse leases and tokens. */
const CLOCK_MS = 5_000;

/** The path itself, or the nearest folder above it that exists. */
const existing = (path: string): string => (existsSync(path) ? path : existing(dirname(path)));

/** @internal */
export function spaceFinding(freeBytes: number): Result {
  const free = `${Math.round(freeBytes / MIB)} MiB free`;
  if (freeBytes < NO_SPACE) return ['warning', `${free}: the database needs more to work`];
  return freeBytes < LITTLE_SPACE ? ['warning', `${free}: images that are cached there need more`] : ['ok', free];
}

/** @internal @param now in milliseconds since the epoch */
export function certificateFinding(certificate: Pick<X509Certificate, 'validFrom' | 'validTo'>, path: string, now: number): Result {
  const [from, to] = [Date.parse(certificate.validFrom), Date.parse(certificate.validTo)];
  if (now < from) return ['warning', `${path} is valid only from ${certificate.validFrom}: compare the clock`];
  if (now > to) return ['warning', `${path} expired at ${certificate.validTo}`];
  const days = Math.floor((to - now) / DAY_MS);
  return [days < SOON_DAYS ? 'warning' : 'ok', `${path} is valid for ${days} more days`];
}

const SCHEMAS: Readonly<Record<SchemaState, Result>> = {
  none: ['note', 'it is empty: the start of the server creates the schema'],
  older: ['note', 'its schema is older: the start of the server updates it'],
  current: ['ok', 'its schema is up to date'],
  newer: ['refused', 'its schema is newer than this program knows: install the version that created it, or a later one'],
};
async function databaseFindings({ databaseUrl, stateDir }: CheckContext): Promise<readonly Result[]> {
  const found = databaseUrl === undefined ? await findEmbedded(stateDir) : undefined;
  const connection = databaseUrl ?? found?.running?.connection;
  if (connection === undefined) {
    const there = found ? 'the embedded database is there and not running' : 'the start of the server creates the embedded database';
    return [[found ? 'ok' : 'note', `${there} (${stateDir})`]];
  }
  const { db, where } = await connect({ connection, poolSize: 1, log: silentLog });
  try {
    const [severity, message] = SCHEMAS[schemaState(await stepsDone(db))];
    const before = Date.now();
    const { rows } = await db.raw<{ rows: { now: number }[] }>('SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now');
    const difference = Math.max(before - rows[0]!.now, rows[0]!.now - Date.now(), 0);
    const clock: readonly Result[] =
      difference > CLOCK_MS
        ? [['warning', `${where}: its clock differs from that of this host by ${Math.round(difference / 1000)} s`]]
        : [];
    return [[severity, `${where}: ${message}`], ...clock];
  } finally {
    await db.destroy();
  }
}

/** Listens on this address and port, then closes the socket. Rejects with an Error for the operator. */
const tryTcp = (host: string, port: number, what: string): Promise<void> =>
  new Promise((done, fail) => {
    const server = createServer();
    server.once('error', (error) => fail(listenError(error, `${host} port ${port}`, what)));
    server.listen({ host, port, exclusive: true }, () => server.close(() => done()));
  });
const tryUdp = (host: string, port: number, what: string): Promise<void> =>
  new Promise((done, fail) => {
    const socket = createSocket({ type: host.includes(':') ? 'udp6' : 'udp4', reuseAddr: false });
    socket.once('error', (error) => {
      socket.close();
      fail(listenError(error, `${host} port ${port}`, what));
    });
    socket.bind({ address: host, port, exclusive: true }, () => socket.close(() => done()));
  });

/** Tries each listener by itself, so that one failure does not hide another. */
async function eachListener(
  running: string | undefined,
  listeners: readonly (readonly [text: string, attempt: () => Promise<void>])[],
): Promise<readonly Result[]> {
  const results: Result[] = [];
  for (const [text, attempt] of listeners)
    try {
      await attempt();
      results.push(['ok', text]);
    } catch (error) {
      const inUse = /port is in use/.test(reasonOf(error));
      results.push(
        inUse && running !== undefined
          ? ['note', `${text}: in use, by the server that runs (process ${running})`]
          : ['refused', reasonOf(error)],
      );
    }
  return results;
}

function httpListeners({ options, roles, bootHosts }: CheckContext): readonly (readonly [host: string, port: number, what: string])[] {
  const hosts = listenHosts(options);
  const metricsPort = options['metrics.prometheus_unix_socket'] === null ? options['metrics.prometheus_port'] : null;
  const boot = roles.includes('boot') && options['boot.http_unix_socket'] === null ? bootHosts('boot.http_host') : [];
  const bootPorts = [['http_port', options['boot.http_port']] as const, ['https_port', options['boot.https_port']] as const];
  return [
    ...(roles.includes('api') && options['api.unix_socket'] === null
      ? [[hosts['api.host_ip'], options['api.port'], 'the API, [api]host_ip and port'] as const]
      : []),
    ...(roles.includes('inspector')
      ? [
          [
            hosts['DEFAULT.listen_address'],
            options['DEFAULT.listen_port'],
            'the introspection service, [DEFAULT]listen_address and listen_port',
          ] as const,
        ]
      : []),
    ...(metricsPort === null
      ? []
      : [[options['metrics.prometheus_host'], metricsPort, 'metrics, [metrics]prometheus_host and prometheus_port'] as const]),
    ...boot.flatMap((host) =>
      bootPorts.flatMap(([name, port]) => (port === null ? [] : [[host, port, `HTTP boot, [boot]http_host and ${name}`] as const])),
    ),
  ];
}

const DHCP_PORT = 67;
const DHCPV6_PORT = 547;
const BUFFER = 2 ** 16;
async function dhcpFindings({ resolved, running }: CheckContext): Promise<readonly Result[]> {
  if (resolved['dhcp.dhcp_provider'] !== 'builtin')
    return [['note', `[dhcp]dhcp_provider = ${resolved['dhcp.dhcp_provider']}: others answer DHCP`]];
  const links = await readLinks();
  const of = (plans: readonly { readonly interface: string }[], port: number, open: (name: string) => Promise<Socket>) =>
    [...new Set(plans.map((plan) => plan.interface))].map((name) => {
      const attempt = async (): Promise<void> => {
        const socket = await open(name);
        await new Promise<void>((closed) => socket.close(closed));
      };
      return [`port ${port} of interface ${name}`, attempt] as const;
    });
  const plans = planSubnets(resolved, (name) => links.get(name)?.ipv4);
  const plans6 = planSubnets6(resolved, (name) => links.get(name)?.ipv6);
  return eachListener(running, [
    ...of(plans, DHCP_PORT, (name) => openUdp(name, DHCP_PORT, BUFFER)),
    ...of(plans6, DHCPV6_PORT, (name) => openUdp6(name, DHCPV6_PORT, BUFFER, [])),
  ]);
}

/** fetch takes no URL with a user and a password. */
const headOf = async (source: string, options: LoadedOptions): Promise<Response> =>
  fetch(withoutCredentials(source), {
    method: 'HEAD',
    headers: basicAuthorization(imageServerLogin(source, options) ?? credentialsOf(source)),
    signal: timeoutSignal(REQUEST_TIMEOUT_MS),
  });
/** The path below [deploy]http_root of a URL that this server answers itself, and only once it runs. */
function ownPath({ resolved, roles }: CheckContext, source: string): string | undefined {
  const own = `${resolved['deploy.http_url']}/`;
  return roles.includes('boot') && source.startsWith(own) ? source.slice(own.length).split(/[?#]/, 1)[0] : undefined;
}
async function ramdiskFinding(shown: string, source: string, context: CheckContext): Promise<Result> {
  const path = ownPath(context, source);
  if (path !== undefined) {
    const root = context.resolved['deploy.http_root'];
    const file = await openServedFile({ named: {}, root, own: context.resolved['files.own'] }, path);
    await file?.handle.close();
    return file ? ['ok', shown] : ['warning', `${shown}: this server answers there, and ${root} has no ${path}`];
  }
  if (/^https?:/i.test(source)) {
    const answer = await headOf(source, context.options).catch((error: unknown) => {
      const { cause, message } = error as Error;
      return (cause as Error | undefined)?.message || message;
    });
    if (typeof answer === 'string') return ['warning', `${shown}: ${answer}`];
    await answer.body?.cancel();
    return answer.ok ? ['ok', shown] : ['warning', `${shown}: ${new URL(source).host} answers ${answer.status}`];
  }
  if (glanceId(source) !== undefined) return ['note', `${shown}: an image in Glance, not checked`];
  if (/^\w+:/.test(source) && !/^file:/i.test(source)) return ['note', `${shown}: not checked`];
  try {
    accessSync(/^file:/i.test(source) ? fileURLToPath(source) : source, constants.R_OK);
    return ['ok', shown];
  } catch (error) {
    return ['warning', `${shown}: ${(error as Error).message}`];
  }
}
/** The kernel or the ramdisk of the agent: of all nodes, and of nodes by architecture. */
async function ramdiskFindings(name: 'kernel' | 'ramdisk', context: CheckContext): Promise<readonly Result[]> {
  const option = `deploy_${name}` as const;
  const other = `deploy_${name === 'kernel' ? 'ramdisk' : 'kernel'}` as const;
  const common = context.options[`conductor.${option}`];
  const byArch = context.options[`conductor.${option}_by_arch`];
  const counterparts = context.options[`conductor.${other}_by_arch`];
  const found: Result[] = [];
  if (common) found.push(await ramdiskFinding(`[conductor]${option} = ${withoutUrlCredentials(common)}`, common, context));
  else {
    const except = Object.keys(byArch).length > 0 ? ` without an entry in ${option}_by_arch` : '';
    found.push(['warning', `[conductor]${option} is not set: nodes${except} that boot from the network need ${option} in driver_info`]);
  }
  for (const [arch, source] of Object.entries(byArch)) {
    const shown = `[conductor]${option}_by_arch, ${arch}: ${withoutUrlCredentials(source)}`;
    found.push(
      Object.hasOwn(counterparts, arch)
        ? await ramdiskFinding(shown, source, context)
        : ['warning', `${shown}: ${other}_by_arch has no ${arch}, so nodes of this architecture cannot boot a ramdisk`],
    );
  }
  return found;
}

/** Files that no node needs, if options name them. */
const OPTIONAL = ['rescue_kernel', 'rescue_ramdisk', 'bootloader'] as const;
async function optionalFindings(context: CheckContext): Promise<readonly Result[]> {
  const named = OPTIONAL.flatMap((name): readonly (readonly [shown: string, source: string])[] => {
    const common = context.options[`conductor.${name}`];
    const byArch = Object.entries(context.options[`conductor.${name}_by_arch`]);
    return [
      ...(common ? [[`[conductor]${name} = ${withoutUrlCredentials(common)}`, common] as const] : []),
      ...byArch.map(([arch, source]) => [`[conductor]${name}_by_arch, ${arch}: ${withoutUrlCredentials(source)}`, source] as const),
    ];
  });
  return Promise.all(named.map(([shown, source]) => ramdiskFinding(shown, source, context)));
}

async function loaderFindings({ resolved }: CheckContext): Promise<readonly Result[]> {
  const { ipxeLoaders, pxeLoaders } = loadersOf(resolved);
  // DHCP sends iPXE to machines that it does not know, whatever boot interfaces are enabled.
  const isPxeEnabled = resolved['DEFAULT.enabled_boot_interfaces'].includes('pxe');
  const named = [ipxeLoaders, ...(isPxeEnabled ? [pxeLoaders] : [])].flatMap(({ bios, uefi, byArch }) => [
    bios,
    uefi,
    ...Object.values(byArch),
  ]);
  const served = { named: resolved['pxe.loader_file_paths'], root: resolved['pxe.tftp_root'], own: resolved['files.own'] };
  const missing: string[] = [];
  for (const name of new Set(named)) {
    const file = await openServedFile(served, name);
    if (file) await file.handle.close();
    else missing.push(name);
  }
  if (missing.length === 0) return [['ok', [...new Set(named)].join(', ')]];
  return [
    [
      'warning',
      `${served.root} lacks the boot loaders ${missing.join(', ')}: machines that need them do not boot (docs/install.md, Network boot)`,
    ],
  ];
}

/** One refusal for each line of the message. */
const refusalsOf = (error: unknown): readonly Result[] => (error as Error).message.split('\n').map((line) => ['refused', line] as const);

const CHECKS: readonly HostCheck[] = [
  ...SETTING_CHECKS.map(({ what, check }): HostCheck => ({
    what,
    check: ({ options, resolved, roles, databaseUrl, stateDir }) => {
      const found: Result[] = [];
      const warn = (message: string): void => void found.push(['warning', message]);
      try {
        check({ options, resolved, roles, hasRpc: sharesDatabaseOf(options, databaseUrl), stateDir }, warn)?.forEach(warn);
      } catch (error) {
        found.push(...refusalsOf(error));
      }
      return found;
    },
  })),
  {
    what: 'addresses',
    roles: ['boot', 'conductor'],
    check: ({ options, resolved }) => [
      [
        'note',
        `machines use ${resolved['service_catalog.endpoint_override']} and ${resolved['deploy.http_url']}` +
          (options['DEFAULT.my_ip'] === null
            ? `; [DEFAULT]my_ip is not set: ${resolved['DEFAULT.my_ip']} is the address of this host`
            : ''),
      ],
    ],
  },
  {
    what: 'authentication',
    roles: ['api', 'inspector'],
    check: ({ options }) =>
      options['DEFAULT.auth_strategy'] === null
        ? [['note', '[DEFAULT]auth_strategy is not set: only this host reaches the API (docs/install.md, Authentication)']]
        : [],
  },
  {
    what: 'users',
    roles: ['api', 'inspector'],
    check: ({ options }) => {
      const warnings: string[] = [];
      checkUsers(
        options,
        warningLog((message) => warnings.push(message)),
      );
      return warnings.map((message) => ['warning', message] as const);
    },
  },
  {
    what: 'policies',
    roles: ['api', 'inspector'],
    check: async ({ options }) => {
      const warnings: string[] = [];
      const live = await startEnforcer(
        options,
        warningLog((message) => warnings.push(message)),
      );
      await live.stop();
      return options['DEFAULT.auth_strategy'] === null ? [] : warnings.map((message) => ['warning', message] as const);
    },
  },
  {
    what: 'inspection',
    roles: ['conductor'],
    check: async ({ resolved }) => {
      // Its options are checked above; this reads the files.
      await readInspectionFiles(resolved);
      return [];
    },
  },
  {
    what: 'state directory',
    check: ({ stateDir }) => {
      const folder = existing(stateDir);
      accessSync(folder, constants.W_OK | constants.X_OK);
      const { bavail, bsize } = statfsSync(folder);
      const [severity, message] = spaceFinding(bavail * bsize);
      return [[severity, `${stateDir}: ${message}`]];
    },
  },
  {
    what: 'clock',
    check: () => {
      const built = statSync(__filename).mtimeMs;
      return Date.now() < built - DAY_MS
        ? [['warning', `it shows ${new Date().toISOString()}, before this program was built: certificates and tokens do not work`]]
        : [['ok', new Date().toISOString()]];
    },
  },
  { what: 'database', check: databaseFindings },
  {
    what: 'certificates',
    check: async ({ options, roles, databaseUrl }) => {
      const results: Result[] = [];
      for (const listener of tlsListeners(roles, sharesDatabaseOf(options, databaseUrl))) {
        const tls = tlsOf(options, listener);
        if (!tls) continue;
        // Reads the files as the listener does: certificate, key and authorities.
        tlsContextOf(tls);
        results.push(certificateFinding(new X509Certificate(readFileSync(tls.cert.path)), tls.cert.path, Date.now()));
      }
      return results;
    },
  },
  {
    what: 'boot services',
    roles: ['boot'],
    check: ({ resolved }) => {
      bootHostsOf(resolved, 'boot.http_host');
      if (resolved['boot.tftp']) bootHostsOf(resolved, 'boot.tftp_host');
      return [];
    },
  },
  {
    what: 'ports',
    check: (context) =>
      eachListener(
        context.running,
        httpListeners(context).map(([host, port, what]) => [`${host} port ${port} (${what})`, () => tryTcp(host, port, what)] as const),
      ),
  },
  {
    what: 'TFTP',
    roles: ['boot'],
    check: ({ resolved, running, bootHosts }) => {
      const port = resolved['boot.tftp_port'];
      const what = 'TFTP, [boot]tftp_host and tftp_port; [boot]tftp = false switches it off';
      if (!resolved['boot.tftp']) return [];
      return eachListener(
        running,
        bootHosts('boot.tftp_host').map((host) => [`${host} port ${port}`, () => tryUdp(host, port, what)] as const),
      );
    },
  },
  { what: 'DHCP', roles: ['boot'], check: dhcpFindings },
  {
    what: 'agent',
    roles: ['conductor'],
    check: async (context) => [
      ...(await ramdiskFindings('kernel', context)),
      ...(await ramdiskFindings('ramdisk', context)),
      ...(await optionalFindings(context)),
    ],
  },
  { what: 'boot loaders', roles: ['boot'], check: loaderFindings },
  {
    what: 'Keystone',
    roles: ['api', 'inspector'],
    check: async ({ options }) => {
      if (options['DEFAULT.auth_strategy'] !== 'keystone') return [];
      const settings = keystoneSettings(options, 'keystone_authtoken');
      const signal = timeoutSignal(REQUEST_TIMEOUT_MS);
      const never = { retries: 0 };
      const retries = { attemptTimeoutMs: REQUEST_TIMEOUT_MS, connect: never, status: never, statuses: [] };
      const session = createKeystoneSession(settings, { clock: systemClock, retries, signal });
      try {
        await session.projectId();
        return [['ok', `${withoutUrlCredentials(settings.authUrl)} accepts this program`]];
      } catch (error) {
        return [['warning', reasonOf(error)]];
      } finally {
        await session.close();
      }
    },
  },
];

export async function checkHost(host: HostToCheck): Promise<readonly Finding[]> {
  const running = await findEmbedded(host.stateDir).then(
    (found) => found?.running?.process,
    () => undefined,
  );
  const resolved = resolveConfigured(host.options, host.stateDir);
  const bootHosts: CheckContext['bootHosts'] = (option) => {
    try {
      return bootHostsOf(resolved, option);
    } catch {
      return [];
    }
  };
  const context: CheckContext = { ...host, resolved, running, bootHosts };
  const findings: Finding[] = [];
  for (const { what, roles, check } of CHECKS) {
    if (roles && !roles.some((role) => host.roles.includes(role))) continue;
    let results: readonly Result[];
    try {
      results = await check(context);
    } catch (error) {
      results = refusalsOf(error);
    }
    findings.push(...results.map(([severity, message]) => ({ what, severity, message: withoutUrlCredentials(message) })));
  }
  return findings;
}
