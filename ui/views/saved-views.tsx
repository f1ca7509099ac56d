/** Named views of the fleet in the browser's local storage. They contain filters, order and columns, but no data of nodes. */
import { useState } from 'preact/hooks';

const SAVED = 'bloomery.views';
type Saved = Readonly<Record<string, string>>;
function savedViews(): Saved {
  try {
    return JSON.parse(localStorage.getItem(SAVED) ?? '{}') as Saved;
  } catch {
    return {};
  }
}

/** @param props.query the present view, as the URL has it */
export function SavedViews({ query }: { readonly query: string }) {
  const [saved, setSaved] = useState(savedViews);
  const keep = (next: Saved): void => {
    localStorage.setItem(SAVED, JSON.stringify(next));
    setSaved(next);
  };
  const save = (event: SubmitEvent): void => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    keep({ ...saved, [(new FormData(form).get('view') as string).trim()]: query });
    form.reset();
  };
  return (
    <details class="menu">
      <summary>Views</summary>
      <div>
        <ul>
          {Object.entries(saved).map(([name, view]) => (
            <li key={name}>
              <a href={`#/nodes?${view}`} aria-current={view === query ? 'true' : undefined}>
                {name}
              </a>{' '}
              <button
                type="button"
                aria-label={`Delete the view ${name}`}
                onClick={() => keep(Object.fromEntries(Object.entries(saved).filter(([entry]) => entry !== name)))}
              >
                ×
              </button>
            </li>
          ))}
        </ul>
        <form onSubmit={save}>
          <label>
            Name
            <input name="view" required pattern=".*\S.*" autocomplete="off" />
          </label>
          <button>Save this view</button>
        </form>
      </div>
    </details>
  );
}
