/**
 * Checks the addresses of agents: the host in callback_url, to which the conductor sends requests with the agent's token, and the source
 * of requests for a node.
 */
import { networkInterfaces } from 'node:os';
import { LRUCache } from 'lru-cache';
import type { Options } from '../../config/options';
import type { Clock } from '../../model/clock';
import { canonicalAddress, canonicalHost, isLoopback, networksOf, newUuid, parseNetwork } from '../../model/idents';
import type { NodeRecord } from '../../model/records';
import type { Store } from '../../store/store';
import type { Metrics } from '../../model/metrics';
import type { Peer } from '../http/source';
import { createAgentSources } from './agent-sources';
import { shortened } from '../../model/text';

interface AgentAddressParts {
  readonly store: Pick<Store, 'leases' | 'inventories' | 'history' | 'nodes'>;
  readonly options: Options;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly random: (bytes: number) => Buffer;
}
type KnownNode = Pick<NodeRecord, 'uuid' | 'provision_state'>;
export interface AgentAddresses {
  /** Why the conductor must not call this URL; undefined: the host is the agent's. */
  objectionToCallback(nodeUuid: string, url: URL, peer: Peer): Promise<string | undefined>;
  /** Why the request is not one of the node's machine ([api]agent_source_check); undefined: it may be. */
  objectionToSource(nodeUuid: string, peer: Peer): Promise<string | undefined>;
  /** Counts a refused request, and writes it into the history of the node, at most once in REPORT_EVERY_MS for each node. */
  report(node: KnownNode, reason: 'source' | 'callback' | 'agent' | 'recorder', event: string): Promise<void>;
}

/** An agent never has these addresses: unspecified, link-local, multicast, reserved (RFC 6890), or of a cloud's metadata service. */
const NEVER = networksOf(['0.0.0.0/8', '169.254.0.0/16', '224.0.0.0/3', '::', 'fe80::/10', 'ff00::/8', 'fd00:ec2::254']);
const LISTENER_PORTS = ['api.port', 'boot.http_port', 'DEFAULT.listen_port', 'json_rpc.port', 'metrics.prometheus_port'] as const;

/** The kernel lists the interfaces in about 70 µs of CPU time, and each request of an agent asks several times. */
const ADDRESSES_MS = 1000;
/** @returns whether this host has the address, as of the last second */
function createOwnAddresses(clock: Clock): (address: string) => boolean {
  let known: ReadonlySet<string | undefined> = new Set();
  let until = -Infinity;
  return (address) => {
    if (isLoopback(address)) return true;
    const now = clock.monotonic?.() ?? clock.now();
    if (now >= until) {
      known = new Set(Object.values(networkInterfaces()).flatMap((all = []) => all.map((item) => canonicalAddress(item.address))));
      until = now + ADDRESSES_MS;
    }
    return known.has(address);
  };
}

const DEFAULT_PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 };
const portOf = ({ port, protocol }: URL): number | undefined => (port === '' ? DEFAULT_PORTS[protocol] : Number(port));

/** Refused requests of a node enter its history once in this time; the next entry counts the others. Bounds what a machine can write. */
const REPORT_EVERY_MS = 300_000;
const MAX_REPORTED_NODES = 10_000;
const MAX_EVENT = 1000;

/** Throws an Error for invalid options, with a message for the operator. */
export function createAgentAddresses({ store, options, clock, metrics, random }: AgentAddressParts): AgentAddresses {
  const allowed = options['agent.callback_hosts'].map((host) => canonicalHost(host) ?? host);
  const wrong = allowed.find((host) => host.includes('/') && !parseNetwork(host));
  if (wrong !== undefined) throw new Error(`[agent]callback_hosts: "${wrong}" is not a network`);
  const allowedNetworks = networksOf(allowed.filter(parseNetwork));
  const sources = createAgentSources({ store, options, clock });
  /** The last report of each node and how many others followed. */
  const reported = new LRUCache<string, { readonly at: number; others: number }>({ max: MAX_REPORTED_NODES });

  const isOwnAddress = createOwnAddresses(clock);
  /** A program on this host sent the request, such as a simulated machine (or a proxy that does not report its clients). */
  const isLocal = ({ address, isReported }: Peer): boolean => address !== undefined && !isReported && isOwnAddress(address);
  const isListener = (address: string, port: number | undefined, { listenerPort }: Peer): boolean =>
    isOwnAddress(address) && (port === listenerPort || LISTENER_PORTS.some((option) => options[option] === port));

  return {
    async objectionToCallback(nodeUuid, url, peer) {
      const host = canonicalAddress(url.hostname);
      if (host === undefined)
        return allowed.includes(canonicalHost(url.hostname) ?? url.hostname)
          ? undefined
          : 'it is a name, which [agent]callback_hosts does not contain';
      if (NEVER.contains(host)) return 'agents have no such address';
      if (isListener(host, portOf(url), peer)) return 'this server listens there';
      if (host === peer.address) return undefined;
      if (isOwnAddress(host)) return isLocal(peer) ? undefined : 'it is an address of this server';
      // Not the addresses of an inventory: anybody may post one, and could make the conductor call any host with the agent's token.
      if (allowedNetworks.contains(host) || (await sources.isAssigned(nodeUuid, host))) return undefined;
      return (
        `the request came from ${peer.address ?? 'an unknown address'}, and the host is neither in [agent]callback_hosts ` +
        "nor an address of the node's leases or network_data"
      );
    },
    // Local requests pass: a proxy on this host that reports no addresses hides where they come from.
    objectionToSource: async (nodeUuid, peer) => (isLocal(peer) ? undefined : sources.objection(nodeUuid, peer.address)),
    async report({ uuid, provision_state: state }, reason, event) {
      metrics.count('bloomery_agent_requests_refused_total', { reason });
      if (!options['conductor.node_history']) return;
      const now = clock.now();
      const last = reported.get(uuid);
      if (last && now - last.at < REPORT_EVERY_MS) {
        last.others++;
        return;
      }
      reported.set(uuid, { at: now, others: 0 });
      const others = last && last.others > 0 ? ` (${last.others} more were refused since the entry before)` : '';
      await store.history.create({
        uuid: newUuid(random),
        node_uuid: uuid,
        conductor: null,
        user: null,
        event_type: 'security',
        severity: 'ERROR',
        event: shortened(event, MAX_EVENT) + others,
        state,
        target_provision_state: null,
        duration_seconds: null,
      });
    },
  };
}
