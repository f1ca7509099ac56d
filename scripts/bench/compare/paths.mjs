// The hot paths that `npm run bench -- compare` measures.
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { NODE, lanes } from '../work.mjs';

/**
 * @typedef {import('./server.mjs').Compared} Compared
 * @typedef {(path: string, count: number, work: () => Promise<void>) => Promise<void>} Measure
 * @typedef {object} Group
 * @property {readonly string[]} paths what it measures
 * @property {(server: Compared, nodes: Nodes, measure: Measure) => Promise<void>} run
 * @property {true} [isSlight] so little that a few rounds say nothing: `--short` leaves it out
 * @typedef {object} Nodes
 * @property {readonly { uuid: string, mac: string }[]} shown nodes in `enroll`, with a port each
 * @property {readonly string[]} cleaned nodes that are manageable, and that an agent cleans
 * @property {() => string} mac an unused address
 */

const COMPARED = {
  ...NODE,
  bios_interface: 'fake',
  boot_interface: 'fake',
  management_interface: 'fake',
  power_interface: 'fake',
  raid_interface: 'fake',
};
const [SHOWN, CLEANED, MOVED] = [200, 24, 12];

/** @param {number} count */
const numbers = (count) => Array(count).keys();

/** @param {Compared} server @param {number} count @param {object} more @returns {Promise<string[]>} UUIDs */
async function enrol({ ask }, count, more) {
  const uuids = Array.from({ length: count }, () => randomUUID());
  await lanes(8, numbers(count), (index) => ask('POST', '/v1/nodes', { uuid: uuids[index], ...COMPARED, ...more }));
  return uuids;
}

/** @param {Compared} server @returns {Promise<Nodes>} */
export async function prepareNodes(server) {
  let last = 0;
  const mac = () => `52:54:${(++last).toString(16).padStart(8, '0').match(/../g)?.join(':')}`;
  const shown = (await enrol(server, SHOWN, { deploy_interface: 'fake' })).map((uuid) => ({ uuid, mac: mac() }));
  const cleaned = await enrol(server, CLEANED, { deploy_interface: 'direct' });
  for (const { uuid, mac: address } of shown) await server.ask('POST', '/v1/ports', { node_uuid: uuid, address });
  for (const uuid of cleaned) await server.ask('POST', '/v1/ports', { node_uuid: uuid, address: mac() });
  await server.through('manage', cleaned, 'manageable');
  return { shown, cleaned, mac };
}

/**
 * A path of requests that leave the server as it was, or that only add to it.
 * @param {string} path its name
 * @param {number} count of requests in one measurement
 * @param {(server: Compared, index: number, nodes: Nodes) => Promise<unknown>} request
 * @returns {Group}
 */
const requests = (path, count, request) => ({
  paths: [path],
  run: (server, nodes, measure) => measure(path, count, () => lanes(8, numbers(count), (index) => request(server, index, nodes))),
});
/** @param {Nodes} nodes @param {number} index */
const shownAt = ({ shown }, index) => shown[index % shown.length]?.uuid;

/** Periodic work, which every path pays. */
const IDLE_SECONDS = 2;

/** @type {readonly Group[]} */
export const GROUPS = [
  {
    paths: ['idle second'],
    isSlight: true,
    run: (_server, _nodes, measure) => measure('idle second', IDLE_SECONDS, () => delay(1000 * IDLE_SECONDS)),
  },
  requests('GET /v1', 800, ({ ask }) => ask('GET', '/v1')),
  requests('GET node', 500, ({ ask }, index, nodes) => ask('GET', `/v1/nodes/${shownAt(nodes, index)}`)),
  requests('list', 200, ({ ask }) => ask('GET', '/v1/nodes?limit=100')),
  requests('list in detail', 60, ({ ask }) => ask('GET', '/v1/nodes/detail?limit=100')),
  requests('list with filters', 300, ({ ask }) => ask('GET', '/v1/nodes?driver=fake-hardware&maintenance=false&limit=20')),
  requests('PATCH', 200, ({ ask }, index, nodes) =>
    ask('PATCH', `/v1/nodes/${shownAt(nodes, index)}`, [{ op: 'add', path: '/extra/note', value: randomUUID() }]),
  ),
  requests('POST node', 150, ({ ask }) => ask('POST', '/v1/nodes', { driver: 'fake-hardware' })),
  requests('POST port', 200, ({ ask }, index, nodes) =>
    ask('POST', '/v1/ports', { node_uuid: shownAt(nodes, index), address: nodes.mac() }),
  ),
  {
    paths: ['lookup', 'first heartbeat', 'heartbeat'],
    run: async ({ ask, through, agentUrl, stepsBegun }, { cleaned }, measure) => {
      await through('provide', cleaned, 'clean wait');
      /** @type {Map<string, string>} */
      const tokens = new Map();
      const at = (/** @type {number} */ index) => cleaned[index % cleaned.length] ?? '';
      // Only the first answer has the token.
      await lanes(8, numbers(cleaned.length), async (index) => {
        const { config } = await ask('GET', `/v1/lookup?node_uuid=${at(index)}`);
        tokens.set(at(index), config.agent_token);
      });
      await measure('lookup', 240, () => lanes(8, numbers(240), (index) => ask('GET', `/v1/lookup?node_uuid=${at(index)}`)));
      const beat = (/** @type {number} */ index) =>
        ask('POST', `/v1/heartbeat/${at(index)}`, { callback_url: agentUrl, agent_version: '11.0', agent_token: tokens.get(at(index)) });
      await measure('first heartbeat', cleaned.length, async () => {
        await lanes(8, numbers(cleaned.length), beat);
        await stepsBegun(cleaned.length);
      });
      await measure('heartbeat', 240, () => lanes(8, numbers(240), beat));
      await through('abort', cleaned, 'clean failed');
      await through('manage', cleaned, 'manageable');
    },
  },
  {
    paths: ['manage', 'provide', 'deploy', 'undeploy'],
    run: async (server, _nodes, measure) => {
      const uuids = await enrol(server, MOVED, { deploy_interface: 'fake' });
      for (const [path, verb, end] of /** @type {const} */ ([
        ['manage', 'manage', 'manageable'],
        ['provide', 'provide', 'available'],
        ['deploy', 'active', 'active'],
        ['undeploy', 'deleted', 'available'],
      ]))
        await measure(path, MOVED, () => server.through(verb, uuids, end));
    },
  },
  {
    paths: ['whole deployment'],
    run: async ({ ask, through, machines, image }, _nodes, measure) => {
      for (const uuid of machines) await ask('PATCH', `/v1/nodes/${uuid}`, [{ op: 'add', path: '/instance_info', value: image }]);
      await measure('whole deployment', machines.length, async () => {
        await through('active', machines, 'active');
        await through('deleted', machines, 'available');
      });
    },
  },
];
