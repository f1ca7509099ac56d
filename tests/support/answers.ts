/** Checks responses with the OpenAPI document of the request's version: the status is declared, and the body fits its schema. */
import Ajv, { type ValidateFunction } from 'ajv';
import { loadDocument, type Document } from '../../api/schema/document';
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

const REFUSAL = '#/components/schemas/Refusal';
/** Finds the operation of a request; undefined if the router refused it. */
function operationFinder(
  document: Document,
): (method: string, path: string, minor: number) => { path: string; method: string } | undefined {
  const match = matcher(document);
  return (method, path, minor) => {
    const bare = path.split('?')[0]!.replace(/\/+$/, '');
    const plain = minor < 91 && bare.endsWith('.json') && bare !== '/v1/openapi.json' ? bare.slice(0, -'.json'.length) : bare;
    const segments = plain.split('/').slice(1);
    const all = segments.length === 0 || segments[0] === 'v1' ? segments : ['v1', ...segments];
    try {
      const { operation } = match(all.length < 2 ? 'GET' : method, all.map(decodeURIComponent), minor);
      return { path: operation.path, method: operation.method.toLowerCase() };
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
    ...{ validateSchema: false, inlineRefs: false, code: { optimize: false } },
    formats: {
      uuid: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i,
      'date-time': (text) => !Number.isNaN(Date.parse(text)),
      ipv4: true,
      ipv6: true,
    },
  });
  const documents = new Map<number, { readonly paths: Readonly<Record<string, Node>>; readonly id: string }>();
  const validators = new Map<string, ValidateFunction>();
  const documentAt = (minor: number) => {
    let known = documents.get(minor);
    if (!known) {
      const { paths, components } = documentOfVersion(document, minor) as { paths: Record<string, Node>; components: { schemas: Node } };
      const id = `v${minor}`;
      const schemas = Object.fromEntries(Object.entries(components.schemas).map(([name, one]) => [name, toJsonSchema(one)]));
      ajv.addSchema({ $id: id, components: { schemas } });
      known = { paths, id };
      documents.set(minor, known);
    }
    return known;
  };
  const problemOf = (minor: number, schema: unknown, value: unknown): string | undefined => {
    const { id } = documentAt(minor);
    const key = `${id} ${JSON.stringify(schema)}`;
    let validate = validators.get(key);
    if (!validate) {
      const whole = JSON.parse(JSON.stringify(toJsonSchema(schema)).replaceAll('"#/', `"${id}#/`)) as object;
      validate = ajv.compile(whole);
      validators.set(key, validate);
    }
    return validate(value) ? undefined : ajv.errorsText(validate.errors);
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
    const responses = operation
      ? (documentAt(minor).paths[operation.path]?.[operation.method] as { responses: Record<string, Node> } | undefined)?.responses
      : undefined;
    const response = responses?.[status];
    // An operation that this version does not have responds with an error too.
    if (response === undefined && (responses !== undefined || status < 400)) return `${summary}: the status is not declared`;
    const content = (response ? response['content'] : { 'application/json': { schema: { $ref: REFUSAL } } }) as
      | Record<string, { schema: Node }>
      | undefined;
    if (method === 'HEAD') return undefined;
    if (content === undefined) return text === '' ? undefined : `${summary}: no body is declared`;
    const media = content[type?.split(';')[0] ?? ''];
    if (media === undefined) return `${summary}: type ${type ?? 'none'} is not declared`;
    if (type !== 'application/json') return undefined;
    const problem = problemOf(minor, media.schema, JSON.parse(text));
    return problem === undefined ? undefined : `${summary}: ${problem}`;
  };
}
