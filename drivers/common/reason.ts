/**
 * The text of what a connection failed of. fetch hides it in `cause`, and a host with several addresses in an AggregateError without a
 * message of its own.
 */
export function connectionReason(error: unknown): string {
  const { cause, errors, message, code } = (error ?? {}) as { cause?: unknown; errors?: unknown; message?: unknown; code?: unknown };
  if (cause !== undefined) return connectionReason(cause);
  if (Array.isArray(errors) && errors.length > 0) return connectionReason(errors[0]);
  const text = [message, code].find((one) => typeof one === 'string' && one !== '');
  return typeof text === 'string' ? text : String(error);
}
