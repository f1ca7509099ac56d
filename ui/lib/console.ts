/** The WebSocket of a serial console. Pure, besides the constructor that is passed in. */
interface ConsoleSocket {
  send(bytes: Uint8Array): void;
  close(): void;
}
interface ConsoleEvents {
  readonly opened: () => void;
  readonly received: (bytes: Uint8Array) => void;
  readonly closed: (reason: string) => void;
}
/** The server accepts frames of 16 KiB. */
const PIECE = 4096;
/** What may wait for a server that does not read: more is not sent. */
const MOST_UNSENT = 1 << 20;

/** `page` is the URL of the page; the console is at the same server, below the same prefix. */
export function consoleUrl(page: string, uuid: string): string {
  const url = new URL(`ui/console/${encodeURIComponent(uuid)}`, page);
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
  return url.href;
}
export function connectConsole(
  open: (url: string, protocols: string[]) => WebSocket,
  { url, csrf }: { readonly url: string; readonly csrf: string },
  { opened, received, closed }: ConsoleEvents,
): ConsoleSocket {
  const socket = open(url, ['bloomery.console', ...(csrf === '' ? [] : [`csrf.${csrf}`])]);
  socket.binaryType = 'arraybuffer';
  let wasOpen = false;
  let isEnded = false;
  socket.addEventListener('open', () => {
    wasOpen = true;
    opened();
  });
  socket.addEventListener('message', ({ data }) => {
    if (data instanceof ArrayBuffer) received(new Uint8Array(data));
  });
  socket.addEventListener('close', ({ reason }) => {
    const guess = isEnded ? 'Disconnected' : wasOpen ? 'The connection was lost.' : 'The server refused the console.';
    closed(reason === '' ? guess : reason);
  });
  return {
    send(bytes) {
      if (socket.readyState !== 1 || socket.bufferedAmount + bytes.length > MOST_UNSENT) return;
      for (let start = 0; start < bytes.length; start += PIECE) socket.send(bytes.slice(start, start + PIECE));
    },
    close() {
      isEnded = true;
      socket.close();
    },
  };
}
