/** Adds the simulated machines of a demonstration. Pure, except for the API that is passed in. */
import type { Api } from './api';
import { addMachine } from './machines';

interface DemoNode {
  readonly name: string;
  readonly ports?: readonly { readonly address: string }[];
}
/**
 * @param known names of the nodes that exist
 * @param added called with the UUID of each new node
 * @returns how many were added
 */
export async function addDemoMachines(api: Api, known: ReadonlySet<string>, added: (uuid: string) => void): Promise<number> {
  const { nodes } = await api.get<{ readonly nodes: readonly DemoNode[] }>('ui/demo-machines');
  const missing = nodes.filter(({ name }) => !known.has(name));
  for (const { ports = [], ...node } of missing) added(await addMachine(api, { node, macs: ports.map(({ address }) => address) }));
  return missing.length;
}
