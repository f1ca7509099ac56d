/** The log-in, by what the server's strategy accepts. */
import { useState } from 'preact/hooks';
import type { Session } from '../lib/api';
import { api, messageOf, session } from '../state';
import { Field } from './field';

/** Log-in of the server → its fields. */
const FIELDS: Readonly<
  Record<
    string,
    { readonly title: string; readonly fields: readonly (readonly [name: string, title: string, type: 'text' | 'password'])[] }
  >
> = {
  password: {
    title: 'User and password',
    fields: [
      ['user', 'User', 'text'],
      ['password', 'Password', 'password'],
    ],
  },
  token: { title: 'Token', fields: [['token', 'Token', 'password']] },
};

export function LogIn() {
  const kinds = session.value!.log_ins;
  const [kind, setKind] = useState(kinds[0] ?? 'token');
  const [problem, setProblem] = useState('');
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const values = Object.fromEntries(new FormData(event.currentTarget as HTMLFormElement));
    try {
      session.value = await api.send<Session>('POST', 'ui/session', values);
    } catch (error) {
      setProblem(messageOf(error));
    }
  };
  return (
    <main class="narrow">
      <h1>Bloomery</h1>
      <form onSubmit={(event) => void submit(event)}>
        {kinds.length > 1 && (
          <label>
            Log in with
            <select value={kind} onChange={(event) => setKind(event.currentTarget.value)}>
              {kinds.map((id) => (
                <option key={id} value={id}>
                  {FIELDS[id]!.title}
                </option>
              ))}
            </select>
          </label>
        )}
        {FIELDS[kind]!.fields.map(([name, title, type]) => (
          <Field key={name} {...{ name, title, type }} needed autocomplete={type === 'password' ? 'current-password' : 'username'} />
        ))}
        {problem !== '' && <p role="alert">{problem}</p>}
        <button class="first">Log in</button>
      </form>
    </main>
  );
}
