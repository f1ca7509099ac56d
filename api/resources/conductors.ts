/** /v1/conductors. */
import { Fault } from '../../model/errors';
import type { ConductorRecord } from '../../model/records';
import type { FieldRow } from '../schema/document';
import { checkSortable, envelope, fieldsToShow, pageOf, repeated, type Page } from '../pipeline/lists';
import { checkFields, linksTo, rowsToShow } from '../pipeline/present';
import { checkStrict } from '../pipeline/resource';
import type { Answer, Request, RequestOf, SomeHandlers, ApiContext } from '../pipeline/handler';

const BRIEF = ['hostname', 'conductor_group', 'alive'];
const UNSORTABLE = ['alive', 'drivers'];
const SORTABLE = ['id', 'hostname', 'conductor_group', 'created_at', 'updated_at', 'online'] as const;

function presenter({ base }: Pick<Request, 'base'>, rows: readonly FieldRow[]) {
  return (conductor: ConductorRecord): object => {
    const values: Readonly<Record<string, unknown>> = {
      ...conductor,
      drivers: Object.keys(conductor.drivers).sort(),
      links: linksTo(base, `conductors/${conductor.hostname}`),
    };
    return Object.fromEntries(rows.map(({ name }) => [name, values[name]]));
  };
}

/** There are few conductors, so they are sorted and paged in memory. */
function pageFrom(all: readonly ConductorRecord[], { sortKey, sortDir, marker, limit }: Page): readonly ConductorRecord[] {
  const key = sortKey as keyof ConductorRecord;
  const sorted = [...all].sort((a, b) => (a[key] === b[key] ? a.id - b.id : a[key]! < b[key]! ? -1 : 1));
  if (sortDir === 'desc') sorted.reverse();
  if (marker === undefined) return sorted.slice(0, limit);
  const start = sorted.findIndex(({ hostname }) => hostname === marker);
  if (start < 0) throw new Fault('ConductorNotFound', { conductor: marker });
  return sorted.slice(start + 1, start + 1 + limit);
}

async function listConductors(request: RequestOf<'listConductors'>, context: ApiContext): Promise<Answer> {
  const { query, base, minor } = request;
  const all = context.document.fields('Conductor');
  checkStrict(request, all);
  const fields = fieldsToShow(query, BRIEF);
  const page = pageOf(query, UNSORTABLE, context.options);
  checkSortable(page.sortKey, SORTABLE);
  const conductors = pageFrom(await context.store.conductors.list(context.options['conductor.heartbeat_timeout']), page);
  const items = conductors.map(presenter(request, rowsToShow(all, minor, fields)));
  const also = repeated(query, fields);
  const last = conductors.at(-1)?.hostname;
  return { status: 200, body: envelope('conductors', items, { base, path: 'conductors', page, limit: page.limit, last, also }) };
}

async function showConductor(request: RequestOf<'showConductor'>, context: ApiContext): Promise<Answer> {
  const { query, params, minor } = request;
  const all = context.document.fields('Conductor');
  const { fields } = query;
  checkStrict(request, all);
  const { hostname } = params;
  const conductor = (await context.store.conductors.list(context.options['conductor.heartbeat_timeout'])).find(
    (candidate) => candidate.hostname === hostname,
  );
  if (!conductor) throw new Fault('ConductorNotFound', { conductor: hostname });
  checkFields(fields, all);
  return { status: 200, body: presenter(request, rowsToShow(all, minor, fields))(conductor) };
}

export const conductorHandlers = { listConductors, showConductor } satisfies SomeHandlers;
