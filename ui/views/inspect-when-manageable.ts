/** Inspects a new node once its BMC is verified. */
import { revision, rows } from '../lib/fleet';
import { api } from '../state';

const VERIFY_MS = 120_000;

export function inspectWhenManageable(uuid: string): void {
  const stop = revision.subscribe(() => {
    if (rows.get(uuid)?.state !== 'manageable') return;
    queueMicrotask(() => stop());
    clearTimeout(late);
    void api.send('PUT', `v1/nodes/${uuid}/states/provision`, { target: 'inspect' }).catch(() => {});
  });
  const late = setTimeout(stop, VERIFY_MS);
}
