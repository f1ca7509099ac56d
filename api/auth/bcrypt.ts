/** bcrypt away from the thread that answers: at usual costs one check takes a tenth of a second, and anybody may cause one. */
import { Worker } from 'node:worker_threads';
import { Unauthenticated } from '../http/errors';

/** Whether the password is the digest's. */
export type Bcrypt = (password: string, digest: string) => Promise<boolean>;

/** As text, since a worker's file must be JavaScript, which this one is only once it is built. */
const WORKER = `
  const { parentPort, workerData } = require('node:worker_threads');
  const { compareSync } = require(workerData);
  parentPort.on('message', ({ id, password, digest }) => parentPort.postMessage({ id, right: compareSync(password, digest) }));`;

/** More checks than this at once are refused: whoever asks for them guesses. */
const WAITING = 64;

/** The worker starts with the first check, and does not keep the process. */
export function createBcrypt(): Bcrypt {
  const waiting = new Map<number, { readonly done: (right: boolean) => void; readonly fail: (error: Error) => void }>();
  let worker: Worker | undefined;
  let last = 0;
  const failAll = (error: Error): void => {
    worker = undefined;
    for (const { fail } of waiting.values()) fail(error);
    waiting.clear();
  };
  const start = (): Worker => {
    const started = new Worker(WORKER, { eval: true, workerData: require.resolve('bcryptjs') });
    started.on('error', failAll);
    started.on('message', ({ id, right }: { id: number; right: boolean }) => {
      waiting.get(id)?.done(right);
      waiting.delete(id);
    });
    // After the listeners, which hold the process again.
    started.unref();
    return started;
  };
  return (password, digest) =>
    new Promise((done, fail) => {
      if (waiting.size >= WAITING) {
        fail(new Unauthenticated(503, 'Too many passwords are being checked; please try again later.'));
        return;
      }
      worker ??= start();
      const id = ++last;
      waiting.set(id, { done, fail });
      worker.postMessage({ id, password, digest });
    });
}
