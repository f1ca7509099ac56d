/** /v1/introspection of the introspection service: start, status, abort, data, reapply, and the reports of ramdisks. */
import { bareTimestamp } from '../../model/clock';
import { Fault, invalid, notFound } from '../../model/errors';
import { isUuid } from '../../model/idents';
import { INTROSPECTION_STATES, type IntrospectionRecord, type IntrospectionState } from '../../model/introspection';
import { isObject } from '../../model/json';
import { repr, toBoolean, typeName } from '../../model/python';
import type { JsonObject } from '../../model/records';
import type { Store } from '../../store/store';
import { dataText } from './encode';
import type { IntrospectionOperations } from '../schema/operations';
import type { Handler, Handlers } from './handler';

type OnNode = IntrospectionOperations['showData'];
const notInCache = (uuid: string): Fault => notFound(`Could not find node ${uuid} in cache`);

/** By UUID or name. Throws NotFound. */
async function nodeOf(store: Store, ident: string): Promise<string> {
  try {
    return (await store.nodes.find(ident)).uuid;
  } catch (error) {
    if (!(error instanceof Fault) || error.name !== 'NodeNotFound') throw error;
    throw notFound(`Node ${ident} was not found in Ironic`);
  }
}
/** A UUID is not looked up among the nodes. */
const cachedUuid = async (store: Store, ident: string): Promise<string> => (isUuid(ident) ? ident : nodeOf(store, ident));

const naive = (time: string | null): string | null => time && bareTimestamp(Date.parse(time));
const shown = (base: string, record: IntrospectionRecord): object => ({
  uuid: record.node_uuid,
  finished: record.finished_at !== null,
  state: record.state,
  started_at: naive(record.started_at),
  finished_at: naive(record.finished_at),
  error: record.error,
  links: [{ rel: 'self', href: `${base}/v1/introspection/${record.node_uuid}` }],
});

async function recordOf(store: Store, ident: string): Promise<IntrospectionRecord> {
  const uuid = await cachedUuid(store, ident);
  const record = await store.introspections.find(uuid);
  if (!record) throw notInCache(uuid);
  return record;
}

const bad = (message: string): Fault => invalid(`Bad request: ${message}`);
function limitOf(value: string | undefined, most: number): number {
  if (value === undefined) return most;
  if (!/^\s*[+-]?\d+\s*$/.test(value)) throw bad(`invalid literal for int() with base 10: ${repr(value)}`);
  const limit = Number(value) || most;
  if (limit < 0) throw bad('Limit cannot be negative');
  if (limit > most) throw bad(`Limit over ${most}`);
  return limit;
}
function statesOf(value: string | undefined): readonly IntrospectionState[] | undefined {
  const states = value?.split(',');
  const unknown = states?.filter((state) => !(INTROSPECTION_STATES as readonly string[]).includes(state)) ?? [];
  if (unknown.length > 0) throw bad(`State(s) "${unknown.join(', ')}" are not valid`);
  return states as readonly IntrospectionState[] | undefined;
}
const dataHandler =
  (which: 'processed' | 'unprocessed'): Handler<OnNode> =>
  async ({ params }, { store, options }) => {
    const uuid = await cachedUuid(store, params.node);
    if (options['processing.store_data'] === 'none')
      throw notFound('Inspector is not configured to store data. Set the [processing]store_data configuration option to change this.');
    const data = await store.introspections.data(uuid, which);
    if (data) return { status: 200, text: dataText(data) };
    const flag = which === 'processed' ? 'True' : 'False';
    throw notFound(`Introspection data not found for node ${uuid}, processed=${flag}`);
  };

function objectOf(body: unknown): JsonObject {
  if (isObject(body)) return body;
  throw invalid(`Invalid data: expected a JSON object, got ${typeName(body)}`);
}

export const statusHandlers = {
  showIntrospection: async ({ params, base }, { store }) => ({ status: 200, body: shown(base, await recordOf(store, params.node)) }),
  listIntrospections: async ({ query, base }, { store, options }) => {
    const { marker } = query;
    if (marker !== undefined && !isUuid(marker)) throw bad('Marker not UUID-like');
    const limit = limitOf(query.limit, options['api.max_limit']);
    const states = statesOf(query.state);
    const records = await store.introspections.list({ limit, ...(marker === undefined ? {} : { marker }), ...(states ? { states } : {}) });
    return { status: 200, body: { introspection: records.map((record) => shown(base, record)) } };
  },
  startIntrospection: async ({ params, query: { manage_boot: text = 'True' } }, { store, conductor, options }) => {
    const manageBoot = toBoolean(text);
    if (manageBoot === undefined) throw invalid(`Invalid boolean value for manage_boot: ${text}`);
    if (manageBoot && !options['DEFAULT.can_manage_boot'])
      throw invalid('Managed boot is requested, but this installation cannot manage boot ((can_manage_boot set to False)');
    await conductor.startIntrospection(await nodeOf(store, params.node), manageBoot);
    return { status: 202, body: {} };
  },
  abortIntrospection: async ({ params }, { store, conductor }) => {
    await conductor.abortIntrospection((await recordOf(store, params.node)).node_uuid);
    return { status: 202, body: {} };
  },
  showData: dataHandler('processed'),
  showUnprocessed: dataHandler('unprocessed'),
  reapply: async ({ params, json, hasBody }, { store, conductor, options, checkReport }) => {
    let data: JsonObject | null = null;
    if (hasBody) {
      let body: unknown;
      try {
        body = await json();
      } catch (error) {
        if (!(error instanceof Fault)) throw error;
        throw invalid('Invalid data: expected a JSON object, got None');
      }
      data = objectOf(body);
    }
    const uuid = await cachedUuid(store, params.node);
    if (data === null || Object.keys(data).length === 0) {
      const isStored = options['processing.store_data'] === 'none' || (await store.introspections.data(uuid, 'unprocessed'));
      if (!isStored) throw notFound(`Introspection data not found for node ${uuid}, processed=False`);
    }
    if (!(await store.introspections.find(uuid))) throw notInCache(uuid);
    if (data && Object.keys(data).length > 0) checkReport(data);
    await conductor.reapplyIntrospection(uuid, data);
    return { status: 202, body: {} };
  },
  continueIntrospection: async ({ json, hasBody }, { conductor, checkReport }) => {
    if (!hasBody) throw invalid('Invalid data: expected a JSON object, got nothing');
    const report = objectOf(await json());
    checkReport(report);
    return { status: 200, body: await conductor.continueIntrospection(report) };
  },
} satisfies Partial<Handlers>;
