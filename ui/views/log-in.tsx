/** The log-in, with the kinds that the server's authentication strategy accepts. */
import { useState } from 'preact/hooks';
import type { Session } from '../lib/api';
import { api, messageOf, place, session } from '../state';
import { Field } from './field';

interface FormField {
  readonly name: string;
  readonly title: string;
  readonly type: 'text' | 'password';
  readonly needed?: boolean;
  readonly initial?: string;
}
const PERSON: readonly FormField[] = [
  { name: 'user', title: 'User', type: 'text', needed: true },
  { name: 'password', title: 'Password', type: 'password', needed: true },
];
/** Kind of log-in → its fields. Without fields, the identity provider asks the user. */
const FORMS: Readonly<Record<string, { readonly title: string; readonly fields: readonly FormField[] }>> = {
  oidc: { title: 'Identity provider', fields: [] },
  password: { title: 'User and password', fields: PERSON },
  keystone: {
    title: 'User and password of Keystone',
    fields: [
      ...PERSON,
      { name: 'domain', title: 'Domain', type: 'text', initial: 'Default' },
      { name: 'project', title: 'Project; empty: the whole system', type: 'text' },
    ],
  },
  token: { title: 'Token', fields: [{ name: 'token', title: 'Token', type: 'password', needed: true }] },
};
const AUTOCOMPLETE: Readonly<Record<string, string>> = { user: 'username', password: 'current-password', token: 'current-password' };
/** Problem of a log-in at the identity provider, as the server reports it (api/auth/oidc-login.ts) → its message. */
const PROBLEMS: Readonly<Record<string, string>> = {
  denied: 'The identity provider refused the log-in.',
  expired: 'The log-in took more than ten minutes, or another one began meanwhile. Log in again.',
  provider: 'The identity provider cannot be reached, or its answer cannot be used. The log of the server has the reason.',
  token: 'The tokens of the identity provider are not accepted. The log of the server has the reason.',
};

export function LogIn() {
  const kinds = session.value!.log_ins;
  const [kind, setKind] = useState(kinds[0] ?? 'token');
  const reported = new URLSearchParams(place.value.split('?', 2)[1]).get('problem') ?? '';
  const [problem, setProblem] = useState(Object.hasOwn(PROBLEMS, reported) ? PROBLEMS[reported]! : '');
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const values = Object.fromEntries(new FormData(event.currentTarget as HTMLFormElement));
    try {
      session.value = await api.send<Session>('POST', 'ui/session', values);
    } catch (error) {
      setProblem(messageOf(error));
    }
  };
  const { fields } = FORMS[kind]!;
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
                  {FORMS[id]!.title}
                </option>
              ))}
            </select>
          </label>
        )}
        {fields.map((field) => (
          <Field key={`${kind} ${field.name}`} {...field} autocomplete={AUTOCOMPLETE[field.name] ?? 'off'} />
        ))}
        {problem !== '' && <p role="alert">{problem}</p>}
        {fields.length > 0 ? (
          <button class="first">Log in</button>
        ) : (
          <p>
            <a class="first" href="ui/login/oidc/start">
              Log in
            </a>
          </p>
        )}
      </form>
    </main>
  );
}
