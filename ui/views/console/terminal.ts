/** The terminal of a console, by xterm.js. The page loads this file when a console is opened. */
import { Terminal } from '@xterm/xterm';
import { connectConsole, consoleUrl } from '../../lib/console';
import { documentWithStyles, withPatchedCreateElement } from '../../lib/document-styles';

interface TerminalSetup {
  readonly element: HTMLElement;
  readonly uuid: string;
  readonly csrf: string;
  readonly opened: () => void;
  readonly closed: (reason: string) => void;
  /** Called when the user presses Ctrl+Alt+Q to leave the terminal, which takes all other keys. */
  readonly leave: () => void;
}
const SCROLLBACK_LINES = 5000;
const colours = { background: '#101418', foreground: '#e6e8ea', cursor: '#e6e8ea' };

interface OpenTerminal {
  /** Closes the connection. The terminal still shows the output. */
  readonly disconnect: () => void;
  readonly dispose: () => void;
}
export function openTerminal({ element, uuid, csrf, opened, closed, leave }: TerminalSetup): OpenTerminal {
  const terminal = new Terminal({
    cols: 80,
    rows: 24,
    scrollback: SCROLLBACK_LINES,
    fontSize: 14,
    fontFamily: 'ui-monospace, monospace',
    screenReaderMode: true,
    theme: colours,
    documentOverride: documentWithStyles(document),
    // Links in the output of a machine must not open pages.
    linkHandler: { activate: () => {} },
  });
  withPatchedCreateElement(document, () => terminal.open(element));
  const socket = connectConsole(
    (url, protocols) => new WebSocket(url, protocols),
    { url: consoleUrl(document.baseURI, uuid), csrf },
    {
      opened: () => {
        terminal.focus();
        opened();
      },
      received: (bytes) => {
        try {
          terminal.write(bytes);
        } catch {
          // More output waits than xterm.js can buffer.
          socket.close();
        }
      },
      closed,
    },
  );
  const encoder = new TextEncoder();
  terminal.onData((text) => socket.send(encoder.encode(text)));
  terminal.onBinary((text) => socket.send(Uint8Array.from(text, (character) => character.charCodeAt(0))));
  terminal.attachCustomKeyEventHandler((event) => {
    if (!(event.ctrlKey && event.altKey && event.code === 'KeyQ')) return true;
    if (event.type === 'keydown') leave();
    return false;
  });
  return {
    disconnect: () => socket.close(),
    dispose: () => {
      socket.close();
      terminal.dispose();
    },
  };
}
