/** bcrypt in a worker thread. At usual costs one check takes a tenth of a second, and unauthenticated clients can cause them. */
import { Unauthenticated } from '../http/errors';
import { createFairTurns } from '../http/fair-turns';
import { createThread } from '../../wire/worker-thread';

interface CheckOrigin {
  readonly source: string;
  /** The same login was right before, so it is checked before others. */
  readonly wasRight: boolean;
}
/** Whether the password matches the digest. */
export type Bcrypt = (password: string, digest: string, origin: CheckOrigin) => Promise<boolean>;

const CODE = `
  const { parentPort, workerData } = require('node:worker_threads');
  const { compareSync } = require(workerData);
  parentPort.on('message', ({ password, digest }) => parentPort.postMessage(compareSync(password, digest)));`;
/** A check takes a tenth of a second at the usual cost, and twice as long for each further step. */
const MAX_MS = 600_000;

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
  const thread = createThread<{ readonly password: string; readonly digest: string }, boolean>(CODE, { data: require.resolve('bcryptjs') });
  return (password, digest, { source, wasRight }) => turn(source, () => thread.use((ask) => ask({ password, digest }, MAX_MS)), wasRight);
}
