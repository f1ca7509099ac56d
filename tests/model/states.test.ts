/** The state machine's rows: complete, without contradictions, and drawn as they are. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { OPTIONS } from '../../config/options';
import { STATES, TRANSITIONS, VERBS, nextState, stateRow, type ProvisionState } from '../../model/states';
import { statesPage } from '../support/pages/states-page';

const states = Object.keys(STATES) as ProvisionState[];

it('docs/reference/states.md equals the generated page', () => {
  const path = join(__dirname, '../../docs/reference/states.md');
  if (process.env['UPDATE_DOCS']) writeFileSync(path, statesPage());
  expect(readFileSync(path, 'utf8')).toBe(statesPage());
});

it('TRANSITIONS have one edge per state and event, and connect all states', () => {
  const edges = TRANSITIONS.map(([from, event]) => `${from}/${event}`);
  expect(edges.filter((edge, at) => edges.indexOf(edge) !== at)).toEqual([]);
  expect(TRANSITIONS.flatMap(([from, , to]) => [from, to]).filter((state) => !states.includes(state))).toEqual([]);
  expect(states.filter((state) => state !== 'enroll' && !TRANSITIONS.some(([, , to]) => to === state))).toEqual([]);
});

it('each working state can fail, and each timeout is an existing option', () => {
  const working = states.filter((state) => stateRow(state).working);
  expect(working.filter((state) => nextState(state, 'fail') === undefined)).toEqual([]);
  const options = OPTIONS.map((row) => `${row.section}.${row.name}`);
  const bounded = states.flatMap((state) => [stateRow(state).timeout, stateRow(state).limit]).filter((option) => option !== undefined);
  expect(bounded.filter((option) => !options.includes(option as never))).toEqual([]);
});

it('only states with a flow can fail', () => {
  const failing = TRANSITIONS.filter(([, event]) => event === 'fail').map(([from]) => from);
  expect(failing.filter((state) => stateRow(state).flow === undefined)).toEqual([]);
});

it('exactly the states that are not stable have a target, which is an existing state', () => {
  expect(states.filter((state) => (stateRow(state).target === undefined) !== (stateRow(state).stable ?? false))).toEqual([]);
  expect(states.filter((state) => stateRow(state).target && !states.includes(stateRow(state).target as ProvisionState))).toEqual([]);
});

it('each verb has a transition', () => {
  expect(Object.keys(VERBS).filter((verb) => !TRANSITIONS.some(([, event]) => event === VERBS[verb]!.event))).toEqual([]);
});

it.each<[ProvisionState, string, readonly string[]]>([
  ['available', 'deploy manage', ['deploying', 'manageable']],
  ['active', 'rebuild delete rescue service', ['deploying', 'deleting', 'rescuing', 'servicing']],
  ['clean failed', 'manage', ['manageable']],
  ['error', 'rebuild delete', ['deploying', 'deleting']],
])('in state %s, clients may request the events "%s"', (from, events, to) => {
  const verbs = new Set(Object.values(VERBS).map(({ event }) => event));
  const edges = TRANSITIONS.filter(([state, event]) => state === from && verbs.has(event));
  expect(edges.map(([, event]) => event).join(' ')).toBe(events);
  expect(edges.map((edge) => edge[2])).toEqual(to);
});
