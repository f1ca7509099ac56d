/** The check of a policy cannot be forgotten: nothing is written and nothing is answered before the policy of the operation was checked. */
import type { Conductor, ConductorApi } from '../../../conductor/conductor';
import { createDispatch } from '../../../api/dispatch';
import { handlers } from '../../../api/handlers';
import { explain } from '../../../api/http/errors';
import { checkOperations, checkPolicy, PUBLIC_OPERATIONS } from '../../../api/resource/access';
import type { ApiContext, Handler } from '../../../api/resource/handler';
import { withNotifications } from '../../../api/resource/notifications';
import { loadDocument, type Document, type Operation } from '../../../api/schema/document';
import { createValidators } from '../../../api/schema/schema';
import { NOBODY } from '../../../policy/caller';
import { optionsOf } from '../../support/options';

const NODE = '6ba7b810-9dad-11d1-80b4-00c04fd430c8';
const document = loadDocument();
const UNCHECKED: unknown = expect.stringMatching(/no code has checked the policy/);

/** Sends a request to a handler of the test, with an allowed policy. @returns the answer, and what was done */
async function dispatched(method: string, path: string, handler: Handler, allowed: readonly string[] = []) {
  const done: string[] = [];
  const note = (name: string) => async () => void done.push(name);
  const tables = { find: async () => ({ uuid: NODE, owner: null, lessee: null }), update: note('update'), putToken: note('putToken') };
  const context = {
    document,
    validators: createValidators(),
    options: optionsOf({}),
    notifier: { isWanted: () => false },
    store: { nodes: tables, runbooks: tables, hardware: tables, images: tables, transaction: note('transaction') },
    auth: { allowed: (_: unknown, policy: string) => allowed.includes(policy) },
  } as unknown as ApiContext;
  const conductor = { from: () => ({ setPower: note('setPower') }) as unknown as Conductor } as unknown as ConductorApi;
  const { operationId } = document.paths
    .find((item) => item.path.replace('{node_ident}', NODE).replace('{runbook_ident}', 'r').replace('{image_ident}', 'i') === path)!
    .operations.get(method)!;
  const replaced = jest.spyOn(handlers as Record<string, Handler>, operationId).mockImplementation(handler);
  try {
    const answer = createDispatch(context, conductor)(
      {
        method,
        path,
        segments: path.slice(1).split('/'),
        query: {},
        minor: document.max,
        jsonSuffix: false,
        headers: {},
        base: '',
        body: Buffer.from(method === 'PUT' ? '{"target":"power on"}' : '[]'),
        json: { values: 100 },
        caller: NOBODY,
        source: 's',
        peer: {} as never,
      },
      { route: '', origin: { requestId: 'r' } as never },
    );
    return { status: await answer.then(({ status }) => status, String), done };
  } finally {
    replaced.mockRestore();
  }
}
const SECRET = { status: 200, body: { secret: 'of another project' } };

describe('a handler that forgets its policy', () => {
  it('is refused before its content leaves the dispatcher', async () => {
    expect(await dispatched('GET', `/v1/nodes/${NODE}`, async () => SECRET)).toEqual({
      status: UNCHECKED,
      done: [],
    });
    expect(explain(new Error('no code has checked the policy node:get of this operation'))).toMatchObject({ status: 500 });
  });
  it.each<[string, string, string, Handler]>([
    ['a write to the store', 'PATCH', `/v1/nodes/${NODE}`, async (_, { store }) => (await store.nodes.update(NODE, {}), SECRET)],
    [
      'a write to another table',
      'POST',
      `/v1/nodes/${NODE}/hardware/token`,
      async (_, { store }) => {
        await store.nodes.find(NODE);
        await store.hardware.putToken(NODE, '', 'operator');
        return SECRET;
      },
    ],
    ['a transaction', 'PATCH', '/v1/runbooks/r', async (_, { store }) => (await store.transaction(async () => {}), SECRET)],
    [
      'a call of the conductor',
      'PUT',
      `/v1/nodes/${NODE}/states/power`,
      async (_, { conductor }) => {
        await conductor.setPower(NODE, 'power on');
        return SECRET;
      },
    ],
    [
      'a call of the conductor by GET',
      'GET',
      `/v1/nodes/${NODE}/sensors`,
      async (_, { conductor }) => {
        await conductor.setPower(NODE, 'power on');
        return SECRET;
      },
    ],
    [
      'a notification',
      'PATCH',
      `/v1/nodes/${NODE}`,
      (request, context) => withNotifications(context, request, 'node', 'update', {}, async () => SECRET),
    ],
  ])('does nothing: %s', async (_, method, path, handler) => {
    expect(await dispatched(method, path, handler, ['node:get', 'node:list_all'])).toEqual({
      status: UNCHECKED,
      done: [],
    });
  });
  it('is refused when it has checked another policy only', async () => {
    const handler: Handler = async (request, context) => {
      checkPolicy(request, context, 'node:get', { owner: null, lessee: null });
      await context.conductor.setPower(NODE, 'power on');
      return SECRET;
    };
    const result = await dispatched('PUT', `/v1/nodes/${NODE}/states/power`, handler, ['node:get', 'node:set_power_state']);
    expect(result).toEqual({ status: UNCHECKED, done: [] });
  });
});

it('a handler that checks its policy may write and answer', async () => {
  const handler: Handler = async (request, context) => {
    const node = await context.store.nodes.find(NODE);
    checkPolicy(request, context, 'node:set_power_state', node);
    await context.conductor.setPower(NODE, 'power on');
    await context.store.nodes.update(NODE, {});
    return SECRET;
  };
  const result = await dispatched('PUT', `/v1/nodes/${NODE}/states/power`, handler, ['node:set_power_state']);
  expect(result).toEqual({ status: 200, done: ['setPower', 'update'] });
});

it('the dispatcher checks a policy that depends on the caller alone before the handler', async () => {
  const handler = jest.fn(async () => SECRET);
  expect((await dispatched('GET', '/v1/images', handler)).status).toMatch(/baremetal:image:get/);
  expect(handler).not.toHaveBeenCalled();
  expect((await dispatched('GET', '/v1/images', handler, ['image:get'])).status).toBe(200);
});

it('an operation without a policy is listed as public, and policies exist', () => {
  const withOperation = (change: Partial<Operation>): Pick<Document, 'paths'> => {
    const [path] = document.paths.filter((item) => item.path === '/v1/images');
    const operations = new Map([['GET', { ...path!.operations.get('GET')!, ...change }]]);
    return { paths: [...document.paths, { ...path!, operations }] };
  };
  expect(() => checkOperations(document)).not.toThrow();
  expect(() => checkOperations(withOperation({ policy: null }))).toThrow(/listImages$/);
  expect(() => checkOperations(withOperation({ policy: 'image:gte' }))).toThrow(/listImages$/);
  expect(() => checkOperations(withOperation({ operationId: PUBLIC_OPERATIONS[0]! }))).toThrow(/showRoot$/);
});
