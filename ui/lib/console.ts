/** The WebSocket of a serial console. Pure, except for the constructor that is passed in. */
interface ConsoleSocket {
  send(bytes: Uint8Array): void;
  close(): void;
}
interface ConsoleEvents {
  readonly opened: () => void;
  readonly received: (bytes: Uint8Array) => void;
  readonly closed: (reason: string) => void;
}
/** Bytes in a frame; the server accepts frames of up to 16 KiB. */
const PIECE = 4096;
/** The most bytes that may wait in the socket if the server does not read. Further input is dropped. */
const MAX_UNSENT = 1 << 20;

/** The URL of a node's console. `page` is the URL of the page: the console is on the same server, below the same prefix. */
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
      if (socket.readyState !== 1 || socket.bufferedAmount + bytes.length > MAX_UNSENT) return;
      for (let start = 0; start < bytes.length; start += PIECE) socket.send(bytes.slice(start, start + PIECE));
    },
    close() {
      isEnded = true;
      socket.close();
    },
  };
}
