/** When policies do not limit callers. */
import type { Options } from '../config/options';

export type StrategyOptions = Pick<Options, 'DEFAULT.auth_strategy' | 'DEFAULT.http_basic_roles_file'>;

/** Why policies have no effect, or not for all callers. Undefined: they apply to every caller. */
export function ineffectiveness({
  'DEFAULT.auth_strategy': strategy,
  'DEFAULT.http_basic_roles_file': roles,
}: StrategyOptions): string | undefined {
  if (strategy === 'http_basic' && roles === null)
    return 'policies limit tokens only: without [DEFAULT]http_basic_roles_file, every user of http_basic may do everything';
  if (strategy !== null && strategy !== 'noauth') return undefined;
  return `policies have no effect: everybody may do everything, since [DEFAULT]auth_strategy is ${strategy ?? 'not set'}`;
}

/** Policies that Ironic evaluates with every strategy. */
export const ALWAYS_EVALUATED: ReadonlySet<string> = new Set(['show_password', 'show_instance_secrets']);
