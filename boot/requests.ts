/**
 * The last request of each protocol that a machine sent while its node has a boot record. `bloomery why` shows them. A busy machine costs
 * one row of one statement in a few seconds.
 */
import type { Clock } from '../model/clock';
import { timestamp } from '../model/clock';
import { reasonOf } from '../model/errors';
import type { Log } from '../model/log';
import type { BootProtocol, NodeBootRequests } from '../model/records';
import type { Store } from '../store/store';

const WRITE_AFTER_MS = 3_000;
/** Nodes of one statement. */
const MAX_BATCH = 500;
/** Nodes that are remembered while the database is unreachable. */
const MAX_NODES = 20_000;

export interface BootRequestLog {
  note(nodeUuid: string, protocol: BootProtocol): void;
  /** Does not write the last requests: after a restart, the machines' next requests are recorded. */
  stop(): void;
}
/** Records nothing; for tests that do not read the requests. */
export const silentBootRequests: Pick<BootRequestLog, 'note'> = { note: () => {} };

export function createBootRequestLog(boots: Pick<Store['boots'], 'noteRequests'>, clock: Clock, log: Log): BootRequestLog {
  const ended = new AbortController();
  const waiting = new Map<string, Partial<Record<BootProtocol, string>>>();
  let running: Promise<void> | undefined;

  async function write(): Promise<void> {
    const batch: NodeBootRequests[] = [...waiting].slice(0, MAX_BATCH).map(([uuid, requests]) => ({ node_uuid: uuid, requests }));
    for (const { node_uuid: uuid } of batch) waiting.delete(uuid);
    await boots
      .noteRequests(batch)
      .catch((error: unknown) => log.debug('the requests of machines could not be written', { error: reasonOf(error) }));
  }
  async function run(): Promise<void> {
    while (waiting.size > 0) {
      await clock.sleep(WRITE_AFTER_MS, ended.signal);
      for (let left = Math.ceil(waiting.size / MAX_BATCH); left > 0; left--) await write();
    }
  }
  const start = (): void => {
    running ??= run()
      .catch(() => {})
      .finally(() => {
        running = undefined;
        if (waiting.size > 0 && !ended.signal.aborted) start();
      });
  };
  return {
    note(nodeUuid, protocol) {
      if (ended.signal.aborted || (waiting.size >= MAX_NODES && !waiting.has(nodeUuid))) return;
      waiting.set(nodeUuid, { ...waiting.get(nodeUuid), [protocol]: timestamp(clock.now()) });
      start();
    },
    stop: () => ended.abort(),
  };
}
