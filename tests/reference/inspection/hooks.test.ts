/** Inspection by the agent: the real Ironic and our server get the same callbacks, and must make the same nodes, ports and plugin data. */
import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { HOOKS } from '../../../conductor/inspection/hooks';
import type { JsonObject } from '../../../model/records';
import { startBoth, type Both } from '../both';
import { AGENT_ONLY, bringToInspectWait, call, postCallback, inspectAgain, type Inspected, type Recorded } from './inspected';

jest.setTimeout(300_000);

const folder = join(__dirname, 'inventories');
const RECORDED: Readonly<Record<string, Recorded>> = Object.fromEntries(
  readdirSync(folder, { encoding: 'utf8', recursive: true })
    .filter((file) => file.endsWith('.json'))
    .map((file) => [basename(file, '.json'), JSON.parse(readFileSync(join(folder, file), 'utf8')) as Recorded]),
);
const NAMES = Object.keys(RECORDED);
/** The number of nodes that the reference inspects at the same time. */
const AT_ONCE = 6;

/** All hooks; each comes after those that it needs. */
const inspector = {
  ...AGENT_ONLY['inspector'],
  hooks: HOOKS.map(({ name }) => name).join(','),
  pci_device_alias: '{"vendor_id": "10de", "product_id": "1eb8", "name": "t4"}',
  physical_network_cidr_map: '192.0.2.0/24:left,2001:db8::/32:right,203.0.113.0/24:tenant',
};
const SETTINGS: readonly (readonly [string, Readonly<Record<string, string>>])[] = [
  ['every interface', { add_ports: 'all', keep_ports: 'present' }],
  ['the boot interface', { add_ports: 'pxe', keep_ports: 'added', disk_partitioning_spacing: 'false', extra_hardware_strict: 'true' }],
  ['interfaces with an address', { add_ports: 'active', keep_ports: 'all', update_pxe_enabled: 'false' }],
];

/** One more disk than the machine had, as a RAID controller shows it after its volume was made. */
const withDisk = ({ callback }: Recorded): JsonObject => {
  const inventory = callback['inventory'] as { readonly disks: readonly JsonObject[] };
  const made = { name: '/dev/sdz', serial: 'RAID-1', size: 400 * 1024 ** 3, model: 'PERC' };
  return { ...callback, inventory: { ...inventory, disks: [...inventory.disks, made] } };
};

/** The fields of a port that was created with its address only. */
const PLAIN_PORT = { pxe_enabled: true, extra: {}, local_link_connection: {}, physical_network: null, portgroup_uuid: null, name: null };
/**
 * Intended differences when an inspection fails: in Ironic, the changes of the hooks before the failing one stay, and a sentence about the
 * failed thread introduces the error.
 */
const asOurs = ({ node, ports }: Recorded, { node: theirs, ...rest }: Inspected): Inspected => ({
  ...rest,
  node: {
    ...theirs,
    properties: node,
    last_error: String(theirs['last_error']).replace(
      'Async execution of continue_inspection failed with error: ',
      'Failed to finish inspection: ',
    ),
  },
  ports: ports.map((port) => ({ ...PLAIN_PORT, ...port })),
});

describe.each(SETTINGS)('inspection hooks that add ports of %s:', (_, settings) => {
  let both: Both;
  const came = new Map<string, readonly Inspected[]>();
  beforeAll(async () => {
    const said = { ...AGENT_ONLY, inspector: { ...inspector, ...settings } };
    // By default, our server would keep existing values.
    both = await startBoth(said, { ours: { inspector: { ...said.inspector, overwrite_existing: 'true' } } });
    const left = [...NAMES];
    const worker = async (): Promise<void> => {
      for (let name = left.shift(); name !== undefined; name = left.shift()) came.set(name, await onBoth(RECORDED[name]!));
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
  });
  afterAll(() => both?.stop());

  /** @returns the real Ironic's result, then ours */
  async function onBoth({ callback, ...before }: Recorded): Promise<readonly Inspected[]> {
    const uuid = randomUUID();
    return Promise.all(
      [both.reference, both.ours].map(async (server) => {
        await bringToInspectWait(server, uuid, before);
        return postCallback(server, uuid, { ...callback, logs: 'bG9ncw==' });
      }),
    );
  }
  it.each(NAMES)('both servers make the same node, ports and data from the callback of %s', (name) => {
    const [theirs, ours] = came.get(name)!;
    expect(ours).toEqual(theirs!.node['provision_state'] === 'inspect failed' ? asOurs(RECORDED[name]!, theirs!) : theirs);
  });

  it('both servers make a disk that is new at the second inspection the root device', async () => {
    const uuid = randomUUID();
    // (With no disk at all before, the reference fails with a TypeError.)
    const machine = RECORDED['ipv6-bmc']!;
    const [theirs, ours] = await Promise.all(
      [both.reference, both.ours].map(async (server) => {
        // The machine's address belongs to the port of a node that was inspected before.
        const { ports } = (await call(server, 'GET', '/ports?address=52:54:09:00:00:01')) as { ports: readonly { uuid: string }[] };
        for (const port of ports) await call(server, 'DELETE', `/ports/${port.uuid}`);
        await bringToInspectWait(server, uuid, machine);
        await postCallback(server, uuid, machine.callback);
        await inspectAgain(server, uuid);
        return postCallback(server, uuid, withDisk(machine));
      }),
    );
    expect(ours).toEqual(theirs);
    expect(ours!.node['properties']).toMatchObject({ root_device: { serial: 'RAID-1' } });
  });
});
