import { createThread } from '../../wire/worker-thread';

const LONG_MS = 60_000;
/** Answers `hang` never, ends at `exit`, throws at `throw`. Each thread counts its questions. */
const CODE = `
  const { parentPort, workerData } = require('node:worker_threads');
  let count = 0;
  parentPort.on('message', (question) => {
    count++;
    if (question === 'hang') while (true);
    if (question === 'exit') process.exit();
    if (question === 'throw') throw new Error('thrown in the thread');
    parentPort.postMessage(workerData + question + count);
  });`;

it('answers several questions in a row, of one user at a time', async () => {
  const thread = createThread<string, string>(CODE, { data: '>', idleMs: 0 });
  const both = (name: string): Promise<readonly string[]> =>
    thread.use(async (ask) => [await ask(name, LONG_MS), await ask(name, LONG_MS)]);
  expect(await Promise.all([both('a'), both('b')])).toEqual([
    ['>a1', '>a2'],
    ['>b3', '>b4'],
  ]);
});
it.each([
  ['hang', 'the thread has ended', 1],
  ['exit', 'the thread has ended', LONG_MS],
  ['throw', 'thrown in the thread', LONG_MS],
])(
  'after %s, the question and further ones of this user fail, and the next user gets a new thread',
  async (question, reason, timeoutMs) => {
    const thread = createThread<string, string>(CODE, { data: '>', idleMs: 0 });
    await thread.use(async (ask) => {
      await expect(ask(question, timeoutMs)).rejects.toThrow(reason);
      await expect(ask('a', LONG_MS)).rejects.toThrow('the thread has ended');
    });
    await expect(thread.use((ask) => ask('a', LONG_MS))).resolves.toBe('>a1');
  },
);
it('fails the work if the code cannot start, and tries again for the next', async () => {
  const thread = createThread<string, string>('throw new Error("no start")', { idleMs: 0 });
  for (let time = 0; time < 2; time++) await expect(thread.use((ask) => ask('a', LONG_MS))).rejects.toThrow();
});
