/** The fleet: counts, a square for each machine, and a table that draws only the visible rows. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { ACTIONS } from '../lib/actions';
import { COLUMNS, columnsOf, countsOf, FILTERS, rowsOf, searchOf, viewOf, windowOf, type Column, type View } from '../lib/filters';
import { isComplete, revision, rows } from '../lib/fleet';
import { classOf, progressText, type NodeRow } from '../lib/rows';
import { pendingAction, userMay } from '../state';
import { AddDemoMachines } from './add-demo';
import { FleetChart } from './fleet-chart';
import { StateMark } from './state-mark';
import { SavedViews } from './saved-views';

const ROW_HEIGHT = 34;
const open = (view: View): void => void (location.hash = `/nodes?${searchOf(view)}`);

/** One square per machine, in the order of the table. */
function Squares({ shown }: { readonly shown: readonly NodeRow[] }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const side = shown.length > 2000 ? 6 : 14;
  useEffect(() => {
    const element = canvas.current!;
    const perLine = Math.max(1, Math.floor(element.clientWidth / side));
    element.width = element.clientWidth;
    element.height = Math.ceil(shown.length / perLine) * side;
    const brush = element.getContext('2d')!;
    /** CSS variable → its computed colour, since a canvas does not resolve variables. */
    const colours = new Map<string, string>();
    const colourOf = (name: string): string => {
      let colour = colours.get(name);
      if (colour === undefined) {
        element.style.color = `var(--${name})`;
        colours.set(name, (colour = getComputedStyle(element).color));
      }
      return colour;
    };
    shown.forEach((row, index) => {
      brush.fillStyle = colourOf(row.maintenance ? 'maintenance' : classOf(row));
      brush.fillRect((index % perLine) * side, Math.floor(index / perLine) * side, side - 1, side - 1);
    });
  }, [shown, side]);
  const find = (event: MouseEvent): NodeRow | undefined => {
    const perLine = Math.max(1, Math.floor(canvas.current!.clientWidth / side));
    return shown[Math.floor(event.offsetY / side) * perLine + Math.floor(event.offsetX / side)];
  };
  return (
    <canvas
      ref={canvas}
      class="squares"
      role="img"
      aria-label={countsOf(shown, classOf)
        .map(([name, count]) => `${count} ${name}`)
        .join(', ')}
      onMouseMove={(event) => {
        const row = find(event);
        event.currentTarget.title = row ? `${row.name ?? row.uuid}: ${row.state}` : '';
      }}
      onClick={(event) => {
        const row = find(event);
        if (row) location.hash = `/node/${row.uuid}`;
      }}
    />
  );
}

