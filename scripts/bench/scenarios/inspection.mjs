// npm run bench -- inspection [--reference URL --reference-pid PID]: callbacks of agents for nodes in `inspect wait`, until all nodes are
// manageable again. The same run can measure a running Ironic. It needs the fake hardware type, the inspect interface `agent` and
// require_managed_boot = false.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../install.mjs';
import { openClient } from '../client.mjs';
import { measure } from '../measure.mjs';
import { enrol, through, untilAccepted, untilInState } from '../nodes.mjs';
import { lanes } from '../work.mjs';

/**
 * The body of a callback, in part.
 * @typedef {{ inventory: { interfaces: readonly object[], boot: object } }} Callback
 * @typedef {import('../measure.mjs').Processes & { server: import('../client.mjs').Client }} Inspected
 */

/** @param {number} number */
const octets = (number) => [16, 8, 0].map((bits) => ((number >>> bits) & 255).toString(16).padStart(2, '0')).join(':');
/** @param {number} index @param {number} nic */
const macOf = (index, nic) => `52:54:00:${octets(index * 16 + nic)}`;
/** The callback of the recorded machine, with addresses of its own. @param {Callback} callback @param {number} index */
const callbackOf = (callback, index) => {
  const { inventory } = callback;
  const interfaces = inventory.interfaces.map((item, nic) => ({ ...item, mac_address: macOf(index, nic) }));
  const boot = { ...inventory.boot, pxe_interface: macOf(index, 0) };
  return { ...callback, inventory: { ...inventory, interfaces, boot, bmc_address: '0.0.0.0', bmc_v6address: '::/0' } };
};

/** @param {string} name @param {Inspected} all @param {number} count @returns seconds */
async function inspected(name, all, count) {
  /** @type {{ callback: Callback }} */
  const { callback } = JSON.parse(readFileSync(join(root, 'tests/reference/inspection/inventories/two-sockets.json'), 'utf8'));
  const { server } = all;
  const uuids = await enrol(server, count, { inspect_interface: 'agent', properties: {} });
  await lanes(8, uuids.entries(), ([index, node_uuid]) => server.ask('POST', '/v1/ports', { node_uuid, address: macOf(index, 0) }));
  await through(server, uuids, 'manage', 'manageable')();
  await through(server, uuids, 'inspect', 'inspect wait')();
  return measure(`${name}: callbacks, 16 at once`, all, async () => {
    let retries = 0;
    await lanes(16, uuids.keys(), async (index) => {
      retries += await untilAccepted(() => server.send('POST', '/v1/continue_inspection', callbackOf(callback, index)));
    });
    await untilInState(server, 'manageable', count, { limitMs: 300_000, everyMs: 50 });
    /** @type {{ ports: readonly object[] }} */
    const { ports } = await server.ask('GET', '/v1/ports?fields=address&limit=1000');
    return { count, retries, 'ports (first 1000)': ports.length };
  });
}

/** @type {import('../scenarios.mjs').Scenario} */
export const inspection = {
  nodes: 200,
  run: async ({ begin, atEnd }, { nodes: count, reference }) => {
    const all = await begin({ DEFAULT: { enabled_inspect_interfaces: 'agent' }, inspector: { require_managed_boot: false } });
    const ours = await inspected('here', all, count);
    if (!reference) return;
    const server = { pid: reference.pid, ...(await openClient(reference.url, atEnd)) };
    // The CPU time of the reference's database is part of its process (SQLite), or not measured.
    const theirs = await inspected('reference', { server, database: { pid: -1 } }, count);
    console.log(`callbacks a second: ${(theirs / ours).toFixed(1)} times the reference's`);
  },
};
