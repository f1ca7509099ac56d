// The HTTP client of the benches.

/**
 * @typedef {'GET' | 'POST' | 'PUT' | 'PATCH'} Method
 * @typedef {{ status: number, text: string }} Answer
 * @typedef {(method: Method, path: string, body?: unknown) => Promise<Answer>} Send
 * @typedef {<T>(method: Method, path: string, body?: unknown) => Promise<T>} Ask parses the answer; a RefusedError unless the status is
 *   below 300
 * @typedef {object} Client
 * @property {Send} send
 * @property {Ask} ask
 */

export class RefusedError extends Error {
  /** @param {number} status @param {string} message */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}
/**
 * @param {string} origin
 * @param {import('./processes.mjs').AtEnd} atEnd
 * @param {number | null} [connections] at once; null: as many as there are requests
 * @returns {Promise<Client>}
 */
export async function openClient(origin, atEnd, connections = null) {
  // Not imported above: a fresh clone gets its packages after the scripts have read their arguments.
  const { Pool } = await import('undici');
  const pool = new Pool(origin, { connections });
  atEnd(() => pool.destroy());
  const headers = { 'x-openstack-ironic-api-version': '1.95', 'content-type': 'application/json' };
  /** @type {Send} */
  const send = async (method, path, body) => {
    const text = body === undefined ? null : JSON.stringify(body);
    const { statusCode, body: answer } = await pool.request({ method, path, headers, body: text });
    return { status: statusCode, text: await answer.text() };
  };
  return {
    send,
    ask: async (method, path, body) => {
      const { status, text } = await send(method, path, body);
      if (status >= 300) throw new RefusedError(status, `${method} ${path}: ${status} ${text.slice(0, 300)}`);
      return text === '' ? undefined : JSON.parse(text);
    },
  };
}
