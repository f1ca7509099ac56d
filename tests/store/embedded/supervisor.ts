/** A supervisor of an embedded PostgreSQL in a process of its own, which can be killed. Not a test file. */
import { startEmbedded } from '../../../store/embedded/embedded';
import { systemClock } from '../../../model/clock';
import { silentLog } from '../../../model/log';

const [stateDir = '', ending] = process.argv.slice(2);
process.once('SIGTERM', () => process.exit(0));
const finish: Readonly<Record<string, () => void>> = {
  exit: () => process.exit(0),
  // Nothing is left to do: the process ends by itself.
  idle: () => {},
  throw: () => {
    throw new Error('thrown on purpose');
  },
  stay: () => void setInterval(() => {}, 1000),
};

void startEmbedded({ stateDir, log: silentLog, clock: systemClock, durable: false }).then(
  ({ connection, pid }) => process.stdout.write(`${JSON.stringify({ connection, pid })}\n`, () => setImmediate(finish[ending ?? 'stay']!)),
  (error: unknown) => process.stdout.write(`${JSON.stringify({ error: (error as Error).message })}\n`),
);
