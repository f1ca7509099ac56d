/** Filters, order and columns of the fleet: in the URL, in saved views, and applied to rows. Pure. */
import { isOverdue, progressText, type NodeRow } from './rows';

export interface Column {
  readonly id: string;
  readonly title: string;
  /** The column's width in characters. */
  readonly width: number;
  readonly text: (row: NodeRow) => string;
  /** The column is shown unless the user chooses other columns. */
  readonly usual?: true;
  /** A usual column with this flag is hidden while no node has a value in it. */
  readonly ifAny?: true;
}
export const COLUMNS: readonly Column[] = [
  { id: 'name', title: 'Name', width: 18, text: ({ name, uuid }) => name ?? uuid, usual: true },
  { id: 'state', title: 'State', width: 30, text: ({ state }) => state, usual: true },
  { id: 'progress', title: 'Progress', width: 30, text: progressText },
  { id: 'power', title: 'Power', width: 11, text: ({ power }) => power ?? 'unknown', usual: true },
  { id: 'hardware', title: 'Hardware', width: 32, text: ({ hardware }) => hardware, usual: true },
  {
    id: 'error',
    title: 'Last error',
    width: 34,
    text: ({ error, maintenance, reason }) => error ?? (maintenance ? `maintenance: ${reason ?? ''}` : ''),
    usual: true,
  },
  { id: 'health', title: 'Health', width: 9, text: ({ health }) => health ?? '', usual: true, ifAny: true },
  { id: 'alert', title: 'Alert', width: 9, text: ({ alert }) => alert ?? '', usual: true, ifAny: true },
  {
    id: 'outage',
    title: 'Out of service',
    width: 34,
    text: ({ outage }) => (outage === null ? '' : `until ${outage.until.slice(0, 10)}: ${outage.reason}`),
    usual: true,
    ifAny: true,
  },
  { id: 'driver', title: 'Driver', width: 14, text: ({ driver }) => driver },
  { id: 'class', title: 'Resource class', width: 16, text: ({ resourceClass }) => resourceClass ?? '' },
  { id: 'owner', title: 'Owner', width: 12, text: ({ owner }) => owner ?? '', usual: true, ifAny: true },
  { id: 'lessee', title: 'Lessee', width: 12, text: ({ lessee }) => lessee ?? '' },
  { id: 'group', title: 'Group', width: 10, text: ({ group }) => group, usual: true, ifAny: true },
  { id: 'shard', title: 'Shard', width: 10, text: ({ shard }) => shard ?? '', usual: true, ifAny: true },
  { id: 'uuid', title: 'UUID', width: 38, text: ({ uuid }) => uuid },
];
const columnOf = (id: string): Column => COLUMNS.find((column) => column.id === id) ?? COLUMNS[0]!;

/** Filters by exact value: URL parameter → the row's value. */
export const FILTERS: Readonly<Record<string, (row: NodeRow) => string>> = {
  state: ({ state }) => state,
  power: ({ power }) => power ?? 'unknown',
  driver: ({ driver }) => driver,
  owner: ({ owner }) => owner ?? '',
  group: ({ group }) => group,
  shard: ({ shard }) => shard ?? '',
  maintenance: ({ maintenance }) => String(maintenance),
  alert: ({ alert }) => alert ?? 'none',
  'out of service': ({ outage }) => (outage === null ? 'no' : isOverdue(outage, Date.now()) ? 'overdue' : 'yes'),
};
export interface View {
  /** Free text: each word must be somewhere in the row. */
  readonly text: string;
  readonly filters: Readonly<Record<string, readonly string[]>>;
  /** The ID of the column to sort by; with `-` before it, in descending order. */
  readonly order: string;
  readonly columns: readonly string[];
}
const USUAL = COLUMNS.filter(({ usual }) => usual).map(({ id }) => id);
/** The columns of the table. Columns that the user chose are shown even if no row has a value. */
export function columnsOf({ columns }: View, rows: readonly NodeRow[]): readonly Column[] {
  const isUsual = columns.join() === USUAL.join();
  return COLUMNS.filter(({ id }) => columns.includes(id)).filter(
    ({ ifAny, text }) => !ifAny || !isUsual || rows.some((row) => text(row) !== ''),
  );
}

