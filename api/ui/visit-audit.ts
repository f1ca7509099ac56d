/** Who looked at a console or a screen: entries of the audit log at its beginning and at its end. */
import { randomUUID } from 'node:crypto';
import type { Clock } from '../../model/clock';
import type { AuditEntry, AuditLog } from '../http/audit';

interface Visited {
  readonly uuid: string;
  /** Null: whoever has the token. */
  readonly user: string | null;
  readonly path: string;
  /** Empty: a Unix socket. */
  readonly source: string;
}
type Operation = 'openConsole' | 'closeConsole' | 'openScreen' | 'closeScreen';
type More = Pick<AuditEntry, 'view_only' | 'seconds' | 'reason'>;

export const recordVisit = (
  { audit, clock }: { readonly audit?: AuditLog | undefined; readonly clock: Clock },
  { uuid, user, path, source }: Visited,
  operation: Operation,
  more: More = {},
): void =>
  audit?.record({
    time: new Date(clock.now()).toISOString(),
    service: 'baremetal',
    request_id: `req-${randomUUID()}`,
    user,
    project: null,
    address: source === '' ? null : source,
    method: 'GET',
    path,
    operation,
    node_uuid: uuid,
    ...more,
    outcome: 'success',
  });
