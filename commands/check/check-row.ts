/** What a check of the host is: a row that `checkHost` reads. */
import type { LoadedOptions, Options } from '../../config/options';
import type { bootHostsOf } from '../../server/settings';

/** `refused`: the server does not start. */
type Severity = 'ok' | 'note' | 'warning' | 'refused';
export interface Finding {
  readonly what: string;
  readonly severity: Severity;
  readonly message: string;
}
export interface HostToCheck {
  readonly options: LoadedOptions;
  readonly roles: readonly string[];
  readonly stateDir: string;
  readonly databaseUrl: string | undefined;
}
export interface CheckContext extends HostToCheck {
  /** With the values of this host. */
  readonly resolved: Options;
  /** The process of a server on this state directory, whose ports are in use. */
  readonly running: string | undefined;
  /** The addresses of a boot service; none where they cannot be determined, which is a finding of its own. */
  readonly bootHosts: (option: Parameters<typeof bootHostsOf>[1]) => readonly string[];
}
export type Result = readonly [Severity, string];
export interface HostCheck {
  readonly what: string;
  /** The check applies only with one of these roles. */
  readonly roles?: readonly string[];
  /** Returns what it found; nothing: all is well. An error is a refusal. */
  readonly check: (context: CheckContext) => Promise<readonly Result[]> | readonly Result[];
}

/** One refusal for each line of the message. */
export const refusalsOf = (error: unknown): readonly Result[] =>
  (error as Error).message.split('\n').map((line) => ['refused', line] as const);

/** Limit of a request to other servers. */
export const REQUEST_TIMEOUT_MS = 5_000;
