/** The table `media`: images for BMCs. Drivers write it; the HTTP boot service reads it. */
import type { Knex } from 'knex';
import type { Media, MediumRecord } from '../../model/records';
import { storableJson } from '../../model/text';
import { run } from '../sql/faults';

export function mediaOn(db: Knex): Media {
  const find = async (where: Partial<MediumRecord>): Promise<MediumRecord | undefined> => {
    const [row] = await run(
      db<Omit<MediumRecord, 'made_at'> & { readonly made_at: string | number }>('media')
        .where(where)
        .select('token', 'node_uuid', 'role', 'content', 'made_at', 'swift_container'),
    );
    return row && { ...row, made_at: Number(row.made_at) };
  };
  return {
    async put(medium) {
      const row = { ...medium, content: storableJson(medium.content) };
      const merged = { ...row, swift_container: db.raw('coalesce(excluded.swift_container, media.swift_container)') };
      await run(db('media').insert(row).onConflict(['node_uuid', 'role']).merge(merged), { node_uuid: medium.node_uuid });
    },
    byToken: (token) => find({ token }),
    ofNode: (nodeUuid, role) => find({ node_uuid: nodeUuid, role }),
    async remove(nodeUuid, role) {
      await run(db('media').where({ node_uuid: nodeUuid, role }).delete());
    },
  };
}
