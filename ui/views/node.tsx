/** One node: what it does now, what prevents its deployment, and what the API has about it, as a table of sections. */
import { useEffect, useState } from 'preact/hooks';
import { ACTIONS } from '../lib/actions';
import { events, isComplete, reread, revision, rows } from '../lib/fleet';
import { patchOf } from '../lib/patch';
import { progressText, type NodeEvent, type Row } from '../lib/rows';
import { api, pendingAction, may, messageOf } from '../state';
import { StateMark } from './fleet';
import { SECTIONS, SectionView, type Section } from './node-section';
import { Sensors } from './sensors';
import { Scrolled, textOf, useApi } from './shared';

/** Fields that the view edits, as the API's PATCH has them. */
const EDITED: readonly { readonly name: string; readonly kind: 'text' | 'flag' | 'json' }[] = [
  ...['name', 'owner', 'lessee', 'resource_class', 'conductor_group', 'shard', 'description'].map(
    (name) => ({ name, kind: 'text' }) as const,
  ),
  ...['protected', 'retired', 'automated_clean'].map((name) => ({ name, kind: 'flag' }) as const),
  ...['properties', 'driver_info', 'instance_info', 'extra'].map((name) => ({ name, kind: 'json' }) as const),
];

/** What an event says, in one line. */
function eventText({ kind, payload }: NodeEvent): string {
  const {
    previous_provision_state: before,
    provision_state: state,
    power_state: power,
    step,
    number,
    of,
    done,
    percent,
    last_error: error,
  } = payload;
  if (kind === 'state') return `${textOf(before)} → ${textOf(state)}`;
  if (kind === 'power') return textOf(power);
  if (kind === 'step') return `${textOf(step)} (${textOf(number)} of ${textOf(of)})`;
  if (kind === 'progress')
    return percent === undefined ? `${textOf(done)} of ${textOf(of)} steps done` : `${textOf(step)} ${textOf(percent)} %`;
  return kind === 'error' ? textOf(error) : JSON.stringify(payload);
}
function Timeline({ uuid }: { readonly uuid: string }) {
  const [before, setBefore] = useState<readonly NodeEvent[]>([]);
  useEffect(() => {
    api.get<{ readonly events: readonly NodeEvent[] }>(`v1/events?node=${uuid}&limit=1000`).then(
      (page) => setBefore(page.events),
      () => {},
    );
  }, [uuid]);
  const live = events.value.filter(({ node_uuid: node }) => node === uuid);
  const ids = new Set(live.map(({ id }) => id));
  const all = [...live, ...before.filter(({ id }) => !ids.has(id)).reverse()].slice(0, 300);
  const ofSteps = all.filter(({ kind }) => kind !== 'progress');
  /** Seconds until the next event. */
  const lasted = (index: number): string =>
    index === 0 ? '' : `${((Date.parse(ofSteps[index - 1]!.at) - Date.parse(ofSteps[index]!.at)) / 1000).toFixed(1)} s`;
  return (
    <Scrolled label="Events">
      <table>
        <thead>
          <tr>
            <th scope="col">Time</th>
            <th scope="col">Lasted</th>
            <th scope="col">Kind</th>
            <th scope="col">Event</th>
          </tr>
        </thead>
        <tbody>
          {ofSteps.map((event, index) => (
            <tr key={event.id}>
              <td>{new Date(event.at).toLocaleTimeString()}</td>
              <td>{lasted(index)}</td>
              <td>{event.kind}</td>
              <td>{eventText(event)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scrolled>
  );
}

function Fields({ row }: { readonly row: Row }) {
  const { uuid } = row;
  const { data: node, error } = useApi(`v1/nodes/${uuid}`, uuid);
  const [notice, setNotice] = useState('');
  if (error !== undefined) return <p role="alert">{error}</p>;
  if (node === undefined) return <p>Loading …</p>;
  const save = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    try {
      const values = EDITED.map(({ name, kind }) => {
        const text = (form.get(name) as string | null) ?? '';
        if (kind === 'json') return [name, JSON.parse(text) as unknown] as const;
        if (kind === 'flag') return [name, text === '' ? null : text === 'true'] as const;
        return [name, text === '' ? null : text] as const;
      });
      const patch = patchOf(node, Object.fromEntries(values));
      if (patch.length > 0) await api.send('PATCH', `v1/nodes/${uuid}`, patch);
      await reread(api, uuid);
      setNotice(`${patch.length} ${patch.length === 1 ? 'field' : 'fields'} saved`);
    } catch (problem) {
      setNotice(messageOf(problem));
    }
  };
  return (
    <form onSubmit={(event) => void save(event)} class="fields">
      {EDITED.map(({ name, kind }) => (
        <label key={name}>
          {name}
          {kind === 'text' && <input name={name} defaultValue={textOf(node[name])} />}
          {kind === 'flag' && (
            <select name={name} defaultValue={textOf(node[name])}>
              {['', 'true', 'false'].map((value) => (
                <option key={value} value={value}>
                  {value === '' ? 'not set' : value}
                </option>
              ))}
            </select>
          )}
          {kind === 'json' && <textarea name={name} rows={4} defaultValue={JSON.stringify(node[name], null, 2)} spellcheck={false} />}
        </label>
      ))}
      <p>
        {may('node:update', row) && <button class="first">Save</button>} <span role="status">{notice}</span>
      </p>
    </form>
  );
}

function Now({ row }: { readonly row: Row }) {
  const { progress } = row;
  return (
    <dl class="now">
      <dt>State</dt>
      <dd>
        <StateMark row={row} />
        {row.target === null || row.target === '' ? '' : ` → ${row.target}`}
      </dd>
      <dt>Power</dt>
      <dd>{row.power ?? 'unknown'}</dd>
      {progress !== null && (
        <>
          <dt>Step</dt>
          <dd>
            {progressText(row)}
            {progress.percent !== undefined && <progress aria-label="Progress of the step" max={100} value={progress.percent} />}
          </dd>
        </>
      )}
      {row.error !== null && (
        <>
          <dt>Last error</dt>
          <dd>{row.error}</dd>
        </>
      )}
      <dt>Hardware</dt>
      <dd>{row.hardware === '' ? 'not inspected' : row.hardware}</dd>
    </dl>
  );
}
const TABS: readonly Pick<Section, 'id' | 'title' | 'policy'>[] = [
  { id: 'events', title: 'Events' },
  { id: 'fields', title: 'Fields' },
  { id: 'sensors', title: 'Sensors', policy: 'node:validate' },
  ...SECTIONS,
];

export function NodeView({ rest: uuid }: { readonly rest: string }) {
  const [tab, setTab] = useState('events');
  void revision.value;
  const row = rows.get(uuid);
  if (!row) return <p>{isComplete.value ? 'There is no such node, or you may not see it.' : 'Loading …'}</p>;
  const section = SECTIONS.find(({ id }) => id === tab);
  return (
    <>
      <h1>{row.name ?? row.uuid}</h1>
      <p class="quiet">
        {row.uuid}, {row.driver}
      </p>
      <Now row={row} />
      <div class="bar" role="group" aria-label="Actions">
        {ACTIONS.filter(({ policy, refusal }) => may(policy, row) && refusal(row) === undefined).map((action) => (
          <button
            key={action.id}
            class={action.isDangerous ? 'danger' : ''}
            onClick={() => (pendingAction.value = { action, rows: [row] })}
          >
            {action.title}
          </button>
        ))}
      </div>
      <div class="bar tabs" role="group" aria-label="Sections">
        {TABS.filter(({ policy }) => policy === undefined || may(policy, row)).map(({ id, title }) => (
          <button key={id} aria-pressed={id === tab} onClick={() => setTab(id)}>
            {title}
          </button>
        ))}
      </div>
      {tab === 'events' && <Timeline uuid={uuid} />}
      {tab === 'sensors' && <Sensors key={uuid} uuid={uuid} />}
      {tab === 'fields' && <Fields key={uuid} row={row} />}
      {section && <SectionView key={section.id} section={section} uuid={uuid} again={`${row.state} ${row.error}`} />}
    </>
  );
}
