/** The WebSocket of a node's screen. Pure, except for the constructor that is passed in. */
interface ScreenEvents {
  /** The server sends the screen now. `first`: the first bytes, which the viewer of RFB must get. */
  readonly started: (channel: WebSocket, first: MessageEvent, controls: boolean) => void;
  /** The BMC shows the screen on a page of its own. */
  readonly elsewhere: (url: string) => void;
  readonly closed: (reason: string) => void;
}
/** The server chooses one: so the page knows whether its user controls the machine. */
const CONTROLS = 'bloomery.screen';
const LOOKS = 'bloomery.screen.view';

/** The URL of a node's screen. `page` is the URL of the page: the screen is on the same server, below the same prefix. */
export function screenUrl(page: string, uuid: string, wish: 'control' | 'view'): string {
  const url = new URL(`ui/screen/${encodeURIComponent(uuid)}${wish === 'view' ? '?view=1' : ''}`, page);
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
  return url.href;
}
/** The same for an address with a token, as `console_info` has it: its query names the path of the WebSocket. Undefined: it does not. */
export function tokenScreenUrl(page: string, wish: 'control' | 'view'): string | undefined {
  const path = new URL(page).searchParams.get('path') ?? '';
  if (!path.startsWith('websockify?')) return undefined;
  const url = new URL(path, page);
  if (wish === 'view') url.searchParams.set('view', '1');
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
  return url.href;
}
/** An http(s) address in the server's message; undefined: there is none. */
function pageIn(message: string): string | undefined {
  try {
    const { page } = JSON.parse(message) as { readonly page?: unknown };
    return typeof page === 'string' && /^https?:$/.test(new URL(page).protocol) ? page : undefined;
  } catch {
    return undefined;
  }
}

/** @returns a function that closes the connection */
export function connectScreen(
  open: (url: string, protocols: string[]) => WebSocket,
  { url, csrf }: { readonly url: string; readonly csrf: string },
  { started, elsewhere, closed }: ScreenEvents,
): () => void {
  const socket = open(url, [CONTROLS, LOOKS, ...(csrf === '' ? [] : [`csrf.${csrf}`])]);
  socket.binaryType = 'arraybuffer';
  let wasOpen = false;
  let isEnded = false;
  socket.addEventListener('open', () => (wasOpen = true));
  socket.addEventListener(
    'message',
    (first) => {
      if (typeof first.data !== 'string') {
        started(socket, first, socket.protocol === CONTROLS);
        return;
      }
      const page = pageIn(first.data);
      if (page !== undefined) elsewhere(page);
    },
    { once: true },
  );
  socket.addEventListener('close', ({ reason }) => {
    const guess = isEnded ? 'Disconnected' : wasOpen ? 'The connection was lost.' : 'The server refused the screen.';
    closed(reason === '' ? guess : reason);
  });
  return () => {
    isEnded = true;
    socket.close();
  };
}
