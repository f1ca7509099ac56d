/** Reads openapi.yaml: operations with their arguments, and the fields of the resources, each with its gate. */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import type { Operations } from './operations';
import type { Gate } from '../../model/versions';

/**
 * The response of a closed gate. A status: an error of the router. With a message: a fault after the check of the arguments
 * (`early`: before it). `member`: the path is not a route of its own, and its last segment may name a field. `handler`: the handler checks
 * the version.
 */
export type GateRefusal = number | readonly [status: number, sentence: string, when?: 'early'] | 'member' | 'handler';
type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
const METHODS: readonly Method[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
export type Schema = Readonly<Record<string, unknown>> & {
  readonly type?: string;
  readonly format?: string;
  readonly description?: string;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
};
export type ArgumentKind =
  | 'string'
  | 'boolean'
  | 'integer'
  | 'names'
  | 'uuid'
  | 'ident'
  | 'name'
  | 'mac'
  | 'host-port'
  | 'types'
  | 'strict-uuid'
  | 'strict-ident'
  | 'strict-mac';

/** A named value in the path, in the query, or (x-arguments) in the body. */
export interface Argument {
  readonly name: string;
  /** Its name in messages. */
  readonly label: string;
  readonly from: 'path' | 'query' | 'body';
  readonly kind: ArgumentKind;
  readonly required: boolean;
  readonly schema: Schema;
  readonly gate: Gate;
  readonly below: GateRefusal;
  readonly routed: boolean;
}
export interface Operation {
  readonly operationId: keyof Operations;
  readonly method: Method;
  readonly path: string;
  readonly gate: Gate;
  readonly below: GateRefusal;
  readonly policy: string | null;
  readonly rest: GateRefusal | 'fields' | null;
  readonly arguments: readonly Argument[];
  /** The members of the body are arguments. */
  readonly bodyArguments: boolean;
  /** The name of the body in messages ('': none); null: the operation has no body. */
  readonly bodyName: string | null;
  readonly bodySchema: string | null;
  /** The body is checked before the arguments. */
  readonly bodyFirst: boolean;
  /** The response is a stream of events. */
  readonly streams: boolean;
  /** The position of its resource in `GET /v1`; null: not listed. */
  readonly listed: number | null;
}
/** One path with its operations. */
export interface PathItem {
  readonly path: string;
  readonly segments: readonly string[];
  readonly operations: ReadonlyMap<string, Operation>;
  readonly arguments: readonly Argument[];
  readonly gate: Gate;
  readonly below: GateRefusal;
  readonly rest: GateRefusal | 'fields' | null;
  readonly reserved: readonly string[];
  /** Other methods get 404, not 405. */
  readonly only: boolean;
  /** The router's response to older versions, here and below: the status for GET, for other methods, the message. */
  readonly closed: readonly [reading: number, writing: number, sentence: string] | null;
}
/** One field of a resource. */
export interface FieldRow {
  readonly name: string;
  readonly gate: Gate;
  /** The versions at which clients may name it: to set it, to select it, to sort by it. */
  readonly named: Gate;
  readonly create: boolean;
  readonly patch: boolean;
  /** Its place in the message that lists the patchable fields: by name, later fields last. */
  readonly patchOrder: number;
  readonly links: boolean;
  readonly selectable: boolean;
  /** Accepted, never shown. */
  readonly hidden: boolean;
  /** A boolean that clients may write as text. */
  readonly spelled: boolean;
  readonly policy: string | null;
  readonly readPolicy: string | null;
  readonly schema: Schema;
}
export interface Document {
  readonly min: number;
  readonly max: number;
  readonly paths: readonly PathItem[];
  /** Older spellings of the paths, with the same operations. The served document does not contain them. */
  readonly aliases: readonly PathItem[];
  readonly schemas: Readonly<Record<string, Schema>>;
  /** The fields of a schema that is a resource. */
  fields(resource: string): readonly FieldRow[];
  isResource(schema: string): boolean;
  /** The parsed file. */
  readonly source: Schema;
}

type Node = Readonly<Record<string, unknown>>;
const gateOf = (node: Node, outer: Gate = { since: 1 }): Gate => ({
  since: (node['x-since'] as number | undefined) ?? outer.since,
  ...(node['x-also'] === undefined ? {} : { also: node['x-also'] as number[] }),
});
const belowOf = (node: Node, otherwise: GateRefusal): GateRefusal => (node['x-below'] as GateRefusal | undefined) ?? otherwise;

function kindOf(schema: Node): ArgumentKind {
  if (schema['x-types']) return 'types';
  if (schema['x-strict']) return `strict-${schema['format'] as 'uuid' | 'ident' | 'mac'}`;
  if (schema['format']) return schema['format'] as ArgumentKind;
  return schema['type'] === 'array' ? 'names' : (schema['type'] as ArgumentKind);
}
const argument = (node: Node, from: Argument['from'], name: string, schema: Node, required: boolean): Argument => ({
  name,
  label: (node['x-name'] as string | undefined) ?? name,
  from,
  kind: kindOf(schema),
  required,
  schema,
  gate: gateOf(node),
  below: belowOf(node, [406, 'Request not acceptable. The minimal required API version should be {since}']),
  routed: node['x-routed'] === true,
});
const declared = (nodes: unknown): Argument[] =>
  ((nodes ?? []) as Node[]).map((node) =>
    argument(node, node['in'] as 'path' | 'query', node['name'] as string, node['schema'] as Node, node['required'] === true),
  );

function operation(method: Method, path: string, place: Node, node: Node): Operation {
  const body = node['requestBody'] as { content: { 'application/json': { schema: Node } } } | undefined;
  const schema = body?.content['application/json'].schema;
  const own = declared(node['parameters']);
  const outer = declared(place['parameters']).filter(({ name }) => !own.some((one) => one.name === name));
  const inBody = node['x-arguments'] === true;
  const required = (schema?.['required'] ?? []) as string[];
  const members = inBody ? Object.entries(schema!['properties'] as Record<string, Node>) : [];
  return {
    operationId: node['operationId'] as keyof Operations,
    method,
    path,
    gate: gateOf(node, gateOf(place)),
    below: belowOf(node, belowOf(place, 404)),
    policy: (node['x-policy'] as string | undefined) ?? null,
    rest: (node['x-rest'] as GateRefusal | undefined) ?? null,
    arguments: [...outer, ...own, ...members.map(([name, member]) => argument(member, 'body', name, member, required.includes(name)))],
    bodyArguments: inBody,
    bodyName: (node['x-name'] as string | undefined) ?? null,
    bodySchema: inBody ? null : ((schema?.['$ref'] as string | undefined)?.split('/').at(-1) ?? null),
    bodyFirst: node['x-body-first'] === true,
    streams: node['x-streams'] === true,
    listed: (node['x-listed'] as number | undefined) ?? null,
  };
}

const isMethod = (name: string): boolean => METHODS.includes(name.toUpperCase() as Method);
function pathItemOf(path: string, node: Node): PathItem {
  const operations = Object.entries(node)
    .filter(([name]) => isMethod(name))
    .map(([name, one]) => operation(name.toUpperCase() as Method, path, node, one as Node));
  return {
    path,
    segments: path.split('/').filter(Boolean),
    operations: new Map(operations.map((one) => [one.method, one])),
    arguments: declared(node['parameters']),
    gate: gateOf(node),
    below: belowOf(node, 404),
    rest: (node['x-rest'] as PathItem['rest'] | undefined) ?? null,
    reserved: (node['x-reserved'] as string[] | undefined) ?? [],
    only: node['x-only'] === true,
    closed: (node['x-closed'] as PathItem['closed'] | undefined) ?? null,
  };
}

/** The identifiers of an alias are ordinary arguments: the router does not check them. */
const aliasesOf = (path: PathItem, node: Node): PathItem[] =>
  ((node['x-aliases'] ?? []) as string[]).map((alias) => ({
    ...path,
    segments: alias.split('/').filter(Boolean),
    arguments: [],
    rest: 405,
  }));

const fieldRow = (name: string, node: Node): FieldRow => ({
  name,
  gate: gateOf(node),
  named: node['x-named-since'] === undefined ? gateOf(node) : { since: node['x-named-since'] as number },
  create: node['x-create'] === true,
  patch: node['x-patch'] !== undefined,
  patchOrder: Number(node['x-patch'] === true ? 0 : (node['x-patch'] ?? 0)),
  links: node['x-links'] === true,
  selectable: node['x-unselectable'] !== true,
  hidden: node['x-hidden'] === true,
  spelled: node['x-spelled'] === true,
  policy: (node['x-policy'] as string | undefined) ?? null,
  readPolicy: (node['x-read-policy'] as string | undefined) ?? null,
  schema: node,
});

/** @internal @param text openapi.yaml */
export const readDocument = (text: string): Document =>
  // The file is our own, so the number of its YAML aliases needs no limit.
  documentOf(parse(text, { maxAliasCount: -1, uniqueKeys: false, prettyErrors: false }) as Node);

function documentOf(source: Node): Document {
  const versions = source['x-versions'] as { min: number; max: number };
  const schemas = (source['components'] as { schemas: Record<string, Node> }).schemas;
  const rows = new Map(
    Object.entries(schemas)
      .filter(([, schema]) => schema['type'] === 'object' && schema['properties'])
      .map(([name, schema]) => [
        name,
        Object.entries(schema['properties'] as Record<string, Node>).map(([field, node]) => fieldRow(field, node)),
      ]),
  );
  const nodes = Object.entries(source['paths'] as Record<string, Node>);
  const paths = nodes.map(([path, node]) => pathItemOf(path, node));
  return {
    ...versions,
    paths,
    aliases: paths.flatMap((path, index) => aliasesOf(path, nodes[index]![1])),
    schemas,
    fields: (resource) => rows.get(resource)!,
    isResource: (schema) => rows.get(schema)?.some(({ create }) => create) ?? false,
    source,
  };
}

/**
 * Loads openapi.yaml from the project's root. The build parses it and writes JSON, because parsing YAML takes 150 ms and JSON 2 ms.
 * The JSON contains the hash of the YAML file, and is used only while that hash is right.
 */
export function loadDocument(): Document {
  const path = [join(__dirname, '../../openapi.yaml'), join(__dirname, '../../../openapi.yaml')].find((candidate) => existsSync(candidate));
  if (!path) throw new Error('openapi.yaml is missing');
  const text = readFileSync(path, 'utf8');
  const built = ['../../openapi.json', '../../dist/openapi.json'].map((place) => join(__dirname, place)).find((place) => existsSync(place));
  if (built) {
    const { sha256, document } = JSON.parse(readFileSync(built, 'utf8')) as { sha256: string; document: Node };
    if (sha256 === createHash('sha256').update(text).digest('hex')) return documentOf(document);
  }
  return readDocument(text);
}
