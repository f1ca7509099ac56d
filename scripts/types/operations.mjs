// The types of the operations of openapi.yaml and introspection.yaml, and of the bodies that create resources, for api/schema/operations.ts.

/** @param {any} schema with a list of words */
const unionOf = (schema) => schema.enum.map((/** @type {string | null} */ one) => (one === null ? 'null' : `'${one}'`)).join(' | ');
const HEAD = `// Generated from openapi.yaml and introspection.yaml by \`npm run types\`: do not edit.
import type { JsonObject } from '../../model/json';
import type { PatchOperation } from '../../model/patch';

type None = Record<never, never>;
interface Operation<Params, Query, Body> {
  /** The parameters of the path. */
  readonly params: Readonly<Params>;
  /** The arguments of the query, and of the body where its members are arguments. */
  readonly query: Readonly<Query>;
  /** Unknown where the handler checks the body. */
  readonly body: Body;
}

`;
const isName = /^[A-Za-z_]\w*$/;

/** @param {any} document a parsed file @param {boolean} [areTexts] the handlers convert the arguments */
function typesOf({ paths, components }, areTexts = false) {
  const { schemas } = components;
  const isResource = (/** @type {string} */ name) =>
    Object.values(schemas[name].properties ?? {}).some((/** @type {any} */ field) => field['x-create']);
  const reference = (/** @type {any} */ schema) => schema?.$ref?.split('/').at(-1);

  /** The type of the values that a schema accepts. What it does not say in a simple way is unknown. @param {any} schema @returns {string} */
  function typeOf(schema) {
    const name = reference(schema);
    if (name !== undefined) return typeOf(schemas[name]);
    const nullable = schema.nullable ? ' | null' : '';
    if (schema.enum) return unionOf(schema) + nullable;
    if (schema.type === 'string') return `string${nullable}`;
    if (schema.type === 'boolean') return `boolean${nullable}`;
    if (schema.type === 'integer' || schema.type === 'number') return `number${nullable}`;
    if (schema.type === 'array') return `readonly ${inList(typeOf(schema.items ?? {}))}[]${nullable}`;
    const choices =
      schema.type === undefined && (schema.anyOf ?? schema['x-json-schema']?.type?.map((/** @type {string} */ one) => ({ type: one })));
    if (choices) return [...new Set(choices.map(typeOf))].join(' | ') + nullable;
    if (schema.type === 'null') return 'null';
    if (schema.type !== 'object') return 'unknown';
    if (!schema.properties || Object.keys(schema.properties).length === 0) return `JsonObject${nullable}`;
    const members = membersOf(Object.entries(schema.properties), schema.required ?? []);
    return `${schema.additionalProperties === false ? members : `${members} & JsonObject`}${nullable}`;
  }
  const inList = (/** @type {string} */ type) => (/[|&]/.test(type) ? `(${type})` : type);
  const member = (/** @type {string} */ name, /** @type {string} */ type, isRequired = true) =>
    `${isName.test(name) ? name : `'${name}'`}${isRequired ? '' : '?'}: ${type}`;
  const inBraces = (/** @type {string[]} */ members) => (members.length === 0 ? 'None' : `{ ${members.join('; ')} }`);
  const membersOf = (/** @type {[string, any][]} */ entries, /** @type {string[]} */ required) =>
    inBraces(entries.map(([name, schema]) => member(name, typeOf(schema), required.includes(name))));

  /** The value of an argument. Members of bodies may be null, also where an operation takes no body but members (DELETE). */
  function argumentOf(/** @type {any} */ schema, /** @type {boolean} */ mayBeNull) {
    if (areTexts) return 'string';
    const kinds = schema['x-types']?.map((/** @type {string} */ type) => typeOf({ type, items: {} })).join(' | ');
    return (kinds ?? typeOf({ ...schema, nullable: false, enum: undefined })) + (mayBeNull ? ' | null' : '');
  }
  function bodyOf(/** @type {any} */ schema, /** @type {boolean} */ isArguments) {
    const name = reference(schema);
    if (schema === undefined || isArguments || (name !== undefined && isResource(name))) return 'unknown';
    if (name === 'Patch' || name === 'AllocationPatch') return 'readonly PatchOperation[]';
    // A body without a schema of its own is not checked before the handler.
    return name === undefined ? 'unknown' : typeOf(schema);
  }
  function operationOf(/** @type {any} */ place, /** @type {string} */ method, /** @type {any} */ operation) {
    const own = operation.parameters ?? [];
    const parameters = [
      ...(place.parameters ?? []).filter((/** @type {any} */ { name }) => !own.some((/** @type {any} */ one) => one.name === name)),
      ...own,
    ];
    const schema = operation.requestBody?.content['application/json']?.schema;
    const isFile = operation.requestBody?.content['application/octet-stream'] !== undefined;
    const isArguments = operation['x-arguments'] === true;
    const takesMembers = isArguments || (method === 'delete' && operation['x-name'] === undefined);
    const inPath = parameters.filter((/** @type {any} */ one) => one.in === 'path');
    const query = [
      ...parameters
        .filter((/** @type {any} */ one) => one.in === 'query')
        .map((/** @type {any} */ { name, required, schema: one }) =>
          member(name, argumentOf(one, takesMembers), required || one.default !== undefined),
        ),
      ...(isArguments
        ? Object.entries(schema.properties ?? {}).map(([name, one]) =>
            member(name, argumentOf(one, true), (schema.required ?? []).includes(name)),
          )
        : []),
    ];
    const params = inBraces(inPath.map((/** @type {any} */ { name }) => member(name, 'string')));
    const body = isFile ? 'readonly Buffer[]' : operation['x-name'] === undefined ? 'unknown' : bodyOf(schema, isArguments);
    const types = [params, inBraces(query), body];
    return `  readonly ${operation.operationId}: Operation<${types.join(', ')}>;`;
  }
  /** The fields of a new resource, and those that only a patch may have. */
  const inputOf = (/** @type {string} */ name) => {
    const fields = Object.entries(schemas[name].properties).filter(([, /** @type {any} */ field]) => field['x-create'] || field['x-patch']);
    return `  readonly ${name}: Readonly<${membersOf(fields, schemas[name].required ?? [])}>;`;
  };

  const methods = ['get', 'post', 'put', 'patch', 'delete'];
  const operations = Object.values(paths).flatMap((/** @type {any} */ place) =>
    methods.filter((method) => place[method]).map((method) => operationOf(place, method, place[method])),
  );
  return { operations: operations.join('\n'), inputs: Object.keys(schemas).filter(isResource).map(inputOf).join('\n') };
}

/** @param {any} api openapi.yaml, parsed @param {any} introspection introspection.yaml, parsed @returns {string} api/schema/operations.ts */
export function operationTypes(api, introspection) {
  const { operations, inputs } = typesOf(api);
  return `${HEAD}/** The types of each operation, by its operationId. */
export interface Operations {
${operations}
}
/** Those of the introspection service. Its handlers convert the arguments, in ironic-inspector's order and words. */
export interface IntrospectionOperations {
${typesOf(introspection, true).operations}
}
/** What clients may send of a resource, by its schema: a new one, or one after a patch. */
export interface Inputs {
${inputs}
}
`;
}
