/** One node: what it does now, what prevents its deployment, and what the API has about it, as a table of sections. */
import { useState } from 'preact/hooks';
import { ACTIONS } from '../lib/actions';
import { isComplete, reread, revision, rows } from '../lib/fleet';
import { patchOf } from '../lib/patch';
import { progressText, type Row } from '../lib/rows';
import { api, pendingAction, may, messageOf } from '../state';
import { Console } from './console';
import { StateMark } from './fleet';
import { SECTIONS, SectionView, type Section } from './node-section';
import { Sensors } from './sensors';
import { textOf, useApi } from './shared';
import { Timeline } from './timeline';

/** Fields that the view edits, as the API's PATCH has them. */
const EDITED: readonly { readonly name: string; readonly kind: 'text' | 'flag' | 'json' }[] = [
  ...['name', 'owner', 'lessee', 'resource_class', 'conductor_group', 'shard', 'description'].map(
    (name) => ({ name, kind: 'text' }) as const,
  ),
  ...['protected', 'retired', 'automated_clean'].map((name) => ({ name, kind: 'flag' }) as const),
  ...['properties', 'driver_info', 'instance_info', 'extra'].map((name) => ({ name, kind: 'json' }) as const),
];

/** @throws Error with the name of the field */
function jsonIn(name: string, text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new Error(`${name}: this is no JSON`);
  }
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
        if (kind === 'json') return [name, jsonIn(name, text)] as const;
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
  { id: 'console', title: 'Console', policy: 'node:get_console' },
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
      {tab === 'console' && <Console key={uuid} row={row} />}
      {tab === 'fields' && <Fields key={uuid} row={row} />}
      {section && <SectionView key={section.id} section={section} uuid={uuid} again={`${row.state} ${row.error}`} />}
    </>
  );
}
