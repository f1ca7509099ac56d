/** UEFI Secure Boot: its setting and its key databases. A changed setting takes effect at the machine's next start. */
import { hardwarePart } from './hardware';

export const KEY_DATABASES = ['PK', 'KEK', 'db', 'dbx'] as const;
export type KeyDatabase = (typeof KEY_DATABASES)[number];

export interface SecureBootState {
  readonly enabled?: boolean;
  /** Whether Secure Boot has been in force since the last start. */
  readonly inForce?: boolean;
  /** Certificates (PEM) of the databases that differ from the factory state. */
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

/** The state after a start of the firmware, which enforces nothing without a platform key. Returns the same object if nothing changes. */
export function secureBootAtStart(state: SecureBootState): SecureBootState {
  const inForce = state.enabled === true && hasPlatformKey(state);
  return inForce === (state.inForce ?? false) ? state : { ...state, inForce };
}
