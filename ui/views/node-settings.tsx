/** BIOS, RAID, firmware and traits of a node, with forms. Changes of BIOS, RAID and firmware run as clean or service steps. */
import { useState } from 'preact/hooks';
import type { JsonObject } from '../../model/json';
import { stepsAction } from '../lib/actions';
import type { NodeRow } from '../lib/rows';
import {
  biosMistake,
  biosSteps,
  boundsText,
  changedSettings,
  choicesOf,
  firmwareSteps,
  logicalDisks,
  RAID_STEPS,
  verbFor,
  CHANGE_CONDITIONS,
  type BiosSetting,
  type Step,
} from '../lib/settings';
import { api, userMay, messageOf, pendingAction } from '../state';
import { Head, Scrolled, textOf, useApi } from './shared';

interface ViewProps {
  readonly row: NodeRow;
}
type SettingsKind = keyof typeof CHANGE_CONDITIONS;
interface ApplyProps extends ViewProps {
  readonly kind: SettingsKind;
  readonly title: string;
  readonly steps: readonly Step[];
  readonly disabled?: boolean;
  /** The button is secondary: not the main purpose of the view. */
  readonly isSecond?: true;
}
/** A button that opens the dialog for the steps; absent if the state or the policy does not allow them. */
function Apply({ row, kind, title, steps, disabled = false, isSecond }: ApplyProps) {
  const verb = verbFor(row.state, kind);
  if (verb === undefined || !userMay('node:set_provision_state', row)) return null;
  return (
    <button
      type="button"
      class={isSecond ? 'danger' : 'first'}
      disabled={disabled}
      onClick={() => (pendingAction.value = { action: stepsAction(verb, title, steps), rows: [row] })}
    >
      {title}
    </button>
  );
}
const Note = ({ row, kind }: ViewProps & { readonly kind: SettingsKind }) =>
  verbFor(row.state, kind) === undefined && (
    <p class="quiet">
      {CHANGE_CONDITIONS[kind]} The node is {row.state}.
    </p>
  );

