/** The history of a node: its states and steps as bars, and its events. */
import { useEffect, useState } from 'preact/hooks';
import { events } from '../lib/fleet';
import { classOf, sizeText, type NodeEvent } from '../lib/rows';
import { durationText, isUnderWay, placeOf, spansOf, type Span } from '../lib/steps';
import { api } from '../state';
import { Head, Scrolled, textOf, timeText } from './shared';

const MAX_SPANS = 60;
const MAX_EVENTS = 300;
const SECOND_MS = 1000;

/** An event in one line. */
function eventText({ kind, payload }: NodeEvent): string {
  const { previous_provision_state: before, provision_state: state, power_state: power, step, number, of, last_error: error } = payload;
  if (kind === 'state') return `${textOf(before)} → ${textOf(state)}`;
  if (kind === 'power') return textOf(power);
  if (kind === 'progress')
    return `${textOf(step)} ${textOf(payload['result'])} ${textOf(payload['condition'] ?? payload['next'] ?? payload['reason'])}`;
  if (kind === 'step') return `${textOf(step)} (${textOf(number)} of ${textOf(of)})`;
  return kind === 'error' ? textOf(error) : JSON.stringify(payload);
}
/** The events of a node, the newest first: those since the page was opened, and those that the server has stored. */
function useEvents(uuid: string): readonly NodeEvent[] {
  const [before, setBefore] = useState<readonly NodeEvent[]>([]);
  useEffect(() => {
    api.get<{ readonly events: readonly NodeEvent[] }>(`v1/events?node=${uuid}&limit=1000`).then(
      (page) => setBefore(page.events),
      () => {},
    );
  }, [uuid]);
  const live = events.value.filter(({ node_uuid: node }) => node === uuid);
  const ids = new Set(live.map(({ id }) => id));
  return [...live, ...before.filter(({ id }) => !ids.has(id)).reverse()];
}
/** The present time, updated each second. */
function useNow(): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), SECOND_MS);
    return () => clearInterval(timer);
  }, []);
  return now;
}

function SpanRow({
  span,
  all,
  now,
}: {
  readonly span: Span;
  readonly all: { readonly from: number; readonly to: number };
  readonly now: number;
}) {
  const { kind, name, from, to, percent, bytes } = span;
  const { x, width } = placeOf(span, all);
  const done = percent === undefined ? '' : `${percent} %`;
  return (
    <tr class={kind}>
      <td>{name}</td>
      <td>{new Date(from).toLocaleTimeString()}</td>
      <td>{durationText((to ?? now) - from)}</td>
      <td>
        {done}
        {bytes && ` (${sizeText(bytes.done)} of ${sizeText(bytes.of)})`}
      </td>
      <td>
        <svg class="span" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
          <rect class={kind === 'step' ? kind : classOf({ state: name })} x={x} width={width} y="2" height="6" />
        </svg>
      </td>
    </tr>
  );
}
function Steps({ all }: { readonly all: readonly NodeEvent[] }) {
  const now = useNow();
  const spans = spansOf(all.toReversed()).slice(-MAX_SPANS);
  // Leaves out the last state if the node rests in it, since the bars show operations.
  const shown = spans.at(-1)?.kind === 'state' && !isUnderWay(spans.at(-1)!.name) ? spans.slice(0, -1) : spans;
  if (shown.length === 0) return null;
  const time = { from: shown[0]!.from, to: Math.max(...shown.map(({ to }) => to ?? now)) };
  return (
    <Scrolled label="States and steps">
      <table>
        <Head titles={['State or step', 'Began', 'Lasted', 'Done', 'When']} />
        <tbody>
          {shown.toReversed().map((span) => (
            <SpanRow key={`${span.kind} ${span.name} ${span.from}`} span={span} all={time} now={now} />
          ))}
        </tbody>
      </table>
    </Scrolled>
  );
}
export function Timeline({ uuid }: { readonly uuid: string }) {
  const all = useEvents(uuid);
  const shown = all.filter(({ kind, payload }) => kind !== 'progress' || payload['result'] !== undefined).slice(0, MAX_EVENTS);
  return (
    <>
      <Steps all={all} />
      <h2>Events</h2>
      <Scrolled label="Events">
        <table>
          <thead>
            <tr>
              <th scope="col">Time</th>
              <th scope="col">Kind</th>
              <th scope="col">Event</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((event) => (
              <tr key={event.id}>
                <td>{timeText(event.at)}</td>
                <td>{event.kind}</td>
                <td>{eventText(event)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scrolled>
    </>
  );
}
