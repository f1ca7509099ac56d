/** The table `boots`: what a machine boots from the network. Drivers write it; the boot services read it. */
import type { Knex } from 'knex';
import type { Clock } from '../../model/clock';
import { timestamp } from '../../model/clock';
import type { BootRecord, BootRequests, Boots, ServedBoot } from '../../model/records';
import { storable, storableJson } from '../../model/text';
import { run } from '../sql/faults';

const COLUMNS = ['node_uuid', 'macs', 'method', 'purpose', 'kernel_args', 'files', 'token', 'cpu_arch'] as const;

export function bootsOn(db: Knex, clock: Clock): Boots {
  const boots = () => db<ServedBoot>('boots').select(...COLUMNS);
  return {
    async put({ node_uuid, macs, method, purpose, kernel_args, files, cpu_arch }, kickstart) {
      const row = {
        node_uuid,
        method,
        purpose,
        kernel_args,
        macs: macs.map((mac) => mac.toLowerCase()),
        files: storableJson(files),
        kickstart: kickstart === undefined ? null : storable(kickstart),
        cpu_arch: cpu_arch ?? null,
        updated_at: timestamp(clock.now()),
        // The recorded requests were for the previous boot record.
        requests: '{}',
      };
      const query = db('boots')
        .insert(row)
        .onConflict('node_uuid')
        .merge()
        .returning([...COLUMNS]);
      const [boot] = await run(query as unknown as PromiseLike<ServedBoot[]>, { node_uuid });
      return boot!;
    },
    async noteRequests(requests) {
      await run(
        db.raw(
          `UPDATE boots SET requests = boots.requests || given.requests
           FROM jsonb_to_recordset(?::jsonb) AS given (node_uuid text, requests jsonb) WHERE boots.node_uuid = given.node_uuid`,
          [storableJson(requests)],
        ),
      );
    },
    async requestsOf(nodeUuid) {
      const [row] = await run(db<{ requests: BootRequests; node_uuid: string }>('boots').select('requests').where('node_uuid', nodeUuid));
      return row?.requests;
    },
    async kickstartOf(token) {
      const [row] = await run(db<{ kickstart: string | null; token: string }>('boots').select('kickstart').where({ token }));
      return row?.kickstart ?? undefined;
    },
    async remove(nodeUuid) {
      await run(db('boots').where('node_uuid', nodeUuid).delete());
    },
    async ofNode(nodeUuid) {
      const [boot] = await run(boots().where('node_uuid', nodeUuid));
      return boot;
    },
    async byToken(token) {
      const [boot] = await run(boots().where({ token }));
      return boot;
    },
    async forMac(mac) {
      // `@>` uses the index. Two nodes have the same MAC address only while it moves between them; the newer row is valid.
      const query = boots().whereRaw('macs @> ARRAY[?]::text[]', [mac.toLowerCase()]).orderByRaw('updated_at DESC').limit(1);
      const [boot] = await run(query);
      if (boot) return boot;
      // A machine whose address no port has gets a ramdisk row without addresses, if all such rows boot the same files.
      const known = db('ports').select(db.raw('1')).where('address', mac.toLowerCase());
      const open = await run(
        boots().where({ purpose: 'ramdisk' }).whereRaw('cardinality(macs) = 0').whereNotExists(known).orderBy('node_uuid'),
      );
      const alike = ({ method, files }: BootRecord) => JSON.stringify([method, files['kernel'], files['ramdisk']]);
      const [first] = open;
      return first && open.every((other) => alike(other) === alike(first)) ? first : undefined;
    },
  };
}
