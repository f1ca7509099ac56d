/** The view of one node: its present state, its actions, and its sections. */
import { useEffect, useState } from 'preact/hooks';
import { ACTIONS } from '../lib/actions';
import { isComplete, refreshNode, revision, rows } from '../lib/fleet';
import { patchOf } from '../lib/patch';
import { classOf, isOverdue, progressText, type NodeRow } from '../lib/rows';
import { api, pendingAction, userMay, messageOf } from '../state';
import { Console } from './console/console';
import { Health } from './health';
import { SECTIONS, SectionView, type Section, type SectionId } from './node-section';
import { Bios, Firmware, Raid, Traits } from './node-settings';
import { Sensors } from './sensors';
import { textOf, useApi } from './shared';
import { StateMark } from './state-mark';
import { Timeline } from './timeline';

/** The fields that the view edits, with their names in the API's PATCH. */
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
    throw new Error(`${name}: this is not valid JSON`);
  }
}
function Fields({ row }: { readonly row: NodeRow }) {
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
      await refreshNode(api, uuid);
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
        {userMay('node:update', row) && <button class="first">Save</button>} <span role="status">{notice}</span>
      </p>
    </form>
  );
}

const WAIT_PERIOD_MS = 20_000;
interface ReadinessCheck {
  readonly code: string;
  readonly message: string | null;
  readonly todo: string | null;
}
/** Who waits for what, since when and until when: the message of the check provision-state in the node's readiness. */
function Wait({ row: { uuid, state } }: { readonly row: NodeRow }) {
  const [round, setRound] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setRound((count) => count + 1), WAIT_PERIOD_MS);
    return () => clearInterval(timer);
  }, []);
  const { data } = useApi(`v1/nodes/${uuid}/readiness`, `${state} ${round}`);
  const check = ((data?.['checks'] ?? []) as readonly ReadinessCheck[]).find(({ code }) => code === 'provision-state');
  if (data?.['provision_state'] !== state || !check?.message) return null;
  return (
    <>
      <dt>Waits</dt>
      <dd>{check.message}</dd>
    </>
  );
}
function Now({ row }: { readonly row: NodeRow }) {
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
      <dt>Hardware</dt>
      <dd>{row.hardware === '' ? 'not inspected' : row.hardware}</dd>
      {progress !== null && (
        <>
          <dt>Step</dt>
          <dd>
            {progressText(row)}
            {progress.percent !== undefined && <progress aria-label="Progress of the step" max={100} value={progress.percent} />}
          </dd>
        </>
      )}
      {classOf(row) === 'waiting' && userMay('node:validate', row) && <Wait key={row.state} row={row} />}
      {row.outage !== null && (
        <>
          <dt>Out of service</dt>
          <dd>
            {isOverdue(row.outage, Date.now()) && <strong role="status">The time is over. </strong>}
            {row.outage.reason}, until {new Date(row.outage.until).toLocaleString()}
            {row.outage.by === null ? '' : `, declared by ${row.outage.by}`}
            {row.outage.ticket !== null && (
              <>
                {' '}
                (
                <a href={row.outage.ticket} rel="noreferrer noopener" target="_blank">
                  ticket
                </a>
                )
              </>
            )}
          </dd>
        </>
      )}
      {row.alert !== null && (
        <>
          <dt>Health</dt>
          <dd class={row.alert === 'critical' ? 'error' : ''}>
            {row.alert} (<a href={`#/node/${row.uuid}/health`}>alerts</a>)
          </dd>
        </>
      )}
      {row.maintenance && row.outage === null && (
        <>
          <dt>Maintenance</dt>
          <dd>{row.reason ?? 'without a reason'}</dd>
        </>
      )}
      {row.error !== null && (
        <>
          <dt>Last error</dt>
          <dd class="error">{row.error}</dd>
        </>
      )}
    </dl>
  );
}
type Tab = Pick<Section, 'title' | 'policy'>;
type OwnTab = 'events' | 'health' | 'console' | 'sensors' | 'bios' | 'raid' | 'firmware' | 'traits' | 'fields';
/** All tabs in their order: activity, hardware and settings, related resources. */
const TABS: Readonly<Record<SectionId | OwnTab, Tab>> = {
  events: { title: 'Events' },
  health: { title: 'Health', policy: 'node:health:get' },
  why: SECTIONS.why,
  steps: SECTIONS.steps,
  history: SECTIONS.history,
  console: { title: 'Console', policy: 'node:get_console' },
  inventory: SECTIONS.inventory,
  changes: SECTIONS.changes,
  resident: SECTIONS.resident,
  sensors: { title: 'Sensors', policy: 'node:validate' },
  defaults: SECTIONS.defaults,
  bios: { title: 'BIOS', policy: 'node:bios:get' },
  raid: { title: 'RAID' },
  firmware: { title: 'Firmware', policy: 'node:firmware:get' },
  ports: SECTIONS.ports,
  lldp: SECTIONS.lldp,
  volumes: SECTIONS.volumes,
  snapshots: SECTIONS.snapshots,
  erasures: SECTIONS.erasures,
  traits: { title: 'Traits', policy: 'node:traits:list' },
  allocation: SECTIONS.allocation,
  interfaces: SECTIONS.interfaces,
  fields: { title: 'Fields' },
};
const GROUPS = ['provision', 'power', 'other'] as const;

