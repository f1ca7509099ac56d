/** The records of recorders as the server's API tells them: a list that is read again only as far as it changed, and single records. */
import { isObject } from '../model/json';
import type { Json, JsonObject } from '../model/records';
import type { ListedRecord, Records } from './host-writer';

/** `unchanged`: 304 for the tag. */
type ServerAnswer = 'unchanged' | 'missing' | { readonly tag: string | undefined; readonly body: Json };
/** GET of a path below /v1. @throws Error for another answer */
type AskServer = (path: string, tag: string | undefined, signal: AbortSignal) => Promise<ServerAnswer>;

interface Page {
  readonly path: string;
  readonly tag: string | undefined;
  readonly records: readonly ListedRecord[];
  /** The path of the next page. */
  readonly next: string | undefined;
}
/** Pages of up to 1000 records. */
const MAX_PAGES = 1000;
const FIRST = 'hardware';

const TEXTS = ['node_uuid', 'digest', 'recorded_at', 'received_at'];
const isListed = (value: Json): value is ListedRecord & JsonObject =>
  isObject(value) &&
  TEXTS.every((name) => typeof value[name] === 'string') &&
  (value['node_name'] === null || typeof value['node_name'] === 'string') &&
  typeof value['age'] === 'number' &&
  typeof value['stale'] === 'boolean';
function pageOf(path: string, { tag, body }: Exclude<ServerAnswer, string>): Page {
  const rows = isObject(body) ? body['hardware'] : undefined;
  if (!Array.isArray(rows) || !rows.every(isListed)) throw new Error('the server has no list of hardware records: it is an older version');
  const last = rows.at(-1);
  const more = typeof (body as JsonObject)['next'] === 'string';
  // Only records that the caller may read are listed; without any, the next page is unknown.
  if (more && !last) throw new Error('the server hides hardware records: use a user who may read those of all nodes');
  return { path, tag, records: rows, next: more ? `${FIRST}?marker=${encodeURIComponent(last!.node_uuid)}` : undefined };
}

export function recordsOf(ask: AskServer): Records {
  let pages: readonly Page[] = [];
  return {
    async list(signal) {
      const now: Page[] = [];
      let isChanged = false;
      for (let path: string | undefined = FIRST; path !== undefined && now.length < MAX_PAGES; path = now.at(-1)!.next) {
        const before = pages[now.length]?.path === path ? pages[now.length] : undefined;
        const answer: ServerAnswer = await ask(path, before?.tag, signal);
        if (answer === 'missing') throw new Error('the server has no list of hardware records: it is an older version');
        isChanged ||= answer !== 'unchanged' || !before;
        if (answer !== 'unchanged') now.push(pageOf(path, answer));
        else if (before) now.push(before);
        else throw new Error('the server answers 304 without a tag');
      }
      if (!isChanged && now.length === pages.length) return undefined;
      pages = now;
      return now.flatMap(({ records }) => records);
    },
    async hardware(nodeUuid, signal) {
      const answer = await ask(`nodes/${encodeURIComponent(nodeUuid)}/hardware`, undefined, signal);
      const hardware = typeof answer === 'string' || !isObject(answer.body) ? undefined : answer.body['hardware'];
      return isObject(hardware) ? hardware : undefined;
    },
    async inspection(nodeUuid, signal) {
      const answer = await ask(`nodes/${encodeURIComponent(nodeUuid)}/inventory`, undefined, signal);
      if (typeof answer === 'string' || !isObject(answer.body) || !isObject(answer.body['inventory'])) return undefined;
      return { inventory: answer.body['inventory'], plugin_data: answer.body['plugin_data'] };
    },
  };
}
