/** The agent's main program: inspection if requested, lookup, then API and heartbeats until it is stopped. */
import { isIPv6 } from 'node:net';
import type { SecureVersion } from 'node:tls';
import { type Api, api, type LookupAnswer } from './api';
import { ownCertificate, type OwnCertificate } from '../wire/http/certificate';
import { runner } from './commands';
import { endpoints } from './endpoints';
import { AgentError } from '../model/agent/errors';
import { retry, waitUntil } from '../model/clock';
import { reasonOf } from '../model/errors';
import { commandsOf } from './extensions';
import { createHeartbeatSchedule } from './heartbeat';
import { inspect } from './inspection';
import { readInterfaces } from './inventory/interfaces';
import { receiveLldp } from './inventory/lldp';
import { type Machine, raidHost, waitForRootDisk } from './machine';
import { addVlans } from './network/vlans';
import { assembleArrays } from './raid/arrays';
import { routeSource } from './towards';
import { plainMac } from './parameters';
import { setClock } from './set-clock';
import { joinPaths } from './system/multipath';
import { serve } from './server';

const VERSION = 'bloomery-agent 1';

/** Runs until `signal` is aborted. Rejects when the lookup fails; the ramdisk's init then starts the program again. */
export async function runAgent(machine: Machine, signal: AbortSignal): Promise<void> {
  const { parameters, clock, log } = machine;
  const startedAt = clock.now();
  if (parameters.advertiseProtocol === 'http')
    log.warn('ipa-advertise-protocol=http has no effect: the API of this agent is by HTTPS alone');
  await clock.sleep(parameters.hardwareDelay * 1000, signal);
  // Slow controllers show their disks late.
  await waitForRootDisk(machine, signal).catch((error: unknown) => {
    signal.throwIfAborted();
    log.warn(reasonOf(error));
  });
  await joinPaths(machine, signal);
  // Members may be disks that several paths lead to.
  await assembleArrays(raidHost(machine));
  await makeVlans(machine, signal);
  await waitForAddress(machine, signal);
  await setClock(machine, signal);

  const { apiUrls, inspectionUrls } = await endpoints(machine, signal);
  const server = api({
    apiUrls,
    inspectionUrls,
    timeoutMs: parameters.requestTimeout * 1000,
    trust: machine.fetching.trust,
    globalRequestId: parameters.globalRequestId,
    signal,
  });
  const inspected = inspectionUrls.length > 0 ? await inspect(machine, server, signal) : null;
  if (apiUrls.length === 0) {
    log.info('No ipa-api-url: no lookup and no heartbeats');
    // If the program ended here, init would start it again, and it would inspect the machine again.
    while (!signal.aborted) await clock.sleep(60_000, signal).catch(() => undefined);
    return;
  }

  const { minor: common, serverTime, url } = await server.negotiate();
  const minor = Number(/^1\.(\d{1,4})$/.exec(parameters.apiVersion ?? '')?.[1] ?? common);
  const found = await lookup(machine, server, minor, inspected, signal);
  const earlier = machine.kept.identity();
  const known = earlier?.node === found.node.uuid ? earlier : null;
  const token = tokenOf(found, parameters.agentToken ?? known?.token ?? null);
  machine.state.node = found.node;
  machine.state.config = found.config;
  machine.state.api = token === null ? null : { url, token };
  log.info(`Lookup succeeded, node UUID is ${found.node.uuid}`);

  const address = parameters.advertiseHost ?? (await ownAddress(machine, url, signal));
  // The server refuses another certificate of the same agent.
  const certificate =
    known?.token === token && known.address === address
      ? known
      : ownCertificate(address, machine.hostname(), serverTime ?? clock.now(), machine.random, {
          curve: CURVES[parameters.tlsCertificateCurve ?? ''],
        });
  if (token !== null) machine.kept.setIdentity({ node: found.node.uuid, address, token, ...keyPairOf(certificate) });
  const beating = createHeartbeatSchedule({
    send: () => server.heartbeat(minor, found.node.uuid, { callbackUrl, token, version: VERSION, verifyCa: certificate.certificate }),
    timeout: found.config.heartbeat_timeout ?? 300,
    clock,
    random: () => machine.random(4).readUInt32BE() / 2 ** 32,
    log,
  });
  const callbackUrl = `https://${isIPv6(address) ? `[${address}]` : address}:${parameters.advertisePort}`;
  const commands = runner(commandsOf(machine), machine.newUuid, beating.force, log, beating.progressed);
  const listening = await serve({
    host: parameters.listenHost,
    port: parameters.listenPort,
    certificate,
    minVersion: (found.config['tls_min_version'] ?? parameters.tlsMinVersion) === '1.3' ? 'TLSv1.3' : ('TLSv1.2' satisfies SecureVersion),
    ciphers: cipherSuites(found.config['tls_cipher_suites'] ?? parameters.tlsCipherSuites),
    token: () => token,
    startedAt,
    version: VERSION,
    runner: commands,
    authenticated: beating.contacted,
    log,
  });
  log.info(`Listening at ${callbackUrl}`);
  await beating.run(signal);
  await new Promise<void>((closed) => {
    listening.close(() => closed());
    listening.closeAllConnections();
  });
  await commands.idle();
}

