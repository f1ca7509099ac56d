/** The few calls of the API that the demonstration makes, as any client would make them. */
export interface ShownNode {
  readonly uuid: string;
  readonly name: string;
  readonly provision_state: string;
  readonly power_state: string | null;
  readonly last_error: string | null;
  readonly clean_step: { readonly step?: string };
  readonly deploy_step: { readonly step?: string };
  readonly driver_internal_info: Readonly<Record<string, unknown>>;
}
export interface Client {
  request<T>(method: string, path: string, body?: unknown): Promise<T>;
}

/** @param base URL of the API */
export const openClient = (base: string): Client => ({
  request: async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const response = await fetch(`${base}${path}`, {
      method,
      headers: { 'content-type': 'application/json', 'x-openstack-ironic-api-version': 'latest' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(30_000),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return (text === '' ? undefined : JSON.parse(text)) as T;
  },
});
