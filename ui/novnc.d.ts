/** What the page uses of noVNC (docs/API.md of its package), which has no types. */
declare module '@novnc/novnc' {
  export default class RFB extends EventTarget {
    constructor(target: HTMLElement, channel: WebSocket, options?: { readonly shared?: boolean });
    viewOnly: boolean;
    scaleViewport: boolean;
    background: string;
    disconnect(): void;
    sendCtrlAltDel(): void;
    focus(): void;
    blur(): void;
  }
}
