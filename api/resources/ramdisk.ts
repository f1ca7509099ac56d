/** The endpoints of ramdisks, without authentication: lookup, heartbeat, continue_inspection (ironic-python-agent's protocol). */
import type { Options } from '../../config/options';
import { Fault, invalid, invalidParameter, notFound } from '../../model/errors';
import { canonicalAddress, isMac } from '../../model/idents';
import { originFields } from '../../model/origin';
import { toBoolean } from '../../model/python';
import { isSameSecret, MASK } from '../../model/masks';
import type { Heartbeat, Inventory, NodeRecord } from '../../model/records';
import { FAST_TRACK_STATES, INSPECTED_STATES, stateRow } from '../../model/states';
import { withoutUrlCredentials } from '../../model/urls';
import type { AgentNode, AnsweredNode, LookupNode } from '../../store/store';
import { AlreadyRead, type Lookup } from '../../conductor/conductor';
import { createFairTurns } from '../http/fair-turns';
import type { Peer } from '../http/source';
import { findByIdent } from '../pipeline/node-find';
import { nodeAccess } from '../pipeline/node-access';
import { nodePresenter, rowsToShow, viewShape } from '../pipeline/present';
import type { Answer, Request, RequestOf, SomeHandlers, ApiContext } from '../pipeline/handler';
import { oneLine } from '../../model/log';
import { shortened, storable } from '../../model/text';

function checkEnabled({ path }: Request, { options }: ApiContext): void {
  if (!options['api.enable_ramdisk_endpoints']) throw new Fault('HTTPForbidden', { resource: path });
}

const FIELDS = ['uuid', 'properties', 'instance_info', 'driver_internal_info'];
/** Agent settings that no option changes. */
const AGENT_DEFAULTS = { agent_token_required: true, tls_cipher_suites: null };
/** Which containers steps may run, and how. */
const agentContainers = (options: Options): object => ({
  allow_arbitrary_containers: options['agent_containers.allow_arbitrary_containers'],
  allowed_containers: options['agent_containers.allowed_containers'],
  container_steps_file: options['agent_containers.container_steps_file'],
  runner: options['agent_containers.runner'],
  pull_options: options['agent_containers.pull_options'],
  run_options: options['agent_containers.run_options'],
});
/** The agent's settings for its own metrics. */
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
/** With these management interfaces the agent need not detect the BMC. */
const WITHOUT_BMC_DETECTION = ['redfish', 'idrac-redfish'];

/** The JSON of the response to a lookup in pieces: the node, and the agent's settings. */
const answerWith = (node: Buffer, managementInterface: string | null, token: unknown, { options }: ApiContext): readonly Buffer[] => {
  const config = {
    ...agentMetrics(options),
    ...AGENT_DEFAULTS,
    agent_containers: agentContainers(options),
    permitted_image_formats: options['conductor.permitted_image_formats'],
    disable_deep_image_inspection: options['conductor.disable_deep_image_inspection'],
    // Only this program's agent unpacks images.
    disable_zstandard_decompression: options['conductor.disable_zstandard_decompression'],
    agent_md5_checksum_enable: options['agent.allow_md5_checksum'],
    enable_bios_bootloader_install: options['agent.enable_bios_bootloader_install'],
    tls_min_version: options['agent.tls_minimum_version'],
    heartbeat_timeout: options['api.ramdisk_heartbeat_timeout'],
    agent_token: token ?? null,
    agent_skip_bmc_detect: WITHOUT_BMC_DETECTION.includes(managementInterface ?? ''),
  };
  return [Buffer.from('{"node":'), node, Buffer.from(`,"config":${JSON.stringify(config)}}`)];
};
/** What the responses show of a node. */
function viewOf(request: Request, context: ApiContext) {
  const { base, minor } = request;
  const rows = rowsToShow(context.document.fields('Node'), minor, FIELDS);
  return { view: { base, minor, rows }, access: nodeAccess(request, context, rows, false) };
}
/**
 * The node in the response, from the cache if it has not changed: anybody may send lookups, and the node may be large.
 * @param isChanged its row has changed since it was read
 */
