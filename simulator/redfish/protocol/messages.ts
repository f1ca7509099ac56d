/** The messages that this service sends (Base and Update registries, DSP2065), and its errors' form (DSP0266 §8.6). */
import type { ServiceAnswer } from './routes';

/** In this service's code, message keys of other registries have a prefix (Update.TransferFailed); those of Base have none. */
export const BASE_REGISTRY = 'Base.1.8';
export const UPDATE_REGISTRY = 'Update.1.0';
export interface Message {
  /** With %1, %2, … for the arguments. */
  readonly text: string;
  readonly severity: 'OK' | 'Warning' | 'Critical';
  readonly status: number;
}
const message = (status: number, text: string, severity: Message['severity'] = 'Warning'): Message => ({ status, text, severity });

export const MESSAGES: Readonly<Record<string, Message>> = {
  Success: message(200, 'The request completed successfully.', 'OK'),
  ActionNotSupported: message(400, 'The action %1 is not supported by the resource.', 'Critical'),
  ActionParameterMissing: message(400, 'The action %1 requires the parameter %2 to be present in the request body.', 'Critical'),
  ActionParameterNotSupported: message(400, 'The parameter %1 for the action %2 is not supported on the target resource.'),
  ActionParameterValueTypeError: message(
    400,
    'The value %1 for the parameter %2 in the action %3 is of a different type than the parameter can accept.',
  ),
  ActionParameterValueNotInList: message(
    400,
    'The value %1 for the parameter %2 in the action %3 is not in the list of acceptable values.',
  ),
  CouldNotEstablishConnection: message(400, 'The service failed to establish a connection with the URI %1.', 'Critical'),
  CreateFailedMissingReqProperties: message(
    400,
    'The create operation failed because the required property %1 was missing from the request.',
    'Critical',
  ),
  CreateLimitReachedForResource: message(
    503,
    'The create operation failed because the resource has reached the limit of possible resources.',
    'Critical',
  ),
  EventSubscriptionLimitExceeded: message(
    503,
    'The event subscription failed due to the number of simultaneous subscriptions exceeding the limit of the implementation.',
    'Critical',
  ),
  InsufficientPrivilege: message(
    403,
    'There are insufficient privileges for the account or credentials associated with the current session to perform the requested operation.',
    'Critical',
  ),
  InternalError: message(500, 'The request failed due to an internal service error.  The service is still operational.', 'Critical'),
  MalformedJSON: message(
    400,
    'The request body submitted was malformed JSON and could not be parsed by the receiving service.',
    'Critical',
  ),
  NoOperation: message(400, 'The request body submitted contain no data to act upon and no changes to the resource took place.'),
  NoValidSession: message(401, 'There is no valid session established with the implementation.', 'Critical'),
  OperationNotAllowed: message(405, 'The HTTP method is not allowed on this resource.', 'Critical'),
  PreconditionFailed: message(412, 'The ETag supplied did not match the ETag required to change this resource.', 'Critical'),
  PreconditionRequired: message(428, 'A precondition header or annotation is required to change this resource.', 'Critical'),
  PropertyMissing: message(400, 'The property %1 is a required property and must be included in the request.'),
  PropertyNotWritable: message(400, 'The property %1 is a read only property and cannot be assigned a value.'),
  PropertyUnknown: message(400, 'The property %1 is not in the list of valid properties for the resource.'),
  PropertyValueFormatError: message(400, 'The value %1 for the property %2 is of a different format than the property can accept.'),
  PropertyValueNotInList: message(400, 'The value %1 for the property %2 is not in the list of acceptable values.'),
  PropertyValueOutOfRange: message(400, 'The value %1 for the property %2 is not in the supported range of acceptable values.'),
  PropertyValueTypeError: message(400, 'The value %1 for the property %2 is of a different type than the property can accept.'),
  QueryNotSupported: message(501, 'Querying is not supported by the implementation.'),
  QueryParameterOutOfRange: message(400, 'The value %1 for the query parameter %2 is out of range %3.'),
  QueryParameterValueTypeError: message(
    400,
    'The value %1 for the query parameter %2 is of a different type than the parameter can accept.',
  ),
  ResourceAlreadyExists: message(
    400,
    'The requested resource of type %1 with the property %2 with the value %3 already exists.',
    'Critical',
  ),
  ResourceCannotBeDeleted: message(403, 'The delete request failed because the resource requested cannot be deleted.', 'Critical'),
  ResourceInUse: message(409, 'The change to the requested resource failed because the resource is in use or in transition.'),
  ResourceMissingAtURI: message(404, 'The resource at the URI %1 was not found.', 'Critical'),
  UnrecognizedRequestBody: message(400, 'The service detected a malformed request body that it was unable to interpret.'),
};

/** The messages of the Update registry (DSP2065). */
export const UPDATE_MESSAGES: Readonly<Record<string, Message>> = {
  TransferFailed: message(400, "Transfer of image '%1' to '%2' failed.", 'Critical'),
  VerificationFailed: message(400, "Verification of image '%1' at '%2' failed.", 'Critical'),
};
const REGISTRIES = { Base: [BASE_REGISTRY, MESSAGES], Update: [UPDATE_REGISTRY, UPDATE_MESSAGES] } as const;

/** A message object as answers and tasks contain it. @param id the message's key, with the registry's prefix unless it is Base */
export function extended(id: string, args: readonly string[] = []): Readonly<Record<string, unknown>> {
  const [prefix, key] = (id.includes('.') ? id.split('.') : ['Base', id]) as [keyof typeof REGISTRIES, string];
  const [registry, messages] = REGISTRIES[prefix];
  const { text, severity } = messages[key]!;
  return {
    '@odata.type': '#Message.v1_1_1.Message',
    MessageId: `${registry}.${key}`,
    Message: args.reduce((filled, value, index) => filled.replace(`%${index + 1}`, () => value.slice(0, 200)), text),
    MessageArgs: args.map((value) => value.slice(0, 200)),
    MessageSeverity: severity,
    Severity: severity,
    Resolution: severity === 'OK' ? 'None' : 'Correct the request and send it again.',
  };
}
/** An error answer with a message of the Base registry. */
export function refuse(id: string, ...args: readonly string[]): ServiceAnswer {
  const shown = extended(id, args);
  return {
    status: MESSAGES[id]!.status,
    body: { error: { code: `${BASE_REGISTRY}.${id}`, message: shown['Message'], '@Message.ExtendedInfo': [shown] } },
  };
}
