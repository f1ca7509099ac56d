/** What ramdisks call, without authentication: lookup, heartbeat, continue_inspection (reference: ironic-python-agent's protocol). */
import { timingSafeEqual } from 'node:crypto';
import type { Options } from '../../config/options';
import { Fault } from '../../model/errors';
import { isMac } from '../../model/idents';
import { MASK } from '../../model/masks';
import { originFields } from '../../model/origin';
import { toBoolean } from '../../model/python';
import type { Heartbeat, Inventory, JsonObject, NodeRecord } from '../../model/records';
import { FAST_TRACK_STATES, stateRow } from '../../model/states';
import type { AgentNode } from '../../store/store';
import type { Lookup } from '../../conductor/conductor';
import { findByIdent } from '../resource/node-find';
import { nodePresenter, rowsToShow } from '../resource/present';
import type { Answer, Handlers, Request, ApiContext } from '../resource/handler';

const notFound = (): Fault => new Fault('NotFound', { message: 'Resource could not be found.' });
const invalid = (message: string): Fault => new Fault('InvalidParameterValue', { message });

function checkEnabled({ path }: Request, { options }: ApiContext): void {
  if (!options['api.enable_ramdisk_endpoints']) throw new Fault('HTTPForbidden', { resource: path });
}

const FIELDS = ['uuid', 'properties', 'instance_info', 'driver_internal_info'];
/** What is told of containers and images: options of Ironic that this server does not have, at their defaults. */
const AGENT_DEFAULTS = {
  agent_containers: {
    allow_arbitrary_containers: false,
    allowed_containers: [],
    container_steps_file: '/etc/ironic-python-agent.d/mysteps.yaml',
    runner: 'podman',
    pull_options: [],
    run_options: ['--rm', '--network=host'],
  },
  agent_token_required: true,
  agent_md5_checksum_enable: true,
  disable_deep_image_inspection: false,
  permitted_image_formats: ['raw', 'gpt', 'qcow2', 'iso'],
  enable_bios_bootloader_install: false,
  tls_min_version: '1.3',
  tls_cipher_suites: null,
};
/** Where the agent sends its own metrics. */
const agentMetrics = (options: Options): object => ({
  metrics: {
    backend: options['metrics.agent_backend'],
    prepend_host: options['metrics.agent_prepend_host'],
    prepend_uuid: options['metrics.agent_prepend_uuid'],
    prepend_host_reverse: options['metrics.agent_prepend_host_reverse'],
    global_prefix: options['metrics.agent_global_prefix'],
  },
  metrics_statsd: { statsd_host: options['metrics_statsd.agent_statsd_host'], statsd_port: options['metrics_statsd.agent_statsd_port'] },
});
/** These speak to the BMC themselves, so the agent need not look for it. */
const KNOWS_BMC = ['redfish', 'idrac-redfish'];

/** What a ramdisk learns about its node and how to behave. */
function documentFor(node: NodeRecord, token: unknown, { base, minor, caller }: Request, { document, auth, options }: ApiContext): object {
  const rows = rowsToShow(document.fields('Node'), minor, FIELDS);
  return {
    node: nodePresenter({ base, minor, caller, auth, rows }, [])(node),
    config: {
      ...agentMetrics(options),
      ...AGENT_DEFAULTS,
      heartbeat_timeout: options['api.ramdisk_heartbeat_timeout'],
      agent_token: token ?? null,
      agent_skip_bmc_detect: KNOWS_BMC.includes(node.management_interface ?? ''),
    },
  };
}

/** A ramdisk is expected in these states only; with fast track it may wait in more. */
const isExpected = ({ provision_state: state, driver_info: info }: NodeRecord, options: Options): boolean =>
  stateRow(state).lookup === true || ((toBoolean(info['fast_track']) ?? options['deploy.fast_track']) && FAST_TRACK_STATES.includes(state));

/** Valid addresses; others are passed over. */
const macsOf = (addresses: readonly unknown[]): string[] => addresses.filter(isMac).map((mac) => mac.toLowerCase());

/** All ports with these addresses must be of one node. */
async function nodeByMacs(macs: readonly string[], { store }: ApiContext): Promise<NodeRecord> {
  const nodes = new Set((await store.ports.byMacs(macs)).map(({ node_uuid: uuid }) => uuid));
  const [uuid] = nodes;
  if (uuid === undefined || nodes.size > 1) throw notFound();
  return store.nodes.find(uuid);
}

async function lookup(request: Request, context: ApiContext): Promise<Answer> {
  checkEnabled(request, context);
  const { query, minor } = request;
  const macs = macsOf((query['addresses'] as readonly string[] | null | undefined) ?? []);
  const uuid = query['node_uuid'] as string | null | undefined;
  if (macs.length === 0 && !uuid) throw new Fault('IncompleteLookup');
  // Unknown and not expected look the same from outside.
  const node = await (uuid ? context.store.nodes.find(uuid) : nodeByMacs(macs, context)).catch((error: unknown) => {
    throw error instanceof Fault && error.status === 404 ? notFound() : error;
  });
  if (context.options['api.restrict_lookup'] && !isExpected(node, context.options)) {
    context.log.warn('lookup refused', { ...originFields(request.origin), node: node.uuid, state: node.provision_state });
    throw notFound();
  }
  // Agents older than tokens get none; that there is one is no secret, the token is.
  const token = minor >= 62 ? await context.conductor.agentToken(node.uuid) : node.driver_internal_info['agent_secret_token'] && MASK;
  const internal = token ? { ...node.driver_internal_info, agent_secret_token: token } : node.driver_internal_info;
  return { status: 200, body: documentFor({ ...node, driver_internal_info: internal }, token, request, context) };
}

