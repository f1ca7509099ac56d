/** Network namespaces of one run: two runs on a host do not share them, and a killed run does not disturb the next one. Root. */
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

/** Removes the namespace of a killed run, and ends the processes in it. */
async function clear(namespace: string): Promise<void> {
  const pids = (await ip('netns', 'pids', namespace)).split('\n').filter((pid) => pid !== '');
  // A process may have ended by itself.
  for (const pid of pids.map(Number)) if (isAlive(pid)) process.kill(pid, 'SIGKILL');
  await removeNamespace(namespace);
}

/**
 * A new namespace whose `lo` is up. Removes namespaces of the same name that a killed run left, and the processes in them.
 * @returns its name: the given one and this process's id
 */
export async function addNamespace(name: string): Promise<string> {
  const existing = (await ip('netns', 'list')).split('\n').map((line) => line.split(' ')[0]!);
  const leftOver = existing.filter((namespace) => {
    const pid = namespace.startsWith(`${name}-`) ? namespace.slice(name.length + 1) : '';
    return /^\d+$/.test(pid) && !isAlive(Number(pid));
  });
  // Another run may remove the same namespace.
  for (const namespace of leftOver) await clear(namespace).catch(() => {});
  const namespace = `${name}-${process.pid}`;
  await ip('netns', 'add', namespace);
  await ip('-n', namespace, 'link', 'set', 'lo', 'up');
  return namespace;
}