async function answeredNode(node: LookupNode, isChanged: boolean, request: Request, context: ApiContext): Promise<Buffer> {
  const { view, access } = viewOf(request, context);
  const shape = viewShape('lookup', view);
  const read = async (): Promise<readonly AnsweredNode[]> => {
    const found = await context.store.nodes.answered(node.uuid);
    return found ? [found] : [];
  };
  const fragment = await context.fragments.of<AnsweredNode, LookupNode>(isChanged ? { ...node, revision: NO_REVISION } : node, {
    shape: (value) => shape + access.to(value).key,
    read,
    renderer: () => nodePresenter(view, access, []),
    // The agent needs no credentials of URLs, and anybody may send this request.
    rewrite: withoutUrlCredentials,
  });
  if (!fragment) throw notFound();
  return fragment.bytes;
}
/** No row has it. */
const NO_REVISION = -1;

/** Whether a ramdisk may run in the node's state. Fast track allows more states. */
const isExpected = ({ provision_state: state, driver_info: info }: LookupNode, options: Options): boolean =>
  stateRow(state).lookup === true || ((toBoolean(info['fast_track']) ?? options['deploy.fast_track']) && FAST_TRACK_STATES.includes(state));

/** The valid addresses; others are ignored. */
const macsOf = (addresses: readonly unknown[]): string[] => addresses.filter(isMac).map((mac) => mac.toLowerCase());

/** Looked up for addresses that no node has: the time of the answer must not tell whether a node has them. */
const NO_NODE = '00000000-0000-0000-0000-000000000000';
/** The node of the ports with these addresses, which must all belong to one node. */
async function nodeByMacs(macs: readonly string[], { store }: ApiContext): Promise<LookupNode> {
  const nodes = new Set(await store.ports.ownersOf(macs));
  if (nodes.size > 1) throw notFound();
  const [uuid = NO_NODE] = nodes;
  return store.nodes.findLookup(uuid);
}

/** Throws NotFound, as for a node that does not exist. Without this check, the first request gets the agent's token, whoever sends it. */
async function refuseForeignSource(
  node: Pick<NodeRecord, 'uuid' | 'provision_state'>,
  request: Request,
  context: ApiContext,
): Promise<void> {
  const foreign = await context.agentAddresses.objectionToSource(node.uuid, request.peer);
  if (foreign === undefined) return;
  context.log.warn('request of an agent refused', { ...originFields(request.origin), node: node.uuid, reason: foreign });
  await context.agentAddresses.report(node, 'source', `A request of an agent was refused: ${foreign}`);
  throw notFound();
}

/** Bounds the lookups by MAC addresses that query the database at once. Anybody may send them, and all requests share the connections. */
const inTurn = createFairTurns({
  running: { inAll: 4, ofSource: 2 },
  waiting: { inAll: 4096, ofSource: 2048 },
  refusal: () => new Fault('TemporaryFailure', { message: 'Too many lookups are being processed; please try again later.' }),
});

async function lookup(request: RequestOf<'lookup'>, context: ApiContext): Promise<Answer> {
  checkEnabled(request, context);
  const { query, minor } = request;
  const macs = macsOf(query.addresses ?? []);
  const uuid = query.node_uuid;
  if (macs.length === 0 && !uuid) throw new Fault('IncompleteLookup');
  // The response does not reveal whether the node is unknown or in another state.
  const node = await (uuid ? context.store.nodes.findLookup(uuid) : inTurn(request.source, () => nodeByMacs(macs, context))).catch(
    (error: unknown) => {
      throw error instanceof Fault && error.status === 404 ? notFound() : error;
    },
  );
  if (context.options['api.restrict_lookup'] && !isExpected(node, context.options)) {
    context.log.warn('lookup refused', { ...originFields(request.origin), node: node.uuid, state: node.provision_state });
    throw notFound();
  }
  await refuseForeignSource(node, request, context);
  // Agents older than tokens get a mask, which reveals only that a token exists.
  const known = node.driver_internal_info['agent_secret_token'] ? MASK : undefined;
  const token = minor >= 62 ? await context.agentTokens.give(node) : known;
  const shown = await answeredNode(node, Boolean(token) && token !== MASK, request, context);
  return { status: 200, bytes: answerWith(shown, node.management_interface, token, context) };
}

