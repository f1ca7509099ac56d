/** State that all views share: the session, the place (the part of the URL after `#`), and the action that waits for confirmation. */
import type { PagePolicy } from '../model/rules/page-policies';
import { signal } from '@preact/signals';
import { createApi, type Session } from './lib/api';
import type { Action } from './lib/actions';
import { isAllowed, type Owned } from './lib/rights';
import type { NodeRow } from './lib/rows';

export const session = signal<Session | null>(null);
export const place = signal(location.hash.slice(1) || '/nodes');
window.addEventListener('hashchange', () => (place.value = location.hash.slice(1) || '/nodes'));

/** The action, with its nodes, that the dialog asks about; null: the dialog is closed. */
export const pendingAction = signal<{ readonly action: Action; readonly rows: readonly NodeRow[] } | null>(null);

export const api = createApi(
  () => session.value?.csrf ?? null,
  () => {
    if (session.value?.strategy !== 'noauth') session.value = session.value && { ...session.value, caller: null, csrf: null };
  },
);
export async function loadSession(): Promise<void> {
  session.value = await api.get<Session>('ui/session');
}
/** Whether the policy allows the user an operation on a resource of these projects. */
export function userMay(policy: PagePolicy, resource?: Owned): boolean {
  const { caller, may: rights } = session.value!;
  return caller !== null && isAllowed(rights, caller.project, policy, resource);
}
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
