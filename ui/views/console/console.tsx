/** The console of a node: its switch, and its terminal or screen. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { NodeRow } from '../../lib/rows';
import { api, userMay, messageOf, session } from '../../state';
import { SavedLog } from './saved-log';
import { Screen } from './screen';

interface ConsoleState {
  readonly console_enabled: boolean;
  readonly console_info: { readonly type?: string; readonly url?: string } | null;
}
const READ_AGAIN_MS = 1000;
/** The most reads of the state until the console is on, or off. */
const MAX_READS = 30;
const readState = (uuid: string): Promise<ConsoleState> => api.get<ConsoleState>(`v1/nodes/${uuid}/states/console`);

function Line({ uuid }: { readonly uuid: string }) {
  const screen = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const [number, setNumber] = useState(0);
  const [notice, setNotice] = useState('');
  /** Null: not connected. */
  const [disconnect, setDisconnect] = useState<(() => void) | null>(null);
  useEffect(() => {
    let isOver = false;
    let dispose = (): void => {};
    setNotice('Connecting …');
    import('./terminal').then(
      ({ openTerminal }) => {
        if (isOver) return;
        const terminal = openTerminal({
          element: screen.current!,
          uuid,
          csrf: session.value?.csrf ?? '',
          opened: () => setNotice('Connected'),
          closed: (reason) => {
            if (isOver) return;
            setNotice(reason);
            setDisconnect(null);
          },
          leave: () => button.current?.focus(),
        });
        ({ dispose } = terminal);
        setDisconnect(() => terminal.disconnect);
      },
      (error: unknown) => setNotice(messageOf(error)),
    );
    return () => {
      isOver = true;
      dispose();
    };
  }, [uuid, number]);
  return (
    <>
      <p class="bar">
        <button
          ref={button}
          onClick={() => {
            if (disconnect === null) setNumber((last) => last + 1);
            else disconnect();
          }}
        >
          {disconnect === null ? 'Connect again' : 'Disconnect'}
        </button>
        <span role="status">{notice}</span>
      </p>
      <div key={number} ref={screen} class="wide console" role="group" aria-label="Terminal" />
      <p class="quiet">
        At the start of a line, ~B sends a break and ~. ends the connection. Ctrl+Alt+Q leaves the terminal by keyboard. One client at a
        time can use a console.
      </p>
    </>
  );
}

function Shown({ uuid, info: { type, url } }: { readonly uuid: string; readonly info: NonNullable<ConsoleState['console_info']> }) {
  if (type === 'socat') return <Line uuid={uuid} />;
  if (type !== 'vnc') return <p>This node has neither a serial nor a graphical console.</p>;
  return (
    <>
      <Screen uuid={uuid} csrf={session.value?.csrf ?? ''} />
      <p class="quiet">
        One user at a time uses keys and mouse; others only look.{' '}
        {url !== undefined && (
          <a href={url} target="_blank" rel="noreferrer noopener">
            The screen on a page of its own
          </a>
        )}
      </p>
    </>
  );
}

export function Console({ row }: { readonly row: NodeRow }) {
  const { uuid } = row;
  const [state, setState] = useState<ConsoleState | null>(null);
  const [notice, setNotice] = useState('');
  const [isWorking, setWorking] = useState(false);
  useEffect(() => {
    readState(uuid).then(setState, (error: unknown) => setNotice(messageOf(error)));
  }, [uuid]);
  const turn = async (enabled: boolean): Promise<void> => {
    setWorking(true);
    setNotice(enabled ? 'Turning the console on …' : 'Turning the console off …');
    try {
      await api.send('PUT', `v1/nodes/${uuid}/states/console`, { enabled });
      let now = await readState(uuid);
      for (let read = 1; now.console_enabled !== enabled && read < MAX_READS; read++) {
        await new Promise((done) => setTimeout(done, READ_AGAIN_MS));
        now = await readState(uuid);
      }
      setState(now);
      setNotice(now.console_enabled === enabled ? '' : 'It did not work: the history of the node has the reason.');
    } catch (error) {
      setNotice(messageOf(error));
    } finally {
      setWorking(false);
    }
  };
  const isOn = state?.console_enabled === true;
  return (
    <>
      <p class="bar">
        {state !== null && userMay('node:set_console_state', row) && (
          <button disabled={isWorking} onClick={() => void turn(!isOn)}>
            {isOn ? 'Turn off' : 'Turn on'}
          </button>
        )}
        {state !== null && !isOn && <span>The console is off.</span>}
        <span role="status">{state === null && notice === '' ? 'Loading …' : notice}</span>
      </p>
      {isOn && <Shown uuid={uuid} info={state.console_info ?? {}} />}
      {state?.console_info?.type !== 'vnc' && <SavedLog uuid={uuid} name={row.name ?? uuid} />}
    </>
  );
}
