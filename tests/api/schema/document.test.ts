import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import Ajv from 'ajv';
import { loadDocument, readDocument } from '../../../api/schema/document';
import { handlers } from '../../../api/handlers';
import { documentOfVersion } from '../../../api/schema/document-version';
import { checkHandlers, matcher } from '../../../api/resource/routes';
import { describe as describeErrors, toJsonSchema } from '../../../api/schema/schema';
import { isGateOpen } from '../../../model/versions';
import { cpuMsOf } from '../../support/cpu-time';
import { NEWEST } from '../../support/newest';

interface Projected {
  readonly paths: Readonly<
    Record<
      string,
      Readonly<
        Record<
          string,
          { readonly parameters: readonly { readonly name: string }[]; readonly responses: Record<string, { readonly content?: object }> }
        >
      >
    >
  >;
  readonly components: { readonly schemas: Readonly<Record<string, { readonly properties: object }>> };
}
const document = loadDocument();
/** Versions whose documents are checked. */
const MINORS = [1, 50, NEWEST];

/**
 * Reads definitions with openapi-backend (strictly: with OpenAPI's own schema). It runs in another process, because jest cannot load the
 * modules that the package is made of; in one process for all, because to load and compile them takes longer than to read.
 */
const READER = `
  const { OpenAPIBackend } = require('openapi-backend');
  const operationsOf = async (definition) => {
    const backend = await new OpenAPIBackend({ definition, strict: true, validate: false }).init();
    return backend.getOperations().map((one) => one.operationId).sort();
  };
  const definitions = JSON.parse(require('fs').readFileSync(0, 'utf8'));
  Promise.all(definitions.map(operationsOf)).then((all) => console.log(JSON.stringify(all)));`;
const operationsOf = async (definitions: readonly unknown[]): Promise<readonly string[][]> => {
  const reading = promisify(execFile)(process.execPath, ['-e', READER], { cwd: join(__dirname, '../../..') });
  reading.child.stdin!.end(JSON.stringify(definitions));
  return JSON.parse((await reading).stdout) as string[][];
};
it('openapi.yaml, and the documents of versions, are valid OpenAPI 3.0 documents for openapi-backend', async () => {
  const operations = document.paths.flatMap((path) => [...path.operations.values()]);
  const sorted = (some: typeof operations): string[] => some.map(({ operationId }) => operationId).sort();
  // The least and the most that a version has.
  const minors = [MINORS.at(0)!, MINORS.at(-1)!];
  expect(await operationsOf([document.source, ...minors.map((minor) => documentOfVersion(document, minor))])).toEqual([
    sorted(operations),
    ...minors.map((minor) => sorted(operations.filter(({ gate }) => isGateOpen(gate, minor)))),
  ]);
});

it('has the versions that tests ask for', () => {
  expect([document.min, document.max]).toEqual([1, NEWEST]);
});

