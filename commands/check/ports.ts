/** Checks of the ports that the server listens on: HTTP, TFTP and DHCP. They are opened, and closed again. */
import { createSocket, type Socket } from 'node:dgram';
import { createServer } from 'node:net';
import { PROXY_PORT } from '../../boot/dhcp/proxy';
import { planProxies, planSubnets } from '../../boot/dhcp/setup';
import { planSubnets6 } from '../../boot/dhcp/setup6';
import { listenHosts } from '../../config/access';
import { reasonOf } from '../../model/errors';
import { listenError } from '../../wire/sockets/listen-errors';
import { openUdp, openUdp6, readLinks } from '../../wire/sockets/link';
import type { CheckContext, HostCheck, Result } from './check-row';

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
  const proxies = planProxies(resolved, plans, (name) => links.get(name)?.ipv4);
  return eachListener(running, [
    ...of([...plans, ...proxies], DHCP_PORT, (name) => openUdp(name, DHCP_PORT, BUFFER)),
    ...of(proxies, PROXY_PORT, (name) => openUdp(name, PROXY_PORT, BUFFER)),
    ...of(plans6, DHCPV6_PORT, (name) => openUdp6(name, DHCPV6_PORT, BUFFER, [])),
  ]);
}

export const ports: HostCheck = {
  what: 'ports',
  check: (context) =>
    eachListener(
      context.running,
      httpListeners(context).map(([host, port, what]) => [`${host} port ${port} (${what})`, () => tryTcp(host, port, what)] as const),
    ),
};

export const tftp: HostCheck = {
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
};

export const dhcp: HostCheck = { what: 'DHCP', roles: ['boot'], check: dhcpFindings };
