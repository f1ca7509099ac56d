/** What machines say on their serial lines, saved in files (console-files.ts): in the background, one after the other. */
import { reasonOf } from '../model/errors';
import type { Log } from '../model/log';
import { createConsoleFiles, type SavedPart } from './console-files';

export interface ConsoleLogs {
  /** Saves later. @param most bytes of this node */
  add(node: string, bytes: Buffer, most: number): void;
  /** @param offset absent: the last `limit` bytes. One that the log does not have: the beginning */
  read(node: string, offset: number | undefined, limit: number): Promise<SavedPart>;
  remove(node: string): Promise<void>;
  /** The nodes that have a log. */
  nodes(): Promise<readonly string[]>;
  /** Resolves when all is saved. */
  settle(): Promise<void>;
}
interface Waiting {
  readonly parts: Buffer[];
  bytes: number;
  most: number;
}
/** Bytes of a node that wait for a slow disk. Beyond them, new bytes are lost. */
const MAX_WAITING = 1 << 20;

/** @param root the folder, which is made at the first byte @param inAll the most bytes of all nodes */
export function createConsoleLogs({ root, inAll, log }: { readonly root: string; readonly inAll: number; readonly log: Log }): ConsoleLogs {
  const files = createConsoleFiles(root, inAll);
  const waiting = new Map<string, Waiting>();
  let queue: Promise<unknown> = Promise.resolve();
  let complaint = '';
  const next = <T>(work: () => Promise<T>): Promise<T> => {
    const done = queue.then(work);
    queue = done.catch(() => {});
    return done;
  };
  async function save(node: string): Promise<void> {
    const now = waiting.get(node);
    if (!now) return;
    waiting.delete(node);
    try {
      await files.append(node, Buffer.concat(now.parts), now.most);
      complaint = '';
    } catch (error) {
      const reason = reasonOf(error);
      if (reason !== complaint) log.warn('What a machine says cannot be saved', { node, reason });
      complaint = reason;
    }
  }
  return {
    add(node, bytes, most) {
      const now = waiting.get(node) ?? { parts: [], bytes: 0, most };
      if (now.bytes + bytes.length > MAX_WAITING) return;
      // A copy: the bytes may be part of a larger buffer.
      now.parts.push(Buffer.from(bytes));
      now.bytes += bytes.length;
      now.most = most;
      if (waiting.has(node)) return;
      waiting.set(node, now);
      void next(() => save(node));
    },
    read: (node, offset, limit) => next(() => files.read(node, offset, limit)),
    remove: (node) =>
      next(async () => {
        waiting.delete(node);
        await files.remove(node);
      }),
    nodes: () => next(() => files.nodes()),
    settle: () => next(async () => {}),
  };
}