describe('the document of one version', () => {
  const at = (minor: number) => documentOfVersion(document, minor) as unknown as Projected;
  const names = (minor: number, schema: string): string[] => Object.keys(at(minor).components.schemas[schema]!.properties);
  it.each(MINORS)('of 1.%p is without extensions of ours', (minor) => {
    expect(JSON.stringify(at(minor))).not.toMatch(/"x-/);
  });
  it('has the paths, arguments and fields of that version', () => {
    expect(at(48).paths).not.toHaveProperty('/v1/conductors');
    expect(at(49).paths).toHaveProperty('/v1/conductors');
    const filters = (minor: number): string[] => at(minor).paths['/v1/nodes']!['get']!.parameters.map(({ name }) => name);
    expect(filters(7)).not.toContain('fields');
    expect(filters(8)).toContain('fields');
    expect([names(4, 'Node').includes('name'), names(5, 'Node').includes('name')]).toEqual([false, true]);
  });
  it('distinguishes the fields of requests from those of responses', () => {
    expect(names(NEWEST, 'NewNode')).not.toContain('provision_state');
    expect(names(NEWEST, 'Node')).toContain('provision_state');
    expect(names(NEWEST, 'NewPort')).toContain('node_ident');
    expect(names(NEWEST, 'Port')).not.toContain('node_ident');
    expect(at(NEWEST).components.schemas['Node']).toMatchObject({ additionalProperties: false });
    expect(at(NEWEST).components.schemas['Node']).not.toHaveProperty('required');
    expect(at(NEWEST).components.schemas['NewNode']).toHaveProperty('required', ['driver']);
  });
  it('declares the errors of every operation, and no unused schema', () => {
    const { paths, components } = at(NEWEST);
    for (const operation of Object.values(paths).flatMap((place) => Object.values(place)))
      expect(Object.keys(operation.responses)).toEqual(expect.arrayContaining(['400', '401', '404', '406', '413']));
    const text = JSON.stringify({ paths, components });
    expect(Object.keys(components.schemas).filter((name) => !text.includes(`"#/components/schemas/${name}"`))).toEqual([]);
  });
  it('has a schema for every successful response', () => {
    const bare = Object.entries(at(NEWEST).paths).flatMap(([path, place]) =>
      Object.entries(place).flatMap(([method, { responses }]) =>
        Object.entries(responses)
          .filter(([status, entry]) => (status === '200' || status === '201' ? !entry.content : false))
          .map(([status]) => `${method} ${path} ${status}`),
      ),
    );
    expect(bare).toEqual([]);
  });
});

it('openapi.yaml names a policy for every operation but the documents, and for every field that can be changed', () => {
  const operations = document.paths.flatMap(({ operations: all }) => [...all.values()]);
  expect(operations.filter(({ policy }) => policy === null).map(({ operationId }) => operationId)).toEqual([
    'showRoot',
    'showVersion',
    'showDocument',
    'showDocsPage',
    'showDocsAsset',
  ]);
  for (const resource of ['Node', 'Port'])
    expect(document.fields(resource).filter(({ patch, policy, hidden }) => patch && !policy && !hidden)).toEqual([]);
});

it('checkHandlers() refuses a route without a handler, and a handler without a route', () => {
  expect(() => checkHandlers(document, handlers)).not.toThrow();
  const { listNodes, ...others } = handlers;
  expect(() => checkHandlers(document, others)).toThrow('no handler for [listNodes]');
  expect(() => checkHandlers(document, { ...handlers, idle: listNodes! })).toThrow('no operation for [idle]');
});

it('openapi.yaml is read and routed in bounded CPU time', async () => {
  const text = readFileSync(join(__dirname, '../../../openapi.yaml'), 'utf8');
  // Usually about 150 ms.
  expect(await cpuMsOf(() => checkHandlers(readDocument(text), handlers), 1500)).toBeLessThan(1500);
});

describe('routes', () => {
  const match = matcher(document);
  const path = (text: string): string[] => text.split('/').slice(1);
  const found = (method: string, text: string, minor: number): unknown => {
    try {
      const { operation, field, closed } = match(method, path(text), minor);
      return [operation.operationId, ...(field ? [field] : []), ...(closed ? ['closed'] : [])].join(' ');
    } catch (error) {
      return (error as { status: number }).status;
    }
  };
  it.each([
    ['GET', '/v1/nodes/x', 1, 'showNode'],
    ['GET', '/v1/nodes/detail', 1, 'listNodesDetail'],
    ['PATCH', '/v1/nodes/detail', 1, 'updateNode'],
    ['GET', '/v1/nodes/x/uuid', 8, 'showNode uuid'],
    ['GET', '/v1/nodes/x/uuid/more', 8, 404],
    ['GET', '/v1/nodes/x/portgroups', 23, 404],
    ['DELETE', '/v1/nodes/x/uuid', 8, 404],
    ['GET', '/v1/nodes/x/inventory', 80, 404],
    ['GET', '/v1/nodes/x/inventory', 81, 'showInventory'],
    ['POST', '/v1/nodes/x/inventory', 81, 405],
    ['GET', '/v1/nodes/x/traits', 36, 'showNode traits'],
    ['GET', '/v1/nodes/x/traits', 37, 'listTraits'],
    ['PUT', '/v1/nodes/x/traits', 36, 405],
    ['DELETE', '/v1/nodes/x/traits/CUSTOM_A', 36, 'removeTrait closed'],
    ['GET', '/v1/conductors', 48, 404],
    ['GET', '/v1/conductors/here/alive', 48, 404],
    ['GET', '/v1/conductors', 49, 'listConductors'],
    ['GET', '/v1/lookup', 21, 'lookup closed'],
    ['GET', '/v1/lookup', 22, 'lookup'],
    ['POST', '/v1/continue_inspection', 1, 'continueInspection'],
    ['POST', '/v1/continue_inspection', 2, 'continueInspection closed'],
    ['POST', '/v1/continue_inspection', 84, 'continueInspection'],
    ['POST', '/v1/heartbeat', 22, 400],
    ['DELETE', '/v1/ports', 1, 400],
    ['PUT', '/v1/ports/x', 1, 405],
    ['POST', '/v1/nodes/x/ports', 1, 400],
    ['GET', '/v1/nodes/x/ports/y', 1, 400],
  ])('lead %s %s at 1.%p to %p', (method, text, minor, expected) => expect(found(method, text, minor)).toBe(expected));
});

describe('messages of schema errors', () => {
  const said = (schema: object, value: unknown): string => {
    const root = toJsonSchema(schema) as object;
    const validate = new Ajv({ allErrors: true, verbose: true, strict: false }).compile(root);
    validate(value);
    return describeErrors(validate.errors!, root);
  };
  const object = (properties: object, more: object = {}) => ({ type: 'object', properties, ...more, additionalProperties: false });
  it.each([
    [{ type: 'string', nullable: true }, 5, "5 is not of type 'string', 'null'"],
    [{ type: 'boolean', nullable: true, 'x-spelled': true }, 5, "5 is not of type 'string', 'boolean', 'null'"],
    [{ type: 'object', nullable: true, 'x-null-first': true }, 5, "5 is not of type 'null', 'object'"],
    [object({ a: {} }, { required: ['a'] }), {}, "'a' is a required property"],
    [object({}), { b: 1, a: 2 }, "Additional properties are not allowed ('a', 'b' were unexpected)"],
    [object({}), { a: 2 }, "Additional properties are not allowed ('a' was unexpected)"],
    // Of several errors, the one nearest to the top is reported; of siblings, that of the later name.
    [object({ a: { type: 'string' } }, { required: ['b'] }), { a: 5 }, "'b' is a required property"],
    [object({ a: { type: 'string' }, b: { type: 'string' } }), { a: 5, b: 6 }, "6 is not of type 'string'"],
    [{ enum: ['x', 'y'] }, 'z', "'z' is not one of ['x', 'y']"],
    [{ pattern: '^a' }, 'z', "'z' does not match '^a'"],
    [{ minLength: 1 }, '', "'' should be non-empty"],
    [{ minLength: 3 }, 'a', "'a' is too short"],
    [{ maxLength: 1 }, 'ab', "'ab' is too long"],
    [{ type: 'array', minItems: 1 }, [], '[] should be non-empty'],
    [{ minimum: 1 }, 0, '0 is less than the minimum of 1'],
    [
      { anyOf: [{ type: 'null' }, { type: 'string' }] },
      5,
      "5 is not valid under any of the given schemas. Possible root cause: 5 is not of type 'null'",
    ],
    [
      { type: 'object', oneOf: [{ required: ['a'] }, { required: ['b'] }] },
      { a: 1, b: 1 },
      "{'a': 1, 'b': 1} is valid under each of {'required': ['b']}, {'required': ['a']}",
    ],
  ])('for the schema %j and the value %j', (schema, value, expected) => expect(said(schema, value)).toBe(expected));
});
