// npm run bench -- policy: the CPU time of one check of a policy, for each policy of nodes and several callers, and what checks allocate.
import { join } from 'node:path';
import { root } from '../install.mjs';

const ROUNDS = 20_000;
const CALLERS = {
  'system reader': { system: true, roles: ['reader'] },
  'owner member': { project: 'owner', roles: ['member', 'reader'] },
  'lessee member': { project: 'lessee', roles: ['member', 'reader'] },
  'another project': { project: 'other', roles: ['admin', 'manager', 'member', 'reader'] },
};

export async function benchPolicy() {
  const module = async (name) => (await import(join(root, 'dist', name))).default;
  const [{ createEnforcer }, { POLICIES }, { NOBODY }] = await Promise.all(
    ['policy/enforcer.js', 'policy/rules.js', 'policy/caller.js'].map(module),
  );
  const { options } = (await module('config/load.js')).loadOptions([], {});
  const enforcer = createEnforcer(options);
  const policies = POLICIES.map(({ name }) => name.replace('baremetal:', '')).filter((name) => name.startsWith('node:'));
  const target = { owner: 'owner', lessee: 'lessee' };
  for (const [name, fields] of Object.entries(CALLERS)) {
    const caller = { ...NOBODY, user: 'user', ...fields };
    const costs = policies.map((policy) => {
      let allowed = 0;
      const run = (rounds) => {
        for (let round = 0; round < rounds; round++) if (enforcer.allowed(caller, policy, target)) allowed++;
      };
      run(1000);
      const heap = process.memoryUsage().heapUsed;
      const before = process.cpuUsage();
      run(ROUNDS);
      const { user, system } = process.cpuUsage(before);
      return { policy, microseconds: (user + system) / ROUNDS, bytes: Math.max(0, process.memoryUsage().heapUsed - heap) / ROUNDS };
    });
    const mean = (key) => costs.reduce((sum, cost) => sum + cost[key], 0) / costs.length;
    const worst = costs.reduce((left, right) => (left.microseconds > right.microseconds ? left : right));
    console.log(
      `${name}: ${mean('microseconds').toFixed(3)} µs a check, at most ${worst.microseconds.toFixed(3)} µs (${worst.policy}), ${mean('bytes').toFixed(1)} bytes`,
    );
  }
}
