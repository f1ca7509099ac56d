/** The table `leases`: the leases of the DHCP server's address pool. */
import type { Knex } from 'knex';
import type { LeaseRecord } from '../../model/records';
import { batched } from '../sql/batch';
import { run } from '../sql/faults';
import { preparedOn } from '../sql/prepared';

export interface Leases {
  /** All leases, including expired ones: the DHCP server reuses their addresses last. */
  list(): Promise<readonly LeaseRecord[]>;
  /** The leases of a node's ports, including expired ones. Concurrent calls share one query. */
  ofNode(nodeUuid: string): Promise<readonly LeaseRecord[]>;
  put(lease: LeaseRecord): Promise<void>;
  remove(mac: string): Promise<void>;
}

const OF_NODES = `SELECT node_uuid, mac, leases.address, expires_at FROM leases JOIN ports ON ports.address = mac WHERE node_uuid = ANY($1)`;

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
    list: () => run(db<LeaseRecord>('leases').select('*').orderBy('mac')),
    async put({ mac, address, expires_at }) {
      // The same statement removes the previous lease of the address, so that a reader sees the address exactly once.
      await run(
        db.raw(
          `WITH before AS (DELETE FROM leases WHERE address = :address AND mac <> :mac)
           INSERT INTO leases (mac, address, expires_at) VALUES (:mac, :address, :expires_at)
           ON CONFLICT (mac) DO UPDATE SET address = excluded.address, expires_at = excluded.expires_at`,
          { mac: mac.toLowerCase(), address, expires_at },
        ),
      );
    },
    async remove(mac) {
      await run(db('leases').where('mac', mac.toLowerCase()).delete());
    },
  };
}
