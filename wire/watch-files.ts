/** Notices changes of files that a server reads again, such as certificates. */
import { statSync } from 'node:fs';

/** How often the files are checked. A poll also notices links that a container platform replaces. */
const CHECK_MS = 2000;

export interface FileWatch {
  /** Reads the files now. */
  reload(): void;
  stop(): void;
}
/** Differs after a file was written, replaced or linked anew. Empty: the file cannot be read. */
export function versionOf(path: string): string {
  try {
    const { dev, ino, size, mtimeMs, ctimeMs } = statSync(path);
    return [dev, ino, size, mtimeMs, ctimeMs].join(' ');
  } catch {
    return '';
  }
}
/**
 * Does not keep the process alive.
 * @param read called when one of the files has changed; throws nothing
 * @param checkMs milliseconds between checks
 */
export function watchFiles(paths: readonly string[], read: () => void, checkMs = CHECK_MS): FileWatch {
  const versions = (): string => paths.map(versionOf).join('\n');
  // fs.watchFile is not used: it reads the first status later, and would miss changes before that.
  let known = versions();
  const reload = (): void => {
    known = versions();
    read();
  };
  const timer = setInterval(() => {
    if (versions() !== known) reload();
  }, checkMs).unref();
  return { reload, stop: () => clearInterval(timer) };
}
