/** Reads openapi.yaml and introspection.yaml: operations with their arguments, and the fields of the resources, each with its gate. */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import type { IntrospectionOperations, Operations } from './operations';
import type { Gate } from '../../model/versions';
import { NAMED_EARLY, OPERATIONS, PATHS, ROUTED, UNSELECTABLE, type GateRefusal } from './oddities';

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
const METHODS: readonly Method[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
export const lowered = (method: Method): Lowercase<Method> => method.toLowerCase() as Lowercase<Method>;
const ROUTED_NAMES = ['node_ident', 'portgroup_ident'];
/** What a gate consists of in the file. */
interface Gated {
  readonly 'x-since'?: number;
  readonly 'x-below'?: GateRefusal;
}
export type Schema = Readonly<Record<string, unknown>> &
  Gated & {
    readonly $ref?: string;
    readonly type?: string;
    readonly format?: string;
    readonly nullable?: boolean;
    readonly description?: string;
    readonly required?: readonly string[];
    readonly properties?: Readonly<Record<string, Schema>>;
    readonly items?: Schema;
    readonly 'x-create'?: true;
    readonly 'x-patch'?: true | number;
    readonly 'x-policy'?: string;
    readonly 'x-read-policy'?: string;
    readonly 'x-name'?: string;
    readonly 'x-ours'?: true;
    readonly 'x-asked'?: true;
    readonly 'x-types'?: readonly string[];
    readonly 'x-json-schema'?: Readonly<Record<string, unknown>>;
  };
const KINDS = [
  ...(['string', 'boolean', 'integer', 'names', 'uuid', 'ident', 'name', 'mac', 'host-port', 'types'] as const),
  ...(['strict-uuid', 'strict-ident', 'strict-mac'] as const),
] as const;
export type ArgumentKind = (typeof KINDS)[number];

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
type OperationId = keyof Operations | keyof IntrospectionOperations;
export interface Operation {
  readonly operationId: OperationId;
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
  /** Shown only if `fields` names it. */
  readonly asked: boolean;
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
  readonly source: Source;
}

/** The parts of the file, as far as the server reads them. `npm run types` and the tests check the file itself. */
export interface Content {
  readonly content: Readonly<Record<string, { readonly schema: Schema }>>;
}
export interface Parameter extends Gated {
  readonly name: string;
  readonly in: 'path' | 'query';
  readonly required?: boolean;
  readonly schema: Schema;
  readonly 'x-name'?: string;
}
export interface SourceOperation extends Gated {
  readonly operationId: OperationId;
  readonly summary: string;
  readonly description?: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: Content;
  readonly responses: Readonly<Record<string, Partial<Content> & { readonly description: string }>>;
  readonly 'x-policy'?: string;
  readonly 'x-name'?: string;
  readonly 'x-listed'?: number;
  readonly 'x-arguments'?: true;
  readonly 'x-example'?: object;
}
export type SourcePath = Gated & { readonly parameters?: readonly Parameter[] } & {
  readonly [Name in Lowercase<Method>]?: SourceOperation;
};
interface Source {
  readonly info: { readonly version: string };
  readonly paths: Readonly<Record<string, SourcePath>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

const gateOf = ({ 'x-since': since }: Gated, outer: Gate = { since: 1 }): Gate => ({ since: since ?? outer.since });
/** The name of the schema that a reference refers to. */
export const targetOf = (schema: Schema | undefined): string | undefined => schema?.$ref?.split('/').at(-1);
const isKind = (kind: string): kind is ArgumentKind => KINDS.some((candidate) => candidate === kind);

function kindOf({ 'x-types': types, 'x-strict': strict, type, format }: Schema): ArgumentKind {
  if (types) return 'types';
  const kind = `${strict ? 'strict-' : ''}${format ?? (type === 'array' ? 'names' : type)}`;
  if (isKind(kind)) return kind;
  throw new Error(`openapi.yaml: no argument is a ${kind}`);
}
const argument = (
  node: Omit<Parameter, 'in' | 'name' | 'schema' | 'required'>,
  from: Argument['from'],
  name: string,
  schema: Schema,
  required: boolean,
  routed = false,
): Argument => ({
  name,
  from,
  required,
  schema,
  routed,
  label: node['x-name'] ?? name,
  kind: kindOf(schema),
  gate: gateOf(node),
  below: node['x-below'] ?? [406, 'Request not acceptable. The minimal required API version should be {since}'],
});
const declared = (path: string, parameters: readonly Parameter[] = []): Argument[] => {
  const isRouted = ROUTED.test(path) && !PATHS[path]?.aliases;
  return parameters.map((node) =>
    argument(
      node,
      node.in,
      node.name,
      node.schema,
      node.required === true,
      isRouted && node.in === 'path' && ROUTED_NAMES.includes(node.name),
    ),
  );
};

function operation(method: Method, path: string, place: SourcePath, node: SourceOperation): Operation {
  const { operationId, requestBody, responses, 'x-policy': policy = null, 'x-name': bodyName = null, 'x-listed': listed = null } = node;
  const schema = requestBody?.content['application/json']?.schema;
  const own = declared(path, node.parameters);
  const outer = declared(path, place.parameters).filter(({ name }) => !own.some((candidate) => candidate.name === name));
  const inBody = node['x-arguments'] === true;
  const members = inBody ? Object.entries(schema?.properties ?? {}) : [];
  const { also, rest = null, bodyFirst = false } = OPERATIONS[operationId as keyof Operations] ?? {};
  return {
    operationId,
    method,
    path,
    policy,
    rest,
    bodyName,
    bodyFirst,
    listed,
    gate: {
      ...gateOf(node, gateOf(place)),
      ...(also ? { also } : {}),
    },
    below: node['x-below'] ?? place['x-below'] ?? 404,
    arguments: [
      ...outer,
      ...own,
      ...members.map(([name, member]) => argument(member, 'body', name, member, schema?.required?.includes(name) ?? false)),
    ],
    bodyArguments: inBody,
    bodySchema: (inBody ? undefined : targetOf(schema)) ?? null,
    streams: responses['200']?.content?.['text/event-stream'] !== undefined,
  };
}

function pathItemOf(path: string, node: SourcePath): PathItem {
  const operations = METHODS.flatMap((method): Operation[] => {
    const one = node[lowered(method)];
    return one ? [operation(method, path, node, one)] : [];
  });
  const { rest = null, reserved = [], only = false, closed = null } = PATHS[path] ?? {};
  return {
    path,
    rest,
    reserved,
    only,
    closed,
    segments: path.split('/').filter(Boolean),
    operations: new Map(operations.map((item) => [item.method, item])),
    arguments: declared(path, node.parameters),
    gate: gateOf(node),
    below: node['x-below'] ?? 404,
  };
}

/** The identifiers of an alias are ordinary arguments: the router does not check them. */
const aliasesOf = (path: PathItem): PathItem[] =>
  (PATHS[path.path]?.aliases ?? []).map((alias) => ({
    ...path,
    segments: alias.split('/').filter(Boolean),
    arguments: [],
    rest: 405,
  }));

/** Lists of links, and lists of such lists. */
const isLinks = ({ items }: Schema): boolean => items !== undefined && (targetOf(items) === 'Link' || isLinks(items));
const fieldRow = (resource: string, name: string, node: Schema): FieldRow => ({
  name,
  gate: gateOf(node),
  named: NAMED_EARLY[resource]?.includes(name) ? { since: 1 } : gateOf(node),
  create: node['x-create'] === true,
  patch: node['x-patch'] !== undefined,
  patchOrder: typeof node['x-patch'] === 'number' ? node['x-patch'] : 0,
  links: isLinks(node),
  selectable: !UNSELECTABLE[resource]?.includes(name),
  hidden: node['writeOnly'] === true,
  asked: node['x-asked'] === true,
  spelled: node['x-spelled'] === true,
  policy: node['x-policy'] ?? null,
  readPolicy: node['x-read-policy'] ?? null,
  schema: node,
});

/** @internal @param text openapi.yaml */
export const readDocument = (text: string): Document =>
  // The file is our own, so the number of its YAML aliases needs no limit.
  documentOf(parse(text, { maxAliasCount: -1, uniqueKeys: false, prettyErrors: false }) as Source);

function documentOf(source: Source): Document {
  const { schemas } = source.components;
  const rows = new Map(
    Object.entries(schemas).flatMap(([name, { type, properties }]) =>
      type === 'object' && properties
        ? [[name, Object.entries(properties).map(([field, node]) => fieldRow(name, field, node))] as const]
        : [],
    ),
  );
  const paths = Object.entries(source.paths).map(([path, node]) => pathItemOf(path, node));
  return {
    min: 1,
    max: Number(source.info.version.split('.')[1]),
    paths,
    aliases: paths.flatMap(aliasesOf),
    schemas,
    fields: (resource) => rows.get(resource)!,
    isResource: (schema) => rows.get(schema)?.some(({ create }) => create) ?? false,
    source,
  };
}

/**
 * Loads a document from the project's root. The build parses openapi.yaml and writes JSON, because parsing it takes 150 ms and JSON 2 ms.
 * The JSON contains the hash of the YAML file, and is used only while that hash is right.
 */
export function loadDocument(name: 'openapi' | 'introspection' = 'openapi'): Document {
  const find = (...places: readonly string[]): string | undefined =>
    places.map((place) => join(__dirname, place)).find((place) => existsSync(place));
  const path = find(`../../${name}.yaml`, `../../../${name}.yaml`);
  if (!path) throw new Error(`${name}.yaml is missing`);
  const text = readFileSync(path, 'utf8');
  const built = find(`../../${name}.json`, `../../dist/${name}.json`);
  if (built) {
    const { sha256, document } = JSON.parse(readFileSync(built, 'utf8')) as { sha256: string; document: Source };
    if (sha256 === createHash('sha256').update(text).digest('hex')) return documentOf(document);
  }
  return readDocument(text);
}
