// npm run bench -- policy: the CPU time of one check of a policy, for each policy of nodes and several callers, and what checks allocate.
import { built } from '../program.mjs';

const ROUNDS = 20_000;
const CALLERS = {
  'system reader': { system: true, roles: ['reader'] },
  'owner member': { project: 'owner', roles: ['member', 'reader'] },
  'lessee member': { project: 'lessee', roles: ['member', 'reader'] },
  'another project': { project: 'other', roles: ['admin', 'manager', 'member', 'reader'] },
};

async function runAlone() {
  const { createEnforcer } = await built('policy/enforcer');
  const { POLICIES } = await built('policy/rules');
  const { NOBODY } = await built('policy/caller');
  const { options } = (await built('config/load')).loadOptions([], {});
  const enforcer = createEnforcer(options);
  const policies = POLICIES.map(({ name }) => name.replace('baremetal:', '')).filter((name) => name.startsWith('node:'));
  const target = { owner: 'owner', lessee: 'lessee' };
  for (const [name, fields] of Object.entries(CALLERS)) {
    const caller = { ...NOBODY, user: 'user', ...fields };
    const costs = policies.map((policy) => {
      let allowed = 0;
      const run = (/** @type {number} */ rounds) => {
        for (let round = 0; round < rounds; round++) if (enforcer.allowed(caller, policy, target)) allowed++;
      };
      run(1000);
      const heap = process.memoryUsage().heapUsed;
      const before = process.cpuUsage();
      run(ROUNDS);
      const { user, system } = process.cpuUsage(before);
      return { policy, microseconds: (user + system) / ROUNDS, bytes: Math.max(0, process.memoryUsage().heapUsed - heap) / ROUNDS };
    });
    const mean = (/** @type {'microseconds' | 'bytes'} */ key) => costs.reduce((sum, cost) => sum + cost[key], 0) / costs.length;
    const worst = costs.reduce((left, right) => (left.microseconds > right.microseconds ? left : right));
    console.log(
      `${name}: ${mean('microseconds').toFixed(3)} µs a check, at most ${worst.microseconds.toFixed(3)} µs (${worst.policy}), ${mean('bytes').toFixed(1)} bytes`,
    );
  }
}
/** @type {import('../scenarios.mjs').ScenarioWithoutServer} */
export const policy = { nodes: 0, runAlone };