/** @param props.rest the UUID, and the section after a slash */
export function NodeView({ rest }: { readonly rest: string }) {
  void revision.value;
  const [uuid = '', tab = 'events'] = rest.split('/', 2);
  const row = rows.get(uuid);
  if (!row) return <p>{isComplete.value ? 'There is no such node, or you may not see it.' : 'Loading …'}</p>;
  const shown = Object.hasOwn(SECTIONS, tab) ? SECTIONS[tab as SectionId] : undefined;
  const tabs = Object.entries(TABS).filter(([, { policy }]) => policy === undefined || userMay(policy, row));
  const offered = ACTIONS.filter(({ policy, refusal }) => userMay(policy, row) && refusal(row) === undefined);
  return (
    <>
      <h1>
        {row.name ?? row.uuid}{' '}
        <span class="quiet beside">
          {row.uuid}, {row.driver}
        </span>
      </h1>
      <Now row={row} />
      <div class="actions" role="group" aria-label="Actions">
        {GROUPS.map((group) => (
          <span key={group} class="bar">
            {offered
              .filter((action) => action.group === group)
              .map((action) => (
                <button
                  key={action.id}
                  class={action.isDangerous ? 'danger' : ''}
                  onClick={() => (pendingAction.value = { action, rows: [row] })}
                >
                  {action.title}
                </button>
              ))}
          </span>
        ))}
      </div>
      <nav class="tabs" aria-label="Sections">
        {tabs.map(([id, { title }]) => (
          <a key={id} href={`#/node/${uuid}/${id}`} aria-current={id === tab ? 'page' : undefined}>
            {title}
          </a>
        ))}
      </nav>
      {tab === 'events' && <Timeline uuid={uuid} />}
      {tab === 'health' && <Health key={uuid} row={row} />}
      {tab === 'sensors' && <Sensors key={uuid} uuid={uuid} />}
      {tab === 'console' && <Console key={uuid} row={row} />}
      {tab === 'fields' && <Fields key={uuid} row={row} />}
      {tab === 'bios' && <Bios key={uuid} row={row} />}
      {tab === 'raid' && <Raid key={uuid} row={row} />}
      {tab === 'firmware' && <Firmware key={uuid} row={row} />}
      {tab === 'traits' && <Traits key={uuid} row={row} />}
      {shown && <SectionView key={tab} section={shown} uuid={uuid} again={`${row.state} ${row.error}`} />}
    </>
  );
}