interface TableProps {
  readonly view: View;
  readonly columns: readonly Column[];
  readonly shown: readonly NodeRow[];
  readonly selected: ReadonlySet<string>;
  readonly select: (uuids: ReadonlySet<string>) => void;
}
function Table({ view, columns, shown, selected, select }: TableProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const [scroll, setScroll] = useState({ top: 0, height: 800 });
  useEffect(() => {
    const element = scroller.current!;
    const measure = (): void => setScroll({ top: element.scrollTop, height: element.clientHeight });
    const watch = new ResizeObserver(measure);
    watch.observe(element);
    element.addEventListener('scroll', measure, { passive: true });
    return () => watch.disconnect();
  }, []);
  const { first, end } = windowOf(scroll, ROW_HEIGHT, shown.length);
  const toggle = (uuid: string): void => {
    const next = new Set(selected);
    if (!next.delete(uuid)) next.add(uuid);
    select(next);
  };
  const isAll = shown.length > 0 && shown.every(({ uuid }) => selected.has(uuid));
  return (
    <div ref={scroller} class="scroller" tabIndex={0} role="region" aria-label="Nodes">
      <table aria-rowcount={shown.length + 1} style={{ width: `${columns.reduce((sum, { width }) => sum + width, 5)}ch` }}>
        <colgroup>
          <col style={{ width: '5ch' }} />
          {columns.map(({ id, width }) => (
            <col key={id} style={{ width: `${width}ch` }} />
          ))}
        </colgroup>
        <thead>
          <tr aria-rowindex={1}>
            <th scope="col">
              <input
                type="checkbox"
                aria-label="Select all shown nodes"
                checked={isAll}
                onChange={() => select(isAll ? new Set() : new Set(shown.map(({ uuid }) => uuid)))}
              />
            </th>
            {columns.map(({ id, title }) => (
              <th key={id} scope="col" aria-sort={view.order === id ? 'ascending' : view.order === `-${id}` ? 'descending' : 'none'}>
                <button class="plain" onClick={() => open({ ...view, order: view.order === id ? `-${id}` : id })}>
                  {title}
                  {view.order === id ? ' ▲' : view.order === `-${id}` ? ' ▼' : ''}
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          <tr aria-hidden="true" style={{ height: `${first * ROW_HEIGHT}px` }} />
          {shown.slice(first, end).map((row, index) => (
            <tr key={row.uuid} aria-rowindex={first + index + 2} class={selected.has(row.uuid) ? 'selected' : ''}>
              <td>
                <input
                  type="checkbox"
                  aria-label={`Select ${row.name ?? row.uuid}`}
                  checked={selected.has(row.uuid)}
                  onChange={() => toggle(row.uuid)}
                />
              </td>
              {columns.map(({ id, text }) => (
                <td key={id} class={id} title={id === 'state' ? `${text(row)} ${progressText(row)}` : text(row)}>
                  {id === 'name' ? <a href={`#/node/${row.uuid}`}>{text(row)}</a> : id === 'state' ? <StateCell row={row} /> : text(row)}
                </td>
              ))}
            </tr>
          ))}
          <tr aria-hidden="true" style={{ height: `${(shown.length - end) * ROW_HEIGHT}px` }} />
        </tbody>
      </table>
    </div>
  );
}
/** The state, with the step and its progress. */
function StateCell({ row }: { readonly row: NodeRow }) {
  const { progress } = row;
  return (
    <>
      <StateMark row={row} />
      {progress !== null && (
        <>
          {progress.percent !== undefined && (
            <progress aria-label={`Progress of ${row.name ?? row.uuid}`} max={100} value={progress.percent} />
          )}{' '}
          <span class="quiet">{progressText(row)}</span>
        </>
      )}
    </>
  );
}

/** Shown while there are no nodes: how to add the first machine. */
const Empty = () => (
  <section class="narrow">
    <h1>There are no nodes yet</h1>
    {userMay('node:create') ? (
      <>
        <p>A machine needs the address of its BMC and a password. The server verifies it, and inspects its hardware while you watch.</p>
        <p>
          <a class="first" href="#/add">
            Add a machine
          </a>
        </p>
        <AddDemoMachines />
      </>
    ) : (
      <p>You see the nodes that your project owns or leases, and there are none.</p>
    )}
  </section>
);

const IDS = COLUMNS.map(({ id }) => id);

export function Fleet({ search }: { readonly search: string }) {
  const view = useMemo(() => viewOf(search), [search]);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const shown = useMemo(() => rowsOf(rows.values(), view), [view, revision.value]);
  const all = useMemo(() => [...rows.values()], [revision.value]);
  const columns = useMemo(() => columnsOf(view, all), [view, all]);
  if (rows.size === 0) return isComplete.value ? <Empty /> : <p>Loading …</p>;
  const chosen = shown.filter(({ uuid }) => selected.has(uuid));
  const filterBy = (name: string, value: string): void =>
    open({ ...view, filters: { ...view.filters, [name]: value === '' ? [] : [value] } });
  /** The filters that distinguish nodes, and those in use. */
  const filters = Object.entries(FILTERS)
    .filter(([name]) => name !== 'state')
    .map(([name, valueOf]) => ({ name, values: countsOf(all, valueOf).filter(([value]) => value !== '') }))
    .filter(
      ({ name, values }) =>
        values.length > 1 || (values.length === 1 && values[0]![1] < all.length) || (view.filters[name]?.length ?? 0) > 0,
    );
  return (
    <div class="fleet">
      <h1 class="unseen">Fleet</h1>
      <div class="bar" role="group" aria-label="States">
        <button class={view.filters['state']?.length ? '' : 'on'} onClick={() => filterBy('state', '')}>
          all {all.length}
        </button>
        {countsOf(all, ({ state }) => state).map(([state, count]) => (
          <button key={state} aria-pressed={view.filters['state']?.includes(state) === true} onClick={() => filterBy('state', state)}>
            <StateMark row={{ ...all.find((row) => row.state === state)!, maintenance: false, outage: null }} /> {count}
          </button>
        ))}
      </div>
      <div class="overview">
        <Squares shown={shown} />
        <FleetChart />
      </div>
      <div class="bar">
        <label>
          Search
          <input type="search" value={view.text} onInput={(event) => open({ ...view, text: event.currentTarget.value })} />
        </label>
        {filters.map(({ name, values }) => (
          <label key={name}>
            {name}
            <select value={view.filters[name]?.[0] ?? ''} onChange={(event) => filterBy(name, event.currentTarget.value)}>
              <option value="">all</option>
              {values.slice(0, 200).map(([value, count]) => (
                <option key={value} value={value}>
                  {value} ({count})
                </option>
              ))}
            </select>
          </label>
        ))}
        <span class="gap" />
        <details class="menu">
          <summary>Columns</summary>
          <fieldset>
            <legend class="unseen">Columns</legend>
            {COLUMNS.map(({ id, title }) => (
              <label key={id}>
                <input
                  type="checkbox"
                  checked={view.columns.includes(id)}
                  onChange={() =>
                    open({
                      ...view,
                      columns: IDS.filter((other) => view.columns.includes(other) !== (other === id)),
                    })
                  }
                />
                {title}
              </label>
            ))}
          </fieldset>
        </details>
        <SavedViews query={searchOf(view)} />
      </div>
      <div class={chosen.length > 0 ? 'bar chosen' : 'bar'} role="group" aria-label="Actions on the selected nodes">
        <span>
          {shown.length} shown{isComplete.value ? '' : ' so far'}, {chosen.length} selected
        </span>
        {chosen.length > 0 && <button onClick={() => setSelected(new Set())}>Select none</button>}
        {chosen.length > 0 &&
          ACTIONS.filter(({ policy, refusal }) => chosen.some((row) => userMay(policy, row) && refusal(row) === undefined)).map(
            (action) => (
              <button
                key={action.id}
                class={action.isDangerous ? 'danger' : ''}
                onClick={() => (pendingAction.value = { action, rows: chosen })}
              >
                {action.title}
              </button>
            ),
          )}
      </div>
      <Table view={view} columns={columns} shown={shown} selected={selected} select={setSelected} />
    </div>
  );
}
