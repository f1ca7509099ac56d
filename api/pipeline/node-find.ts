/** Finds nodes by UUID or name, and checks references to nodes and to chassis. */
import { conflict, Fault, invalid, notAcceptable } from '../../model/errors';
import { isHostName, isLogicalName, isUuid, RESERVED_NODE_NAMES } from '../../model/idents';
import { str } from '../../model/python';
import type { NodeRecord } from '../../model/records';
import { conductorsServing } from '../../model/ring';
import type { AliveConductors, NodeSummary } from '../../store/store';
import type { Target } from '../../policy/vocabulary';
import { checkPolicy } from './access';
import type { Answer, ApiContext, OperationTypes, Request, RequestOn } from './handler';

type OnNode = OperationTypes & { readonly params: { readonly node_ident: string } };

/** Names are host names before 1.10, RFC 3986 unreserved characters since. */
const isName = (name: unknown, minor: number): boolean => (minor < 10 ? isHostName(name) : isLogicalName(name));

/** @param error the message, up to the name */
export function checkName(name: unknown, minor: number, error: string): void {
  if (minor < 5) throw notAcceptable();
  const text = str(name);
  if (!isName(name, minor) || isUuid(name)) throw invalid(`${error} '${text}'`);
  if (RESERVED_NODE_NAMES.includes(text))
    throw invalid(
      `The word "${text}" is reserved and can not be used as a node name. Reserved words are: ${RESERVED_NODE_NAMES.join(', ')}.`,
    );
}

/**
 * The node that the filter of a list names. A node that does not belong to the project of the list is answered as one that does not exist.
 * @param project absent: the list shows all
 */
export async function nodeOfFilter(
  ident: string,
  project: string | undefined,
  { minor }: Request,
  context: ApiContext,
): Promise<NodeRecord> {
  const node = await nodeByIdent(ident, minor, context);
  if (!isOf(node, project)) throw new Fault('NodeNotFound', { node: ident });
  return node;
}
/** Whether a list of the project may show the node and what belongs to it. */
export const isOf = ({ owner, lessee }: Target, project: string | undefined): boolean =>
  project === undefined || owner === project || lessee === project;

/** Reads the node of an identifier; throws NodeNotFound. */
type Finder<Node> = (ident: string) => Promise<Node>;
export async function findByIdent<Node>(ident: string, minor: number, find: Finder<Node>): Promise<Node> {
  if (!isUuid(ident)) {
    if (minor < 5) throw new Fault('NodeNotFound', { node: ident });
    if (!isName(ident, minor)) throw new Fault('InvalidUuidOrName', { name: ident });
  }
  return find(ident);
}
/** By UUID, or from 1.5 on by name. Throws NodeNotFound, InvalidUuidOrName. */
export const nodeByIdent = (ident: string, minor: number, { store }: ApiContext): Promise<NodeRecord> =>
  findByIdent(ident, minor, (value) => store.nodes.find(value));

/**
 * The node of the path. Callers that may not see it get the same response as for a node that does not exist.
 * @param policy of the operation
 * @param suffix `.json`, which was removed from the path, may belong to the node's name
 */
export const nodeOf = (request: RequestOn<'node_ident'>, context: ApiContext, policy: string, suffix = false): Promise<NodeRecord> =>
  allowedNode(request, context, policy, suffix, (ident) => context.store.nodes.find(ident));
/** As nodeOf, for operations that may not need the whole record. A name may end with `.json`. */
export const nodeHeadOf = (request: RequestOn<'node_ident'>, context: ApiContext, policy: string): Promise<NodeSummary> =>
  allowedNode(request, context, policy, true, (ident) => context.current.node(ident));

/**
 * A handler for the node of the path. It checks the policy of the operation.
 * @param work returns the body of the answer; undefined: 204, without a body
 */
export const onNode =
  <Operation extends OnNode>(work: (node: NodeRecord, request: Request<Operation>, context: ApiContext) => Promise<unknown>) =>
  async (request: Request<Operation>, context: ApiContext): Promise<Answer> => {
    const body = await work(await nodeOf(request, context, request.permission.policy!), request, context);
    return body === undefined ? { status: 204 } : { status: 200, body };
  };

