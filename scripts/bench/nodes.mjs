// The nodes of a scenario: their registration and their verbs.
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { NODE, lanes } from './work.mjs';

/** @typedef {import('./client.mjs').Client} Client */

/** How long a verb may take for all nodes. */
const MAX_MS = 1_800_000;
const RETRY_MS = 100;

/** @param {Client} client @param {number} count @param {object} [more] fields of the nodes @returns {Promise<string[]>} UUIDs */
export async function enrol({ ask }, count, more = {}) {
  const uuids = Array.from({ length: count }, () => randomUUID());
  await lanes(16, uuids, (uuid) => ask('POST', '/v1/nodes', { uuid, ...NODE, ...more }));
  return uuids;
}

/** @param {Client} client @param {string} state @returns {Promise<number>} how many nodes are in this provision state */
async function inState({ ask }, state) {
  let count = 0;
  for (let path = `/v1/nodes?fields=uuid&limit=1000&provision_state=${encodeURIComponent(state)}`; path !== '';) {
    /** @type {{ nodes: readonly object[], next?: string | null }} */
    const { nodes, next } = await ask('GET', path);
    count += nodes.length;
    path = next ? next.slice(next.indexOf('/v1/')) : '';
  }
  return count;
}
/**
 * Waits until so many nodes are in a provision state.
 * @param {Client} client
 * @param {string} state
 * @param {number} wanted
 * @param {{ limitMs?: number, everyMs?: number }} [pace]
 */
export async function untilInState(client, state, wanted, { limitMs = MAX_MS, everyMs = 250 } = {}) {
  for (const limit = performance.now() + limitMs; ;) {
    const count = await inState(client, state);
    if (count >= wanted) return;
    if (performance.now() > limit) throw new Error(`${count} of ${wanted} nodes are ${state}`);
    await delay(everyMs);
  }
}
/**
 * Sends a request again as long as it is refused temporarily.
 * @param {() => Promise<import('./client.mjs').Answer>} request
 * @returns {Promise<number>} how often it was sent again
 */
export async function untilAccepted(request) {
  for (let retries = 0; ; retries++) {
    const { status, text } = await request();
    if (status === 202) return retries;
    if (status !== 409 && status !== 503) throw new Error(`${status} ${text.slice(0, 300)}`);
    await delay(RETRY_MS);
  }
}
/**
 * Applies a verb to all nodes and waits for the end state.
 * @param {Client} client
 * @param {readonly string[]} uuids
 * @param {string} target
 * @param {string} end
 */
export const through = (client, uuids, target, end) => async () => {
  let retries = 0;
  await lanes(16, uuids, async (uuid) => {
    retries += await untilAccepted(() => client.send('PUT', `/v1/nodes/${uuid}/states/provision`, { target }));
  });
  await untilInState(client, end, uuids.length);
  return { count: uuids.length, retries };
};
