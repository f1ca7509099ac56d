/** A small client of the API for the demonstration. */
import { timeoutSignal } from '../wire/timeout-signal';

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

/** One HTTP request and its response. */
export type Exchange = (
  method: string,
  url: string,
  headers: Readonly<Record<string, string>>,
  body?: string,
) => Promise<{ status: number; text: string }>;

const byFetch: Exchange = async (method, url, headers, body) => {
  const response = await fetch(url, { method, headers, ...(body === undefined ? {} : { body }), signal: timeoutSignal(30_000) });
  return { status: response.status, text: await response.text() };
};

/**
 * @param base URL of the API
 * @param exchange sends a request; by default from this process, otherwise for example in a network namespace
 */
export const openClient = (base: string, exchange: Exchange = byFetch): Client => ({
  request: async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const headers = { 'content-type': 'application/json', 'x-openstack-ironic-api-version': 'latest' };
    const { status, text } = await exchange(method, `${base}${path}`, headers, body === undefined ? undefined : JSON.stringify(body));
    if (status >= 400) throw new Error(`${method} ${path}: ${status} ${text}`);
    return (text === '' ? undefined : JSON.parse(text)) as T;
  },
});
