/** Holds answers against openapi.yaml as the request's version sees it: a status that is declared, and a body of its schema. */
import Ajv, { type ValidateFunction } from 'ajv';
import { loadDocument, type Document } from '../../api/schema/document';
import { project } from '../../api/schema/project';
import { matcher } from '../../api/resource/routes';
import { toJsonSchema } from '../../api/schema/schema';

type Node = Readonly<Record<string, unknown>>;
interface Answered {
  readonly method: string;
  /** As it was asked for, with its query. */
  readonly path: string;
  /** What the answer says that it used; absent: refused before there was one. */
  readonly minor: number | undefined;
  readonly status: number;
  readonly type: string | undefined;
  readonly text: string;
}
/** @returns what is wrong with the answer */
export type AnswerCheck = (answered: Answered) => string | undefined;

const REFUSAL = '#/components/schemas/Refusal';
/** Which of the API's doors a request went through; none: the router refused it. */
function doorOf(document: Document): (method: string, path: string, minor: number) => { path: string; method: string } | undefined {
  const match = matcher(document);
  return (method, path, minor) => {
    const cut = path.split('?')[0]!.replace(/\/+$/, '');
    const suffix = minor < 91 && cut.endsWith('.json') && cut !== '/v1/openapi.json' ? cut.slice(0, -'.json'.length) : cut;
    const segments = suffix.split('/').slice(1);
    const whole = segments.length === 0 || segments[0] === 'v1' ? segments : ['v1', ...segments];
    try {
      const { operation } = match(whole.length < 2 ? 'GET' : method, whole.map(decodeURIComponent), minor);
      return { path: operation.path, method: operation.method.toLowerCase() };
    } catch {
      return undefined;
    }
  };
}

export function answerCheck(document = loadDocument()): AnswerCheck {
  const find = doorOf(document);
  const ajv = new Ajv({
    strict: false,
    // Each schema is compiled for a few answers: what makes compiling slow and its result fast is left out. Whether schemas are good, document.test.ts says.
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
      const { paths, components } = project(document, minor) as { paths: Record<string, Node>; components: { schemas: Node } };
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
    // No door of the API.
    if (path.startsWith('/healthcheck')) return undefined;
    const said = `${method} ${path} at 1.${minor}: ${status} ${text.slice(0, 300)}`;
    const door = method === 'OPTIONS' ? undefined : find(method, path, minor);
    if (door === undefined) {
      if (method === 'OPTIONS' || method === 'HEAD') return undefined;
      if (status < 400) return `${said}: no such operation`;
    }
    const responses = door
      ? (documentAt(minor).paths[door.path]?.[door.method] as { responses: Record<string, Node> } | undefined)?.responses
      : undefined;
    const response = responses?.[status];
    // An operation that is not there for this version refuses too.
    if (response === undefined && (responses !== undefined || status < 400)) return `${said}: the status is not declared`;
    const content = (response ? response['content'] : { 'application/json': { schema: { $ref: REFUSAL } } }) as
      | Record<string, { schema: Node }>
      | undefined;
    if (method === 'HEAD') return undefined;
    if (content === undefined) return text === '' ? undefined : `${said}: no body is declared`;
    const media = content[type?.split(';')[0] ?? ''];
    if (media === undefined) return `${said}: type ${type ?? 'none'} is not declared`;
    if (type !== 'application/json') return undefined;
    const problem = problemOf(minor, media.schema, JSON.parse(text));
    return problem === undefined ? undefined : `${said}: ${problem}`;
  };
}
