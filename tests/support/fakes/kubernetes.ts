/**
 * A small Kubernetes API with BareMetalHosts and HardwareData, for tests without a cluster. It refuses what a real one refuses: a wrong
 * token, what a role does not allow, members that the CRDs do not have, a wrong UID, and values of other managers unless forced. A rare part
 * of the lab has the real kube-apiserver (tests/lab/packages/hardware-sync.test.ts).
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

type Value = Readonly<Record<string, unknown>>;
interface Meta {
  name: string;
  namespace: string;
  uid: string;
  resourceVersion: string;
  annotations?: Record<string, string>;
  deletionTimestamp?: string;
}
interface Stored {
  metadata: Meta;
  spec: Record<string, unknown>;
  status: Record<string, unknown>;
}
export interface Rule {
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}
interface Seen {
  readonly verb: string;
  readonly resource: string;
  readonly name: string;
}
export interface FakeKubernetes {
  readonly url: string;
  readonly seen: Seen[];
  /** Creates or replaces an object, as the operator does. */
  put(resource: Resource, name: string, content: { spec?: object; status?: object; annotations?: Record<string, string> }): Stored;
  get(resource: Resource, name: string): Stored | undefined;
  /** The CRDs are those of an older release, without these members. */
  lack(...members: readonly string[]): void;
  /** Answers all requests with this status, until it is undefined. */
  fail(status: number | undefined): void;
  close(): Promise<void>;
}
type Resource = 'baremetalhosts' | 'hardwaredata';
const KINDS: Readonly<Record<Resource, string>> = { baremetalhosts: 'BareMetalHost', hardwaredata: 'HardwareData' };

// ---- the members of the CRDs (metal3.io_hardwaredata.yaml, metal3.io_baremetalhosts.yaml), as far as they are written here
type Schema = 'string' | 'integer' | 'number' | 'boolean' | readonly [Schema] | { readonly [member: string]: Schema };
const HARDWARE: Schema = {
  cpu: { arch: 'string', clockMegahertz: 'number', count: 'integer', flags: ['string'], model: 'string' },
  firmware: { bios: { date: 'string', vendor: 'string', version: 'string' } },
  hostname: 'string',
  nics: [
    {
      ip: 'string',
      lldp: { portID: 'string', switchID: 'string', switchSystemName: 'string' },
      mac: 'string',
      model: 'string',
      name: 'string',
      pciAddress: 'string',
      pxe: 'boolean',
      speedGbps: 'integer',
      vlanId: 'integer',
      vlans: [{ id: 'integer', name: 'string' }],
    },
  ],
  ramMebibytes: 'integer',
  storage: [
    {
      alternateNames: ['string'],
      hctl: 'string',
      model: 'string',
      name: 'string',
      rotational: 'boolean',
      serialNumber: 'string',
      sizeBytes: 'integer',
      type: 'string',
      vendor: 'string',
      wwn: 'string',
      wwnVendorExtension: 'string',
      wwnWithExtension: 'string',
    },
  ],
  systemVendor: { manufacturer: 'string', productName: 'string', serialNumber: 'string' },
};
const CONDITION: Schema = { type: 'string', status: 'string', reason: 'string', message: 'string', lastTransitionTime: 'string' };
const SCHEMAS: Readonly<Record<string, Schema>> = {
  'hardwaredata spec': { hardware: HARDWARE },
  'baremetalhosts status': { hardware: HARDWARE, conditions: [CONDITION] },
};
/** As the OpenAPI document has it. */
function openApiOf(schema: Schema): object {
  if (typeof schema === 'string') return { type: schema };
  if (Array.isArray(schema)) return { type: 'array', items: openApiOf((schema as readonly [Schema])[0]) };
  return { type: 'object', properties: Object.fromEntries(Object.entries(schema).map(([name, part]) => [name, openApiOf(part)])) };
}
/** The schema without members of these names. */
function lacking(schema: Schema, names: readonly string[]): Schema {
  if (typeof schema === 'string') return schema;
  if (Array.isArray(schema)) return [lacking((schema as readonly [Schema])[0], names)];
  const left = Object.entries(schema).filter(([name]) => !names.includes(name));
  return Object.fromEntries(left.map(([name, part]) => [name, lacking(part, names)]));
}
function checkValue(value: unknown, schema: Schema, path: string): void {
  const refuse = (what: string): never => {
    throw new Refused(400, `${path}: ${what}`);
  };
  if (typeof schema === 'string') {
    const kind = Number.isInteger(value) && schema === 'integer' ? 'integer' : typeof value;
    if (kind !== schema) refuse(`expected ${schema}, got ${JSON.stringify(value)}`);
  } else if (Array.isArray(schema)) {
    if (!Array.isArray(value)) refuse('expected list');
    for (const [at, item] of (value as unknown[]).entries()) checkValue(item, (schema as readonly [Schema])[0], `${path}[${at}]`);
  } else {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) refuse('expected map');
    for (const [member, part] of Object.entries(value as Value)) {
      const known = (schema as Readonly<Record<string, Schema>>)[member];
      if (known === undefined) return refuse(`.${member}: field not declared in schema`);
      checkValue(part, known, `${path}.${member}`);
    }
  }
}

