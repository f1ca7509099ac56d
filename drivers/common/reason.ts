/**
 * Why a connection failed. fetch puts the reason into `cause`; for a host with several addresses it is an AggregateError without a
 * message.
 */
export function connectionReason(error: unknown): string {
  const { cause, errors, message, code } = (error ?? {}) as { cause?: unknown; errors?: unknown; message?: unknown; code?: unknown };
  if (cause !== undefined) return connectionReason(cause);
  if (Array.isArray(errors) && errors.length > 0) return connectionReason(errors[0]);
  const text = [message, code].find((candidate) => typeof candidate === 'string' && candidate !== '');
  return typeof text === 'string' ? text : String(error);
}
