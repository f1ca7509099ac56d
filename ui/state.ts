/** What all views share: the session, the place (the part of the URL after `#`), and the action that waits for an answer. */
import { signal } from '@preact/signals';
import { createApi, type Session } from './lib/api';
import type { Action } from './lib/actions';
import type { Row } from './lib/rows';

export const session = signal<Session | null>(null);
export const place = signal(location.hash.slice(1) || '/nodes');
window.addEventListener('hashchange', () => (place.value = location.hash.slice(1) || '/nodes'));

/** The actions that a dialogue asks about. */
export const pendingAction = signal<{ readonly action: Action; readonly rows: readonly Row[] } | null>(null);

export const api = createApi(
  () => session.value?.csrf ?? null,
  () => {
    if (session.value?.strategy !== 'noauth') session.value = session.value && { ...session.value, caller: null, csrf: null, may: [] };
  },
);
export async function loadSession(): Promise<void> {
  session.value = await api.get<Session>('ui/session');
}
export const may = (policy: string): boolean => session.value?.may.includes(policy) ?? false;
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
