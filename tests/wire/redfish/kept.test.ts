/** Changes that are read back, at services that keep them, drop them, show them late, or do not show them. */
import { patchKept, unkeptError } from '../../../wire/redfish';
import { askOf, clockOf, type AskedOf, type AskRecord } from './ask';

const change = { Boot: { BootSourceOverrideTarget: 'Pxe', HttpBootUri: null }, '@Redfish.Note': 1 };
const asked = { Target: 'Boot/BootSourceOverrideTarget' };
/** A service whose resource changes as `takes` says: for each PATCH its headers, and the reads until the change is shown. */
function service(takes: (patch: AskRecord, count: number) => number | undefined, more: { answer?: AskedOf; before?: object } = {}) {
  let [patches, reads, due] = [0, 0, Infinity];
  const { before = { Boot: { BootSourceOverrideTarget: 'None' } }, answer = { status: 204 } } = more;
  const it = askOf({}, (request) => {
    if (request.method === 'PATCH') {
      const late = takes(request, ++patches);
      if (late !== undefined) due = reads + late;
      return answer;
    }
    if (request.path !== '/r') return { body: { TaskState: 'Completed' } };
    return { body: reads++ >= due ? { ...before, ...change } : before };
  });
  const { clock, slept } = clockOf();
  const words = (): readonly string[] => it.asked.map(({ method, headers }) => `${method}${headers ? ` ${headers['if-match']}` : ''}`);
  const options = { clock, signal: new AbortController().signal };
  return {
    words,
    slept,
    run: (given = {}) => patchKept(it.ask, { path: '/r', body: {}, etag: undefined }, change, { ...options, ...given }),
  };
}

it('is kept: one read more', async () => {
  const { run, words, slept } = service(() => 0);
  expect(await run()).toMatchObject({ unkept: [] });
  expect([words(), slept]).toEqual([['PATCH', 'GET'], []]);
});
it('needs no read where the answer shows the change', async () => {
  const { run, words } = service(() => 0, { answer: { body: { ...change, Boot: { ...change.Boot, Other: 1 } } } });
  expect(await run()).toMatchObject({ unkept: [] });
  expect(words()).toEqual(['PATCH']);
});
it.each([
  [1, ['PATCH', 'GET', 'GET'], [2000]],
  [2, ['PATCH', 'GET', 'GET', 'GET'], [2000, 5000]],
])('may be shown %i reads later', async (late, expected, pauses) => {
  const { run, words, slept } = service(() => late);
  expect(await run()).toMatchObject({ unkept: [] });
  expect([words(), slept]).toEqual([expected, pauses]);
});
it('is sent once more with If-Match: * where it is dropped without', async () => {
  const { run, words } = service(({ headers }) => (headers?.['if-match'] === '*' ? 0 : undefined));
  expect(await run()).toMatchObject({ unkept: [] });
  expect(words()).toEqual(['PATCH', 'GET', 'GET', 'GET', 'PATCH *', 'GET']);
});
it('is reported with property, asked and found value, maker, and what the service said', async () => {
  const said = { Boot: {}, 'Boot@Message.ExtendedInfo': [{ MessageId: 'Base.1.8.PropertyNotUpdated', Message: 'not now' }] };
  const { run, words } = service(() => undefined, { answer: { body: said } });
  const kept = await run();
  expect(kept).toMatchObject({ unkept: [{ property: asked.Target, asked: 'Pxe', found: 'None' }], remarks: 'not now' });
  expect(words().filter((word) => word.startsWith('PATCH'))).toEqual(['PATCH', 'PATCH *']);
  expect(unkeptError('/r', 'ACME', kept)).toMatchObject({
    kind: 'unkept',
    message:
      'the change of /r is accepted, not kept by the service (ACME): Boot/BootSourceOverrideTarget was set to "Pxe" and is "None". The service said: not now',
  });
});
it.each<[string, object, object]>([
  ['what the service does not show', { before: {} }, {}],
  ['what the caller tolerates', {}, { tolerates: () => true }],
  ['numbers and truth as texts', { before: { Boot: { BootSourceOverrideTarget: 'Pxe', HttpBootUri: '' } } }, {}],
])('%s is no contradiction', async (_, given, options) => {
  const { run, words } = service(() => undefined, given);
  expect(await run(options)).toMatchObject({ unkept: [] });
  expect(words()).toEqual(['PATCH', 'GET']);
});
it('is looked for in further places, once the resource itself does not show it', async () => {
  const { ask, asked: all } = askOf({ '/other': { body: change }, '/r': { body: { Boot: { BootSourceOverrideTarget: 'None' } } } });
  const options = { clock: clockOf().clock, signal: new AbortController().signal, alsoAt: ['/other'] };
  expect(await patchKept(ask, { path: '/r', body: {}, etag: undefined }, change, options)).toMatchObject({ unkept: [] });
  expect(all.map(({ path }) => path)).toEqual(['/r', '/r', '/other']);
});
it('with a task is read when the task is over; without one and with 202, for longer', async () => {
  const task = service(() => 0, { answer: { status: 202, headers: {}, body: { '@odata.id': '/task' } } });
  expect(await task.run()).toMatchObject({ unkept: [] });
  const unseen = service(() => 4, { answer: { status: 202 } });
  expect(await unseen.run()).toMatchObject({ unkept: [] });
  expect(unseen.words().filter((word) => word === 'PATCH')).toHaveLength(1);
});
it('that may be shown later is read once, and sent again once', async () => {
  const { run, words, slept } = service(() => undefined);
  expect(await run({ isLater: true })).toMatchObject({ unkept: [{}] });
  expect([words(), slept]).toEqual([['PATCH', 'GET', 'PATCH *', 'GET'], []]);
});