/** In the time that does not depend on where they differ. */
function sameSecret(given: string, stored: unknown): boolean {
  if (typeof stored !== 'string') return false;
  const [one, other] = [Buffer.from(given), Buffer.from(stored)];
  return one.length === other.length && timingSafeEqual(one, other);
}

/** Characters in the log of what an agent sent. */
const MOST_SAID = 200;
const STATUSES = ['start', 'end', 'error'];
/** http or https, or nothing (a heartbeat that wants no call back). */
function checkCallback(url: string): void {
  if (url !== '' && !/^https?:/i.test(url)) throw invalid('An issue with the supplied "callback_url" has been detected.');
}

async function heartbeat(request: Request, context: ApiContext): Promise<Answer> {
  checkEnabled(request, context);
  const { minor, params, jsonSuffix } = request;
  const ident = params['node_ident']!;
  const find = (one: string): Promise<AgentNode> => findByIdent(one, minor, (known) => context.store.nodes.findAgent(known));
  const node = await find(ident).catch((error: unknown) => {
    if (jsonSuffix && error instanceof Fault && error.status === 404) return find(`${ident}.json`);
    throw error;
  });
  try {
    await takeHeartbeat(node, request, context);
  } catch (error) {
    // The machine's operator sees no answers to its agent, and the node only waits.
    if (error instanceof Fault && error.status === 400) {
      const { callback_url: url } = request.query;
      const from = typeof url === 'string' ? url.slice(0, MOST_SAID) : '';
      context.log.warn('heartbeat refused', {
        ...originFields(request.origin),
        node: node.uuid,
        callback_url: from,
        reason: error.message,
      });
    }
    throw error;
  }
  return { status: 202 };
}

/** Throws Invalid and InvalidParameterValue for a beat that is not of the node's agent, and what the conductor throws. */
async function takeHeartbeat(node: AgentNode, { query }: Request, context: ApiContext): Promise<void> {
  const said = (name: string): string | undefined => (query[name] as string | null | undefined) ?? undefined;
  const { agent_url: known, agent_secret_token: secret } = node.driver_internal_info;
  const callbackUrl = said('callback_url') ?? '';
  const [token, version, status] = [said('agent_token'), said('agent_version'), said('agent_status')];
  checkCallback(callbackUrl);
  // Another machine, or one that booted behind our back: it must be powered off before it may speak for the node.
  if (known !== undefined && known !== null && known !== callbackUrl)
    throw new Fault('Invalid', { message: 'Detected change in ramdisk provided "callback_url"' });
  if (token === undefined) throw invalid('Agent token is required for heartbeat processing.');
  if (status !== undefined && !STATUSES.includes(status)) throw invalid(`Agent status is invalid. Valid states are ${STATUSES.join(',')}.`);
  if (version === undefined && status === undefined)
    throw invalid('Agent did not transmit a version, and a version is required. Please update the agent being used.');
  if (!sameSecret(token, secret)) throw invalid('Invalid or missing agent token received.');
  if (context.options['agent.require_tls'] && callbackUrl !== '' && !callbackUrl.startsWith('https://'))
    throw invalid('TLS is required by configuration');
  const [verifyCa, message] = [said('agent_verify_ca'), said('agent_status_message')];
  const beat: Heartbeat = {
    callbackUrl,
    agentToken: token,
    ...(version === undefined ? {} : { agentVersion: version }),
    ...(verifyCa === undefined ? {} : { agentVerifyCa: verifyCa }),
    ...(status === undefined ? {} : { agentStatus: status }),
    ...(message === undefined ? {} : { agentStatusMessage: message }),
  };
  await context.conductor.heartbeat(node.uuid, beat);
}

/** How machines that nobody knows are enrolled. */
const discoveryOf = ({
  'auto_discovery.enabled': enabled,
  'auto_discovery.driver': driver,
  'DEFAULT.default_conductor_group': group,
}: Options): Pick<Lookup, 'discovery'> => (enabled && driver !== null ? { discovery: { driver, conductor_group: group } } : {});

async function continueInspection(request: Request, context: ApiContext): Promise<Answer> {
  checkEnabled(request, context);
  const { body, query, minor } = request;
  const { inventory, ...plugin } = body as { readonly inventory: Inventory } & JsonObject;
  const macs = macsOf(inventory.interfaces.map(({ mac_address: mac }) => mac));
  const addresses = [inventory.bmc_address, inventory.bmc_v6address].filter((one): one is string => !!one);
  const uuid = query['node_uuid'] as string | null | undefined;
  if (macs.length === 0 && addresses.length === 0 && !uuid) throw new Fault('Invalid', { message: 'No lookup information provided' });
  const node = await context.conductor.continueInspection(
    { macs, bmcAddresses: addresses, ...(uuid ? { nodeUuid: uuid } : {}), ...discoveryOf(context.options) },
    inventory,
    plugin,
  );
  // Agents that send no version speak ironic-inspector's protocol.
  if (minor < 84) return { status: 202, body: { uuid: node.uuid } };
  return { status: 202, body: documentFor(node, node.driver_internal_info['agent_secret_token'], request, context) };
}

export const ramdiskHandlers: Handlers = { lookup, heartbeat, continueInspection };
