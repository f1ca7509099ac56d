import {
  RedfishError,
  actionOf,
  collection,
  followTask,
  linkedCollection,
  readTask,
  memberPaths,
  patchResource,
  readLinked,
  readResource,
  isUnseen,
  startedTask,
  type SendRedfishRequest,
} from '../../../wire/redfish';
import { askOf, clockOf, type AskedOf } from './ask';

type TaskProgress = Awaited<ReturnType<typeof readTask>>;
const link = (path: string): object => ({ '@odata.id': path });
const many = (count: number): object[] => Array.from({ length: count }, (_, n) => link(`/m/${n}`));

describe('collection', () => {
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
    ['whose pages form a circle', { '/c': { body: { Members: [link('/1')], 'Members@odata.nextLink': '/c' } } }, ['/1']],
    ['that names a member twice', { '/c': { body: { Members: [link('/1'), link('/1')] } } }, ['/1']],
    ['with invalid members', { '/c': { body: { Members: [null, 5, {}, { '@odata.id': 7 }, link('/1')] } } }, ['/1']],
    ['with invalid Members', { '/c': { body: { Members: 'x', 'Members@odata.nextLink': {} } } }, []],
    ['without a body', { '/c': { body: undefined } }, []],
    ['whose members are texts', { '/c': { body: { Members: ['/1', 'http://bmc/2', 'x', ''] } } }, ['/1', 'http://bmc/2']],
    ['whose members have an Id and no link', { '/c/?a': { body: {} }, '/c': { body: { Members: [{ Id: 'A 1' }] } } }, ['/c/A%201']],
  ])('memberPaths of a collection %s', async (_, resources, expected) => {
    expect(await memberPaths(askOf(resources).ask, '/c')).toEqual(expected);
  });
  it('memberPaths limits the number of members and pages', async () => {
    await expect(memberPaths(askOf({ '/c': { body: { Members: many(1001) } } }).ask, '/c')).rejects.toThrow('more than 1000 members');
    let page = 0;
    const endless = askOf({}, () => ({ body: { Members: [], 'Members@odata.nextLink': `/c?${++page}` } }));
    await expect(memberPaths(endless.ask, '/c')).rejects.toThrow('more than 100 pages');
    expect(endless.asked.length).toBe(100);
  });
  it('collection requests only members that are not expanded, and skips missing ones', async () => {
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
  it('collection reads the last members only where the caller says how many', async () => {
    const { ask, asked } = askOf({
      '/c': { body: { Members: [link('/1'), link('/2'), link('/3')] } },
      '/2': { body: 2 },
      '/3': { body: 3 },
    });
    expect((await collection(ask, '/c', 2)).map(({ body }) => body)).toEqual([2, 3]);
    expect(asked.map(({ path }) => path)).toEqual(['/c', '/2', '/3']);
  });
  it('collection fails if a member fails', async () => {
    await expect(collection(askOf({ '/c': { body: { Members: [link('/1')] } }, '/1': { status: 500 } }).ask, '/c')).rejects.toMatchObject({
      status: 500,
    });
  });
  it('linkedCollection reads the linked collection, or returns undefined', async () => {
    const { ask } = askOf({ '/c': { body: { Members: [link('/1')] } }, '/1': { body: { Id: 1 } } });
    const of = (body: unknown): ReturnType<typeof linkedCollection> =>
      linkedCollection(ask, { path: '/', body, etag: undefined }, 'Drives');
    expect(await of({ Drives: link('/c') })).toEqual([{ path: '/1', body: { Id: 1 }, etag: undefined }]);
    expect(await of({ Drives: link('/none') })).toBeUndefined();
    expect(await of({})).toBeUndefined();
  });
});

