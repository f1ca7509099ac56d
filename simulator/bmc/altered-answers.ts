/** Corrupts the answers of an HTTP handler, as a broken service would. */
import type { ServerResponse } from 'node:http';

/** `dropped`: the connection ends without an answer; `garbage`: half of the JSON; `types`: members of other types. */
export type ResponseCorruption = 'dropped' | 'garbage' | 'types';

/** Gives each value another type. Links stay valid, so that clients reach the next resource. */
function otherTypes(value: unknown, depth = 0): unknown {
  if (Array.isArray(value)) return { 0: (value[0] as unknown) ?? null };
  if (typeof value === 'string') return [value];
  if (typeof value === 'number') return String(value);
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (value === null) return 0;
  if (depth > 20) return value;
  const entries = Object.entries(value as object);
  return Object.fromEntries(entries.map(([name, entry]) => [name, name.startsWith('@odata.') ? entry : otherTypes(entry, depth + 1)]));
}

/** From now on the handler's writes to this response are corrupted. */
export function corruptResponses(response: ServerResponse, alteration: ResponseCorruption): void {
  const [writeHead, write, end] = [response.writeHead.bind(response), response.write.bind(response), response.end.bind(response)];
  const parts: Buffer[] = [];
  const take = (chunk: unknown): void => {
    if (typeof chunk === 'string' || chunk instanceof Uint8Array) parts.push(Buffer.from(chunk as string));
  };
  let head: { readonly status: number; readonly headers: Record<string, string> } | undefined;
  const altered = (text: string): string => {
    if (alteration === 'garbage') return text.slice(0, text.length / 2);
    try {
      return JSON.stringify(otherTypes(JSON.parse(text)));
    } catch {
      return text;
    }
  };
  Object.assign(response, {
    writeHead: (status: number, ...more: unknown[]) => {
      head = { status, headers: { ...(more.at(-1) as Record<string, string> | undefined) } };
      return response;
    },
    write: (chunk: unknown) => {
      take(chunk);
      return true;
    },
    end: (chunk?: unknown) => {
      take(chunk);
      Object.assign(response, { writeHead, write, end });
      if (alteration === 'dropped') return response.destroy();
      const text = Buffer.concat(parts).toString();
      const body = text === '' ? '' : altered(text);
      const { status, headers } = head ?? { status: response.statusCode, headers: {} };
      const otherHeaders = Object.entries(headers).filter(([name]) => name.toLowerCase() !== 'content-length');
      return response.writeHead(status, { ...Object.fromEntries(otherHeaders), 'content-length': Buffer.byteLength(body) }).end(body);
    },
  });
}