/** The most characters of a URL parameter that the page reads. */
const MAX_CHARACTERS = 500;
export function viewOf(search: string): View {
  const query = new URLSearchParams(search);
  const listIn = (name: string): readonly string[] => (query.get(name) ?? '').slice(0, MAX_CHARACTERS).split(',');
  const columns = listIn('columns').filter((id) => COLUMNS.some((column) => column.id === id));
  const order = query.get('order') ?? 'name';
  return {
    text: (query.get('text') ?? '').slice(0, MAX_CHARACTERS),
    filters: Object.fromEntries(Object.keys(FILTERS).flatMap((name) => (query.has(name) ? [[name, listIn(name)]] : []))),
    order: COLUMNS.some(({ id }) => id === order.replace(/^-/, '')) ? order : 'name',
    columns: columns.length > 0 ? columns : USUAL,
  };
}
export function searchOf({ text, filters, order, columns }: View): string {
  const query = new URLSearchParams();
  if (text !== '') query.set('text', text);
  for (const [name, values] of Object.entries(filters)) if (values.length > 0) query.set(name, values.join(','));
  if (order !== 'name') query.set('order', order);
  if (columns.join() !== USUAL.join()) query.set('columns', columns.join());
  return query.toString();
}

const searched = new WeakMap<NodeRow, string>();
/** The text in which the search looks. Rows are immutable, so the text of each row is composed only once. */
function searchTextOf(row: NodeRow): string {
  let text = searched.get(row);
  if (text === undefined)
    searched.set(
      row,
      (text = COLUMNS.map((column) => column.text(row))
        .join('\n')
        .toLowerCase()),
    );
  return text;
}
const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
/** Numbers in names count as numbers: rack1-2 before rack1-10. */
const sortKey = (text: string): string => text.toLowerCase().replace(/\d{1,12}/g, (digits) => digits.padStart(12, '0'));
/** The rows that the view shows, in its order. */
export function rowsOf(rows: Iterable<NodeRow>, { text, filters, order }: View): readonly NodeRow[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const exact = Object.entries(filters).flatMap(([name, values]) =>
    values.length > 0 && FILTERS[name] ? [[FILTERS[name], values] as const] : [],
  );
  const column = columnOf(order.replace(/^-/, ''));
  const direction = order.startsWith('-') ? -1 : 1;
  return [...rows]
    .filter((row) => exact.every(([valueOf, values]) => values.includes(valueOf(row))))
    .filter((row) => words.every((word) => searchTextOf(row).includes(word)))
    .map((row) => ({ row, key: sortKey(column.text(row)) }))
    .sort((a, b) => direction * compare(a.key, b.key) || compare(a.row.uuid, b.row.uuid))
    .map(({ row }) => row);
}
/** Value → the number of rows that have it, the most frequent first. */
export function countsOf(rows: Iterable<NodeRow>, valueOf: (row: NodeRow) => string): readonly (readonly [value: string, count: number])[] {
  const counts = new Map<string, number>();
  for (const row of rows) counts.set(valueOf(row), (counts.get(valueOf(row)) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1] || compare(a[0], b[0]));
}

/** The rows to draw for a scroll position, with some outside the window so that scrolling shows no gap. */
export function windowOf(
  scroll: { readonly top: number; readonly height: number },
  rowHeight: number,
  count: number,
): { readonly first: number; readonly end: number } {
  const spare = 10;
  const first = Math.max(0, Math.min(Math.floor(scroll.top / rowHeight) - spare, count - 1));
  return { first, end: Math.min(count, Math.ceil((scroll.top + scroll.height) / rowHeight) + spare) };
}
