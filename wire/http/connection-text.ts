/** What a failed connection means, for operators. */

/** Node's code → words in the place of OpenSSL's message, which names its source files. */
const WORDS: Readonly<Record<string, string>> = {
  ERR_SSL_WRONG_VERSION_NUMBER: 'what answers there speaks no TLS',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'what answers there speaks no TLS',
};
/** The innermost reason of a failed connection. */
export function connectionText(error: unknown): string {
  const { cause, errors, message, code } = (error ?? {}) as { cause?: unknown; errors?: unknown; message?: unknown; code?: unknown };
  if (cause !== undefined) return connectionText(cause);
  if (Array.isArray(errors) && errors.length > 0) return connectionText(errors[0]);
  return WORDS[String(code)] ?? String(message || code || error);
}
