/** openapi.yaml for one microversion, as plain OpenAPI 3.0: for clients, for the page at /v1/docs and for tests of responses. */
import { HEADER, isGateOpen } from '../../model/versions';
import { isObject } from '../../model/json';
import {
  lowered,
  targetOf,
  type Content,
  type Document,
  type Operation,
  type Parameter,
  type PathItem,
  type Schema,
  type SourceOperation,
  type SourcePath,
} from './document';
import { MASKED } from './oddities';

type Side = 'request' | 'response';

/** Our own formats as patterns, which every tool understands. */
const PATTERNS: Readonly<Record<string, string>> = {
  mac: '^([0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}$',
  ident: '^[A-Za-z0-9._~-]+$',
  'standard-trait': '^[A-Z0-9_]+$',
  'host-port': '^[A-Za-z0-9._-]+(:[0-9]+)?$',
};
/** Without our own keys. `writeOnly` decides whether a response has a field, and nobody needs to know it. */
const withoutExtensions = (node: object): [string, unknown][] =>
  Object.entries(node).filter(([key]) => !key.startsWith('x-') && key !== 'writeOnly');
const describedBy = (texts: readonly (string | undefined)[]): { readonly description?: string } => {
  const known = texts.flatMap((text) => text?.trim() ?? []);
  return known.length === 0 ? {} : { description: known.join('\n\n') };
};
const isOpen = ({ 'x-since': since = 1 }: Pick<Schema, 'x-since'>, minor: number): boolean => minor >= since;

const text = { type: 'string' };
const closedObject = (properties: object): object => ({
  type: 'object',
  required: Object.keys(properties),
  additionalProperties: false,
  properties,
});
/** The schema of error responses. */
const ERROR_SCHEMA = {
  description:
    'An error. `error_message` is a string that contains JSON. There are other members if authentication failed, or if the body was not read.',
  anyOf: [
    closedObject({ error_message: text }),
    closedObject({ faultcode: text, faultstring: text }),
    closedObject({ error: { type: 'object', properties: { message: text, code: { type: 'integer' }, title: text } } }),
    { description: 'Keystone cannot be asked.', ...closedObject({ message: text, code: text, title: text }) },
  ],
};
/** The meaning of each status, and which operations return it. */
const ERROR_STATUSES: readonly (readonly [status: string, description: string, when: (operation: Operation) => boolean])[] = [
  ['400', 'The request is wrong', () => true],
  ['401', 'Authentication failed', () => true],
  ['403', 'The caller is not allowed to do this, the node is protected, or the operation is disabled', ({ policy }) => policy !== null],
  ['404', 'Not found, or not in this version', () => true],
  ['406', 'The version is not supported, or an argument needs another version', () => true],
  ['409', 'The state of the resource or its lock does not allow it', ({ policy }) => policy !== null],
  ['413', 'The body is too large', () => true],
  ['415', 'A page of another origin sent a body that is not JSON', ({ method }) => method === 'POST'],
  ['429', 'The node pushes too often', ({ operationId }) => operationId === 'pushHardware' || operationId === 'registerResidentAgent'],
  ['500', 'Unexpected error, or a failure of the machine', ({ policy }) => policy !== null],
  ['503', 'Temporarily overloaded', () => true],
];

/** Which of them a server accepts depends on its options. */
const SECURITY_SCHEMES = {
  basic: { type: 'http', scheme: 'basic' },
  bearer: { type: 'http', scheme: 'bearer' },
  token: { type: 'apiKey', in: 'header', name: 'X-Auth-Token' },
};

const isSchema = (node: unknown): node is Schema => isObject(node);
interface SchemaProjection {
  readonly schemaOf: (value: unknown, side: Side) => unknown;
  /** The schemas that the results of `schemaOf` refer to. */
  readonly components: () => Readonly<Record<string, unknown>>;
}
/** Reduces schemas to one version. A resource has one schema for requests and another for responses. */
function createSchemaProjection(document: Document, minor: number): SchemaProjection {
  const used = new Map<string, readonly [side: Side, name: string]>();
  const nameOf = (name: string, side: Side): string => (side === 'request' && document.isResource(name) ? `New${name}` : name);

  function schemaOf(node: unknown, side: Side, resource?: string, closed = resource !== undefined): unknown {
    if (Array.isArray(node)) return node.map((item) => schemaOf(item, side));
    if (!isSchema(node)) return node;
    const target = targetOf(node);
    if (target !== undefined) {
      const name = nameOf(target, side);
      used.set(`${side} ${target}`, [side, target]);
      return { $ref: `#/components/schemas/${name}` };
    }
    // A body argument has one of these types.
    const types = node['x-types'];
    if (types) return { anyOf: types.map((type) => (type === 'array' ? { type, items: {} } : { type })) };
    if (node['x-spelled'] === true && side === 'request')
      return { anyOf: [{ type: 'boolean', ...(node['nullable'] === true ? { nullable: true } : {}) }, { type: 'string' }] };
    const entries = withoutExtensions(node).flatMap(([key, value]): [string, unknown][] => {
      if (key === 'enum' || key === 'default') return [[key, value]];
      if (key === 'format' && typeof value === 'string' && PATTERNS[value] !== undefined) return [['pattern', PATTERNS[value]]];
      if (key === 'properties') return [[key, propertiesOf(node.properties!, side, resource)]];
      // Required fields of a new resource are optional in responses, because clients select fields.
      if (resource !== undefined && side === 'response' && (key === 'required' || key === 'oneOf')) return [];
      return [[key, schemaOf(value, side)]];
    });
    return { ...(closed ? { additionalProperties: false } : {}), ...Object.fromEntries<unknown>(entries) };
  }
  const isMasked = (resource: string | undefined, name: string): boolean =>
    resource !== undefined && (MASKED[resource]?.includes(name) ?? false);
  const propertiesOf = (rows: Readonly<Record<string, Schema>>, side: Side, resource: string | undefined): object =>
    Object.fromEntries(
      Object.entries(rows)
        .filter(
          ([, row]) =>
            isOpen(row, minor) && (resource === undefined || (side === 'request' ? row['x-create'] === true : row['writeOnly'] !== true)),
        )
        .map(([name, row]) => [name, schemaOf(side === 'response' && isMasked(resource, name) ? { ...row, nullable: true } : row, side)]),
    );

  return {
    schemaOf,
    components: () => {
      const components: Record<string, unknown> = {};
      // Schemas refer to further schemas, so the set grows during the iteration.
      for (const [side, name] of used.values()) {
        // Objects in responses have no additional properties, unless the schema allows them.
        const closed = side === 'response' && document.schemas[name]!['properties'] !== undefined;
        components[nameOf(name, side)] = schemaOf(
          document.schemas[name],
          side,
          document.isResource(name) ? name : undefined,
          closed || document.isResource(name),
        );
      }
      return components;
    },
  };
}

