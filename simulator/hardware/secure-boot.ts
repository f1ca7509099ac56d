/** UEFI Secure Boot: its setting and its databases of keys. The machine's start decides whether it is in force. */
import { hardwarePart } from './hardware';

export const KEY_DATABASES = ['PK', 'KEK', 'db', 'dbx'] as const;
export type KeyDatabase = (typeof KEY_DATABASES)[number];

export interface SecureBootState {
  readonly enabled?: boolean;
  /** In force since the last start. */
  readonly inForce?: boolean;
  /** PEM, of the databases that differ from the factory's. */
  readonly keys?: { readonly [database in KeyDatabase]?: readonly string[] };
}
export const SECURE_BOOT = hardwarePart<SecureBootState>('secureBoot', {});

export const FACTORY_KEYS: Readonly<Record<KeyDatabase, readonly string[]>> = {
  PK: ['Platform key of the factory'],
  KEK: ['Key exchange key of the factory'],
  db: ['Signatures that the factory allows'],
  dbx: [],
};
export const keysIn = (state: SecureBootState, database: KeyDatabase): readonly string[] =>
  state.keys?.[database] ?? FACTORY_KEYS[database];
export const hasPlatformKey = (state: SecureBootState): boolean => keysIn(state, 'PK').length > 0;

/** Without a platform key the firmware enforces nothing. The same object: nothing changes. */
export function secureBootAtStart(state: SecureBootState): SecureBootState {
  const inForce = state.enabled === true && hasPlatformKey(state);
  return inForce === (state.inForce ?? false) ? state : { ...state, inForce };
}
