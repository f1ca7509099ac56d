/** Functions that all lists use: fields, limits, sorting, and the link to the next page. */
import type { Options } from '../../config/options';
import { invalid, invalidParameter, notAcceptable } from '../../model/errors';
import { repr } from '../../model/python';
import { isGateOpen } from '../../model/versions';
import type { FieldRow } from '../schema/document';
import type { ResourceRecord } from '../../model/records';
import type { RowSize, Table } from '../../store/store';
import { sliced } from '../../wire/turns';
import { nextSlice, type Fragment } from './fragments';

/** `fields` exists from 1.8 on. */
export function checkFieldsAllowed(fields: readonly string[] | undefined, minor: number): void {
  if (fields && minor < 8) throw notAcceptable();
}
/** A field newer than the request cannot be named. */
export function checkNewer(names: readonly string[], rows: readonly FieldRow[], minor: number): void {
  if (rows.some(({ name, named }) => names.includes(name) && !isGateOpen(named, minor))) throw notAcceptable();
}
type FieldsQuery = { readonly fields?: readonly string[] | null; readonly detail?: boolean | null };
/** `fields` or `detail`, not both. @returns the fields to show; undefined: all */
export function fieldsToShow(query: FieldsQuery, brief: readonly string[] | undefined): readonly string[] | undefined {
  const fields = query.fields ?? undefined;
  if (fields && query.detail === true) throw invalidParameter('Can not specify ?detail=True and fields in the same request.');
  return fields ?? (query.detail === true ? undefined : brief);
}

type PageQuery = {
  readonly limit?: number | null;
  readonly marker?: string | null;
  readonly sort_key: string;
  readonly sort_dir: string;
};
export type ListQuery = PageQuery & FieldsQuery;
export interface Page {
  readonly limit: number;
  readonly sortKey: string;
  readonly sortDir: 'asc' | 'desc';
  readonly marker?: string | undefined;
}
/** @param unsortable fields that have no order */
export function pageOf(query: PageQuery, unsortable: readonly string[], options: Options): Page {
  const limit = query.limit ?? options['api.max_limit'];
  if (limit <= 0) throw invalid('Limit must be positive');
  const sortDir = query.sort_dir;
  if (sortDir !== 'asc' && sortDir !== 'desc') throw invalid(`Invalid sort direction: ${sortDir}. Acceptable values are 'asc' or 'desc'`);
  const sortKey = query.sort_key || 'id';
  if (unsortable.includes(sortKey)) throw invalidParameter(`The sort_key value ${sortKey} is an invalid field for sorting`);
  return { limit: Math.min(limit, options['api.max_limit']), sortKey, sortDir, marker: query.marker || undefined };
}
/** Refuses a sort key that is not a column of the resource. */
export function checkSortable(key: string, sortable: readonly string[]): void {
  if (!sortable.includes(key)) throw invalidParameter(`The sort_key value "${key}" is an invalid field for sorting`);
}

export type Parameter = readonly [name: string, value: string | number | boolean];
interface NextPage {
  readonly base: string;
  readonly path: string;
  readonly page: Page;
  readonly limit: number;
  /** The marker of the last item. */
  readonly last: string | undefined;
  /** The first parameters of the next page's query. */
  readonly first?: readonly Parameter[];
  /** Further parameters, in Ironic's order. */
  readonly also: readonly Parameter[];
}
/** The link to the next page; undefined if there is none. */
function nextLink(count: number, { base, path, page, limit, last, first = [], also }: NextPage): string | undefined {
  if (count === 0 || count !== limit || last === undefined) return undefined;
  const query = [...first, ['sort_key', page.sortKey], ['sort_dir', page.sortDir], ...also, ['limit', limit], ['marker', last]] as const;
  const words = query.map(([key, value]) => `${key}=${typeof value === 'boolean' ? repr(value) : value}`);
  return `${base}/v1/${path}?${words.join('&')}`;
}
/** What the link to the next page repeats of the query. */
export const repeated = ({ detail }: FieldsQuery, fields: readonly string[] | undefined): readonly Parameter[] => [
  ...(typeof detail === 'boolean' ? [['detail', detail] as const] : []),
  ...(fields ? [['fields', fields.join(',')] as const] : []),
];
export function envelope(name: string, items: readonly unknown[], next: NextPage): object {
  const link = nextLink(items.length, next);
  return { [name]: items, ...(link === undefined ? {} : { next: link }) };
}
const COMMA = Buffer.from(',');
/**
 * As `envelope`, for rendered items in slices. The last item is the marker of the next page.
 * @param count rows of the page when its ids were read. Rows may have been deleted since, and there is still a next page.
 */
export async function* envelopeOf(
  name: string,
  slices: AsyncIterable<readonly Fragment[]>,
  count: number,
  next: Omit<NextPage, 'last'>,
): AsyncGenerator<readonly Buffer[], void> {
  let pieces: Buffer[] = [Buffer.from(`{"${name}":[`)];
  let last: string | undefined;
  for await (const items of slices) {
    // The previous slice is sent now, so that the end of the last one leaves together with it.
    if (last !== undefined) {
      yield pieces;
      pieces = [];
    }
    for (const { uuid, bytes } of items) {
      if (last !== undefined) pieces.push(COMMA);
      pieces.push(bytes);
      last = uuid;
    }
  }
  const link = nextLink(count, { ...next, last });
  pieces.push(Buffer.from(link === undefined ? ']}' : `],"next":${JSON.stringify(link)}}`));
  yield pieces;
}
/**
 * The records of a list in slices, rendered. Those that were removed since their sizes were read are missing.
 * @param present throws for a record that the caller may not read
 */
export async function* recordSlices<RecordType extends ResourceRecord>(
  table: Pick<Table<RecordType>, 'byUuids'>,
  sizes: readonly RowSize[],
  present: (record: RecordType) => object,
): AsyncGenerator<readonly Fragment[], void> {
  const reads = sliced(sizes, ({ bytes }) => bytes);
  for (const slice of reads) {
    if (reads.length > 1) await nextSlice();
    const records = await table.byUuids(slice.map(({ uuid }) => uuid));
    yield records.map((record) => ({ uuid: record.uuid, bytes: Buffer.from(JSON.stringify(present(record))) }));
  }
}
