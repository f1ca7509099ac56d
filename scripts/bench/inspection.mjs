// npm run bench -- inspection [--reference URL --reference-pid PID]: callbacks of agents for nodes in `inspect wait`, until all nodes are
// manageable again. The same run can measure a running Ironic. It needs the fake hardware type, the inspect interface `agent` and
// require_managed_boot = false.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { root } from '../install.mjs';

const { callback } = JSON.parse(readFileSync(join(root, 'tests/reference/inspection/inventories/two-sockets.json'), 'utf8'));
const octets = (number) => [16, 8, 0].map((bits) => ((number >>> bits) & 255).toString(16).padStart(2, '0')).join(':');
const macOf = (index, nic) => `52:54:00:${octets(index * 16 + nic)}`;
/** The callback of the recorded machine, with addresses of its own. */
const callbackOf = (index) => {
  const { inventory } = callback;
  const interfaces = inventory.interfaces.map((item, nic) => ({ ...item, mac_address: macOf(index, nic) }));
  const boot = { ...inventory.boot, pxe_interface: macOf(index, 0) };
  return { ...callback, inventory: { ...inventory, interfaces, boot, bmc_address: '0.0.0.0', bmc_v6address: '::/0' } };
};

export const inspectionScenario = ({ ask, must, lanes, measure, through, enrol, inState, reference }) => {
  async function inspected(name, all, count) {
    const { url } = all.server;
    const uuids = await enrol(url, count, { inspect_interface: 'agent', properties: {} });
    await lanes(8, uuids.entries(), ([index, node_uuid]) => must(url, 'POST', '/v1/ports', { node_uuid, address: macOf(index, 0) }));
    await through(url, uuids, 'manage', 'manageable')();
    await through(url, uuids, 'inspect', 'inspect wait')();
    return measure(`${name}: callbacks, 16 at once`, all, async () => {
      let retries = 0;
      await lanes(16, uuids.entries(), async ([index]) => {
        for (;;) {
          const { status, text } = await ask(url, 'POST', '/v1/continue_inspection', callbackOf(index));
          if (status === 202) return;
          if (status !== 409 && status !== 503) throw new Error(`${status} ${text.slice(0, 300)}`);
          retries++;
          await delay(100);
        }
      });
      const limit = performance.now() + 300_000;
      while ((await inState(url, 'manageable')) < count) {
        if (performance.now() > limit) throw new Error(`${await inState(url, 'manageable')} of ${count} nodes are manageable`);
        await delay(50);
      }
      const { ports } = await must(url, 'GET', '/v1/ports?fields=address&limit=1000');
      return { count, retries, 'ports (first 1000)': ports.length };
    });
  }
  return {
    nodes: 200,
    run: async ({ begin, nodes: count }) => {
      const all = await begin({ DEFAULT: { enabled_inspect_interfaces: 'agent' }, inspector: { require_managed_boot: false } });
      const ours = await inspected('here', all, count);
      if (!reference) return;
      // The CPU time of the reference's database is part of its process (SQLite), or not measured.
      const theirs = await inspected('reference', { server: reference, database: { pid: -1 } }, count);
      console.log(`callbacks a second: ${(theirs / ours).toFixed(1)} times the reference's`);
    },
  };
};
