import Ajv from 'ajv';
import { loadDocument } from '../../../api/schema/document';
import { documentOfVersion } from '../../../api/schema/document-version';

interface ShownOperation {
  readonly operationId: string;
  readonly summary?: string;
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: object; readonly example?: unknown }>> };
}
interface ShownDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, ShownOperation>>>>;
  readonly components: object;
}
const document = loadDocument();
const shown = (minor: number): ShownDocument => documentOfVersion(document, minor) as unknown as ShownDocument;
const operationsOf = ({ paths }: ShownDocument): readonly ShownOperation[] => Object.values(paths).flatMap((path) => Object.values(path));

/** Translates OpenAPI's `nullable` into JSON Schema. */
const asJsonSchema = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(asJsonSchema);
  if (typeof value !== 'object' || value === null) return value;
  const { nullable, ...rest } = Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, asJsonSchema(entry)]));
  return nullable === true ? { anyOf: [rest, { type: 'null' }] } : rest;
};

it('each operation has a summary without a period', () => {
  const summaries = operationsOf(shown(document.max)).map(({ operationId, summary }) => [operationId, summary] as const);
  expect(summaries.length).toBeGreaterThan(100);
  expect(summaries.filter(([, summary]) => summary === undefined || !/^[A-Z][^.]*$/.test(summary))).toEqual([]);
});

// The first version, one between, the newest one.
describe.each([1, 72, document.max])('at 1.%d', (minor) => {
  const latest = shown(minor);
  const ajv = new Ajv({ strict: false, validateFormats: false });
  ajv.addSchema(asJsonSchema({ $id: 'document', components: latest.components }) as object);
  const bodies = operationsOf(latest).flatMap(({ operationId, requestBody }) =>
    requestBody?.content['application/json'] ? [[operationId, requestBody] as const] : [],
  );

  it.each(bodies)('the body of %s has an example that its schema allows', (_, { content }) => {
    const { schema, example } = content['application/json']!;
    const text = JSON.stringify(asJsonSchema(schema)).replaceAll('"#/', '"document#/');
    expect(example).toBeDefined();
    const isValid = ajv.compile(JSON.parse(text) as object);
    expect([isValid(example), isValid.errors]).toEqual([true, null]);
  });
});
