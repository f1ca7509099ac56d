/** Creates or edits a resource: a form with the fields of its kind, or its JSON. */
import { useState } from 'preact/hooks';
import type { JsonObject } from '../../model/json';
import {
  fieldsNamedIn,
  newRow,
  resourcePatch,
  ruleMistakes,
  textsOf,
  valueOf,
  withoutServerFields,
  type FormField,
  type FormTexts,
  type Mistakes,
  type RowTexts,
} from '../lib/resource-forms';
import { api, messageOf } from '../state';
import { Scrolled, textOf } from './shared';

interface FormProps {
  /** The path below /v1. */
  readonly id: string;
  /** Absent: JSON only. */
  readonly fields?: readonly FormField[];
  /** The resource to edit; without a UUID, a new one. */
  readonly entry: JsonObject;
  readonly saved: () => void;
  readonly cancel: () => void;
}
const inputId = (place: string): string => `field ${place}`.replaceAll(' ', '-');
interface CellProps {
  readonly cell: Pick<FormField, 'name' | 'title' | 'kind' | 'choices' | 'needed'>;
  readonly place: string;
  readonly text: string;
  readonly label?: string;
  readonly isWrong: boolean;
  readonly change: (text: string) => void;
}
function Cell({ cell: { kind, choices, needed }, place, text, label, isWrong, change }: CellProps) {
  const common = { id: inputId(place), 'aria-label': label, 'aria-invalid': isWrong, 'aria-required': needed === true };
  if (kind === 'flag')
    return (
      <input
        {...common}
        type="checkbox"
        checked={text === 'true'}
        onChange={({ currentTarget }) => change(String(currentTarget.checked))}
      />
    );
  if (choices)
    return (
      <select {...common} value={text} onChange={({ currentTarget }) => change(currentTarget.value)}>
        {choices.map((choice) => (
          <option key={choice} value={choice}>
            {choice}
          </option>
        ))}
      </select>
    );
  if (kind === 'json')
    return <textarea {...common} rows={2} spellcheck={false} value={text} onInput={({ currentTarget }) => change(currentTarget.value)} />;
  return <input {...common} value={text} onInput={({ currentTarget }) => change(currentTarget.value)} />;
}
interface RowsProps {
  readonly field: FormField;
  readonly rows: readonly RowTexts[];
  readonly isWrong: (place: string) => boolean;
  readonly change: (rows: readonly RowTexts[]) => void;
}
function Rows({ field, rows, isWrong, change }: RowsProps) {
  const { name, title, columns = [] } = field;
  return (
    <fieldset id={inputId(name)}>
      <legend>{title}</legend>
      {rows.length > 0 && (
        <Scrolled label={title}>
          <table>
            <thead>
              <tr>
                {columns.map((cell) => (
                  <th key={cell.name} scope="col">
                    {cell.title}
                  </th>
                ))}
                <th scope="col">Row</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row, index) => (
                <tr key={index}>
                  {columns.map((cell) => {
                    const place = `${name} ${index + 1} ${cell.name}`;
                    const replace = (text: string): void => change(rows.with(index, { ...row, [cell.name]: text }));
                    return (
                      <td key={cell.name}>
                        <Cell
                          {...{ cell, place, isWrong: isWrong(place), change: replace }}
                          text={row[cell.name] ?? ''}
                          label={`${title} ${index + 1}: ${cell.title}`}
                        />
                      </td>
                    );
                  })}
                  <td>
                    <button
                      type="button"
                      aria-label={`Remove row ${index + 1} of ${title}`}
                      onClick={() => change(rows.toSpliced(index, 1))}
                    >
                      Remove
                    </button>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scrolled>
      )}
      <button type="button" onClick={() => change([...rows, newRow(field)])}>
        Add to {title.toLowerCase()}
      </button>
    </fieldset>
  );
}

