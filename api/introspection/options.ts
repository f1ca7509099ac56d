import type { ApiOptions } from '../http/options';

/** The options that the introspection service's door reads (section.name); main hands them over. */
export interface IntrospectionOptions extends ApiOptions {
  readonly 'DEFAULT.can_manage_boot': boolean;
  readonly 'processing.store_data': string;
}
