/** A node that the conductor holds (or only reads), as flows and requests see it. Types only: task.ts has the implementation. */
import type { Task } from '../../drivers/interfaces';
import type { NewHistory } from '../../model/node-write';
import type { NodeChanges } from '../../model/records';
import type { Event } from '../../model/states';
import type { Store } from '../../store/store';
import type { Context } from './context';

export interface HistoryEntry {
  /** What was going on, in Ironic's words. */
  readonly type: string;
  readonly event: string;
  /** It is the node's `last_error` too. */
  readonly error: boolean;
}

/** Keys of driver_internal_info to set; `undefined` removes one. */
export type InternalChanges = Readonly<Record<string, unknown>>;
export interface NodeTask extends Task {
  readonly context: Context;
  /**
   * Goes with the next write, at the latest with the one that lets the node go. For what may be lost with this conductor: nothing outside
   * the database may depend on it before.
   */
  note(changes: NodeChanges, internal?: InternalChanges, history?: readonly NewHistory[]): void;
  /** Columns, keys of driver_internal_info, what was noted, and what `also` does, in one transaction. */
  write(changes: NodeChanges, internal: InternalChanges, also?: (store: Store) => Promise<void>): Promise<void>;
  /**
   * Fires an event of the state machine and saves the node in one write; `changes` go with it. The `last_error` of a `fail` goes into the
   * history. Throws InvalidStateRequested.
   */
  fire(event: Event, changes?: NodeChanges, internal?: InternalChanges, also?: (store: Store) => Promise<void>): Promise<void>;
  /** Writes an entry into the node's history; an error is its `last_error` too. */
  record(said: HistoryEntry, changes?: NodeChanges, internal?: InternalChanges): Promise<void>;
  /** From here on nobody waits for an answer: while the database is away, the work waits. */
  retryWhileDatabaseDown(): void;
  /** Reads node and ports again, after others than this task wrote them. */
  refresh(): Promise<void>;
  /** Holds another node, or only reads it, while `work` runs. Throws NodeLocked, NodeNotFound. */
  withNode<T>(uuid: string, request: TaskRequest, work: (task: NodeTask) => Promise<T>): Promise<T>;
  /** Ends the reservation, with what was noted. */
  release(): Promise<void>;
}
export interface TaskRequest {
  readonly purpose: string;
  /** `shared`: to look only; nothing is reserved and nothing may be written. */
  readonly lock?: 'exclusive' | 'shared';
  /** Try again while another holds the node, as [conductor]node_locked_retry_attempts says; else NodeLocked at once. */
  readonly retry?: boolean;
  /** The work is none that a client waits for: it leaves the reserved places free. */
  readonly ordinary?: true;
}