const CURVES: Readonly<Record<string, 'prime256v1' | 'secp384r1' | undefined>> = { p256: 'prime256v1', p384: 'secp384r1' };
/** OpenSSL's names, from a list or a text. */
function cipherSuites(given: unknown): string | undefined {
  const names = (Array.isArray(given) ? given.map(String) : typeof given === 'string' ? given.split(/[,:\s]+/) : []).filter(
    (name) => name !== '',
  );
  return names.length === 0 ? undefined : names.join(':');
}

async function makeVlans(machine: Machine, signal: AbortSignal): Promise<void> {
  const { vlanInterfaces, collectLldp, lldpTimeout } = machine.parameters;
  await addVlans(machine, vlanInterfaces, collectLldp ? () => receiveLldp(machine, lldpTimeout * 1000, signal) : null);
}

const keyPairOf = ({ certificate, privateKey }: OwnCertificate): OwnCertificate => ({ certificate, privateKey });

/** Router advertisements are faster than DHCP, so an interface that has only an IPv6 address counts as ready only after this time. */
const IPV6_ALONE_MS = 5000;
/**
 * Waits until the boot interface has an address that is not link-local. If the boot interface is unknown, any interface suffices; with
 * ipa-inspection-dhcp-all-interfaces, all interfaces with a link need an address.
 */
async function waitForAddress(machine: Machine, signal: AbortSignal): Promise<void> {
  const { bootInterface, inspectionDhcpAll, inspectionDhcpWait } = machine.parameters;
  const boot = bootInterface === null ? null : plainMac(bootInterface);
  const ready = (): boolean => {
    const linked = readInterfaces(machine.tree, machine.addresses()).filter((candidate) => candidate.has_carrier);
    const alone = machine.clock.now() >= began + IPV6_ALONE_MS;
    const usable = linked.filter(
      (candidate) => candidate.ipv4_address || (alone && candidate.ipv6_address && !/^fe[89ab]/i.test(candidate.ipv6_address)),
    );
    if (inspectionDhcpAll) return linked.length > 0 && usable.length === linked.length;
    return usable.some((candidate) => boot === null || candidate.mac_address === boot);
  };
  const began = machine.clock.now();
  const end = began + inspectionDhcpWait * 1000;
  const isReady = await waitUntil({ clock: machine.clock, signal }, ready, () => (machine.clock.now() > end ? undefined : 200));
  if (!isReady) machine.log.warn(`No address within ${inspectionDhcpWait} s`);
}

async function lookup(machine: Machine, server: Api, minor: number, uuid: string | null, signal: AbortSignal): Promise<LookupAnswer> {
  const { clock, log, parameters } = machine;
  const end = clock.now() + parameters.lookupTimeout * 1000;
  const attempt = async (): Promise<LookupAnswer> => {
    const macs = readInterfaces(machine.tree, machine.addresses()).map((item) => item.mac_address);
    return server.lookup(minor, macs, uuid);
  };
  let pause = parameters.lookupInterval;
  return retry({ clock, signal }, attempt, (error) => {
    if (clock.now() > end) throw new AgentError('LookupNodeError', reasonOf(error), { cause: error });
    log.warn(`Lookup: ${reasonOf(error)}; again in ${pause} s`);
    const seconds = pause * (0.5 + machine.random(1)[0]! / 512);
    pause = Math.min(60, pause * 2);
    return seconds * 1000;
  });
}

/** The token from the lookup, otherwise from the command line. A masked token means that another agent process got it before. */
function tokenOf(found: LookupAnswer, given: string | null): string | null {
  const token = found.config.agent_token;
  if (typeof token === 'string' && token.length >= 32) return token;
  if (given !== null || token === undefined) return given;
  throw new AgentError(
    'LookupNodeError',
    'the agent token has already been given out, and this agent does not have it: the machine has to be restarted',
  );
}

/** The source address of the route to the API, at which the conductor can reach the agent. */
async function ownAddress(machine: Machine, url: string, signal: AbortSignal): Promise<string> {
  const { addressAttempts, addressInterval } = machine.parameters;
  const wanted = machine.parameters.networkInterface;
  const named = async (): Promise<string> => {
    const found = readInterfaces(machine.tree, machine.addresses()).find(({ name }) => name === wanted);
    const address = found?.ipv4_address ?? found?.ipv6_address;
    if (!address) throw new Error(`the interface ${wanted} of ipa-network-interface has no address`);
    return address;
  };
  const attempt = async (): Promise<string> => (wanted === null ? routed() : named());
  const routed = async (): Promise<string> => routeSource(new URL(url).hostname.replace(/^\[|\]$/g, ''));
  return retry({ clock: machine.clock, signal }, attempt, (error, attempts) => {
    if (attempts >= addressAttempts) throw new AgentError('LookupAgentIPError', reasonOf(error), { cause: error });
    machine.log.warn(`No route to ${url}: ${reasonOf(error)}`);
    return addressInterval * 1000;
  });
}
