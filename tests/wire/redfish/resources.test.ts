import {
  actionOf,
  collection,
  followTask,
  linkedCollection,
  readTask,
  memberPaths,
  patchResource,
  readLinked,
  readResource,
  startedTask,
} from '../../../wire/redfish';
import { askOf, clockOf, type AskedOf } from './ask';

type TaskProgress = Awaited<ReturnType<typeof readTask>>;
const link = (path: string): object => ({ '@odata.id': path });
const many = (count: number): object[] => Array.from({ length: count }, (_, n) => link(`/m/${n}`));

describe('a collection', () => {
  it.each<[string, Parameters<typeof askOf>[0], readonly string[]]>([
    ['of one page', { '/c': { body: { Members: [link('/1'), link('/2')] } } }, ['/1', '/2']],
    [
      'of several pages',
      {
        '/c': { body: { Members: [link('/1')], 'Members@odata.nextLink': '/c?$skip=1' } },
        '/c?$skip=1': { body: { Members: [link('/2')] } },
      },
      ['/1', '/2'],
    ],
    ['whose pages lead in a circle', { '/c': { body: { Members: [link('/1')], 'Members@odata.nextLink': '/c' } } }, ['/1']],
    ['that names a member twice', { '/c': { body: { Members: [link('/1'), link('/1')] } } }, ['/1']],
    ['with members that are none', { '/c': { body: { Members: [null, 5, {}, { '@odata.id': 7 }, link('/1')] } } }, ['/1']],
    ['that is none', { '/c': { body: { Members: 'x', 'Members@odata.nextLink': {} } } }, []],
    ['of nothing', { '/c': { body: undefined } }, []],
  ])('%s', async (_, resources, expected) => {
    expect(await memberPaths(askOf(resources).ask, '/c')).toEqual(expected);
  });
  it('is bounded', async () => {
    await expect(memberPaths(askOf({ '/c': { body: { Members: many(1001) } } }).ask, '/c')).rejects.toThrow('more than 1000 members');
    let page = 0;
    const endless = askOf({}, () => ({ body: { Members: [], 'Members@odata.nextLink': `/c?${++page}` } }));
    await expect(memberPaths(endless.ask, '/c')).rejects.toThrow('more than 100 pages');
    expect(endless.asked.length).toBe(100);
  });
  it('is read with its members: those that came with it are not asked for, those that are not there are left out', async () => {
    const { ask, asked } = askOf({
      '/c': { body: { Members: [{ ...link('/1'), Name: 'one', '@odata.etag': 'e' }, link('/2'), link('/gone')] } },
      '/2': { body: { Name: 'two' }, headers: { etag: '"2"' } },
    });
    expect(await collection(ask, '/c')).toEqual([
      { path: '/1', body: { ...link('/1'), Name: 'one', '@odata.etag': 'e' }, etag: 'e' },
      { path: '/2', body: { Name: 'two' }, etag: '"2"' },
    ]);
    expect(asked.map(({ path }) => path)).toEqual(['/c', '/2', '/gone']);
  });
  it('that is broken is an error', async () => {
    await expect(collection(askOf({ '/c': { body: { Members: [link('/1')] } }, '/1': { status: 500 } }).ask, '/c')).rejects.toMatchObject({
      status: 500,
    });
  });
  it('that a resource links to, or does not', async () => {
    const { ask } = askOf({ '/c': { body: { Members: [link('/1')] } }, '/1': { body: { Id: 1 } } });
    const of = (body: unknown): ReturnType<typeof linkedCollection> =>
      linkedCollection(ask, { path: '/', body, etag: undefined }, 'Drives');
    expect(await of({ Drives: link('/c') })).toEqual([{ path: '/1', body: { Id: 1 }, etag: undefined }]);
    expect(await of({ Drives: link('/none') })).toBeUndefined();
    expect(await of({})).toBeUndefined();
  });
});

