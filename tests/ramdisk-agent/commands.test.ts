import { silentLog } from '../../model/log';
import { type Commands, runner } from '../../ramdisk-agent/commands';
import { AgentError, toBody } from '../../model/agent/errors';
import { concerning } from '../../model/agent/subject';

function make(): {
  readonly runs: ReturnType<typeof runner>;
  readonly finish: (error?: Error) => void;
  readonly finished: () => number;
  readonly progressed: () => number;
} {
  let end: (error?: Error) => void = () => {};
  let finished = 0;
  let tenths = 0;
  let count = 0;
  const commands: Commands = {
    'a.quick': { run: async (params) => ({ got: params }) },
    'a.text': { run: async () => 'said' },
    'a.broken': {
      run: async () => {
        throw new Error('what happened');
      },
    },
    'a.beside': { beside: true, run: async ({ fails }) => (fails ? Promise.reject(new Error('no')) : { logs: 'x' }) },
    'a.long': {
      inBackground: true,
      run: (_, progress) =>
        new Promise((resolve, reject) => {
          progress(9);
          progress(41.2, { done: 4, of: 10 });
          progress(41.7, { done: 5, of: 12 });
          end = (error) => (error ? reject(error) : resolve('done'));
        }),
    },
  };
  return {
    runs: runner(
      commands,
      () => `id${++count}`,
      () => finished++,
      silentLog,
      () => tenths++,
    ),
    finish: (error) => end(error),
    finished: () => finished,
    progressed: () => tenths,
  };
}
const settled = { command_error: null, command_status: 'SUCCEEDED' };

it('executes a quick command before the response', async () => {
  const { runs } = make();
  expect(await runs.execute('a.quick', { x: 1 }, false)).toEqual({
    id: 'id1',
    command_name: 'quick',
    command_result: { got: { x: 1 } },
    ...settled,
  });
  expect(await runs.execute('a.text', {}, false)).toMatchObject({ command_result: { result: 'said' } });
  expect(runs.list().map((item) => item.id)).toEqual(['id1', 'id2']);
});

it('responds at once to a background command, and reports its progress and its result', async () => {
  const { runs, finish, finished, progressed } = make();
  expect(await runs.execute('a.long', {}, false)).toMatchObject({ command_name: 'long', command_status: 'RUNNING' });
  await Promise.resolve();
  expect(runs.list()[0]).toMatchObject({ command_status: 'RUNNING', command_result: { progress: 42, bytes: { done: 5, of: 12 } } });
  expect(progressed()).toBe(1);
  await expect(runs.execute('a.quick', {}, false)).rejects.toThrow(new AgentError('AgentIsBusy', 'executing command long'));
  const waiting = runs.get('id1', true);
  finish();
  expect(await waiting).toEqual({ id: 'id1', command_name: 'long', command_result: { result: 'long: done' }, ...settled });
  expect(finished()).toBe(1);
  expect(await runs.execute('a.quick', {}, false)).toMatchObject({ command_status: 'SUCCEEDED' });
});

it.each<[Error, object]>([
  [new Error('boom'), { type: 'CommandExecutionError', code: 500, message: 'Command execution failed', details: 'boom' }],
  [new AgentError('DeviceNotFound', 'none'), { type: 'DeviceNotFound', code: 404, details: 'none' }],
])('reports why a background command failed: %s', async (error, expected) => {
  const { runs, finish, finished } = make();
  const result = runs.execute('a.long', {}, true);
  await Promise.resolve();
  finish(error);
  expect(await result).toMatchObject({ command_status: 'FAILED', command_result: null, command_error: expected });
  expect(finished()).toBe(1);
});

it('reports a version mismatch as CLEAN_VERSION_MISMATCH', async () => {
  const { runs, finish } = make();
  const result = runs.execute('a.long', {}, true);
  await Promise.resolve();
  finish(new AgentError('VersionMismatch', 'x'));
  expect(await result).toMatchObject({ command_status: 'CLEAN_VERSION_MISMATCH', command_error: { code: 409 } });
});

it('records a quick command that fails', async () => {
  const { runs } = make();
  expect(await runs.execute('a.broken', {}, false)).toMatchObject({
    command_status: 'FAILED',
    command_error: { details: 'what happened' },
  });
});

it.each([
  ['quick', 400, 'Invalid command: Command name must be of the form <extension>.<name>'],
  ['b.quick', 404, 'Not found: Extension with id b not found.'],
  ['a.slow', 400, 'Invalid command: Unknown command: slow'],
  ['a.toString', 400, 'Invalid command: Unknown command: toString'],
])('rejects %s', async (name, status, message) => {
  const { runs } = make();
  await expect(runs.execute(name, {}, false)).rejects.toMatchObject({ status, message });
  expect(runs.list()).toEqual([]);
});

it('rejects an unknown command ID', async () => {
  await expect(make().runs.get('x', false)).rejects.toMatchObject({
    status: 404,
    message: 'Not found: Command Result with id x not found.',
  });
});

it('executes a command beside another one, and does not list it', async () => {
  const { runs, finish } = make();
  const { id } = await runs.execute('a.long', {}, false);
  const long = runs.get(id, true);
  expect(await runs.execute('a.beside', {}, false)).toMatchObject({ command_name: 'beside', command_result: { logs: 'x' }, ...settled });
  expect(await runs.execute('a.beside', { fails: true }, false)).toMatchObject({
    command_status: 'FAILED',
    command_error: { details: 'no' },
  });
  expect(runs.list().map(({ command_name: name }) => name)).toEqual(['long']);
  finish();
  await long;
});

it('tells the part of the machine that an error or one of its causes concerns', async () => {
  const cause = new Error('EIO');
  const thrown = concerning(
    () => 'disk /dev/sda (serial S1)',
    async () => Promise.reject(cause),
  );
  await expect(thrown).rejects.toBe(cause);
  const outer = new AgentError('ImageWriteError', 'x', { cause });
  expect(toBody(outer)).toMatchObject({ type: 'ImageWriteError', subject: 'disk /dev/sda (serial S1)' });
  // What is nearer to the error knows better.
  await concerning(
    () => 'disk /dev/sdb',
    async () => Promise.reject(outer),
  ).catch(() => {});
  expect(toBody(outer)).toMatchObject({ subject: 'disk /dev/sda (serial S1)' });
  expect(toBody(new Error('x'))).not.toHaveProperty('subject');
});