interface SettingProps {
  readonly setting: BiosSetting;
  readonly text: string;
  readonly change: (text: string) => void;
}
function SettingInput({ setting, text, change }: SettingProps) {
  const choices = choicesOf(setting);
  const common = { 'aria-label': `New value of ${setting.name}`, value: text };
  if (choices)
    return (
      <select {...common} onChange={({ currentTarget }) => change(currentTarget.value)}>
        {choices.map((choice) => (
          <option key={choice}>{choice}</option>
        ))}
      </select>
    );
  const field = {
    ...common,
    'aria-invalid': biosMistake(setting, text) !== undefined,
    onInput: ({ currentTarget }: { readonly currentTarget: HTMLInputElement }) => change(currentTarget.value),
  };
  return <input {...field} />;
}
export function Bios({ row }: ViewProps) {
  const { data, error } = useApi(`v1/nodes/${row.uuid}/bios?detail=true`, row.state);
  const [texts, setTexts] = useState<Readonly<Record<string, string>>>({});
  const [wanted, setWanted] = useState('');
  if (error !== undefined) return <p role="alert">{error}</p>;
  if (data === undefined) return <p>Loading …</p>;
  const settings = data['bios'] as readonly BiosSetting[];
  if (settings.length === 0)
    return <p>The server has no BIOS settings of this node. It reads them at verification, if the BMC reports them.</p>;
  const changes = changedSettings(settings, texts);
  const mistakes = changes.flatMap(({ name, value }) => {
    const mistake = biosMistake(
      settings.find((setting) => setting.name === name)!,
      value,
    );
    return mistake === undefined ? [] : [`${name} ${mistake}`];
  });
  const shown = settings.filter(({ name }) => name.toLowerCase().includes(wanted.toLowerCase()));
  const isOpen = verbFor(row.state, 'bios') !== undefined;
  return (
    <>
      <Note row={row} kind="bios" />
      <div class="bar">
        <label>
          Search
          <input type="search" value={wanted} onInput={({ currentTarget }) => setWanted(currentTarget.value)} />
        </label>
        <Apply
          {...{ row, kind: 'bios', title: `Change ${changes.length} ${changes.length === 1 ? 'setting' : 'settings'}` }}
          steps={biosSteps(changes)}
          disabled={changes.length === 0 || mistakes.length > 0}
        />
        <Apply {...{ row, kind: 'bios', title: 'Factory reset' }} isSecond steps={[{ interface: 'bios', step: 'factory_reset' }]} />
      </div>
      {mistakes.length > 0 && <p role="alert">{mistakes.join('; ')}</p>}
      <Scrolled label="BIOS">
        <table>
          <Head titles={['Setting', 'Value', ...(isOpen ? ['New value'] : []), 'Type', 'Allowed', 'Notes']} />
          <tbody>
            {shown.map((setting) => {
              const { name, value, attribute_type: type, read_only: isFixed, reset_required: restarts } = setting;
              // The dialog and the API show the arguments of steps, so passwords cannot be set here.
              const isChangeable = isFixed !== true && type !== 'Password';
              return (
                <tr key={name}>
                  <td>{name}</td>
                  <td>{value ?? ''}</td>
                  {isOpen && (
                    <td>
                      {isChangeable && (
                        <SettingInput
                          {...{ setting }}
                          text={texts[name] ?? value ?? ''}
                          change={(text) => setTexts({ ...texts, [name]: text })}
                        />
                      )}
                    </td>
                  )}
                  <td>{type ?? ''}</td>
                  <td>{choicesOf(setting)?.join(', ') ?? boundsText(setting)}</td>
                  <td class="quiet">
                    {[isFixed === true ? 'read-only' : '', restarts === true ? 'needs a restart' : ''].filter(Boolean).join(', ')}
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </Scrolled>
    </>
  );
}

interface Component {
  readonly component: string;
  readonly initial_version: string | null;
  readonly current_version: string | null;
  readonly last_version_flashed: string | null;
}
export function Firmware({ row }: ViewProps) {
  const { data, error } = useApi(`v1/nodes/${row.uuid}/firmware`, row.state);
  const [urls, setUrls] = useState<Readonly<Record<string, string>>>({});
  if (error !== undefined) return <p role="alert">{error}</p>;
  if (data === undefined) return <p>Loading …</p>;
  const components = data['firmware'] as readonly Component[];
  if (components.length === 0)
    return <p>The server has no firmware versions of this node. It reads them at verification, if the BMC reports them.</p>;
  const updates = Object.fromEntries(Object.entries(urls).filter(([, url]) => url.trim() !== ''));
  const count = Object.keys(updates).length;
  const isOpen = verbFor(row.state, 'firmware') !== undefined;
  return (
    <>
      <Note row={row} kind="firmware" />
      <Scrolled label="Firmware">
        <table>
          <Head titles={['Component', 'Version', 'First seen', 'Last installed', ...(isOpen ? ['Install (URL)'] : [])]} />
          <tbody>
            {components.map(({ component, current_version: version, initial_version: first, last_version_flashed: flashed }) => (
              <tr key={component}>
                <td>{component}</td>
                <td>{version ?? ''}</td>
                <td>{first ?? ''}</td>
                <td>{flashed ?? ''}</td>
                {isOpen && (
                  <td>
                    <input
                      aria-label={`Image for ${component}`}
                      placeholder="https://"
                      value={urls[component] ?? ''}
                      onInput={({ currentTarget }) => setUrls({ ...urls, [component]: currentTarget.value })}
                    />
                  </td>
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </Scrolled>
      <p>
        <Apply
          {...{ row, kind: 'firmware', title: `Update ${count} ${count === 1 ? 'component' : 'components'}` }}
          steps={firmwareSteps(updates)}
          disabled={count === 0}
        />
      </p>
    </>
  );
}

const DISK = ['controller', 'raid_level', 'size_gb', 'volume_name', 'is_root_volume', 'physical_disks'];
const Disks = ({ label, config }: { readonly label: string; readonly config: unknown }) => {
  const disks = logicalDisks(config);
  if (disks.length === 0) return <p>None.</p>;
  return (
    <Scrolled label={label}>
      <table>
        <thead>
          <tr>
            {DISK.map((name) => (
              <th key={name} scope="col">
                {name.replaceAll('_', ' ')}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {disks.map((disk, index) => (
            <tr key={index}>
              {DISK.map((name) => (
                <td key={name}>{textOf(disk[name])}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Scrolled>
  );
};
const EXAMPLE = { logical_disks: [{ size_gb: 'MAX', raid_level: '1', is_root_volume: true }] };
export function Raid({ row }: ViewProps) {
  const [again, setAgain] = useState(0);
  const { data, error } = useApi(`v1/nodes/${row.uuid}?fields=raid_config,target_raid_config`, `${row.state} ${again}`);
  const [notice, setNotice] = useState('');
  if (error !== undefined) return <p role="alert">{error}</p>;
  if (data === undefined) return <p>Loading …</p>;
  const { raid_config: present, target_raid_config: target } = data as {
    readonly raid_config: JsonObject;
    readonly target_raid_config: JsonObject;
  };
  const hasTarget = logicalDisks(target).length > 0;
  const save = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const text = new FormData(event.currentTarget as HTMLFormElement).get('target') as string;
    try {
      await api.send('PUT', `v1/nodes/${row.uuid}/states/raid`, JSON.parse(text));
      setAgain((count) => count + 1);
      setNotice('Saved. "Configure the disks" applies it.');
    } catch (problem) {
      setNotice(problem instanceof SyntaxError ? 'This is not valid JSON' : messageOf(problem));
    }
  };
  return (
    <>
      <Note row={row} kind="raid" />
      <h2>Logical disks</h2>
      <Disks label="Logical disks" config={present} />
      <h2>Target</h2>
      <form class="fields" onSubmit={(event) => void save(event)}>
        <label>
          Logical disks that the machine shall have (JSON)
          <textarea
            key={again}
            name="target"
            rows={8}
            spellcheck={false}
            defaultValue={JSON.stringify(hasTarget ? target : EXAMPLE, null, 2)}
          />
        </label>
        {userMay('node:set_raid_state', row) && <button>Save the target</button>}{' '}
        {hasTarget && <Apply {...{ row, kind: 'raid', title: 'Configure the disks' }} steps={RAID_STEPS} />}{' '}
        <span role="status">{notice}</span>
      </form>
    </>
  );
}

/** The traits of a node, for schedulers, deploy templates and runbooks. */
export function Traits({ row }: ViewProps) {
  const [again, setAgain] = useState(0);
  const { data, error } = useApi(`v1/nodes/${row.uuid}/traits`, `${row.uuid} ${again}`);
  const [notice, setNotice] = useState('');
  if (error !== undefined) return <p role="alert">{error}</p>;
  if (data === undefined) return <p>Loading …</p>;
  const traits = data['traits'] as readonly string[];
  const put = async (after: readonly string[], done: string): Promise<void> => {
    try {
      await api.send('PUT', `v1/nodes/${row.uuid}/traits`, { traits: after });
      setAgain((count) => count + 1);
      setNotice(done);
    } catch (problem) {
      setNotice(messageOf(problem));
    }
  };
  const add = (event: SubmitEvent): void => {
    event.preventDefault();
    const trait = (new FormData(event.currentTarget as HTMLFormElement).get('trait') as string).trim();
    void put([...traits, trait], `${trait} added`);
  };
  const mayChange = userMay('node:traits:set', row);
  return (
    <>
      {traits.length === 0 && <p>None.</p>}
      <ul class="chips">
        {traits.map((trait) => (
          <li key={trait}>
            {trait}{' '}
            {mayChange && (
              <button
                type="button"
                aria-label={`Remove ${trait}`}
                onClick={() =>
                  void put(
                    traits.filter((candidate) => candidate !== trait),
                    `${trait} removed`,
                  )
                }
              >
                ×
              </button>
            )}
          </li>
        ))}
      </ul>
      {mayChange && (
        <form class="bar" onSubmit={add}>
          <label>
            Trait <input key={again} name="trait" placeholder="CUSTOM_GOLD" required />
          </label>
          <button>Add</button> <span role="status">{notice}</span>
        </form>
      )}
    </>
  );
}