describe('resource', () => {
  it('readResource follows the JSON pointer after #', async () => {
    const { ask } = askOf({ '/t#/Fans/1': { body: { Fans: [{}, { 'a/b': 1 }], '@odata.etag': 'x' } } });
    expect(await readResource(ask, '/t#/Fans/1')).toEqual({ path: '/t#/Fans/1', body: { 'a/b': 1 }, etag: 'x' });
  });
  it('readLinked reads the linked resource, or returns undefined', async () => {
    const { ask } = askOf({ '/b': { body: { Id: 'b' } }, '/bad': { status: 500 } });
    const of = (body: unknown): ReturnType<typeof readLinked> => readLinked(ask, { path: '/', body, etag: undefined }, 'Bios');
    expect((await of({ Bios: link('/b') }))?.body).toEqual({ Id: 'b' });
    for (const body of [{ Bios: link('/none') }, { Bios: 5 }, {}, null]) expect(await of(body)).toBeUndefined();
    await expect(of({ Bios: link('/bad') })).rejects.toMatchObject({ status: 500 });
  });
  it.each<[string | undefined, readonly (string | undefined)[]]>([
    [undefined, [undefined]],
    ['"1"', ['"1"', 'read', '"now"', '*', undefined]],
    ['"now"', ['"now"', 'read', '*', undefined]],
    ['W/"1"', ['W/"1"', '"1"', 'read', '"now"', '*', undefined]],
    ['"1-gzip"', ['"1-gzip"', '"1"', 'read', '"now"', '*', undefined]],
    ['W/"1;gzip"', ['W/"1;gzip"', '"1;gzip"', 'W/"1"', 'read', '"now"', '*', undefined]],
  ])('patchResource with the ETag %s reads it again after status 412, and at last omits If-Match', async (etag, expected) => {
    const { ask, asked } = askOf({}, ({ method, headers }) =>
      method === 'GET' ? { headers: { etag: '"now"' } } : { status: headers?.['if-match'] === undefined ? 204 : 412 },
    );
    expect((await patchResource(ask, { path: '/r', body: {}, etag }, { a: 1 })).status).toBe(204);
    expect(asked.map(({ method, headers }) => (method === 'GET' ? 'read' : headers?.['if-match']))).toEqual(expected);
  });
  it('patchResource uses the ETag of now if the resource has changed', async () => {
    const { ask, asked } = askOf({}, ({ method, headers }) =>
      method === 'GET' ? { headers: { etag: '"2"' } } : { status: headers?.['if-match'] === '"2"' ? 200 : 412 },
    );
    expect((await patchResource(ask, { path: '/r', body: {}, etag: '"1"' }, { a: 1 })).status).toBe(200);
    expect(asked).toHaveLength(3);
  });
  it.each([
    [
      'Support of this Operation for Boot Properties is moved to FutureState URI(/redfish/v1/Systems/Self/SD)',
      '/redfish/v1/Systems/Self/SD',
    ],
    ['It is moved.', '/r/SD'],
  ])('patchResource writes elsewhere where the service says so: %s', async (message, place) => {
    const asked: string[] = [];
    const ask: SendRedfishRequest = async (method, path, more = {}) => {
      asked.push(`${method} ${path} ${more.headers?.['if-match'] ?? ''}`);
      if (method === 'PATCH' && path === '/r')
        throw new RedfishError('status', message, { status: 400, messageIds: ['Ami.1.0.OperationSupportedInFutureStateURI'] });
      return { status: method === 'GET' ? 200 : 204, headers: method === 'GET' ? { etag: '"sd"' } : {}, body: {} };
    };
    expect((await patchResource(ask, { path: '/r', body: {}, etag: undefined }, { a: 1 })).status).toBe(204);
    expect(asked).toEqual(['PATCH /r ', `GET ${place} `, `PATCH ${place} "sd"`]);
  });
  it('patchResource sends If-Match: * where the service demands a precondition and shows no ETag', async () => {
    const { ask, asked } = askOf({}, ({ headers }) => ({ status: headers?.['if-match'] === undefined ? 428 : 204 }));
    expect((await patchResource(ask, { path: '/r', body: {}, etag: undefined }, { a: 1 })).status).toBe(204);
    expect(asked.map(({ headers }) => headers?.['if-match'])).toEqual([undefined, '*']);
  });
  it('actionOf returns the target, and the allowable values of parameters from the action or its ActionInfo', async () => {
    const body = {
      Actions: {
        '#A.Do': {
          target: '/do',
          'Kind@Redfish.AllowableValues': ['x', 5],
          'Empty@Redfish.AllowableValues': [],
          '@Redfish.ActionInfo': '/info',
        },
        '#A.No': { target: 7 },
        '#A.Lost': { target: '/lost', '@Redfish.ActionInfo': '/none' },
        '#A.Bad': { target: '/bad', '@Redfish.ActionInfo': '/bad' },
      },
    };
    const { ask } = askOf({
      '/info': {
        body: { Parameters: [{ Name: 'Empty', AllowableValues: ['y', 1] }, 5, { Name: 'None', AllowableValues: [] }, { Name: 'Not' }] },
      },
      '/bad': { body: { Parameters: 'x' } },
    });
    const action = actionOf({ body }, '#A.Do');
    const allowed = await Promise.all(['Kind', 'Empty', 'None', 'Not', 'Other'].map(async (name) => action?.allowed(ask, name)));
    expect([action?.target, allowed]).toEqual(['/do', [['x'], ['y'], undefined, undefined, undefined]]);
    expect([actionOf({ body }, '#A.No'), actionOf({ body: null }, '#A.Do')]).toEqual([undefined, undefined]);
    for (const name of ['#A.Lost', '#A.Bad']) expect(await actionOf({ body }, name)!.allowed(ask, 'Kind')).toBeUndefined();
  });
});

