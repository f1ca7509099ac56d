/** The page: its frame, the log-in, and the view that the place (the part of the URL after `#`) names. */
import type { PagePolicy } from '../model/rules/page-policies';
import { render, type ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { connection, followEvents } from './lib/fleet';
import './page.css';
import { api, loadSession, userMay, messageOf, place, session } from './state';
import { ActionDialog } from './views/action-dialog';
import { Accept } from './views/accept';
import { AddMachine } from './views/add-machine';
import { Fleet } from './views/fleet';
import { LogIn } from './views/log-in';
import { NodeView } from './views/node';
import { Resources, RESOURCES } from './views/resources';

interface ViewProps {
  readonly rest: string;
  readonly search: string;
}
interface View {
  readonly view: ComponentType<ViewProps>;
  /** The title in the menu; absent: the menu does not show the view. */
  readonly title?: string;
  /** The menu shows the view only if the user satisfies this policy. */
  readonly policy?: PagePolicy;
}
/** First part of the place → its view. */
const VIEWS: Readonly<Record<string, View>> = {
  nodes: { title: 'Fleet', view: Fleet },
  node: { view: NodeView },
  add: { title: 'Add a machine', view: AddMachine, policy: 'node:create' },
  accept: { title: 'To accept', view: Accept },
  ...Object.fromEntries(
    RESOURCES.map(({ id, title, policies }) => [id, { title, policy: policies.list, view: () => <Resources key={id} id={id} /> }]),
  ),
};
const CONNECTION = { starting: 'loading …', live: 'live', lost: 'no connection, trying again …' } as const;

async function logOut(): Promise<void> {
  await api.send('DELETE', 'ui/session');
  await loadSession();
}
function Frame() {
  const [path = '', search = ''] = place.value.split('?', 2);
  const [, name = 'nodes', ...rest] = path.split('/');
  const { view: View } = VIEWS[name] ?? VIEWS['nodes']!;
  useEffect(() => followEvents(api), []);
  const { caller, strategy } = session.value!;
  return (
    <>
      <header>
        <strong>Bloomery</strong>
        <nav aria-label="Views">
          {Object.entries(VIEWS).map(
            ([id, { title, policy }]) =>
              title &&
              (policy === undefined || userMay(policy)) && (
                <a key={id} href={`#/${id}`} aria-current={id === name ? 'page' : undefined}>
                  {title}
                </a>
              ),
          )}
        </nav>
        <span class={`connection ${connection.value}`} role="status">
          {CONNECTION[connection.value]}
        </span>
        {strategy !== 'noauth' && (
          <span>
            {caller?.user} <button onClick={() => void logOut()}>Log out</button>
          </span>
        )}
      </header>
      <main>
        <View rest={rest.map(decodeURIComponent).join('/')} search={search} />
      </main>
      <ActionDialog />
    </>
  );
}
function Page() {
  const [problem, setProblem] = useState('');
  useEffect(() => {
    const load = (): void => {
      loadSession().catch((error: unknown) => {
        setProblem(`The server does not answer: ${messageOf(error)}`);
        setTimeout(load, 2000);
      });
    };
    load();
  }, []);
  if (session.value === null) return <main>{problem === '' ? null : <p role="alert">{problem}</p>}</main>;
  return session.value.caller === null ? <LogIn /> : <Frame />;
}
render(<Page />, document.getElementById('page')!);
