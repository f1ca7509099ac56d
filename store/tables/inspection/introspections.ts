/** The table `introspections`: the state of the introspection of a node, and its data. The data is read separately. */
import type { Knex } from 'knex';
import { Fault } from '../../../model/errors';
import type { IntrospectionRecord, IntrospectionState } from '../../../model/introspection';
import type { JsonObject } from '../../../model/records';
import { storableJson } from '../../../model/text';
import { run } from '../../sql/faults';

/** The introspection service's data about nodes. */
interface Introspections {
  find(nodeUuid: string): Promise<IntrospectionRecord | undefined>;
  /** The newest first. `marker`: a node; an unknown one is the fault NotFound. */
  list(page: {
    readonly marker?: string;
    readonly limit: number;
    readonly states?: readonly IntrospectionState[];
  }): Promise<readonly IntrospectionRecord[]>;
  /** Starts an introspection and removes earlier data. Undefined: one exists whose state is not in `from`. Throws NodeNotFound. */
  start(
    begun: Pick<IntrospectionRecord, 'node_uuid' | 'started_at' | 'manage_boot' | 'macs' | 'bmc_addresses'>,
    from: readonly IntrospectionState[],
  ): Promise<IntrospectionRecord | undefined>;
  /** Writes if the state is one of `from`; undefined otherwise. */
  change(
    nodeUuid: string,
    from: readonly IntrospectionState[],
    changes: Partial<Omit<IntrospectionRecord, 'node_uuid'>>,
  ): Promise<IntrospectionRecord | undefined>;
  /** Running introspections with some of the addresses, and the number of matches. The most matches first. */
  matching(
    macs: readonly string[],
    bmcAddresses: readonly string[],
  ): Promise<readonly { readonly node_uuid: string; readonly score: number }[]>;
  /** The data from the ramdisk, before or after processing; undefined: there is none. */
  data(nodeUuid: string, which: 'processed' | 'unprocessed'): Promise<JsonObject | undefined>;
  putData(nodeUuid: string, which: 'processed' | 'unprocessed', data: JsonObject): Promise<void>;
  /** Running introspections that started before a time. */
  startedBefore(time: string): Promise<readonly IntrospectionRecord[]>;
  /** Nodes whose introspection is in one of these states, finished or not: while it is reapplied, `finished_at` stays set. */
  nodesIn(states: readonly IntrospectionState[]): Promise<readonly string[]>;
}

const COLUMNS = [
  'node_uuid',
  'state',
  'started_at',
  'finished_at',
  'error',
  'manage_boot',
  'boots_ramdisk',
  'macs',
  'bmc_addresses',
] as const satisfies readonly (keyof IntrospectionRecord)[];

export function introspectionsOn(db: Knex): Introspections {
  const rows = () => db<IntrospectionRecord>('introspections');
  const shown = () => rows().select(...COLUMNS);
  const find: Introspections['find'] = async (nodeUuid) => (await run(shown().where('node_uuid', nodeUuid)))[0];
  return {
    find,
    async list({ marker, limit, states }) {
      const query = shown().orderBy('started_at', 'desc').orderBy('node_uuid', 'desc').limit(limit);
      if (states) void query.whereIn('state', states);
      if (marker !== undefined) {
        const last = await find(marker);
        if (!last) throw new Fault('NotFound', { message: 'The requested node was not found.' });
        void query.whereRaw('(started_at, node_uuid) < (?, ?)', [last.started_at, last.node_uuid]);
      }
      return run(query);
    },
    async start(begun, from) {
      const anew = { state: 'starting' as const, finished_at: null, error: null, boots_ramdisk: false, unprocessed: null, processed: null };
      const row = { ...anew, ...begun, macs: [...begun.macs], bmc_addresses: [...begun.bmc_addresses] };
      const query = db('introspections')
        .insert(row)
        .onConflict('node_uuid')
        .merge()
        .whereRaw('introspections.state = ANY(?)', [[...from]]);
      const [made] = await run(query.returning([...COLUMNS]) as unknown as PromiseLike<IntrospectionRecord[]>, begun);
      return made;
    },
    async change(nodeUuid, from, changes) {
      const query = db('introspections')
        .where('node_uuid', nodeUuid)
        .whereRaw('state = ANY(?)', [[...from]]);
      const [changed] = await run(query.update(changes, [...COLUMNS]) as unknown as PromiseLike<IntrospectionRecord[]>);
      return changed;
    },
    matching: (macs, bmcAddresses) =>
      run(
        db
          .with(
            'scored',
            db('introspections')
              .select('node_uuid')
              .select(
                db.raw(
                  `((SELECT count(*) FROM unnest(macs) AS one WHERE one = ANY(?)) +
                    (SELECT count(*) FROM unnest(bmc_addresses) AS one WHERE one = ANY(?)))::int AS score`,
                  [[...macs], [...bmcAddresses]],
                ),
              )
              .whereNull('finished_at'),
          )
          .select('node_uuid', 'score')
          .from('scored')
          .where('score', '>', 0)
          .orderBy([{ column: 'score', order: 'desc' }, 'node_uuid']) as unknown as PromiseLike<{ node_uuid: string; score: number }[]>,
      ),
    async data(nodeUuid, which) {
      const [row] = await run(
        db('introspections').select({ data: which }).where('node_uuid', nodeUuid) as unknown as PromiseLike<{ data: JsonObject | null }[]>,
      );
      return row?.data ?? undefined;
    },
    async putData(nodeUuid, which, data) {
      await run(
        db('introspections')
          .where('node_uuid', nodeUuid)
          .update({ [which]: storableJson(data) }),
      );
    },
    startedBefore: (moment) => run(shown().whereNull('finished_at').where('started_at', '<', moment).orderBy('started_at')),
    nodesIn: (states) => run(rows().whereIn('state', states).pluck('node_uuid') as unknown as PromiseLike<string[]>),
  };
}