class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

// ---- server-side apply: maps are merged, lists are values of their own, except conditions, which are merged by type
type Leaves = ReadonlyMap<string, unknown>;
/** The values by their paths; a path is JSON. */
function leavesOf(value: unknown, path: readonly string[] = []): Leaves {
  const isConditions = path.at(-1) === 'conditions' && Array.isArray(value);
  if (isConditions) return new Map((value as Value[]).flatMap((item) => [...leavesOf(item, [...path, String(item['type'])])]));
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return new Map([[JSON.stringify(path), value]]);
  return new Map(Object.entries(value).flatMap(([name, part]) => [...leavesOf(part, [...path, name])]));
}
function rebuilt(leaves: Leaves): Record<string, unknown> {
  const root: Record<string, unknown> = {};
  for (const [key, value] of leaves) {
    const path = JSON.parse(key) as string[];
    let at = root;
    for (const name of path.slice(0, -1)) at = (at[name] ??= {}) as Record<string, unknown>;
    at[path.at(-1)!] = value;
  }
  const { status } = root as { status?: { conditions?: object } };
  if (status?.conditions) status.conditions = Object.values(status.conditions);
  return root;
}
/** Path → its managers. */
type Owners = Map<string, Set<string>>;
function applied(before: Leaves, owners: Owners, given: Leaves, manager: string, force: boolean): Leaves {
  const conflicts = [...given].filter(
    ([path, value]) =>
      JSON.stringify(before.get(path)) !== JSON.stringify(value) && [...(owners.get(path) ?? [])].some((owner) => owner !== manager),
  );
  if (conflicts.length > 0 && !force) throw new Refused(409, `Apply failed with ${conflicts.length} conflicts`);
  const after = new Map(before);
  for (const [path, own] of owners)
    if (own.delete(manager) && own.size === 0 && !given.has(path)) {
      owners.delete(path);
      after.delete(path);
    }
  for (const [path, value] of given) {
    const others = JSON.stringify(before.get(path)) === JSON.stringify(value) ? (owners.get(path) ?? []) : [];
    owners.set(path, new Set([...others, manager]));
    after.set(path, value);
  }
  return after;
}

const PATH = /^\/apis\/metal3\.io\/v1alpha1(?:\/namespaces\/([^/]+))?\/(baremetalhosts|hardwaredata)(?:\/([^/]+)(\/status)?)?$/;
const OPERATOR = 'baremetal-operator';

