/** Which requests [api]log_requests writes to the log. */
import type { IncomingMessage } from 'node:http';
import { reportRequest } from '../../../api/http/request-log';
import type { Log } from '../../../model/log';
import type { Options } from '../../../config/options';
import { silentMetrics } from '../../../model/metrics';
import { testClock } from '../../support/clock';
import { optionsOf } from '../../support/options';

const HEARTBEAT = '/v1/heartbeat/{node_ident}';
const NODES = '/v1/nodes';
it.each<[Options['api.log_requests'], string, string, number | undefined, boolean]>([
  ['all', 'GET', NODES, 200, true],
  ['all', 'POST', HEARTBEAT, 202, true],
  ['changes', 'GET', NODES, 200, false],
  ['changes', 'HEAD', NODES, 200, false],
  ['changes', 'GET', NODES, 404, true],
  ['changes', 'GET', NODES, undefined, true],
  ['changes', 'POST', NODES, 201, true],
  ['changes', 'POST', HEARTBEAT, 202, false],
  ['changes', 'POST', HEARTBEAT, 409, true],
  ['failures', 'POST', NODES, 201, false],
  ['failures', 'POST', NODES, 400, true],
  ['none', 'POST', NODES, 400, false],
])('log_requests = %s, %s %s with status %s: %s', (wanted, method, route, status, isLogged) => {
  const lines: object[] = [];
  const log: Log = {
    debug: () => {},
    info: (_, fields = {}) => void lines.push(fields),
    warn: () => {},
    error: () => {},
    child: () => log,
  };
  const parts = { log, metrics: silentMetrics, options: optionsOf({ 'api.log_requests': wanted }), clock: testClock() };
  const report = { route, origin: { requestId: 'req-1', user: null, project: null } } as unknown as Parameters<
    typeof reportRequest
  >[2]['report'];
  reportRequest(parts, { method, url: route } as IncomingMessage, { service: 'baremetal', report, status, seconds: 0.01 } as never);
  expect(lines).toHaveLength(isLogged ? 1 : 0);
});
