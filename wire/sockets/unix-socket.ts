/** Listening on Unix sockets. */
import { lstatSync, unlinkSync } from 'node:fs';
import { connect, type Server } from 'node:net';

const PROBE_TIMEOUT_MS = 1000;
const ALL_PERMISSIONS = 0o777;

/** Whether a process answers at this Unix socket. */
const isAnswered = (path: string): Promise<boolean> =>
  new Promise((done) => {
    const socket = connect(path);
    const end = (answered: boolean): void => {
      socket.destroy();
      done(answered);
    };
    socket.setTimeout(PROBE_TIMEOUT_MS, () => end(true));
    socket.once('connect', () => end(true)).once('error', () => end(false));
  });

/**
 * Removes the socket that a killed process left behind.
 * @param what the option of the path, for the message
 * @throws Error for anything else of that name
 */
export async function removeStaleSocket(path: string, what: string): Promise<void> {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (!found) return;
  if (!found.isSocket()) throw new Error(`cannot listen on ${path} (${what}): the file exists and is not a socket`);
  if (await isAnswered(path)) throw new Error(`cannot listen on ${path} (${what}): another process listens there`);
  unlinkSync(path);
}

/** @param mode permissions of the socket; null: those that the umask leaves */
export function listenOnSocket(server: Server, path: string, mode: number | null, done: () => void): void {
  // The socket has its permissions from the start: a chmod afterwards would be too late for the first caller.
  const umask = mode === null ? undefined : process.umask(ALL_PERMISSIONS & ~mode);
  server.listen(path, done);
  if (umask !== undefined) process.umask(umask);
}