/** @param rules of the role of the token */
export async function startFakeKubernetes(token: string, rules: readonly Rule[], page = 2): Promise<FakeKubernetes> {
  const objects = { baremetalhosts: new Map<string, Stored>(), hardwaredata: new Map<string, Stored>() };
  const owners = new Map<string, Owners>();
  const seen: Seen[] = [];
  let version = 0;
  let failing: number | undefined;
  let missing: readonly string[] = [];
  const schemaOf = (name: string): Schema => lacking(SCHEMAS[name] ?? {}, missing);
  /** The members of the CRDs, with an entity tag. */
  function openApi(request: IncomingMessage): unknown {
    const tag = `"${missing.join()}"`;
    if (request.headers['if-none-match'] === tag) throw new Refused(304, '');
    const schemas = Object.entries(KINDS).map(([resource, kind]) => {
      const part = resource === 'hardwaredata' ? 'spec' : 'status';
      return [`io.metal3.v1alpha1.${kind}`, openApiOf({ [part]: schemaOf(`${resource} ${part}`) })];
    });
    return { tag, components: { schemas: Object.fromEntries(schemas) as object } };
  }
  const store = (resource: Resource, object: Stored): Stored => {
    object.metadata.resourceVersion = String(++version);
    objects[resource].set(object.metadata.name, object);
    return object;
  };
  const shown = (resource: Resource, object: Stored) => ({ apiVersion: 'metal3.io/v1alpha1', kind: KINDS[resource], ...object });

  function list(resource: Resource, search: URLSearchParams, accept: string): unknown {
    const from = Number(search.get('continue') ?? 0);
    const size = Math.min(Number(search.get('limit') ?? Infinity), page);
    const all = [...objects[resource].values()];
    const items = all.slice(from, from + size);
    const isMetadata = accept.includes('as=PartialObjectMetadataList');
    const rest = from + size < all.length ? { continue: String(from + size) } : {};
    // As the real one does.
    if (isMetadata && items.length === 0) return { metadata: rest, items: null };
    return { metadata: rest, items: items.map((item) => (isMetadata ? { metadata: item.metadata } : shown(resource, item))) };
  }
  function apply(resource: Resource, name: string, isStatus: boolean, search: URLSearchParams, content: Value): unknown {
    const manager = search.get('fieldManager');
    if (!manager) throw new Refused(400, 'fieldManager is required for apply patch');
    const object = objects[resource].get(name);
    if (!object) throw new Refused(403, 'the role may not create');
    const metadata = (content['metadata'] ?? {}) as Partial<Meta>;
    if (content['apiVersion'] !== 'metal3.io/v1alpha1' || content['kind'] !== KINDS[resource] || metadata.name !== name)
      throw new Refused(400, 'the object does not match the path');
    if (metadata.uid !== undefined && metadata.uid !== object.metadata.uid)
      throw new Refused(409, 'uid mismatch: the object was recreated');
    // The main resource has no status, and the subresource nothing else.
    const part = isStatus ? 'status' : 'spec';
    const given = { [part]: content[part] ?? {}, ...(isStatus ? {} : { annotations: metadata.annotations ?? {} }) };
    checkValue(content[part] ?? {}, schemaOf(`${resource} ${part}`), `.${part}`);
    const key = `${resource}/${object.metadata.uid}/${part}`;
    const before = leavesOf({ [part]: object[part], ...(isStatus ? {} : { annotations: object.metadata.annotations ?? {} }) });
    const own = owners.get(key) ?? new Map([...before.keys()].map((path) => [path, new Set([OPERATOR])]));
    owners.set(key, own);
    const after = rebuilt(applied(before, own, leavesOf(given), manager, search.get('force') === 'true'));
    const { annotations = {}, [part]: changed = {} } = after as Record<string, Record<string, unknown>>;
    const isSame = JSON.stringify([...leavesOf(after)].sort()) === JSON.stringify([...before].sort());
    object[part] = changed;
    if (!isStatus) object.metadata.annotations = annotations as Record<string, string>;
    return shown(resource, isSame ? object : store(resource, object));
  }
  async function answer(request: IncomingMessage): Promise<unknown> {
    if (failing !== undefined) throw new Refused(failing, 'not now');
    if (request.headers.authorization !== `Bearer ${token}`) throw new Refused(401, 'Unauthorized');
    const { pathname, searchParams } = new URL(request.url!, 'http://x');
    if (pathname === '/openapi/v3/apis/metal3.io/v1alpha1') return openApi(request);
    const found = PATH.exec(pathname);
    if (!found) throw new Refused(404, 'no such path');
    const [encoded, status] = found.slice(3);
    const resource = found[2] as Resource;
    const name = encoded === undefined ? '' : decodeURIComponent(encoded);
    const verb = request.method === 'PATCH' ? 'patch' : name === '' ? 'list' : 'get';
    const full = `${resource}${status ?? ''}`;
    seen.push({ verb, resource: full, name });
    if (!rules.some(({ resources, verbs }) => resources.includes(full) && verbs.includes(verb)))
      throw new Refused(403, `${full} is forbidden: cannot ${verb}`);
    if (verb === 'list') return list(resource, searchParams, request.headers.accept ?? '');
    const object = objects[resource].get(name);
    if (verb === 'get') {
      if (!object) throw new Refused(404, 'not found');
      return shown(resource, object);
    }
    if (request.headers['content-type'] !== 'application/apply-patch+yaml') throw new Refused(415, 'unsupported media type');
    const pieces: Buffer[] = [];
    for await (const piece of request as AsyncIterable<Buffer>) pieces.push(piece);
    return apply(resource, name, status !== undefined, searchParams, JSON.parse(Buffer.concat(pieces).toString()) as Value);
  }
  const send = (response: ServerResponse, status: number, body: unknown): void =>
    void response.writeHead(status, { 'content-type': 'application/json', etag: String((body as Value)['tag']) }).end(JSON.stringify(body));
  const server = createServer((request, response) => {
    answer(request).then(
      (body) => send(response, 200, body),
      (error: unknown) =>
        send(response, error instanceof Refused ? error.status : 500, { kind: 'Status', message: (error as Error).message }),
    );
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    put(resource, name, { spec = {}, status = {}, annotations }) {
      const uid = randomUUID();
      const metadata = { name, namespace: 'metal3', uid, resourceVersion: '', ...(annotations ? { annotations } : {}) };
      return store(resource, { metadata, spec: { ...spec }, status: { ...status } });
    },
    get: (resource, name) => objects[resource].get(name),
    lack: (...members) => void (missing = members),
    fail: (status) => void (failing = status),
    async close() {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}
