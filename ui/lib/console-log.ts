/** The saved output of a serial console. Pure, except for the request that is passed in. */
import { plainConsoleText } from '../../model/rules/console-text';

interface ConsoleLogPart {
  readonly start: number;
  readonly end: number;
  readonly offset: number;
  readonly next_offset: number;
  readonly text: string;
}
type Get = (path: string) => Promise<ConsoleLogPart>;
/** Bytes of a request. */
const PART = 262_144;
/** Bytes that the page shows. */
const SHOWN = 65_536;

const pathOf = (uuid: string, query: string): string => `v1/nodes/${encodeURIComponent(uuid)}/console_log?${query}`;

/** The end of the log, as text, and how many bytes the whole log has. */
export async function endOfLog(get: Get, uuid: string): Promise<{ readonly text: string; readonly size: number }> {
  const { start, end, text } = await get(pathOf(uuid, `limit=${SHOWN}`));
  return { text: plainConsoleText(text), size: end - start };
}
/** The whole log, as the machine said it. It ends where it ended at the first answer, though the machine goes on. */
export async function wholeLog(get: Get, uuid: string): Promise<readonly string[]> {
  const parts: string[] = [];
  let last: number | undefined;
  for (let offset = 0; ;) {
    const part = await get(pathOf(uuid, `offset=${offset}&limit=${PART}`));
    last ??= part.end;
    parts.push(part.text);
    if (part.next_offset <= offset || part.next_offset >= last) return parts;
    offset = part.next_offset;
  }
}
