/**
 * The screen of a node in the browser: RFB over a WebSocket (RFC 6455), which noVNC shows. The page opens /ui/screen/NODE with its session;
 * whoever has the address of a graphical console opens /websockify with its token, as Ironic's novncproxy has it. The server connects to the
 * machine itself, so that the browser gets neither its address nor its password.
 */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Options } from '../../config/options';
import { Fault, reasonOf } from '../../model/errors';
import { isUuid } from '../../model/idents';
import type { NodeRecord } from '../../model/records';
import { isTokenOf } from '../../model/rules/screen-token';
import type { Store } from '../../store/store';
import type { UpgradeListener } from '../../wire/http/upgrades';
import { createShares, type ShareLimits } from '../../wire/shares';
import type { Sessions } from '../auth/sessions';
import { isOfOwnPage } from '../http/cors';
import { sourceOf } from '../http/source';
import { targetOf } from '../http/target';
import { createConsoleRights } from './console-rights';
import { createVisits, RELAY_PATH, type Visit, type VisitParts } from './screen-visits';
import { refuse, statusOf } from './web-sockets';

interface ScreenParts extends VisitParts {
  readonly store: { readonly nodes: Pick<Store['nodes'], 'find'> };
}

const PATH = '/ui/screen/';
const TOKEN_PATH = '/websockify';
/** Tokens that are checked at a time, in all and of a source. */
const CHECKING: ShareLimits = { inAll: 50, ofSource: 8 };
const MAX_TOKEN = 200;

const refused = (): Fault => new Fault('NotAuthorized', {});
/** As in Ironic: a page of another origin may not use the token, and a client that is no browser names no origin. */
function isOfAllowedOrigin(request: IncomingMessage, options: Options): boolean {
  const { origin } = request.headers;
  return origin === undefined || options['cors.allowed_origin'].includes(origin) || isOfOwnPage(request, options);
}
const wishOf = (search: string, options: Options): Visit['wish'] =>
  options['vnc.read_only'] || new URLSearchParams(search).get('view') === '1' ? 'view' : 'control';

/** Checks who comes, and refuses the connection if the check throws. */
type Admit = (request: IncomingMessage, socket: Duplex, head: Buffer, uuid: string, check: () => Promise<Visit>) => void;
function createAdmission(parts: ScreenParts): Admit {
  const { options, log } = parts;
  const receive = createVisits(parts);
  const admit = async (...[request, socket, head, uuid, check]: Parameters<Admit>): Promise<void> => {
    try {
      const visit = await check();
      if (!socket.destroyed) await receive(request, socket, head, visit);
    } catch (error) {
      const status = statusOf(error);
      if (status === 500) log.error('a screen in the browser failed', { node: uuid, error: reasonOf(error) });
      log.info('a screen in the browser was refused', { node: uuid, status, source: sourceOf(request, options) });
      refuse(socket, status);
    }
  };
  return (...given) => void admit(...given);
}

/** For the page: the user's session, and the policy of consoles. */
export function createPageScreens(parts: ScreenParts & { readonly sessions: Pick<Sessions, 'auth'> }): UpgradeListener {
  const { options, store, stopping } = parts;
  const rights = createConsoleRights(parts);
  const admit = createAdmission(parts);
  return (request, socket, head) => {
    const { bare, search } = targetOf(request.url ?? '/');
    if (!bare.startsWith(PATH)) return false;
    const uuid = bare.slice(PATH.length);
    socket.on('error', () => {});
    const authorise = async (): Promise<void> => {
      await rights.check(request, uuid);
      if (!(await store.nodes.find(uuid)).console_enabled) throw refused();
    };
    if (!isUuid(uuid)) refuse(socket, 404);
    else if (!isOfOwnPage(request, options)) refuse(socket, 403);
    else if (stopping.aborted) refuse(socket, 503);
    else
      admit(request, socket, head, uuid, async () => {
        const user = await rights.checkOpening(request, uuid);
        return { uuid, user, path: bare, wish: wishOf(search, options), authorise };
      });
    return true;
  };
}

/** For the address in `console_info`. */
export function createTokenScreens(parts: ScreenParts): UpgradeListener {
  const { options, store, clock, stopping } = parts;
  const admit = createAdmission(parts);
  const checking = createShares(CHECKING);
  /** An unknown node is no other refusal than a wrong token. */
  const find = (uuid: string): Promise<NodeRecord | undefined> =>
    store.nodes.find(uuid).catch((error: unknown) => {
      if (statusOf(error) === 404) return undefined;
      throw error;
    });
  return (request, socket, head) => {
    const { bare, search } = targetOf(request.url ?? '/');
    if (bare !== TOKEN_PATH) return false;
    const query = new URLSearchParams(search);
    const [uuid, token] = [query.get('node') ?? '', query.get('token') ?? ''];
    const source = sourceOf(request, options);
    const authorise = async (): Promise<void> => {
      const node = await find(uuid);
      if (!node?.console_enabled || node.driver_internal_info['novnc_secret_token'] !== token) throw refused();
    };
    socket.on('error', () => {});
    if (!isUuid(uuid) || token.length > MAX_TOKEN || !isOfAllowedOrigin(request, options)) refuse(socket, 403);
    else if (stopping.aborted || !checking.take(source, 1)) refuse(socket, 503);
    else
      admit(request, socket, head, uuid, async () => {
        const node = await find(uuid).finally(() => checking.give(source, 1));
        const lifetimeMs = options['vnc.token_timeout'] * 1000;
        if (!node?.console_enabled || !isTokenOf(node, token, lifetimeMs, clock.now())) throw refused();
        return { uuid, user: null, path: bare, wish: wishOf(search, options), authorise };
      });
    return true;
  };
}

/** For other processes of this program, which have checked the user, and ask the conductor of the node. */
export function createRelayedScreens(
  parts: ScreenParts,
): (request: IncomingMessage, socket: Duplex, head: Buffer, answer: readonly string[]) => void {
  const { options, store, stopping } = parts;
  const admit = createAdmission(parts);
  return (request, socket, head, answer) => {
    const { bare, search } = targetOf(request.url ?? '/');
    const uuid = bare.slice(RELAY_PATH.length);
    const authorise = async (): Promise<void> => {
      if (!(await store.nodes.find(uuid)).console_enabled) throw refused();
    };
    if (!bare.startsWith(RELAY_PATH) || !isUuid(uuid)) refuse(socket, 404);
    else if (stopping.aborted) refuse(socket, 503);
    else
      admit(request, socket, head, uuid, async () => ({ uuid, user: null, path: bare, wish: wishOf(search, options), authorise, answer }));
  };
}
