/** The screen of a node, in the page and on the page for whoever has its address. */
import { useEffect, useRef, useState } from 'preact/hooks';

interface ScreenProps {
  /** The node. Null: the address of this page has the path of the screen, with a token. */
  readonly uuid: string | null;
  readonly csrf: string;
}
type Viewer = ReturnType<(typeof import('./screen-viewer'))['openViewer']>;
const TEXTS = { control: 'Connected', view: 'Connected: you only look' } as const;

export function Screen({ uuid, csrf }: ScreenProps) {
  const frame = useRef<HTMLDivElement>(null);
  const screen = useRef<HTMLDivElement>(null);
  const [number, setNumber] = useState(0);
  const [wish, setWish] = useState<'control' | 'view'>('control');
  const [notice, setNotice] = useState('');
  const [page, setPage] = useState<string | null>(null);
  /** Null: not connected. */
  const [viewer, setViewer] = useState<Viewer | null>(null);
  const [controls, setControls] = useState(false);
  useEffect(() => {
    let isOver = false;
    let dispose = (): void => {};
    setNotice('Connecting …');
    setPage(null);
    setControls(false);
    import('./screen-viewer').then(
      ({ openViewer }) => {
        if (isOver) return;
        const opened = openViewer({
          element: screen.current!,
          uuid,
          wish,
          csrf,
          opened: (mayControl) => {
            if (isOver) return;
            setControls(mayControl);
            setNotice(TEXTS[mayControl ? 'control' : 'view']);
          },
          elsewhere: setPage,
          closed: (reason) => {
            if (isOver) return;
            setNotice(reason);
            setViewer(null);
            setControls(false);
          },
        });
        dispose = opened.disconnect;
        setViewer(opened);
      },
      (error: unknown) => setNotice(error instanceof Error ? error.message : String(error)),
    );
    return () => {
      isOver = true;
      dispose();
    };
  }, [uuid, wish, csrf, number]);
  return (
    <div ref={frame} class="screen-frame">
      <p class="bar">
        <button onClick={() => (viewer === null ? setNumber((last) => last + 1) : viewer.disconnect())}>
          {viewer === null ? 'Connect again' : 'Disconnect'}
        </button>
        <label>
          <input
            type="checkbox"
            checked={wish === 'view'}
            onChange={({ currentTarget }) => setWish(currentTarget.checked ? 'view' : 'control')}
          />{' '}
          Only look
        </label>
        <button disabled={!controls} onClick={() => viewer?.sendCtrlAltDel()}>
          Ctrl+Alt+Del
        </button>
        <button disabled={viewer === null} onClick={() => void frame.current?.requestFullscreen().then(() => viewer?.focus())}>
          Full screen
        </button>
        <span role="status">{notice}</span>
      </p>
      {page !== null && (
        <p>
          <a href={page} target="_blank" rel="noreferrer noopener">
            Open the screen on the page of the BMC
          </a>
        </p>
      )}
      <div key={`${number} ${wish}`} ref={screen} class="wide console screen" role="group" aria-label="Screen" />
    </div>
  );
}
