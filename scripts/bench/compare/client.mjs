// The client of a server under comparison.
import { setTimeout as delay } from 'node:timers/promises';
import { Pool } from 'undici';

/**
 * @typedef {(method: 'GET' | 'POST' | 'PUT' | 'PATCH', path: string, body?: unknown) => Promise<any>} Ask parses the answer; a
 *   RefusedError unless the status is below 300
 * @typedef {(step: () => unknown) => void} AtEnd registers what ends a process, or removes a file
 * @typedef {(verb: string, uuids: readonly string[], end: string) => Promise<void>} Through a verb for nodes, until all are in the end state
 */

/** How long a verb may take. */
const MAX_MS = 300_000;

class RefusedError extends Error {
  /** @param {number} status @param {string} message */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}
/** @param {string} origin @param {AtEnd} atEnd @returns {Ask} */
export function openClient(origin, atEnd) {
  const pool = new Pool(origin, { connections: 8 });
  atEnd(() => pool.destroy());
  const headers = { 'x-openstack-ironic-api-version': '1.95', 'content-type': 'application/json' };
  return async (method, path, body) => {
    const { statusCode, body: answer } = await pool.request({
      method,
      path,
      headers,
      body: body === undefined ? null : JSON.stringify(body),
    });
    const text = await answer.text();
    if (statusCode >= 300) throw new RefusedError(statusCode, `${method} ${path}: ${statusCode} ${text.slice(0, 300)}`);
    return text === '' ? undefined : JSON.parse(text);
  };
}
/** Begins a verb. The node may be held a moment longer than its state says. @param {Ask} ask @param {string} uuid @param {string} verb */
async function begin(ask, uuid, verb) {
  for (const limit = performance.now() + MAX_MS; ;) {
    try {
      await ask('PUT', `/v1/nodes/${uuid}/states/provision`, { target: verb });
      return;
    } catch (error) {
      if (!(error instanceof RefusedError) || error.status !== 409 || performance.now() > limit) throw error;
    }
    await delay(50);
  }
}
/** @param {Ask} ask @returns {Through} */
export const verbs = (ask) => async (verb, uuids, end) => {
  await Promise.all(uuids.map((uuid) => begin(ask, uuid, verb)));
  const waiting = new Set(uuids);
  for (const limit = performance.now() + MAX_MS; ;) {
    const { nodes } = await ask('GET', `/v1/nodes?fields=uuid&provision_state=${encodeURIComponent(end)}`);
    for (const { uuid } of nodes) waiting.delete(uuid);
    if (waiting.size === 0) return;
    if (performance.now() > limit) {
      const { provision_state, last_error } = await ask('GET', `/v1/nodes/${[...waiting][0]}`);
      throw new Error(`${verb}: ${waiting.size} nodes are not ${end}; the first is ${provision_state} (${last_error})`);
    }
    await delay(50);
  }
};
