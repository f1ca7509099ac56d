/** Who may open a console in the browser. Nobody is known before the check, so the checks that run are limited by source and in time. */
import type { IncomingMessage } from 'node:http';
import type { Options } from '../../config/options';
import type { Clock } from '../../model/clock';
import { Fault } from '../../model/errors';
import type { Store } from '../../store/store';
import { createShares, type ShareLimits } from '../../wire/shares';
import type { Sessions } from '../auth/sessions';
import { Unauthenticated } from '../http/errors';
import { sourceOf } from '../http/source';
import { requirePolicy } from '../pipeline/access';

/** A browser cannot set headers of a WebSocket, so the CSRF token is one of the protocols that it offers. */
const CSRF_PREFIX = 'csrf.';
/** Openings whose user is not known yet, in all and of a source. */
const OPENING: ShareLimits = { inAll: 50, ofSource: 8 };
const TIMEOUT_MS = 10_000;

interface RightsParts {
  readonly options: Options;
  readonly sessions: Pick<Sessions, 'auth'>;
  readonly store: { readonly nodes: Pick<Store['nodes'], 'find'> };
  readonly clock: Clock;
}
interface ConsoleRights {
  /** @returns the user. @throws Unauthenticated, Fault */
  check(request: IncomingMessage, uuid: string): Promise<string | null>;
  /** As `check`, within the limits. */
  checkOpening(request: IncomingMessage, uuid: string): Promise<string | null>;
}
export function createConsoleRights({ options, sessions, store, clock }: RightsParts): ConsoleRights {
  const opening = createShares(OPENING);
  const check: ConsoleRights['check'] = async (request, uuid) => {
    const { headers } = request;
    const offered = (headers['sec-websocket-protocol'] ?? '').split(',').map((name) => name.trim());
    const csrf = offered.find((name) => name.startsWith(CSRF_PREFIX))?.slice(CSRF_PREFIX.length) ?? '';
    // Checked as a PUT, because only requests that change something need the CSRF token.
    const source = sourceOf(request, options);
    const caller = await sessions.auth.identify({ ...headers, 'x-csrf-token': csrf }, `/v1/nodes/${uuid}/states/console`, 'PUT', source);
    const node = await store.nodes.find(uuid);
    if (!sessions.auth.allowed(caller, 'node:get', node)) throw new Fault('NodeNotFound', { node: uuid });
    requirePolicy(caller, sessions, 'node:get_console', node);
    return caller.user;
  };
  return {
    check,
    async checkOpening(request, uuid) {
      const source = sourceOf(request, options);
      if (!opening.take(source, 1)) throw new Unauthenticated(503, 'Too many consoles are being opened.');
      // The place is free when the work has ended, so that the work of refused openings is bounded too.
      const checked = check(request, uuid).finally(() => opening.give(source, 1));
      const ended = new AbortController();
      const late = clock.sleep(TIMEOUT_MS, ended.signal).then(() => {
        throw new Unauthenticated(503, 'The user cannot be checked now.');
      });
      for (const loser of [checked, late]) loser.catch(() => {});
      try {
        return await Promise.race([checked, late]);
      } finally {
        ended.abort();
      }
    },
  };
}
