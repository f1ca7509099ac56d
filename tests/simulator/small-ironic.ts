/** The part of a server that a simulated agent needs: lookup, heartbeat and inspection. It records the requests. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readJson, sendJson } from '../../simulator/http';
import { NEWEST_VERSION } from '../support/newest';

export const NODE = '1be26c0b-03f2-4d2e-ae87-c02d7f33c123';
export interface SmallIronic {
  readonly url: string;
  readonly beats: { readonly callback_url: string; readonly agent_token: string; readonly agent_verify_ca: string }[];
  readonly inventories: { readonly inventory: { readonly boot: object } }[];
  /** Addresses of each lookup. */
  readonly lookups: string[];
  /** Path → content; any other path is 404. */
  readonly files: Map<string, string | Buffer>;
  /** The statuses that refuse the next lookups and inventories. */
  readonly refuse: number[];
  /** Resolves when this number of heartbeats has arrived. */
  beat(count: number): Promise<void>;
  close(): Promise<void>;
}

export async function smallIronic(token = 'the token'): Promise<SmallIronic> {
  const seen: Pick<SmallIronic, 'beats' | 'inventories' | 'lookups' | 'files' | 'refuse'> = {
    beats: [],
    inventories: [],
    lookups: [],
    files: new Map(),
    refuse: [],
  };
  const waiting: { readonly count: number; readonly done: () => void }[] = [];
  const server = createServer((request, response) => {
    void (async () => {
      const { pathname, searchParams } = new URL(request.url!, 'http://small');
      const file = seen.files.get(pathname);
      if (file !== undefined) return response.writeHead(200, { 'content-length': file.length }).end(request.method === 'HEAD' ? '' : file);
      if (pathname === '/') {
        sendJson(response, 200, { default_version: { version: NEWEST_VERSION } });
        return;
      }
      const body = await readJson(request, 2 ** 20);
      if (pathname === `/v1/heartbeat/${NODE}`) {
        const beat = body as SmallIronic['beats'][number];
        seen.beats.push(beat);
        sendJson(response, beat.agent_token === token ? 202 : 400, undefined);
        for (const { count, done } of waiting) if (seen.beats.length >= count) done();
        return;
      }
      const isKnown = pathname === '/v1/lookup' || pathname === '/v1/continue_inspection';
      const refusal = isKnown ? seen.refuse.shift() : 404;
      if (refusal !== undefined) {
        sendJson(response, refusal, {});
        return;
      }
      if (pathname === '/v1/continue_inspection') {
        seen.inventories.push(body as SmallIronic['inventories'][number]);
        sendJson(response, 202, { uuid: NODE });
        return;
      }
      seen.lookups.push(searchParams.get('addresses')!);
      sendJson(response, 200, { node: { uuid: NODE }, config: { heartbeat_timeout: 300, agent_token: token } });
    })();
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return {
    ...seen,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    beat: (count) => new Promise((done) => (seen.beats.length >= count ? done() : waiting.push({ count, done }))),
    close: () =>
      new Promise((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
}
