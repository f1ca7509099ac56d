/** Checks responses with the OpenAPI document of the request's version: the status is declared, and the body fits its schema. */
import Ajv, { type ValidateFunction } from 'ajv';
import { loadDocument, type Document, type Operation } from '../../api/schema/document';
import { documentOfVersion } from '../../api/schema/document-version';
import { matcher } from '../../api/resource/routes';
import { toJsonSchema } from '../../api/schema/schema';

type Node = Readonly<Record<string, unknown>>;
interface ResponseToCheck {
  readonly method: string;
  /** As in the request, with the query. */
  readonly path: string;
  /** The version header of the response; absent in early errors. */
  readonly minor: number | undefined;
  readonly status: number;
  readonly type: string | undefined;
  readonly text: string;
}
/** @returns the problem of the response */
export type AnswerCheck = (response: ResponseToCheck) => string | undefined;

/** What every early error has as its content. */
const REFUSAL: Content = { 'application/json': { schema: { $ref: '#/components/schemas/Refusal' } } };
/** An operation in one version. */
type Content = Readonly<Record<string, { readonly schema: Node }>>;
interface Projection {
  /** Undefined: the version does not have the operation. */
  readonly responses: Readonly<Record<string, { readonly content?: Content }>> | undefined;
  readonly schemas: Node;
}
/** The schemas that a schema refers to, also by others. */
function reachable(schema: unknown, schemas: Node, found: Record<string, unknown> = {}): Node {
  for (const [, name] of JSON.stringify(schema).matchAll(/"#\/components\/schemas\/(\w+)"/g))
    if (!Object.hasOwn(found, name!)) {
      found[name!] = schemas[name!];
      reachable(schemas[name!], schemas, found);
    }
  return found;
}
/** Finds the operation of a request; undefined if the router refused it. */
function operationFinder(document: Document): (method: string, path: string, minor: number) => Operation | undefined {
  const match = matcher(document);
  return (method, path, minor) => {
    const bare = path.split('?')[0]!.replace(/\/+$/, '');
    const plain = minor < 91 && bare.endsWith('.json') && bare !== '/v1/openapi.json' ? bare.slice(0, -'.json'.length) : bare;
    const segments = plain.split('/').slice(1);
    const all = segments.length === 0 || segments[0] === 'v1' ? segments : ['v1', ...segments];
    try {
      return match(all.length < 2 ? 'GET' : method, all.map(decodeURIComponent), minor).operation;
    } catch {
      return undefined;
    }
  };
}

let check: AnswerCheck | undefined;
/** One for all files that a worker of Jest runs (runtime.js). */
export const answerCheck = (): AnswerCheck => (check ??= createAnswerCheck());

function createAnswerCheck(): AnswerCheck {
  const document = loadDocument();
  const find = operationFinder(document);
  const ajv = new Ajv({
    strict: false,
    // Each schema checks few responses, so it is compiled without optimisation. document.test.ts validates the schemas.
    validateSchema: false,
    inlineRefs: false,
    code: { optimize: false },
    formats: {
      uuid: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i,
      'date-time': (text) => !Number.isNaN(Date.parse(text)),
      ipv4: true,
      ipv6: true,
    },
  });
  const projections = new Map<string, Projection>();
  /** By the schemas as text: versions and operations with the same ones have one validator. */
  const validators = new Map<string, ValidateFunction>();
  const known = new WeakMap<Node, ValidateFunction>();
  /** One operation of one version: a whole document takes longer than the tests of most versions. */
  const projectionOf = (operation: Operation | undefined, minor: number): Projection => {
    const { operationId = '', path = '', method = '' } = operation ?? {};
    const key = `${minor} ${operationId}`;
    let projection = projections.get(key);
    if (!projection) {
      const { paths, components } = documentOfVersion(document, minor, (value) => value.operationId === operationId) as unknown as {
        readonly paths: Readonly<Record<string, Readonly<Record<string, Pick<Projection, 'responses'>>>>>;
        readonly components: Pick<Projection, 'schemas'>;
      };
      projection = { responses: paths[path]?.[method.toLowerCase()]?.responses, schemas: components.schemas };
      projections.set(key, projection);
    }
    return projection;
  };
  const validatorOf = (schema: Node, schemas: Node): ValidateFunction => {
    const components = Object.entries(reachable(schema, schemas)).map(([name, entry]) => [name, toJsonSchema(entry)]);
    const whole = { ...(toJsonSchema(schema) as object), components: { schemas: Object.fromEntries(components) as Node } };
    const text = JSON.stringify(whole);
    const validate = validators.get(text) ?? ajv.compile(whole);
    validators.set(text, validate);
    known.set(schema, validate);
    return validate;
  };

  return ({ method, path, minor = document.max, status, type, text }) => {
    // Not operations of the API.
    if (path.startsWith('/healthcheck') || path.startsWith('/ui')) return undefined;
    const summary = `${method} ${path} at 1.${minor}: ${status} ${text.slice(0, 300)}`;
    const operation = method === 'OPTIONS' ? undefined : find(method, path, minor);
    if (operation === undefined) {
      if (method === 'OPTIONS' || method === 'HEAD') return undefined;
      if (status < 400) return `${summary}: no such operation`;
    }
    const { responses, schemas } = projectionOf(operation, minor);
    const response = responses?.[status];
    // An operation that this version does not have responds with an error too.
    if (response === undefined && (responses !== undefined || status < 400)) return `${summary}: the status is not declared`;
    const content = response ? response.content : REFUSAL;
    if (method === 'HEAD') return undefined;
    if (content === undefined) return text === '' ? undefined : `${summary}: no body is declared`;
    const media = content[type?.split(';')[0] ?? ''];
    if (media === undefined) return `${summary}: type ${type ?? 'none'} is not declared`;
    if (type !== 'application/json') return undefined;
    const validate = known.get(media.schema) ?? validatorOf(media.schema, schemas);
    return validate(JSON.parse(text)) ? undefined : `${summary}: ${ajv.errorsText(validate.errors)}`;
  };
}