interface FieldsProps {
  readonly fields: readonly FormField[];
  readonly texts: FormTexts;
  readonly isWrong: (place: string) => boolean;
  readonly edit: (texts: FormTexts) => void;
}
function Fields({ fields, texts, isWrong, edit }: FieldsProps) {
  return (
    <>
      {fields.map((field) =>
        field.kind === 'rows' ? (
          <Rows
            key={field.name}
            {...{ field, isWrong }}
            rows={texts.rows[field.name] ?? []}
            change={(rows) => edit({ ...texts, rows: { ...texts.rows, [field.name]: rows } })}
          />
        ) : (
          <label key={field.name} class={field.kind === 'flag' ? 'line' : ''}>
            {field.title}
            <Cell
              {...{ cell: field, place: field.name, isWrong: isWrong(field.name) }}
              text={texts.fields[field.name] ?? ''}
              change={(text) => edit({ ...texts, fields: { ...texts.fields, [field.name]: text } })}
            />
          </label>
        ),
      )}
    </>
  );
}

/** Announces what was wrong when the user saved. */
function Problems({ problem, mistakes }: { readonly problem: string; readonly mistakes: Mistakes }) {
  return (
    <div role="alert">
      {problem !== '' && <p>{problem}</p>}
      {Object.keys(mistakes).length > 0 && (
        <ul>
          {Object.entries(mistakes).map(([place, text]) => (
            <li key={place}>
              <strong>{place}</strong> {text}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** Creates the resource, or sends what `value` changes in `entry`. @param names the fields that the user could edit; absent: all */
async function send(id: string, entry: JsonObject, value: JsonObject, names?: readonly string[]): Promise<void> {
  if (entry['uuid'] === undefined) {
    await api.send('POST', `v1/${id}`, value);
    return;
  }
  const patch = resourcePatch(withoutServerFields(entry), value, names);
  if (patch.length > 0) await api.send('PATCH', `v1/${id}/${textOf(entry['uuid'])}`, patch);
}

export function ResourceForm({ id, fields, entry, saved, cancel }: FormProps) {
  const [texts, setTexts] = useState<FormTexts>(() => textsOf(fields ?? [], entry));
  /** The text of the JSON editor; null: the form is shown. */
  const [json, setJson] = useState<string | null>(fields ? null : JSON.stringify(withoutServerFields(entry), null, 2));
  const [mistakes, setMistakes] = useState<Mistakes>({});
  const [problem, setProblem] = useState('');
  const isNew = entry['uuid'] === undefined;
  const isWrong = (place: string): boolean => Object.hasOwn(mistakes, place);
  const submit = async (value: JsonObject, names?: readonly string[]): Promise<void> => {
    try {
      await send(id, entry, value, names);
      saved();
    } catch (error) {
      setProblem(messageOf(error));
      setMistakes(Object.fromEntries(fieldsNamedIn(fields ?? [], messageOf(error)).map((name) => [name, 'see the message of the server'])));
    }
  };
  const save = (event: SubmitEvent): void => {
    event.preventDefault();
    setProblem('');
    setMistakes({});
    if (json !== null) {
      try {
        void submit(JSON.parse(json) as JsonObject);
      } catch {
        setProblem('This is not valid JSON');
      }
      return;
    }
    const { value, mistakes: found } = valueOf(fields!, texts);
    const wrong = Object.keys(found).length === 0 && id === 'inspection_rules' ? ruleMistakes(value) : [];
    setMistakes(found);
    if (wrong.length > 0) setProblem(wrong.join('; '));
    else if (Object.keys(found).length === 0)
      void submit(
        value,
        fields!.map(({ name }) => name),
      );
  };
  /** An edit clears all messages, since saving checks the fields again. */
  const edit = (next: FormTexts): void => {
    setTexts(next);
    setMistakes({});
    setProblem('');
  };
  const showJson = (): void => setJson(JSON.stringify({ ...withoutServerFields(entry), ...valueOf(fields!, texts).value }, null, 2));
  return (
    <form onSubmit={save} class="fields" noValidate aria-label={isNew ? 'New' : `Edit ${textOf(entry['name'] ?? entry['uuid'])}`}>
      {json === null ? (
        <Fields fields={fields!} {...{ texts, isWrong, edit }} />
      ) : (
        <label>
          {isNew ? 'A new one, as JSON' : textOf(entry['uuid'])}
          <textarea name="json" rows={16} spellcheck={false} value={json} onInput={({ currentTarget }) => setJson(currentTarget.value)} />
        </label>
      )}
      <Problems {...{ problem, mistakes }} />
      <button class="first">Save</button>{' '}
      {fields && json === null && (
        <button type="button" onClick={showJson}>
          Edit as JSON
        </button>
      )}{' '}
      <button type="button" onClick={cancel}>
        Cancel
      </button>
    </form>
  );
}
