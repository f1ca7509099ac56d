/** The table `leases`: the leases of the DHCP server's address pools, of both IP versions. A machine may have one in each pool. */
import type { Knex } from 'knex';
import type { LeaseRecord } from '../../model/records';
import { batched } from '../sql/batch';
import { run } from '../sql/faults';
import { preparedOn } from '../sql/prepared';

interface Leases {
  /** All leases, including expired ones: the DHCP server reuses their addresses last. */
  list(): Promise<readonly LeaseRecord[]>;
  /** The leases of a node's ports, including expired ones. Concurrent calls share one query. */
  ofNode(nodeUuid: string): Promise<readonly LeaseRecord[]>;
  put(lease: LeaseRecord): Promise<void>;
  remove(address: string): Promise<void>;
}

const OF_NODES = `SELECT node_uuid, mac, leases.address, expires_at FROM leases JOIN ports ON ports.address = left(mac, 17) WHERE node_uuid = ANY($1)`;

export function leasesOn(db: Knex): Leases {
  const prepared = preparedOn(db);
  return {
    ofNode: batched(async (nodeUuids) => {
      const found = new Map<string, LeaseRecord[]>(nodeUuids.map((uuid) => [uuid, []]));
      for (const { node_uuid: uuid, ...lease } of await prepared<LeaseRecord & { readonly node_uuid: string }>(
        'leases_of_nodes',
        OF_NODES,
        [nodeUuids],
      ))
        found.get(uuid)!.push(lease);
      return nodeUuids.map((uuid) => found.get(uuid)!);
    }),
    list: () => run(db<LeaseRecord>('leases').select('*').orderBy('address')),
    async put({ mac, address, expires_at }) {
      await run(
        db.raw(
          `INSERT INTO leases (mac, address, expires_at) VALUES (:mac, :address, :expires_at)
           ON CONFLICT (address) DO UPDATE SET mac = excluded.mac, expires_at = excluded.expires_at`,
          { mac: mac.toLowerCase(), address, expires_at },
        ),
      );
    },
    async remove(address) {
      await run(db('leases').where({ address }).delete());
    },
  };
}
