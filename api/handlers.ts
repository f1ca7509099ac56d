/** Every handler by its operationId: the exports `…Handlers` of the files in api/nodes/ and api/resources/. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Handlers } from './resource/handler';

/** `.ts` in tests, `.js` in the built program. */
const MODULE = /(?<!\.d)\.[jt]s$/;
function handlersIn(folder: string): readonly Handlers[] {
  const files = readdirSync(join(__dirname, folder)).filter((name) => MODULE.test(name));
  return files.flatMap((name) => {
    // eslint-disable-next-line typescript/no-require-imports -- a new resource needs no line here; checkHandlers checks the result
    const exported = require(join(__dirname, folder, name)) as Readonly<Record<string, unknown>>;
    return Object.keys(exported)
      .filter((key) => key.endsWith('Handlers'))
      .map((key) => exported[key] as Handlers);
  });
}

export const handlers: Handlers = Object.assign({}, ...['nodes', 'resources'].flatMap(handlersIn)) as Handlers;
