/** The states of the fleet over time, since the page was opened. */
import { signal } from '@preact/signals';
import { isComplete, revision, rows } from '../lib/fleet';
import { areasOf, CLASSES, withSample, type Sample } from '../lib/fleet-history';

const samples = signal<readonly Sample[]>([]);
revision.subscribe(() => {
  samples.value = isComplete.peek() ? withSample(samples.peek(), Date.now(), rows.values()) : [];
});

export function FleetChart() {
  const all = samples.value;
  const last = all.at(-1);
  // Its place, so that nothing moves when the list is complete.
  if (!last) return <figure class="history" aria-hidden="true" />;
  const minutes = Math.round((last.at - all[0]!.at) / 60_000);
  return (
    <figure class="history">
      <svg
        viewBox="0 0 100 100"
        preserveAspectRatio="none"
        role="img"
        aria-label={`States in the last ${minutes} minutes; now ${CLASSES.map((name) => `${last.counts[name]} ${name}`).join(', ')}`}
      >
        {areasOf(all, Math.max(last.at, all[0]!.at + 1)).map(({ name, path }) => (
          <path key={name} class={name} d={path} />
        ))}
      </svg>
      <figcaption class="bar quiet">
        {CLASSES.filter((name) => last.counts[name] > 0).map((name) => (
          <span key={name}>
            <span class={`mark ${name}`} aria-hidden="true" /> {name} {last.counts[name]}
          </span>
        ))}
        <span>in {minutes} min</span>
      </figcaption>
    </figure>
  );
}