describe('task', () => {
  const started = { status: 202, headers: {}, location: '/monitor', body: undefined };
  it.each<[object, string | undefined]>([
    [{ status: 200 }, undefined],
    [{ status: 204, location: '/x' }, undefined],
    [{ status: 202, location: '/m' }, '/m'],
    [{ status: 202, body: { ...link('/task'), TaskMonitor: '/m' } }, '/m'],
    [{ status: 202, body: link('/task') }, '/task'],
  ])('startedTask of the response %j is %s', (answer, expected) => {
    expect(startedTask({ status: 0, headers: {}, body: undefined, ...answer })).toBe(expected);
  });
  it.each([
    [{ ...started, location: undefined as never }, undefined, true],
    [started, '/monitor', false],
    [{ ...started, status: 204 }, undefined, false],
  ])('of the response %j, startedTask is %s and isUnseen is %s', (answer, monitor, unseen) => {
    expect([startedTask(answer), isUnseen(answer)]).toEqual([monitor, unseen]);
  });
  it.each<[string, AskedOf, Partial<TaskProgress>]>([
    ['a monitor of a running task', { status: 202 }, { kind: 'running' }],
    [
      'a monitor that returns its task',
      { status: 202, body: { TaskState: 'Running', PercentComplete: 40 } },
      { kind: 'running', percent: 40 },
    ],
    [
      'a monitor that still answers 202 for a completed task',
      { status: 202, body: { TaskState: 'Completed', TaskStatus: 'OK' } },
      { kind: 'done' },
    ],
    ['a monitor of a completed operation', { status: 200, body: { Id: 'new' } }, { kind: 'done' }],
    ['a monitor of a completed operation without a body', { status: 204 }, { kind: 'done' }],
    ['a monitor of a failed operation', { status: 400 }, { kind: 'failed' }],
    ['a monitor that does not exist', { status: 404 }, { kind: 'gone' }],
    ['a starting task', { status: 200, body: { TaskState: 'Starting' } }, { kind: 'running', state: 'Starting' }],
    ['a task in a nonstandard state', { status: 200, body: { TaskState: 'Baking' } }, { kind: 'running', state: 'Baking' }],
    ['a completed task', { status: 200, body: { TaskState: 'Completed' } }, { kind: 'done' }],
    ['a completed task with a warning', { status: 200, body: { TaskState: 'Completed', TaskStatus: 'Warning' } }, { kind: 'done' }],
    [
      'a completed task with status Critical',
      { status: 200, body: { TaskState: 'Completed', TaskStatus: 'Critical' } },
      { kind: 'failed' },
    ],
    [
      'a failed task',
      { status: 200, body: { TaskState: 'Exception', Messages: [{ Message: 'bad', MessageId: 'U.1.0.X' }, { MessageId: 'U.1.0.Y' }, 5] } },
      { kind: 'failed', messages: 'bad U.1.0.Y', messageIds: ['U.1.0.X', 'U.1.0.Y'] },
    ],
    ['a Retry-After', { status: 202, headers: { 'retry-after': '7' } }, { kind: 'running', retryAfterMs: 7000 }],
    ['a Retry-After beyond the limit', { status: 202, headers: { 'retry-after': '99999999' } }, { kind: 'running', retryAfterMs: 60_000 }],
    [
      'a task with invalid members',
      { status: 200, body: { TaskState: 5, PercentComplete: 900, Messages: 'x' } },
      { kind: 'done', percent: undefined },
    ],
  ])('readTask reads %s', async (_, answer, expected) => {
    expect(await readTask(askOf({ '/monitor': answer }).ask, '/monitor')).toMatchObject(expected);
  });
  it('readTask bounds a state of any length, which messages contain', async () => {
    const { ask } = askOf({ '/monitor': { status: 202, body: { TaskState: 'x'.repeat(100_000) } } });
    expect(await readTask(ask, '/monitor')).toMatchObject({ kind: 'running', state: 'x'.repeat(100) });
  });
  it.each<[string, AskedOf, Partial<TaskProgress>]>([
    [
      'in its messages',
      {
        body: {
          TaskState: 'Completed',
          Messages: [{ MessageId: 'Base.1.18.OperationTransitionedToJob', MessageArgs: ['/redfish/v1/job'] }],
        },
      },
      { kind: 'running', state: 'Running', job: '/redfish/v1/job' },
    ],
    [
      'in place of a task',
      {
        status: 202,
        body: {
          error: {
            code: 'Base.1.18.OperationTransitionedToJob',
            '@Message.ExtendedInfo': [
              { MessageId: 'Base.1.18.OperationTransitionedToJob', Message: "It is now at URI '/redfish/v1/job'." },
            ],
          },
        },
      },
      { kind: 'running', job: '/redfish/v1/job' },
    ],
    [
      'that is gone',
      { body: { TaskState: 'Completed', Messages: [{ MessageId: 'Base.1.18.OperationTransitionedToJob', MessageArgs: ['/gone'] }] } },
      { kind: 'gone', job: '/gone' },
    ],
  ])('readTask follows a task to the job that it has become, %s', async (_, task, expected) => {
    const { ask } = askOf({ '/task': task, '/redfish/v1/job': { body: { JobState: 'Running', PercentComplete: 5 } } });
    expect(await readTask(ask, '/task')).toMatchObject(expected);
  });
  it.each([
    ['Completed', 'done'],
    ['CompletedWithErrors', 'failed'],
    ['Scheduled', 'running'],
  ])('readTask reads a job in the state %s as %s', async (state, kind) => {
    const { ask } = askOf({ '/job': { body: { JobState: state, Message: 'why', MessageId: 'PR1' } } });
    expect(await readTask(ask, '/job')).toMatchObject({ kind, state, messages: 'why', messageIds: ['PR1'] });
  });
  it.each([401, 403, 429, 500, 503])('readTask fails with status %i', async (status) => {
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
  it('followTask polls until the task has ended', async () => {
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
  it('followTask returns the first response if the task no longer exists or there is none', async () => {
    expect(await follow([{ status: 404 }]).over).toBe(started);
    const { clock } = clockOf();
    const plain = { status: 204, headers: {}, body: undefined };
    expect(await followTask(askOf({}).ask, plain, { clock, signal: new AbortController().signal, timeoutMs: 1 })).toBe(plain);
  });
  it('followTask fails with the messages of a failed task', async () => {
    await expect(
      follow([{ status: 200, body: { TaskState: 'Exception', Messages: [{ Message: 'no room', MessageId: 'A.B' }] } }]).over,
    ).rejects.toMatchObject({ kind: 'task', message: 'the task /monitor ended as Exception: no room', messageIds: ['A.B'] });
  });
  it('followTask fails after the timeout', async () => {
    const { slept, over } = follow([], 20_000);
    await expect(over).rejects.toMatchObject({ kind: 'task', message: 'the task /monitor is not over after 20 s' });
    expect(slept.reduce((sum, item) => sum + item, 0)).toBeLessThanOrEqual(20_000);
  });
});