async function allowedNode<Node extends Pick<NodeRecord, 'uuid' | 'owner' | 'lessee'>>(
  request: RequestOn<'node_ident'>,
  context: ApiContext,
  policy: string,
  suffix: boolean,
  find: Finder<Node>,
): Promise<Node> {
  const { minor, params, jsonSuffix, caller } = request;
  const ident = params.node_ident;
  const node = await findByIdent(ident, minor, find).catch((error: unknown) => {
    // `.json` was removed from the path, but a name may end with it.
    if (suffix && jsonSuffix && error instanceof Fault && error.name === 'NodeNotFound') return findByIdent(`${ident}.json`, minor, find);
    throw error;
  });
  request.onNode(node);
  if (!context.auth.allowed(caller, 'node:get', node)) throw new Fault('NodeNotFound', { node: ident });
  checkPolicy(request, context, policy, node);
  return node;
}

/** A node that a query or a body names. A node that the caller may not see is answered as one that does not exist. */
export async function visibleNode(ident: string, { minor, caller }: Request, context: ApiContext): Promise<NodeRecord> {
  const node = await nodeByIdent(ident, minor, context);
  if (!context.auth.allowed(caller, 'node:get', node)) throw new Fault('NodeNotFound', { node: ident });
  return node;
}

/** Throws NoConductor unless an alive conductor serves the driver in the group. */
export function checkServed(node: { readonly driver: string; readonly conductor_group: string }, { conductors }: AliveConductors): void {
  const { driver, conductor_group: group } = node;
  if (conductorsServing(conductors, node).length > 0) return;
  const reason = `No conductor service registered which supports driver ${driver} for conductor group "${group}". Ensure the driver is valid and enabled.`;
  throw new Fault('NoConductor', { reason });
}

/** Replaces a 404: an unknown resource in a body is a bad request. */
export const asBadRequest = <T>(found: Promise<T>, unknown: Fault): Promise<T> =>
  found.catch((error: unknown) => {
    throw error instanceof Fault && error.status === 404 ? unknown : error;
  });
/** A node that does not exist belongs to no project. */
const NO_PROJECTS = { owner: null, lessee: null };
/**
 * The node of a new port, portgroup or volume. The policy comes before the existence of the node, so that a caller without it learns
 * nothing about nodes.
 * @param kind of the policy `KIND:create`
 * @param unknown the fault for a node that does not exist
 */
export async function nodeOfNew(
  kind: string,
  found: Promise<NodeRecord>,
  unknown: Fault,
  request: Request,
  context: ApiContext,
): Promise<NodeRecord> {
  const node = await asBadRequest(found, unknown).catch((error: unknown) => {
    if (error === unknown) checkPolicy(request, context, `${kind}:create`, NO_PROJECTS);
    throw error;
  });
  checkPolicy(request, context, `${kind}:create`, node);
  return node;
}
/** Checks the chassis of a node, if it has one. Throws ChassisUnknown. */
export async function checkChassis(uuid: string | null | undefined, { store }: ApiContext): Promise<void> {
  if (uuid) await asBadRequest(store.chassis.find(uuid), new Fault('ChassisUnknown', { chassis: uuid }));
}

/** From 1.39 on, a node and its ports cannot be changed during inspection. */
export function checkNotInspecting(what: string, node: NodeRecord, minor: number): void {
  if (node.provision_state === 'inspecting' && minor >= 39)
    throw conflict(`Cannot update ${what} "${node.uuid}" while it is in state "inspecting".`);
}

/** A node that another record refers to. It must be visible and have the same owner; the error does not say which of them failed. */
export async function linkedNode(
  field: string,
  ident: unknown,
  owner: string | null,
  request: Request,
  context: ApiContext,
): Promise<NodeRecord> {
  const found = typeof ident === 'string' ? nodeByIdent(ident, request.minor, context) : Promise.resolve(undefined);
  const node = await found.catch((error: unknown) => {
    if (error instanceof Fault && error.status < 500) return undefined;
    throw error;
  });
  if (node?.owner === owner && context.auth.allowed(request.caller, 'node:get', node)) return node;
  throw invalid(`Unable to apply the requested ${field} '${str(ident)}'. Requested value was invalid.`);
}

/** The node whose ports or portgroups are listed, by its UUID only. The error names a portgroup, as Ironic's does. */
export async function nodeOfList({ params, caller }: RequestOn<'node_ident'>, { store, auth }: ApiContext): Promise<NodeRecord> {
  const ident = params.node_ident;
  const node = isUuid(ident)
    ? await store.nodes.find(ident).catch((error: unknown) => {
        if (error instanceof Fault && error.name === 'NodeNotFound') return undefined;
        throw error;
      })
    : undefined;
  if (!node || !auth.allowed(caller, 'node:get', node)) throw new Fault('PortgroupNotFound', { portgroup: 'None' });
  return node;
}
