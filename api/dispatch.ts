/**
 * Dispatches a parsed request to its handler. Checks route, Accept, arguments, body, version gates and policy, in Ironic's order. Refuses
 * the answer of an operation whose policy neither the dispatcher nor the handler has checked (pipeline/permission.ts).
 */
import type { ConductorApi } from '../conductor/conductor';
import { Fault } from '../model/errors';
import { isObject } from '../model/json';
import { handlers } from './handlers';
import { accepts } from './http/accept';
import { bytesOf, parseBody, piecesOf, type Body } from './http/body';
import type { JsonLimits } from '../wire/bounded-json';
import { Unacceptable } from './http/errors';
import type { RequestReport } from './http/request-report';
import { checkOperations, checkPolicy, isOfResource } from './pipeline/access';
import type { Answer, ApiContext, Handler, Handlers, Request } from './pipeline/handler';
import { guardedConductor, guardedStore, requireGranted, type Permission } from './pipeline/permission';
import { matcher } from './pipeline/routes';
import { parseArguments, refuseByGate, refuseNewer } from './schema/arguments';
import type { Operation } from './schema/document';
import { throwIfInvalid } from './schema/schema';

interface ParsedRequest extends Pick<Request, 'base' | 'caller' | 'headers' | 'jsonSuffix' | 'minor' | 'path' | 'peer' | 'source'> {
  readonly method: string;
  readonly segments: readonly string[];
  readonly query: Readonly<Record<string, unknown>>;
  readonly body: Body;
  /** What the JSON of the body may have. */
  readonly json: JsonLimits;
}
export type Dispatch = (request: ParsedRequest, report: RequestReport) => Promise<Answer>;

/** The parsed body. DELETE has none: the members of an object are unexpected arguments; any other body is ignored. */
async function bodyOf({ bodyArguments, bodyName, method, takesFile }: Operation, body: Body, limits: JsonLimits): Promise<unknown> {
  if (takesFile) return piecesOf(body);
  const raw = bytesOf(body);
  if (bodyArguments || bodyName !== null) return parseBody(raw, limits);
  if (method !== 'DELETE' || raw.length === 0) return {};
  try {
    return await parseBody(raw, limits);
  } catch (error) {
    if (error instanceof Fault) return {};
    throw error;
  }
}
const membersOf = (body: unknown): object => (isObject(body) ? body : {});

/** Resources are validated by their handlers (fields.ts). */
function checkBody({ bodyName, bodySchema }: Operation, body: unknown, { document, validators }: Omit<ApiContext, 'conductor'>): void {
  if (bodyName === null || !bodySchema || document.isResource(bodySchema)) return;
  throwIfInvalid(bodyName, validators(bodySchema, () => document.schemas[bodySchema]!)(body));
}

const NO_PARAMS: Readonly<Record<string, string>> = {};
/** Path parameters by name. In aliases of a path, the node's identifier is an argument. */
function paramsOf({ arguments: known }: Operation, params: Readonly<Record<string, string>>, values: Readonly<Record<string, unknown>>) {
  let all = params;
  for (const { from, name } of known) if (from === 'path' && !Object.hasOwn(all, name)) all = { ...all, [name]: values[name] as string };
  return all;
}

export function createDispatch(context: Omit<ApiContext, 'conductor'>, conductor: ConductorApi): Dispatch {
  checkOperations(context.document);
  const match = matcher(context.document);
  /** Each request gets a copy with other values. It is made in one step only if no member is new. */
  const common: ApiContext = { ...context, conductor };
  return async (parsed, report) => {
    const { method, segments, minor, path, jsonSuffix, headers, base, caller, peer, source } = parsed;
    const { operation, params, field, closed } = match(method, segments, minor);
    report.route = operation.path;
    report.operation = operation.operationId;
    if (params['node_ident'] !== undefined) report.node = params['node_ident'];
    if (!accepts(headers.accept, operation.streams ? 'text/event-stream' : 'application/json')) throw new Unacceptable(headers.accept);
    const { bodyName, bodyFirst, below, gate } = operation;
    const body = await bodyOf(operation, parsed.body, parsed.json);
    const given = {
      ...parsed.query,
      ...(bodyName === null ? membersOf(body) : NO_PARAMS),
      ...(field === undefined ? NO_PARAMS : { fields: field }),
      ...params,
    };
    report.body = body;
    report.vendorMethod = given['method'];
    if (bodyFirst) checkBody(operation, body, context);
    const query = parseArguments(operation, given);
    checkBody(operation, body, context);
    if (closed) refuseByGate(below, gate.since);
    refuseNewer(operation, given, query, minor);
    const { policy } = operation;
    const permission: Permission = { policy, isGranted: policy === null };
    const isCheckedByHandler = policy !== null && isOfResource(policy);
    if (policy !== null && !isCheckedByHandler) checkPolicy({ caller, permission }, context, policy);
    const { origin } = report;
    const request: Request = {
      minor,
      caller,
      permission,
      params: paramsOf(operation, params, query),
      query,
      isFieldOfPath: field !== undefined,
      body,
      headers,
      base,
      path,
      jsonSuffix,
      origin,
      peer,
      source,
      onNode: ({ uuid }) => {
        report.nodeUuid = uuid;
      },
    };
    const direct = conductor.from(origin);
    const own: ApiContext = {
      ...common,
      conductor: isCheckedByHandler ? guardedConductor(direct, permission) : direct,
      // Handlers of GET write with the conductor only.
      store: isCheckedByHandler && operation.method !== 'GET' ? guardedStore(context.store, permission) : context.store,
    };
    // Its arguments and its body are checked now, by the document that its types come from.
    const answer = await (handlers[operation.operationId as keyof Handlers] as Handler)(request, own);
    requireGranted(permission);
    return answer;
  };
}