describe('a resource', () => {
  it('is a part of another when its path says so', async () => {
    const { ask } = askOf({ '/t#/Fans/1': { body: { Fans: [{}, { 'a/b': 1 }], '@odata.etag': 'x' } } });
    expect(await readResource(ask, '/t#/Fans/1')).toEqual({ path: '/t#/Fans/1', body: { 'a/b': 1 }, etag: 'x' });
  });
  it('behind a link, or nothing', async () => {
    const { ask } = askOf({ '/b': { body: { Id: 'b' } }, '/bad': { status: 500 } });
    const of = (body: unknown): ReturnType<typeof readLinked> => readLinked(ask, { path: '/', body, etag: undefined }, 'Bios');
    expect((await of({ Bios: link('/b') }))?.body).toEqual({ Id: 'b' });
    for (const body of [{ Bios: link('/none') }, { Bios: 5 }, {}, null]) expect(await of(body)).toBeUndefined();
    await expect(of({ Bios: link('/bad') })).rejects.toMatchObject({ status: 500 });
  });
  it.each<[string | undefined, readonly (string | undefined)[]]>([
    [undefined, [undefined]],
    ['"1"', ['"1"', undefined]],
    ['W/"1"', ['W/"1"', '"1"', undefined]],
  ])('with the ETag %s is changed where ETags cannot be compared', async (etag, expected) => {
    const { ask, asked } = askOf({}, ({ headers }) => ({ status: headers?.['if-match'] === undefined ? 204 : 412 }));
    expect((await patchResource(ask, { path: '/r', body: {}, etag }, { a: 1 })).status).toBe(204);
    expect(asked.map(({ headers }) => headers?.['if-match'])).toEqual(expected);
  });
  it('offers actions, with the values of their parameters', () => {
    const body = { Actions: { '#A.Do': { target: '/do', 'Kind@Redfish.AllowableValues': ['x', 5] }, '#A.No': { target: 7 } } };
    const action = actionOf({ body }, '#A.Do');
    expect([action?.target, action?.allowed('Kind'), action?.allowed('Other')]).toEqual(['/do', ['x'], undefined]);
    expect([actionOf({ body }, '#A.No'), actionOf({ body: null }, '#A.Do')]).toEqual([undefined, undefined]);
  });
});

