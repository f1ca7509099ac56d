// npm run bench -- provisioning: nodes with fake hardware from enrollment to deletion.
import { measure } from '../measure.mjs';
import { enrol, through } from '../nodes.mjs';

/** @type {import('../scenarios.mjs').Scenario} */
export const provisioning = {
  nodes: 200,
  run: async ({ begin }, { nodes }) => {
    const all = await begin({});
    const { server } = all;
    const uuids = await enrol(server, nodes);
    let took = 0;
    for (const [target, end] of /** @type {const} */ ([
      ['manage', 'manageable'],
      ['provide', 'available'],
      ['active', 'active'],
    ]))
      took += await measure(target, all, through(server, uuids, target, end));
    await measure('deleted', all, through(server, uuids, 'deleted', 'available'));
    console.log(`enroll to active: ${((nodes * 60) / took).toFixed(0)} nodes a minute`);
  },
};
