/** The server that a command uses, and its credentials, from the environment variables of the openstack CLI. */

/** Returns the URL without /v1. */
export const endpoint = (url: string | undefined, environment: NodeJS.ProcessEnv): string =>
  (url ?? environment['OS_ENDPOINT_OVERRIDE'] ?? environment['OS_ENDPOINT'] ?? 'http://127.0.0.1:6385')
    .replace(/(?<!\/)\/+$/, '')
    .replace(/\/v1$/, '');

/** A token of Keystone, or a user of http_basic. */
export function authorization({ OS_TOKEN: token, OS_USERNAME: name, OS_PASSWORD: password }: NodeJS.ProcessEnv): Record<string, string> {
  if (token !== undefined) return { 'x-auth-token': token };
  if (name === undefined || password === undefined) return {};
  return { authorization: `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}` };
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
/** The message of an error response, in either format. */
export function errorMessageOf(text: string): string | undefined {
  const { error_message: inner, error } = (parseJson(text) ?? {}) as { error_message?: unknown; error?: { message?: unknown } };
  const fault = (typeof inner === 'string' ? parseJson(inner) : inner) as { faultstring?: unknown; description?: unknown } | undefined;
  return [fault?.faultstring, fault?.description, error?.message].find((one): one is string => typeof one === 'string' && one !== '');
}
