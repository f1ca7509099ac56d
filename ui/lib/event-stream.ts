/** The connection to the server's event stream (docs/reference/events.md): it resumes at its position after each loss. */
import { EVENT_KINDS, streamName, type EventKind } from '../../model/events';
import type { NodeEvent } from './rows';

const RETRY_MS = 2000;
/** What this module needs of an EventSource. */
interface Source {
  addEventListener(name: string, hear: (message: { readonly data?: string; readonly lastEventId?: string }) => void): void;
  close(): void;
}
interface Listener {
  /** A stream without a position has begun: what happened before is to be read. */
  began(): void;
  /** The stream goes on at its position. */
  resumed(): void;
  /** The server does not have the events after the position any more. */
  gap(): void;
  event(event: NodeEvent): void;
  /** The connection is lost, and is tried again after two seconds. */
  lost(): void;
}

/**
 * @param open opens a path of the server
 * @returns `again`: forgets the position, and connects again after two seconds; `stop`: ends the connection for good
 */
export function listenToEvents(open: (path: string) => Source, listener: Listener): { again(): void; stop(): void } {
  let source: Source | undefined;
  let position: string | undefined;
  let retry: ReturnType<typeof setTimeout> | undefined;
  let isOver = false;
  function lost(): void {
    source?.close();
    clearTimeout(retry);
    if (isOver) return;
    retry = setTimeout(connect, RETRY_MS);
    listener.lost();
  }
  function connect(): void {
    const isNew = position === undefined;
    const opened = open(isNew ? 'v1/events/stream' : `v1/events/stream?since=${position}`);
    source = opened;
    opened.addEventListener('open', () => (isNew ? listener.began() : listener.resumed()));
    opened.addEventListener('error', lost);
    const hear = (name: string, take: (data: string) => void): void =>
      opened.addEventListener(name, ({ data = '', lastEventId = '' }) => {
        if (lastEventId !== '') position = lastEventId;
        take(data);
      });
    hear('start', () => {});
    hear('gap', () => listener.gap());
    for (const kind of Object.keys(EVENT_KINDS))
      hear(streamName(kind as EventKind), (data) => listener.event(JSON.parse(data) as NodeEvent));
  }
  connect();
  return {
    again: () => {
      position = undefined;
      lost();
    },
    stop: () => {
      isOver = true;
      clearTimeout(retry);
      source?.close();
    },
  };
}
