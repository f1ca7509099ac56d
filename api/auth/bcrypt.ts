/** bcrypt in a worker thread. At usual costs one check takes a tenth of a second, and unauthenticated clients can cause them. */
import { Worker } from 'node:worker_threads';
import { Unauthenticated } from '../http/errors';
import { createFairTurns } from '../http/fair-turns';

interface CheckOrigin {
  readonly source: string;
  /** The same login was right before, so it is checked before others. */
  readonly wasRight: boolean;
}
/** Whether the password matches the digest. */
export type Bcrypt = (password: string, digest: string, origin: CheckOrigin) => Promise<boolean>;

/** As text, because the file of a worker must be JavaScript. This file is JavaScript only after the build. */
const WORKER = `
  const { parentPort, workerData } = require('node:worker_threads');
  const { compareSync } = require(workerData);
  parentPort.on('message', ({ password, digest }) => parentPort.postMessage(compareSync(password, digest)));`;

const ONE_AT_A_TIME = { inAll: 1, ofSource: 1 };
/** Further checks are refused. The limit of one source is lower, so that a client that guesses passwords leaves room for others. */
const WAITING = { inAll: 256, ofSource: 128 };

/** The worker starts at the first check. It does not keep the process alive. */
export function createBcrypt(): Bcrypt {
  const turn = createFairTurns({
    running: ONE_AT_A_TIME,
    waiting: WAITING,
    refusal: () => new Unauthenticated(503, 'Too many passwords are being checked; please try again later.'),
  });
  let worker: Worker | undefined;
  let running: { readonly done: (right: boolean) => void; readonly fail: (error: Error) => void } | undefined;
  const start = (): Worker => {
    const started = new Worker(WORKER, { eval: true, workerData: require.resolve('bcryptjs') });
    started.on('error', (error) => {
      worker = undefined;
      running?.fail(error);
    });
    started.on('message', (right: boolean) => running?.done(right));
    // After the listeners, because adding a listener refs the worker again.
    started.unref();
    return started;
  };
  return (password, digest, { source, wasRight }) =>
    turn(
      source,
      () =>
        new Promise((done, fail) => {
          running = { done, fail };
          worker ??= start();
          worker.postMessage({ password, digest });
        }),
      wasRight,
    );
}
