/** Which server a command asks, and as whom: as the openstack CLI takes them from its environment. */

/** The URL without /v1. */
export const endpoint = (url: string | undefined, environment: NodeJS.ProcessEnv): string =>
  (url ?? environment['OS_ENDPOINT_OVERRIDE'] ?? environment['OS_ENDPOINT'] ?? 'http://127.0.0.1:6385')
    .replace(/\/+$/, '')
    .replace(/\/v1$/, '');

export function authorization({ OS_USERNAME: name, OS_PASSWORD: password }: NodeJS.ProcessEnv): Record<string, string> {
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
/** Of a refusal, in either of its shapes. */
export function errorMessageOf(text: string): string | undefined {
  const { error_message: inner, error } = (parseJson(text) ?? {}) as { error_message?: unknown; error?: { message?: unknown } };
  const told = (typeof inner === 'string' ? parseJson(inner) : inner) as { faultstring?: unknown; description?: unknown } | undefined;
  return [told?.faultstring, told?.description, error?.message].find((one): one is string => typeof one === 'string' && one !== '');
}
