// An agent for the nodes of the benches.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';

/** How long nodes may take to begin their first step. */
const MAX_MS = 300_000;
const STEP = { step: 'erase_devices', priority: 10, interface: 'deploy', reboot_requested: false, abortable: true };

/**
 * Starts an agent that knows one clean step, which never ends.
 * @param {import('./processes.mjs').AtEnd} atEnd
 */
export async function startAgent(atEnd) {
  let [begun, calls] = [0, 0];
  const server = createServer((received, answer) => {
    calls++;
    let text = '';
    received.on('data', (part) => (text += part));
    received.on('end', () => {
      const name = received.method === 'POST' ? JSON.parse(text).name.split('.')[1] : 'execute_clean_step';
      const returnsSteps = name.startsWith('get_');
      if (received.method === 'POST' && name === 'execute_clean_step') begun++;
      const command = {
        command_name: name,
        command_status: returnsSteps ? 'SUCCEEDED' : 'RUNNING',
        command_result: returnsSteps ? { clean_steps: { Generic: [STEP] }, hardware_manager_version: { Generic: '1' } } : null,
      };
      answer.end(JSON.stringify(received.method === 'POST' ? command : { commands: [command] }));
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  atEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  return {
    url: `http://127.0.0.1:${port}`,
    /** How many requests it has got. */
    calls: () => calls,
    /** Waits until it has begun so many steps since the last call. @param {number} count */
    begun: async (count) => {
      for (const limit = performance.now() + MAX_MS; begun < count;) {
        if (performance.now() > limit) throw new Error(`${begun} of ${count} nodes have begun their first step`);
        await delay(10);
      }
      begun = 0;
    },
  };
}
