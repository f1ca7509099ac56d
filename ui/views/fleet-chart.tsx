/** The states of the fleet over the last day or, if the user may see only some nodes, since the page was opened. */
import { signal } from '@preact/signals';
import { connection, isComplete, revision, rows } from '../lib/fleet';
import { stackedAreas, beginOf, CLASSES, withSample, withServerCounts, type Sample, type ServerCounts } from '../lib/fleet-history';
import { durationText } from '../lib/steps';
import { api, userMay, session } from '../state';

const samples = signal<readonly Sample[]>([]);
revision.subscribe(() => {
  if (isComplete.peek()) samples.value = withSample(samples.peek(), Date.now(), rows.values());
});
// Drops the samples at each log-in and log-out: another user may see other nodes.
isComplete.subscribe(() => (samples.value = []));
connection.subscribe((state) => {
  if (state !== 'live' || !userMay('node:list_all')) return;
  const { csrf } = session.peek()!;
  api.get<ServerCounts>('v1/state_counts').then(
    (server) => {
      if (isComplete.peek() && session.peek()?.csrf === csrf) samples.value = withServerCounts(samples.peek(), Date.now(), server);
    },
    // Without the server's counts, the chart begins when the page was opened.
    () => {},
  );
});

export function FleetChart() {
  const all = samples.value;
  const last = all.at(-1);
  // An empty figure keeps the place, so that nothing moves when the list is complete.
  if (!last) return <figure class="history" aria-hidden="true" />;
  const shown = durationText(last.at - beginOf(all, last.at));
  return (
    <figure class="history">
      <svg
        viewBox="0 0 100 100"
        preserveAspectRatio="none"
        role="img"
        aria-label={`States in the last ${shown}; now ${CLASSES.map((name) => `${last.counts[name]} ${name}`).join(', ')}`}
      >
        {stackedAreas(all, Math.max(last.at, all[0]!.at + 1)).map(({ name, path }) => (
          <path key={name} class={name} d={path} />
        ))}
      </svg>
      <figcaption class="bar quiet">
        {CLASSES.filter((name) => last.counts[name] > 0).map((name) => (
          <span key={name}>
            <span class={`mark ${name}`} aria-hidden="true" /> {name} {last.counts[name]}
          </span>
        ))}
        <span>in {shown}</span>
      </figcaption>
    </figure>
  );
}
