/** docs/reference/states.md: the state machine, drawn and listed from its rows. */
import { STATES, TRANSITIONS, VERBS, stateRow, type Event, type ProvisionState } from '../../../model/states';

const states = Object.keys(STATES) as ProvisionState[];
const ids = new Map(states.map((state) => [state, state.replaceAll(/[^a-z]/g, '_')]));
const verbsOf = (event: Event): readonly string[] => Object.keys(VERBS).filter((verb) => VERBS[verb]!.event === event);

export function statesPage(): string {
  const drawn = TRANSITIONS.map(([from, event, to]) => `  ${ids.get(from)} --> ${ids.get(to)}: ${event}`);
  const table = states.map((state) => {
    const row = stateRow(state);
    const kind = row.stable ? 'stable' : row.failed ? 'failed' : row.working ? 'working' : 'waiting';
    const leaves = TRANSITIONS.filter(([from]) => from === state).flatMap(([, event, to, since]) =>
      verbsOf(event).map((verb) => `\`${verb}\` → ${to}${since === undefined ? '' : ` (from 1.${since})`}`),
    );
    return `| ${state} | ${kind} | ${row.target ?? ''} | ${row.heartbeat ?? ''} | ${row.timeout ? `\`[${row.timeout.replace('.', ']')}\`` : ''} | ${leaves.join(', ')} |`;
  });
  return [
    '# Provision states',
    '',
    'This page is for everyone who works with nodes: the provision states, and the verbs that lead from one to another.',
    'It is generated from `model/states.ts`; do not edit it (`UPDATE_DOCS=1 npx jest tests/model/states` writes it).',
    '',
    '```mermaid',
    'stateDiagram-v2',
    ...states.filter((state) => ids.get(state) !== state).map((state) => `  state "${state}" as ${ids.get(state)}`),
    ...drawn,
    '```',
    '',
    '| state | kind | target state | effect of a heartbeat | timeout | verbs |',
    '|---|---|---|---|---|---|',
    ...table,
    '',
  ].join('\n');
}
