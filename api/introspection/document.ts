/** OpenAPI's document of the introspection service, made of its route table. */
import { ACTIONS, CONDITIONS } from '../../model/rules/introspection-rules';
import { INTROSPECTION_STATES } from '../../model/introspection';
import type { Door, Route } from './routes';

type Schema = Readonly<Record<string, unknown>>;
const object = (properties: Readonly<Record<string, Schema>>, required: readonly string[] = Object.keys(properties)): Schema => ({
  type: 'object',
  properties,
  required,
});
const text: Schema = { type: 'string' };
const textOrNull: Schema = { type: 'string', nullable: true };
const listOf = (items: Schema): Schema => ({ type: 'array', items });
const named = (name: SchemaName): Schema => ({ $ref: `#/components/schemas/${name}` });
const links = listOf(object({ href: text, rel: text }));
/** With more members, of the operator or the action. */
const oneOf = (member: string, names: readonly string[]): Schema => object({ [member]: { type: 'string', enum: names } });
const CONDITION = { ...oneOf('op', Object.keys(CONDITIONS)), description: 'With field (data://… or node://…), value, multiple, invert.' };
const ACTION = { ...oneOf('action', Object.keys(ACTIONS)), description: 'With what the action needs.' };
const RULE = { uuid: text, description: textOrNull, scope: textOrNull, conditions: listOf(CONDITION), actions: listOf(ACTION) };

/** What is sent and answered. */
const SCHEMAS = {
  Root: object({ versions: listOf(object({ id: text, status: text, links })) }),
  Version: object({ resources: listOf(object({ name: text, links })) }),
  Introspection: object({
    uuid: text,
    finished: { type: 'boolean' },
    state: { type: 'string', enum: INTROSPECTION_STATES },
    started_at: text,
    finished_at: textOrNull,
    error: textOrNull,
    links,
  }),
  Introspections: object({ introspection: listOf({ $ref: '#/components/schemas/Introspection' }) }),
  Report: {
    ...object({ inventory: { type: 'object' }, boot_interface: text, error: textOrNull }, []),
    description: 'What a ramdisk found, with whatever else its collectors have.',
  },
  Recognized: object({ uuid: text }),
  Data: { type: 'object', description: 'A report as it came, or with what the hooks made of it.' },
  Accepted: { type: 'object', maxProperties: 0 },
  NewRule: object(RULE, ['actions']),
  BriefRule: object({ uuid: text, description: textOrNull, scope: textOrNull, links }),
  Rule: object({ ...RULE, links }),
  Rules: object({ rules: listOf({ $ref: '#/components/schemas/BriefRule' }) }),
  Document: { type: 'object', description: 'This document.' },
  Refusal: object({ error: object({ message: text }) }),
} as const satisfies Readonly<Record<string, Schema>>;
export type SchemaName = keyof typeof SCHEMAS;

/** Query parameters that are more than text. */
const QUERY: Readonly<Record<string, Schema>> = {
  limit: { type: 'integer' },
  manage_boot: { type: 'boolean' },
  marker: { type: 'string', format: 'uuid' },
};
const json = (name: SchemaName): object => ({ content: { 'application/json': { schema: named(name) } } });

function operationOf({ does, says, query = [], takes, answers }: Door, path: string): object {
  const parameters = [
    ...[...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({ name, in: 'path', required: true, schema: text })),
    ...query.map((name) => ({ name, in: 'query', schema: QUERY[name] ?? text })),
  ];
  const responses = Object.entries(answers).map(([status, name]): [string, object] => [
    status,
    { description: says, ...(name === null ? {} : json(name)) },
  ]);
  return {
    operationId: does,
    summary: says,
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(takes === undefined ? {} : { requestBody: { required: takes.required, ...json(takes.body) } }),
    responses: { ...Object.fromEntries(responses), default: { description: 'It is refused.', ...json('Refusal') } },
  };
}
export const describeRoutes = (routes: readonly Route[], version: string): object => ({
  openapi: '3.0.3',
  info: { title: 'The introspection service', version },
  paths: Object.fromEntries(
    routes.map(({ path, methods }) => [
      path,
      Object.fromEntries(Object.entries(methods).map(([method, door]) => [method.toLowerCase(), operationOf(door, path)])),
    ]),
  ),
  components: { schemas: SCHEMAS },
});
