/** The viewer of a screen, by noVNC. The page loads this file when a screen is opened. */
import RFB from '@novnc/novnc';
import { connectScreen, screenUrl, tokenScreenUrl } from '../../lib/screen';

interface ViewerSetup {
  readonly element: HTMLElement;
  /** Null: the address of this page has the path of the screen, with a token. */
  readonly uuid: string | null;
  readonly wish: 'control' | 'view';
  /** Empty: the screen is opened with a token. */
  readonly csrf: string;
  readonly opened: (controls: boolean) => void;
  readonly elsewhere: (url: string) => void;
  readonly closed: (reason: string) => void;
}
interface OpenViewer {
  readonly disconnect: () => void;
  readonly sendCtrlAltDel: () => void;
  readonly focus: () => void;
}
export function openViewer({ element, uuid, wish, csrf, opened, elsewhere, closed }: ViewerSetup): OpenViewer {
  let viewer: RFB | undefined;
  const url = uuid === null ? tokenScreenUrl(location.href, wish)! : screenUrl(document.baseURI, uuid, wish);
  const disconnect = connectScreen(
    (address, protocols) => new WebSocket(address, protocols),
    { url, csrf },
    {
      started(channel, first, controls) {
        viewer = new RFB(element, channel, { shared: true });
        viewer.scaleViewport = true;
        viewer.viewOnly = !controls;
        viewer.background = '#101418';
        viewer.addEventListener('connect', () => opened(controls));
        // noVNC listens from now on.
        channel.onmessage?.(first);
      },
      elsewhere,
      closed,
    },
  );
  return {
    disconnect,
    sendCtrlAltDel: () => viewer?.sendCtrlAltDel(),
    focus: () => viewer?.focus(),
  };
}
