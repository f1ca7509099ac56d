/** Reads an image that a machine boots over HTTP (virtual media or UEFI HTTP boot), and finds the agent's parameters in it. */
import { reasonOf } from '../../model/errors';
import type { Log } from '../../model/log';
import { basicAuthorization } from '../../model/urls';
import type { BootScript } from './boot-script';
import type { HttpClient } from '../http';
import type { Medium } from '../hardware/boot-media';

/** The most bytes of an image, and of one line of the boot loader's configuration in the image. */
const MAX_BYTES = 4 * 2 ** 30;
const MAX_LINE = 8192;
/** The line that boots an agent's kernel, in the syntax of GRUB and isolinux. */
const KERNEL_LINE = /(?:^|[\n\0])[ \t]*(?:linux|linuxefi|append)[ \t]([^\n\0]*)(?=[\n\0])/g;
const agentLine = (text: string): string | undefined =>
  [...text.matchAll(KERNEL_LINE)].map(([, words]) => words!).find((words) => /\bipa-api-url=/.test(words));

/** The agent's parameters; `system`: the image boots something else; undefined: the image cannot be read. */
export async function readBootImage(
  http: HttpClient,
  medium: Pick<Medium, 'url' | 'username' | 'password'>,
  signal: AbortSignal,
  log: Log,
): Promise<BootScript | 'system' | undefined> {
  const { url, username, password = '' } = medium;
  const login = basicAuthorization(username === undefined ? undefined : { username, password });
  try {
    const answer = await http.request(url, { headers: login, signal });
    if (answer.status !== 200) {
      await answer.drain();
      return undefined;
    }
    let window = '';
    let size = 0;
    for await (const part of answer.body) {
      size += part.length;
      if (size > MAX_BYTES) break;
      window += part.toString('latin1');
      const line = agentLine(window);
      if (line !== undefined) return { files: [], parameters: parametersOf(line) };
      window = window.slice(-MAX_LINE);
    }
    return size === 0 ? undefined : 'system';
  } catch (error) {
    signal.throwIfAborted();
    log.debug('an image to boot cannot be read', { url, error: reasonOf(error) });
    return undefined;
  }
}

const parametersOf = (line: string): ReadonlyMap<string, string> =>
  new Map(
    line
      .split(/\s+/)
      .map(unquoted)
      .filter((word) => word.includes('='))
      .map((word) => [word.slice(0, word.indexOf('=')), word.slice(word.indexOf('=') + 1)]),
  );
/** In a GRUB configuration, words are in single quotes, and a single quote inside a word is written as '\''. */
const unquoted = (word: string): string => (/^'.*'$/.test(word) ? word.slice(1, -1).replaceAll("'\\''", "'") : word);
