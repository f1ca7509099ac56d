/** What all lists share: the fields to show, limits, sorting, and the link to the next page. */
import { Fault } from '../model/errors';
import { repr } from '../model/python';
import { open } from '../model/versions';
import type { Arguments } from './arguments';
import type { FieldRow } from './document';
import type { ApiOptions } from './options';

const unacceptable = (): Fault => new Fault('NotAcceptable', { message: 'Request not acceptable.' });
const invalid = (message: string): Fault => new Fault('InvalidParameterValue', { message });

/** Fields may be named from 1.8 on. */
export function checkFieldsAllowed(fields: readonly string[] | undefined, minor: number): void {
  if (fields && minor < 8) throw unacceptable();
}
/** A field newer than the request cannot be named. */
export function checkNewer(names: readonly string[], rows: readonly FieldRow[], minor: number): void {
  if (rows.some(({ name, gate }) => names.includes(name) && !open(gate, minor))) throw unacceptable();
}
/** `fields` or `detail`, not both. @returns the fields to show; undefined: all */
export function fieldsToShow(query: Arguments, brief: readonly string[]): readonly string[] | undefined {
  const fields = (query['fields'] as readonly string[] | null | undefined) ?? undefined;
  if (fields && query['detail'] === true) throw invalid('Can not specify ?detail=True and fields in the same request.');
  return fields ?? (query['detail'] === true ? undefined : brief);
}

export interface Page {
  readonly limit: number;
  readonly sortKey: string;
  readonly sortDir: 'asc' | 'desc';
  readonly marker?: string;
}
/** @param unsortable fields that have no order */
export function pageOf(query: Arguments, unsortable: readonly string[], options: ApiOptions): Page {
  const limit = (query['limit'] as number | null | undefined) ?? options['api.max_limit'];
  if (limit <= 0) throw new Fault('Invalid', { message: 'Limit must be positive' });
  const sortDir = query['sort_dir'] as string;
  if (sortDir !== 'asc' && sortDir !== 'desc')
    throw new Fault('Invalid', { message: `Invalid sort direction: ${sortDir}. Acceptable values are 'asc' or 'desc'` });
  const sortKey = (query['sort_key'] as string) || 'id';
  if (unsortable.includes(sortKey)) throw invalid(`The sort_key value ${sortKey} is an invalid field for sorting`);
  const marker = query['marker'] as string | null | undefined;
  return { limit: Math.min(limit, options['api.max_limit']), sortKey, sortDir, ...(marker ? { marker } : {}) };
}
/** A sort key that is no column of its resource. */
export function checkSortable(key: string, sortable: readonly string[]): void {
  if (!sortable.includes(key)) throw invalid(`The sort_key value "${key}" is an invalid field for sorting`);
}

/**
 * @param name what the list is called
 * @param also further parameters that the next page needs, in the order in which clients see them
 * @param last the marker of the last item
 */
export function envelope(
  name: string,
  items: readonly unknown[],
  next: {
    readonly base: string;
    readonly path: string;
    readonly page: Page;
    readonly limit: number;
    readonly last: string | undefined;
    readonly also: readonly (readonly [string, unknown])[];
  },
): object {
  const { base, path, page, limit, last, also } = next;
  if (items.length === 0 || items.length !== limit || last === undefined) return { [name]: items };
  const query = [['sort_key', page.sortKey], ['sort_dir', page.sortDir], ...also, ['limit', limit], ['marker', last]] as const;
  const words = query.map(([key, value]) => `${key}=${typeof value === 'boolean' ? repr(value) : (value as string)}`);
  return { [name]: items, next: `${base}/v1/${path}?${words.join('&')}` };
}
