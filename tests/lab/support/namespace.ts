/** Network namespaces of one run: two runs on a host do not meet, and a run that was killed is not in the way of the next one. Root. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);
const ip = async (...words: readonly string[]): Promise<string> => (await run('ip', words)).stdout;

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

export const removeNamespace = (namespace: string): Promise<unknown> => ip('netns', 'del', namespace);

/** Takes away what a killed run left, and ends what still runs in it. */
async function clear(namespace: string): Promise<void> {
  const pids = (await ip('netns', 'pids', namespace)).split('\n').filter((pid) => pid !== '');
  // One of them may have ended by itself.
  for (const pid of pids.map(Number)) if (isAlive(pid)) process.kill(pid, 'SIGKILL');
  await removeNamespace(namespace);
}

/**
 * A new namespace whose `lo` is up. Those of the same name that a killed run left go first, with what runs in them.
 * @returns its name: the given one and this process's id
 */
export async function addNamespace(name: string): Promise<string> {
  const existing = (await ip('netns', 'list')).split('\n').map((line) => line.split(' ')[0]!);
  const leftOver = existing.filter((namespace) => {
    const pid = namespace.startsWith(`${name}-`) ? namespace.slice(name.length + 1) : '';
    return /^\d+$/.test(pid) && !isAlive(Number(pid));
  });
  // Another run may take the same one away.
  for (const namespace of leftOver) await clear(namespace).catch(() => {});
  const namespace = `${name}-${process.pid}`;
  await ip('netns', 'add', namespace);
  await ip('-n', namespace, 'link', 'set', 'lo', 'up');
  return namespace;
}
