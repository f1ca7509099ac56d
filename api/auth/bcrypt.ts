/** bcrypt in a worker thread. At usual costs one check takes a tenth of a second, and unauthenticated clients can cause them. */
import { Worker } from 'node:worker_threads';
import { Unauthenticated } from '../http/errors';

/** Whether the password matches the digest. */
export type Bcrypt = (password: string, digest: string) => Promise<boolean>;

/** As text, because the file of a worker must be JavaScript. This file is JavaScript only after the build. */
const WORKER = `
  const { parentPort, workerData } = require('node:worker_threads');
  const { compareSync } = require(workerData);
  parentPort.on('message', ({ id, password, digest }) => parentPort.postMessage({ id, right: compareSync(password, digest) }));`;

/** The limit of concurrent checks. More of them are a sign of guessed passwords. */
const MAX_CHECKS = 64;

/** The worker starts at the first check. It does not keep the process alive. */
export function createBcrypt(): Bcrypt {
  const pending = new Map<number, { readonly resolve: (right: boolean) => void; readonly reject: (error: Error) => void }>();
  let worker: Worker | undefined;
  let lastId = 0;
  const failAll = (error: Error): void => {
    worker = undefined;
    for (const { reject } of pending.values()) reject(error);
    pending.clear();
  };
  const start = (): Worker => {
    const started = new Worker(WORKER, { eval: true, workerData: require.resolve('bcryptjs') });
    started.on('error', failAll);
    started.on('message', ({ id, right }: { id: number; right: boolean }) => {
      pending.get(id)?.resolve(right);
      pending.delete(id);
    });
    // After the listeners, because adding one refs the worker again.
    started.unref();
    return started;
  };
  return (password, digest) =>
    new Promise((resolve, reject) => {
      if (pending.size >= MAX_CHECKS) {
        reject(new Unauthenticated(503, 'Too many passwords are being checked; please try again later.'));
        return;
      }
      worker ??= start();
      const id = ++lastId;
      pending.set(id, { resolve, reject });
      worker.postMessage({ id, password, digest });
    });
}
