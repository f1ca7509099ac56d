/** COPY in both directions over one connection, in chunks, so that the memory use does not depend on the size of the table. */
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import type { Client, Submittable } from 'pg';

/** The part of pg's connection that is used here. */
interface Connection {
  readonly stream: Socket;
  query(text: string): void;
  sendCopyFromChunk(chunk: Buffer): void;
  endCopyFrom(): void;
  sendCopyFail(reason: string): void;
}
/** Handlers that pg requires and COPY does not use. */
const nothing = (): void => {};
const UNUSED_HANDLERS = {
  handleRowDescription: nothing,
  handleDataRow: nothing,
  handlePortalSuspended: nothing,
  handleCommandComplete: nothing,
  handleEmptyQuery: nothing,
};
/** Maximum number of buffered bytes. */
const HIGH_WATER = 1 << 18;

/** Reads the text of a `COPY … TO STDOUT`, with backpressure. */
export function copyOut(client: Client, statement: string): AsyncIterable<Buffer> {
  let connection: Connection | undefined;
  const goOn = (): void => void connection?.stream.resume();
  const text = new Readable({
    highWaterMark: HIGH_WATER,
    read: goOn,
    // The remaining data is discarded, so that the connection can be used again.
    destroy: (error, done) => {
      goOn();
      done(error);
    },
  });
  const query = {
    ...UNUSED_HANDLERS,
    submit: (own: Connection): void => {
      connection = own;
      own.query(statement);
    },
    handleCopyData: ({ chunk }: { readonly chunk: Buffer }): void => {
      // The driver reuses the buffer of the chunk.
      if (!text.destroyed && !text.push(Buffer.from(chunk))) connection!.stream.pause();
    },
    handleError: (error: Error) => void text.destroy(error),
    handleReadyForQuery: () => void text.push(null),
  };
  client.query(query as unknown as Submittable);
  return text;
}

/** Sends `text` as the data of a `COPY … FROM STDIN`. An error of `text` ends the statement and is thrown here. */
export async function copyIn(client: Client, statement: string, text: AsyncIterable<Buffer>): Promise<void> {
  let refused: Error | undefined;
  let unread: { readonly error: unknown } | undefined;
  let sending: Promise<void> | undefined;
  const send = async (connection: Connection): Promise<void> => {
    try {
      for await (const piece of text) {
        if (refused) return;
        connection.sendCopyFromChunk(piece);
        await drained(connection.stream);
      }
      connection.endCopyFrom();
    } catch (error) {
      unread = { error };
      connection.sendCopyFail('its source failed');
    }
  };
  await new Promise<void>((done) => {
    const query = {
      ...UNUSED_HANDLERS,
      submit: (connection: Connection) => connection.query(statement),
      handleCopyInResponse: (connection: Connection) => void (sending = send(connection)),
      handleError: (error: Error) => {
        refused = error;
        done();
      },
      handleReadyForQuery: () => done(),
    };
    client.query(query as unknown as Submittable);
  });
  await sending;
  if (unread) throw unread.error;
  if (refused) throw refused;
}

async function drained(socket: Socket): Promise<void> {
  if (!socket.writableNeedDrain || socket.destroyed) return;
  await new Promise<void>((done) => {
    const go = (): void => {
      socket.off('drain', go).off('close', go);
      done();
    };
    socket.on('drain', go).on('close', go);
  });
}