type Choice = (operation: Operation) => boolean;
/** The paths and operations of one version. */
function pathsOf(document: Document, minor: number, schemaOf: SchemaProjection['schemaOf'], isWanted: Choice): object {
  const parameterOf = (node: Parameter): object => {
    const { schema } = node;
    return {
      ...Object.fromEntries(withoutExtensions(node)),
      schema: schemaOf(schema, 'request'),
      ...(schema.type === 'array' ? { style: 'form', explode: false } : {}),
    };
  };
  const parametersOf = (...lists: readonly (readonly Parameter[] | undefined)[]): object[] => {
    const byName = new Map(lists.flatMap((list) => list ?? []).map((node) => [`${node.in} ${node.name}`, node]));
    // A path parameter hides the query parameter of the same name.
    return [...byName.values()]
      .filter((node) => isOpen(node, minor) && !(node.in === 'query' && byName.has(`path ${node.name}`)))
      .map(parameterOf);
  };
  const contentOf = (node: Partial<Content>, side: Side, more: object = {}): object => ({
    ...node,
    ...(node.content
      ? {
          content: Object.fromEntries(
            Object.entries(node.content).map(([type, { schema }]) => [type, { schema: schemaOf(schema, side), ...more }]),
          ),
        }
      : {}),
  });
  /** The body with its example, without fields that this version does not have. */
  const bodyOf = (body: Content, example: object | undefined): object => {
    if (!example) return contentOf(body, 'request');
    const { schema } = body.content['application/json']!;
    const target = targetOf(schema);
    const rows = (target === undefined ? schema : document.schemas[target]!).properties;
    const members = Object.entries(example).filter(([name]) => rows?.[name] === undefined || isOpen(rows[name], minor));
    return contentOf(body, 'request', { example: Array.isArray(example) ? example : Object.fromEntries<unknown>(members) });
  };
  const header = {
    name: HEADER,
    in: 'header',
    description:
      'The microversion of the request. This document describes the version in `default`. Without this header the server uses the oldest one.',
    schema: { type: 'string', default: `1.${minor}` },
  };

  function operationOf(operation: Operation, place: SourcePath, node: SourceOperation): object {
    const refused = ERROR_STATUSES.filter(([, , when]) => when(operation)).map(([status, description]): [string, unknown] => [
      status,
      { description, content: { 'application/json': { schema: { $ref: '#/components/schemas/Refusal' } } } },
    ]);
    const responses = Object.entries(node.responses).map(([status, entry]): [string, unknown] => [status, contentOf(entry, 'response')]);
    return {
      operationId: operation.operationId,
      summary: node.summary,
      tags: [operation.path.split('/').filter(Boolean)[1] ?? 'root'],
      ...describedBy([node.description, operation.policy ? `Policy: ${operation.policy}` : undefined]),
      parameters: [...parametersOf(place.parameters, node.parameters), header],
      ...(node.requestBody === undefined ? {} : { requestBody: bodyOf(node.requestBody, node['x-example']) }),
      responses: Object.fromEntries<unknown>([...refused, ...responses]),
    };
  }
  const pathOf = (place: PathItem): object => {
    const node = document.source.paths[place.path]!;
    const operations = [...place.operations.values()].filter((operation) => isGateOpen(operation.gate, minor) && isWanted(operation));
    return Object.fromEntries<object>(
      operations.map((operation) => {
        const method = lowered(operation.method);
        return [method, operationOf(operation, node, node[method]!)];
      }),
    );
  };

  return Object.fromEntries<object>(
    document.paths
      .map((place): [string, object] => [place.path, pathOf(place)])
      .filter(([, candidate]) => Object.keys(candidate).length > 0),
  );
}

/**
 * @param isWanted the operations, and the schemas that they need, are in the document
 * @returns the document for `1.minor` without our `x-` keys; a copy, so that callers may change it
 */
export function documentOfVersion(document: Document, minor: number, isWanted: Choice = () => true): Schema {
  const { schemaOf, components } = createSchemaProjection(document, minor);
  // Before the components: it collects their names.
  const paths = pathsOf(document, minor, schemaOf, isWanted);
  return {
    openapi: '3.0.3',
    info: { ...document.source.info, version: `1.${minor}` },
    paths,
    components: { schemas: { Refusal: ERROR_SCHEMA, ...components() }, securitySchemes: SECURITY_SCHEMES },
  };
}
