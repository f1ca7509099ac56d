/** Asks for confirmation of an action, with its nodes and its effect on each. Then shows the outcome of each. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { runAction, type Action, type Outcome } from '../lib/actions';
import { revision, rows as fleet } from '../lib/fleet';
import type { NodeRow } from '../lib/rows';
import { api, userMay, pendingAction } from '../state';
import { Field } from './field';
import { ImageChoice } from './image-choice';
import { StateMark } from './state-mark';

const MAX_SHOWN = 200;

export function ActionDialog() {
  return pendingAction.value && <Question key={pendingAction.value.action.id} {...pendingAction.value} />;
}
/** What the action will do to each node. */
const Before = ({ action, applies }: { readonly action: Action; readonly applies: readonly NodeRow[] }) => (
  <div class="names" tabIndex={0} role="region" aria-label="Nodes of the action">
    <table>
      <thead>
        <tr>
          <th scope="col">Node</th>
          <th scope="col">What happens</th>
        </tr>
      </thead>
      <tbody>
        {applies.slice(0, MAX_SHOWN).map((row) => (
          <tr key={row.uuid}>
            <td>{row.name ?? row.uuid}</td>
            <td>{action.change?.(row) ?? action.title.toLowerCase()}</td>
          </tr>
        ))}
      </tbody>
    </table>
    {applies.length > MAX_SHOWN && <p>and {applies.length - MAX_SHOWN} more</p>}
  </div>
);
/** The API's answer for each node, refusals first, and the node's present state. */
function After({ applies, outcomes }: { readonly applies: readonly NodeRow[]; readonly outcomes: readonly Outcome[] }) {
  void revision.value;
  const byNode = new Map(outcomes.map((outcome) => [outcome.row.uuid, outcome]));
  const rank = ({ uuid }: NodeRow): number => (byNode.get(uuid)?.error === undefined ? 1 : 0);
  const sorted = [...applies].sort((left, right) => rank(left) - rank(right));
  return (
    <div class="names" tabIndex={0} role="region" aria-label="Outcomes">
      <table>
        <thead>
          <tr>
            <th scope="col">Node</th>
            <th scope="col">Answer</th>
            <th scope="col">State now</th>
          </tr>
        </thead>
        <tbody>
          {sorted.slice(0, MAX_SHOWN).map((row) => {
            const outcome = byNode.get(row.uuid);
            const now = fleet.get(row.uuid);
            return (
              <tr key={row.uuid}>
                <td>{row.name ?? row.uuid}</td>
                <td class={outcome?.error === undefined ? '' : 'refused'}>
                  {outcome === undefined ? 'waits' : outcome.error === undefined ? 'accepted' : `refused: ${outcome.error}`}
                </td>
                <td>{now ? <StateMark row={now} /> : 'removed'}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {applies.length > MAX_SHOWN && <p>and {applies.length - MAX_SHOWN} more</p>}
    </div>
  );
}
function Question({ action, rows }: NonNullable<typeof pendingAction.value>) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [outcomes, setOutcomes] = useState<readonly Outcome[] | null>(null);
  const [problem, setProblem] = useState('');
  useEffect(() => dialog.current?.showModal(), []);
  const judged = rows.map((row) => ({ row, refusal: userMay(action.policy, row) ? action.refusal(row) : 'you may not do this to it' }));
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
          <Before {...{ action, applies }} />
          {leftOut.length > 0 && (
            <details>
              <summary>{leftOut.length} left out</summary>
              <ul class="names" tabIndex={0}>
                {leftOut.slice(0, MAX_SHOWN).map(({ row, refusal }) => (
                  <li key={row.uuid}>
                    {row.name ?? row.uuid}: {refusal}
                  </li>
                ))}
              </ul>
            </details>
          )}
          {action.inputs?.map(({ kind, choices = [], ...input }) => {
            if (kind === 'image') return <ImageChoice key={input.name} {...input} />;
            if (kind === 'text' || kind === 'password') return <Field key={input.name} type={kind} {...input} />;
            return (
              <label key={input.name}>
                {input.title}
                {kind === 'json' ? (
                  <textarea name={input.name} rows={6} required={input.needed ?? false} defaultValue={input.initial ?? ''} />
                ) : (
                  <select name={input.name}>
                    {choices.map((choice) => (
                      <option key={choice}>{choice}</option>
                    ))}
                  </select>
                )}
              </label>
            );
          })}
          {problem !== '' && <p role="alert">{problem}</p>}
          <p class="buttons">
            <button class={action.isDangerous ? 'first dangerous' : 'first'} disabled={applies.length === 0}>
              {action.title}
            </button>{' '}
            <button type="button" onClick={() => dialog.current?.close()}>
              Cancel
            </button>
          </p>
        </form>
      ) : (
        <>
          <p role="status">
            {outcomes.length - failed.length} accepted, {failed.length} refused, {applies.length - outcomes.length} to go
          </p>
          <After {...{ applies, outcomes }} />
          <p class="buttons">
            <button class="first" disabled={!isDone} onClick={() => dialog.current?.close()}>
              Close
            </button>
          </p>
        </>
      )}
    </dialog>
  );
}