describe('a task', () => {
  const started = { status: 202, headers: {}, location: '/monitor', body: undefined };
  it.each<[object, string | undefined]>([
    [{ status: 200 }, undefined],
    [{ status: 204, location: '/x' }, undefined],
    [{ status: 202, location: '/m' }, '/m'],
    [{ status: 202, body: { ...link('/task'), TaskMonitor: '/m' } }, '/m'],
    [{ status: 202, body: link('/task') }, '/task'],
  ])('of the answer %j is %s', (answer, expected) => {
    expect(startedTask({ status: 0, headers: {}, body: undefined, ...answer })).toBe(expected);
  });
  it('that the answer does not name is an error', () => {
    expect(() => startedTask({ ...started, location: undefined as never })).toThrow('did not say where its task can be seen');
  });
  it.each<[string, AskedOf, Partial<TaskProgress>]>([
    ['a monitor of what runs', { status: 202 }, { kind: 'running' }],
    ['a monitor with its task', { status: 202, body: { TaskState: 'Running', PercentComplete: 40 } }, { kind: 'running', percent: 40 }],
    ['a monitor that says 202 for ever', { status: 202, body: { TaskState: 'Completed', TaskStatus: 'OK' } }, { kind: 'done' }],
    ['a monitor of what is done', { status: 200, body: { Id: 'new' } }, { kind: 'done' }],
    ['a monitor of what had no answer', { status: 204 }, { kind: 'done' }],
    ['a monitor of what failed', { status: 400 }, { kind: 'failed' }],
    ['a monitor that was forgotten', { status: 404 }, { kind: 'gone' }],
    ['a task that runs', { status: 200, body: { TaskState: 'Starting' } }, { kind: 'running', state: 'Starting' }],
    ['a task in a state of its own', { status: 200, body: { TaskState: 'Baking' } }, { kind: 'running', state: 'Baking' }],
    ['a task that is done', { status: 200, body: { TaskState: 'Completed' } }, { kind: 'done' }],
    ['a task that is done with a warning', { status: 200, body: { TaskState: 'Completed', TaskStatus: 'Warning' } }, { kind: 'done' }],
    ['a task that is done badly', { status: 200, body: { TaskState: 'Completed', TaskStatus: 'Critical' } }, { kind: 'failed' }],
    [
      'a task that failed',
      { status: 200, body: { TaskState: 'Exception', Messages: [{ Message: 'bad', MessageId: 'U.1.0.X' }, { MessageId: 'U.1.0.Y' }, 5] } },
      { kind: 'failed', messages: 'bad U.1.0.Y', messageIds: ['U.1.0.X', 'U.1.0.Y'] },
    ],
    ['a wish to be asked later', { status: 202, headers: { 'retry-after': '7' } }, { kind: 'running', retryAfterMs: 7000 }],
    ['a wish to be asked never', { status: 202, headers: { 'retry-after': '99999999' } }, { kind: 'running', retryAfterMs: 60_000 }],
    ['nonsense', { status: 200, body: { TaskState: 5, PercentComplete: 900, Messages: 'x' } }, { kind: 'done', percent: undefined }],
  ])('%s', async (_, answer, expected) => {
    expect(await readTask(askOf({ '/monitor': answer }).ask, '/monitor')).toMatchObject(expected);
  });
  it.each([401, 403, 429, 500, 503])('cannot be seen: %i', async (status) => {
    await expect(readTask(askOf({ '/monitor': { status } }).ask, '/monitor')).rejects.toMatchObject({ status });
  });

  const follow = (looks: readonly AskedOf[], timeoutMs = 60_000, signal = new AbortController().signal) => {
    const left = [...looks];
    const { clock, slept } = clockOf();
    const seen: (number | undefined)[] = [];
    const { ask } = askOf({}, () => left.shift() ?? { status: 202 });
    const progress = ({ percent }: TaskProgress): void => void seen.push(percent);
    return { slept, seen, over: followTask(ask, started, { clock, signal, timeoutMs, progress }) };
  };
  it('is followed to its end', async () => {
    const { slept, seen, over } = follow([
      { status: 202, headers: { 'retry-after': '9' } },
      { status: 202, body: { TaskState: 'Running', PercentComplete: 50 } },
      { status: 201, body: { Id: 'new' } },
    ]);
    expect(await over).toMatchObject({ status: 201, body: { Id: 'new' } });
    expect([slept, seen]).toEqual([
      [500, 9000, 1000],
      [undefined, 50, undefined],
    ]);
  });
  it('that is forgotten is over, and one that is none is not followed', async () => {
    expect(await follow([{ status: 404 }]).over).toBe(started);
    const { clock } = clockOf();
    const plain = { status: 204, headers: {}, body: undefined };
    expect(await followTask(askOf({}).ask, plain, { clock, signal: new AbortController().signal, timeoutMs: 1 })).toBe(plain);
  });
  it('that fails is an error', async () => {
    await expect(
      follow([{ status: 200, body: { TaskState: 'Exception', Messages: [{ Message: 'no room', MessageId: 'A.B' }] } }]).over,
    ).rejects.toMatchObject({ kind: 'task', message: 'the task /monitor ended as Exception: no room', messageIds: ['A.B'] });
  });
  it('is not waited for without end', async () => {
    const { slept, over } = follow([], 20_000);
    await expect(over).rejects.toMatchObject({ kind: 'task', message: 'the task /monitor is not over after 20 s' });
    expect(slept.reduce((sum, one) => sum + one, 0)).toBeLessThanOrEqual(20_000);
  });
});
