/** The check of all responses in tests finds what openapi.yaml does not declare. */
import { answerCheck } from '../../support/answers';
import { NEWEST } from '../../support/newest';

const json = 'application/json';
const FAULT = '{"error_message": "{}"}';
it.each([
  ['a list', 'GET', '/v1/nodes?limit=1', NEWEST, 200, json, '{"nodes": []}', undefined],
  ['an error', 'GET', '/v1/nodes/x', NEWEST, 404, json, FAULT, undefined],
  ['an error of a version without the operation', 'GET', '/v1/conductors', 48, 404, json, FAULT, undefined],
  ['an error without an operation', 'GET', '/v1/nosuch', NEWEST, 404, json, FAULT, undefined],
  ['a member that is not declared', 'GET', '/v1/nodes', NEWEST, 200, json, '{"nodes": [], "a": 1}', 'must NOT have additional properties'],
  ['a member of a schema inside', 'GET', '/v1/nodes', NEWEST, 200, json, '{"nodes": [{"uuid": 5}]}', 'uuid must be string'],
  ['a field of a later version', 'GET', '/v1/nodes/x', 1, 200, json, '{"owner": "o"}', 'must NOT have additional properties'],
  ['the field in its version', 'GET', '/v1/nodes/x', 50, 200, json, '{"owner": "o"}', undefined],
  ['a status that is not declared', 'GET', '/v1/nodes', NEWEST, 204, undefined, '', 'the status is not declared'],
  ['another type', 'GET', '/v1/nodes', NEWEST, 200, 'text/html', '', 'type text/html is not declared'],
  ['an operation that does not exist', 'GET', '/v1/nosuch', NEWEST, 200, json, '{}', 'no such operation'],
  ['a wrong error', 'GET', '/v1/nosuch', NEWEST, 404, json, '{"message": "x"}', 'must match a schema in anyOf'],
])('%s', (_, method, path, minor, status, type, text, problem) => {
  const found = answerCheck()({ method, path, minor, status, type, text });
  if (problem === undefined) expect(found).toBeUndefined();
  else expect(found).toContain(problem);
});
