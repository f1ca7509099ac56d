/** A node that the conductor holds (or only reads), as flows and requests see it. Types only: task.ts has the implementation. */
import type { Task } from '../../drivers/interfaces';
import type { InternalChanges } from '../../model/internal-info';
import type { NewHistory } from '../../model/node-write';
import type { NodeChanges, NodeRecord } from '../../model/records';
import type { Event } from '../../model/states';
import type { Store } from '../../store/store';
import type { Context } from './context';

export interface HistoryEntry {
  /** The kind of work, in Ironic's words. */
  readonly type: string;
  readonly event: string;
  /** Whether the event becomes the node's `last_error` too. */
  readonly error: boolean;
}

export interface NodeTask extends Task {
  readonly context: Context;
  /**
   * Changes for the next write, at the latest for the release of the node. They are lost if this conductor dies before, so nothing outside
   * the database may depend on them.
   */
  note(changes: NodeChanges, internal?: InternalChanges, history?: readonly NewHistory[]): void;
  /** Writes columns, keys of driver_internal_info, the noted changes, and what `also` writes, in one transaction. */
  write(changes: NodeChanges, internal: InternalChanges, also?: (store: Store) => Promise<void>): Promise<void>;
  /**
   * Fires an event of the state machine and writes the node, with `changes`, in one statement. The `last_error` of a `fail` goes into
   * the history. Throws InvalidStateRequested.
   */
  fire(event: Event, changes?: NodeChanges, internal?: InternalChanges, also?: (store: Store) => Promise<void>): Promise<void>;
  /**
   * As `fire`, and ends the reservation in the same statement. For the last event of the work: nothing may be written afterwards, and
   * nothing sent to the machine.
   */
  end(event: Event, changes?: NodeChanges, internal?: InternalChanges, also?: (store: Store) => Promise<void>): Promise<void>;
  /**
   * As `fire`, but with the next write: that of the step that follows. At the latest it is written before the next call of a driver. It is
   * announced when it is written.
   */
  fireWithNext(event: Event, changes?: NodeChanges, internal?: InternalChanges): void;
  /** Writes an entry into the node's history. An error becomes its `last_error` too. */
  record(entry: HistoryEntry, changes?: NodeChanges, internal?: InternalChanges): Promise<void>;
  /** Retries calls to the database while it is unreachable. For work that no client waits for any longer. */
  enableDatabaseRetries(): void;
  /** Reads node and ports again, after a write outside of this task. */
  refresh(): Promise<void>;
  /** Holds another node, or only reads it, while `work` runs. Throws NodeLocked, NodeNotFound. */
  withNode<T>(uuid: string, request: TaskRequest, work: (task: NodeTask) => Promise<T>): Promise<T>;
  /** Drops the noted changes, which cannot be written, and reads the node again. */
  discardNotes(): Promise<void>;
  /** Writes the noted changes and ends the reservation. */
  release(): Promise<void>;
}
export interface TaskRequest {
  readonly purpose: string;
  /** `shared`: only reads; nothing is reserved, and nothing may be written. */
  readonly lock?: 'exclusive' | 'shared';
  /** Retries while other work holds the node, as [conductor]node_locked_retry_attempts says; default: NodeLocked at once. */
  readonly retry?: boolean;
  /**
   * The node as it was read, or undefined to read it. It is reserved with the first write, if it is still free and unchanged; otherwise
   * before the work, which then begins again. For work that only checks before its first write.
   */
  readonly unreserved?: { readonly read: NodeRecord | undefined } | undefined;
  /** Keys of driver_internal_info that are written with the reservation. */
  readonly internal?: InternalChanges | undefined;
  /** No client waits for the work: it leaves the reserved workers free. */
  readonly ordinary?: true;
}
