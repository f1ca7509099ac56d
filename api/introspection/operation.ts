/** The types of the introspection service's routes and handlers. */
import type { Options } from '../../config/options';
import type { Conductor } from '../../conductor/conductor';
import type { Store } from '../../store/store';
import type { SchemaName } from './schemas';

interface Request {
  /** The values of the path parameters, in order. */
  readonly params: readonly string[];
  readonly query: URLSearchParams;
  readonly minor: number;
  /** Scheme and host, for links. */
  readonly base: string;
  readonly hasBody: boolean;
  /** Parses the body. Throws Invalid, Unread. */
  readonly json: () => Promise<unknown>;
}
export interface IntrospectionAnswer {
  readonly status: number;
  readonly body?: object;
  /** Serialised JSON, in place of `body`. */
  readonly text?: string;
}
/** The services that handlers use. */
export interface IntrospectionContext {
  readonly store: Store;
  readonly conductor: Conductor;
  readonly options: Options;
  readonly random: (bytes: number) => Buffer;
  /** Throws InvalidParameterValue for a report that does not fit the schema of agents' reports. */
  readonly checkReport: (report: unknown) => void;
}
export type Handler = (request: Request, context: IntrospectionContext) => Promise<IntrospectionAnswer>;

export interface Operation {
  readonly handler: Handler;
  readonly operationId: string;
  readonly summary: string;
  readonly query?: readonly string[];
  readonly takes?: { readonly body: SchemaName; readonly required: boolean };
  /** Status → schema of the body; null: no body. Refusals are not listed. */
  readonly answers: Readonly<Record<number, SchemaName | null>>;
}
export interface Route {
  /** An OpenAPI path template. */
  readonly path: string;
  readonly methods: Readonly<Record<string, Operation>>;
  /** Needs no authentication. */
  readonly isPublic?: true;
  /** An extension: `GET /v1` does not list it. */
  readonly isUnlisted?: true;
}
