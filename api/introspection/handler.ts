/** The types of the introspection service's handlers. */
import type { Answer, ApiContext, OperationTypes, Request as ApiRequest } from '../pipeline/handler';
import type { IntrospectionOperations } from '../schema/operations';

interface Request<Operation extends OperationTypes> extends Pick<ApiRequest<Operation>, 'base' | 'minor' | 'params' | 'query'> {
  readonly hasBody: boolean;
  /** Parses the body. Throws Invalid, Unread. */
  readonly json: () => Promise<unknown>;
}
/** The services that handlers use. */
export interface IntrospectionContext extends Pick<ApiContext, 'store' | 'conductor' | 'options' | 'document' | 'random'> {
  /** Throws InvalidParameterValue for a report that does not fit the schema of agents' reports. */
  readonly checkReport: (report: unknown) => void;
}
export type Handler<Operation extends OperationTypes = OperationTypes> = (
  request: Request<Operation>,
  context: IntrospectionContext,
) => Promise<Answer>;
/** One handler for each operation of introspection.yaml. */
export type Handlers = { readonly [Id in keyof IntrospectionOperations]: Handler<IntrospectionOperations[Id]> };
