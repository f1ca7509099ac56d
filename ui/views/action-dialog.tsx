/** Asks before an action on nodes, and shows the outcome for each. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { runAction, type Outcome } from '../lib/actions';
import { api, may, pendingAction } from '../state';
import { Field } from './field';

const MOST_SHOWN = 200;

export function ActionDialog() {
  return pendingAction.value && <Question key={pendingAction.value.action.id} {...pendingAction.value} />;
}
function Question({ action, rows }: NonNullable<typeof pendingAction.value>) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [outcomes, setOutcomes] = useState<readonly Outcome[] | null>(null);
  const [problem, setProblem] = useState('');
  useEffect(() => dialog.current?.showModal(), []);
  const judged = rows.map((row) => ({ row, refusal: may(action.policy, row) ? action.refusal(row) : 'you may not do this to it' }));
  const [applies] = useState(() => judged.filter(({ refusal }) => refusal === undefined).map(({ row }) => row));
  const [leftOut] = useState(() => judged.filter(({ refusal }) => refusal !== undefined));
  const start = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const values = Object.fromEntries(new FormData(event.currentTarget as HTMLFormElement)) as Record<string, string>;
    for (const { name, title, kind } of action.inputs ?? [])
      if (kind === 'json')
        try {
          JSON.parse(values[name] ?? '');
        } catch {
          setProblem(`${title}: this is not JSON`);
          return;
        }
    setOutcomes([]);
    await runAction(action, applies, { api, values, report: (outcome) => setOutcomes((all) => [...(all ?? []), outcome]) });
  };
  const failed = (outcomes ?? []).filter(({ error }) => error !== undefined);
  const isDone = outcomes !== null && outcomes.length === applies.length;
  return (
    <dialog ref={dialog} onClose={() => (pendingAction.value = null)} aria-labelledby="question">
      <h2 id="question">
        {action.title}: {applies.length} {applies.length === 1 ? 'node' : 'nodes'}
      </h2>
      <p>{action.effect}</p>
      {outcomes === null ? (
        <form onSubmit={(event) => void start(event)}>
          <ul class="names" tabIndex={0}>
            {applies.slice(0, MOST_SHOWN).map(({ uuid, name }) => (
              <li key={uuid}>{name ?? uuid}</li>
            ))}
            {applies.length > MOST_SHOWN && <li>and {applies.length - MOST_SHOWN} more</li>}
          </ul>
          {leftOut.length > 0 && (
            <details>
              <summary>{leftOut.length} left out</summary>
              <ul class="names" tabIndex={0}>
                {leftOut.slice(0, MOST_SHOWN).map(({ row, refusal }) => (
                  <li key={row.uuid}>
                    {row.name ?? row.uuid}: {refusal}
                  </li>
                ))}
              </ul>
            </details>
          )}
          {action.inputs?.map(({ kind, ...input }) =>
            kind === 'json' ? (
              <label key={input.name}>
                {input.title}
                <textarea name={input.name} rows={6} required={input.needed ?? false} defaultValue={input.initial ?? ''} />
              </label>
            ) : (
              <Field key={input.name} type={kind} {...input} />
            ),
          )}
          {problem !== '' && <p role="alert">{problem}</p>}
          <button class={action.isDangerous ? 'danger' : 'first'} disabled={applies.length === 0}>
            {action.title}
          </button>{' '}
          <button type="button" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
        </form>
      ) : (
        <>
          <p role="status">
            {outcomes.length - failed.length} accepted, {failed.length} refused, {applies.length - outcomes.length} to go
          </p>
          <ul class="names" tabIndex={0}>
            {failed.slice(0, MOST_SHOWN).map(({ row, error }) => (
              <li key={row.uuid}>
                <strong>{row.name ?? row.uuid}</strong>: {error}
              </li>
            ))}
          </ul>
          <button class="first" disabled={!isDone} onClick={() => dialog.current?.close()}>
            Close
          </button>
        </>
      )}
    </dialog>
  );
}
