// npm run bench -- heartbeats: those of agents that clean.
import { setTimeout as delay } from 'node:timers/promises';
import { startAgent } from '../agent.mjs';
import { load, measure, rows } from '../measure.mjs';
import { enrol, through } from '../nodes.mjs';
import { lanes } from '../work.mjs';

/** @type {import('../scenarios.mjs').Scenario} */
export const heartbeats = {
  nodes: 40,
  run: async ({ begin, atEnd }, { nodes, seconds }) => {
    const all = await begin({});
    const { server } = all;
    const agent = await startAgent(atEnd);
    const uuids = await enrol(server, nodes, { deploy_interface: 'direct' });
    await through(server, uuids, 'manage', 'manageable')();
    await through(server, uuids, 'provide', 'clean wait')();
    /** @type {string[]} */
    const tokens = [];
    for (const uuid of uuids) {
      /** @type {{ config: { agent_token: string } }} */
      const { config } = await server.ask('GET', `/v1/lookup?node_uuid=${uuid}`);
      tokens.push(config.agent_token);
    }
    const beat = (/** @type {number} */ index) => {
      const at = index % nodes;
      const body = { callback_url: agent.url, agent_version: '11.0', agent_token: tokens[at] };
      return server.send('POST', `/v1/heartbeat/${uuids[at]}`, body);
    };
    await lanes(4, uuids.keys(), beat);
    await delay(2000);
    for (const width of [1, 16, 64]) {
      const before = agent.calls();
      await measure(`heartbeats, ${width} at once`, all, load(width, seconds, beat));
      Object.assign(rows.at(-1) ?? {}, { 'calls of ramdisks': agent.calls() - before });
      await delay(1000);
    }
  },
};
