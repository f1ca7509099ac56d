/** The OpenAPI document of the introspection service, made from its route table. */
import type { Operation, Route } from './operation';
import { reference, SCHEMAS, text, type Schema, type SchemaName } from './schemas';

/** Query parameters that are not plain text. */
const QUERY: Readonly<Record<string, Schema>> = {
  limit: { type: 'integer' },
  manage_boot: { type: 'boolean' },
  marker: { type: 'string', format: 'uuid' },
};
const json = (name: SchemaName): object => ({ content: { 'application/json': { schema: reference(name) } } });

function operationOf({ operationId, summary, query = [], takes, answers }: Operation, path: string): object {
  const parameters = [
    ...[...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({ name, in: 'path', required: true, schema: text })),
    ...query.map((name) => ({ name, in: 'query', schema: QUERY[name] ?? text })),
  ];
  const responses = Object.entries(answers).map(([status, name]): [string, object] => [
    status,
    { description: summary, ...(name === null ? {} : json(name)) },
  ]);
  return {
    operationId,
    summary,
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(takes === undefined ? {} : { requestBody: { required: takes.required, ...json(takes.body) } }),
    responses: { ...Object.fromEntries(responses), default: { description: 'The request is refused.', ...json('Refusal') } },
  };
}
export const describeRoutes = (routes: readonly Route[], version: string): object => ({
  openapi: '3.0.3',
  info: { title: 'The introspection service', version },
  paths: Object.fromEntries(
    routes.map(({ path, methods }) => [
      path,
      Object.fromEntries(Object.entries(methods).map(([method, operation]) => [method.toLowerCase(), operationOf(operation, path)])),
    ]),
  ),
  components: { schemas: SCHEMAS },
});