/** The most characters of a callback URL, and of a callback URL in the log. */
const MAX_CALLBACK = 2048;
const MAX_LOGGED = 200;
const STATUSES = ['start', 'end', 'error'];
/** Characters of an agent's message that are stored. */
const MAX_STATUS_MESSAGE = 64 * 1024;
/** Characters of an agent's version, and of its certificate with those of its issuers. */
const MAX_VERSION = 255;
const MAX_CERTIFICATE = 64 * 1024;
/** Without credentials, query and fragment, and without what parsers of URLs read differently. */
const CALLBACK = /^https?:\/\/[^\s\\@?#]+$/i;
/** Undefined: an agent without a callback sends an empty URL. Throws InvalidParameterValue. */
function callbackOf(text: string): URL | undefined {
  if (text === '') return undefined;
  if (text.length > MAX_CALLBACK || !CALLBACK.test(text) || !URL.canParse(text))
    throw invalidParameter('An issue with the supplied "callback_url" has been detected.');
  return new URL(text);
}

async function heartbeat(request: RequestOf<'heartbeat'>, context: ApiContext): Promise<Answer> {
  checkEnabled(request, context);
  const { minor, params, jsonSuffix } = request;
  const ident = params.node_ident;
  const find = (value: string): Promise<AgentNode> => findByIdent(value, minor, (known) => context.store.nodes.findAgent(known));
  const node = await find(ident).catch((error: unknown) => {
    if (jsonSuffix && error instanceof Fault && error.status === 404) return find(`${ident}.json`);
    throw error;
  });
  try {
    await forwardHeartbeat(node, request, context);
  } catch (error) {
    // Logged and recorded because the operator does not see the agent's responses.
    if (error instanceof Fault && error.status === 400) {
      const { callback_url: url } = request.query;
      const from = typeof url === 'string' ? withoutUrlCredentials(url.slice(0, MAX_LOGGED)) : '';
      const known = ADDRESS_REFUSALS.get(error);
      if (known) await context.agentAddresses.report(node, known.reason, `A heartbeat was refused: ${known.why}`);
      else if (stateRow(node.provision_state).heartbeat === 'resume')
        await context.agentAddresses.report(node, 'agent', oneLine(`A heartbeat was refused: ${error.message} (callback_url ${from})`));
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

/**
 * Throws InvalidParameterValue for a heartbeat from an address that is not the node's, or with a callback at such an address.
 * @param callback undefined: none, or one that an earlier heartbeat brought
 */
async function checkAddresses(node: AgentNode, peer: Peer, callback: URL | undefined, { agentAddresses }: ApiContext): Promise<void> {
  const foreign = await agentAddresses.objectionToSource(node.uuid, peer);
  if (foreign !== undefined)
    throw addressRefusal("The heartbeat did not come from an address of the node's machine.", { reason: 'source', why: foreign });
  const objection = callback && (await agentAddresses.objectionToCallback(node.uuid, callback, peer));
  if (objection === undefined) return;
  throw addressRefusal(`The agent cannot be called at the supplied "callback_url": ${objection}`, {
    reason: 'callback',
    why: `the agent cannot be called at ${callback!.host}, since ${objection}`,
  });
}
/** What the operator is told about a refusal, and the agent is not. */
interface AddressRefusal {
  readonly reason: 'source' | 'callback';
  readonly why: string;
}
const ADDRESS_REFUSALS = new WeakMap<Fault, AddressRefusal>();
function addressRefusal(message: string, told: AddressRefusal): Fault {
  const fault = invalidParameter(message);
  ADDRESS_REFUSALS.set(fault, told);
  return fault;
}

/** Throws Invalid or InvalidParameterValue for a heartbeat that is not from the node's agent, and errors of the conductor. */
async function forwardHeartbeat(node: AgentNode, { query, peer }: RequestOf<'heartbeat'>, context: ApiContext): Promise<void> {
  const text = (name: keyof typeof query): string | undefined => {
    const given = query[name];
    return given === null || given === undefined ? undefined : storable(given);
  };
  const { agent_url: known, agent_secret_token: secret } = node.driver_internal_info;
  const callbackUrl = text('callback_url') ?? '';
  const [token, version, status] = [text('agent_token'), text('agent_version'), text('agent_status')];
  const callback = callbackOf(callbackUrl);
  // Another machine sends the heartbeat, or the machine rebooted unexpectedly. The node must be powered off first.
  if (known !== undefined && known !== null && known !== callbackUrl) throw invalid('Detected change in ramdisk provided "callback_url"');
  if (token === undefined) throw invalidParameter('Agent token is required for heartbeat processing.');
  if (status !== undefined && !STATUSES.includes(status))
    throw invalidParameter(`Agent status is invalid. Valid states are ${STATUSES.join(',')}.`);
  if (version === undefined && status === undefined)
    throw invalidParameter('Agent did not transmit a version, and a version is required. Please update the agent being used.');
  if (typeof secret !== 'string' || !isSameSecret(token, secret)) throw invalidParameter('Invalid or missing agent token received.');
  if (context.options['agent.require_tls'] && callback && callback.protocol !== 'https:')
    throw invalidParameter('TLS is required by configuration');
  await checkAddresses(node, peer, callbackUrl === known ? undefined : callback, context);
  const [verifyCa, message] = [text('agent_verify_ca'), text('agent_status_message')];
  if (version !== undefined && version.length > MAX_VERSION)
    throw invalidParameter(`agent_version has more than ${MAX_VERSION} characters.`);
  if (verifyCa !== undefined && verifyCa.length > MAX_CERTIFICATE)
    throw invalidParameter(`agent_verify_ca has more than ${MAX_CERTIFICATE} characters.`);
  const heartbeatData: Heartbeat = {
    callbackUrl,
    agentToken: token,
    agentVersion: version,
    agentVerifyCa: verifyCa,
    agentStatus: status,
    agentStatusMessage: message === undefined ? undefined : shortened(message, MAX_STATUS_MESSAGE),
  };
  await context.conductor.heartbeat(node.uuid, heartbeatData, new AlreadyRead(node));
}

/** The settings for the enrolment of unknown machines. */
const discoveryOf = ({
  'auto_discovery.enabled': enabled,
  'auto_discovery.driver': driver,
  'DEFAULT.default_conductor_group': group,
}: Options): Pick<Lookup, 'discovery'> => (enabled && driver !== null ? { discovery: { driver, conductor_group: group } } : {});

/**
 * From this microversion on, the response to inspection data has the form of a lookup response. Agents without a version use
 * ironic-inspector's protocol.
 */
const LOOKUP_RESPONSE_SINCE = 84;
const INSPECTED_COLUMNS = ['uuid', 'provision_state'] as const;
type Inspected = Pick<NodeRecord, (typeof INSPECTED_COLUMNS)[number]>;
/** The nodes whose inventory this may be, by MAC addresses, UUID and addresses of the BMC; none for a new machine. */
async function ownersOf(
  macs: readonly string[],
  bmcAddresses: readonly string[],
  nodeUuid: string | null | undefined,
  { store }: ApiContext,
): Promise<readonly Inspected[]> {
  const owners = await store.ports.ownersOf(macs);
  const uuids = [...new Set(nodeUuid ? [...owners, nodeUuid] : owners)];
  const found = uuids.length === 0 ? [] : await store.nodes.listColumns(INSPECTED_COLUMNS, { where: { uuid: uuids }, children: 'all' });
  if (found.length > 0 || bmcAddresses.length === 0) return found;
  // Several machines may share the address of a BMC: then the conductor refuses the report. The conductor looks for the node again, but
  // may be another process, which does not know where the request comes from. So the source is checked here, for each of the nodes.
  return store.nodes.listColumns(INSPECTED_COLUMNS, { where: { provision_state: INSPECTED_STATES }, bmcAddresses, children: 'all' });
}

async function continueInspection(request: RequestOf<'continueInspection'>, context: ApiContext): Promise<Answer> {
  checkEnabled(request, context);
  const { body, query, minor } = request;
  const { inventory, ...plugin } = body;
  const macs = macsOf(inventory.interfaces.map(({ mac_address: mac }) => mac));
  const addresses = [inventory.bmc_address, inventory.bmc_v6address].flatMap((item) => (item ? [canonicalAddress(item) ?? item] : []));
  const uuid = query.node_uuid;
  if (macs.length === 0 && addresses.length === 0 && !uuid) throw invalid('No lookup information provided');
  for (const owner of await ownersOf(macs, addresses, uuid, context)) await refuseForeignSource(owner, request, context);
  const node = await context.conductor.continueInspection(
    {
      macs,
      bmcAddresses: addresses,
      nodeUuid: uuid || undefined,
      wantsToken: minor >= LOOKUP_RESPONSE_SINCE,
      ...discoveryOf(context.options),
    },
    inventory as Inventory,
    plugin,
  );
  if (minor < LOOKUP_RESPONSE_SINCE) return { status: 202, body: { uuid: node.uuid } };
  const { view, access } = viewOf(request, context);
  const shown = Buffer.from(withoutUrlCredentials(JSON.stringify(nodePresenter(view, access, [])(node))));
  return { status: 202, bytes: answerWith(shown, node.management_interface, node.driver_internal_info['agent_secret_token'], context) };
}

export const ramdiskHandlers = { lookup, heartbeat, continueInspection } satisfies SomeHandlers;
