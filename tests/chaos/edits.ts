/** Small writes with immediate answers: fields, traits, ports, allocations. Each is read again afterwards, from every server. */
import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { accepted, type Answer, type Body } from './client';
import { trackValue, type TrackedValue } from './journal';
import { brief, read, type Actor, type LoadContext } from './life';

export interface Edits {
  readonly act: Actor;
  /** Compares the rows with what was acknowledged, while no work is under way. */
  readonly check: () => Promise<void>;
}
const PAUSE_MS = 60;

/** One value that is written and read. `undefined`: it does not exist. */
interface Field {
  readonly tracked: TrackedValue<unknown>;
  readonly value: (turn: number) => unknown;
  readonly write: (value: unknown) => Promise<Answer>;
  readonly path: string;
  readonly of: (body: Body | undefined) => unknown;
}
function writer({ api, journal, chance }: LoadContext, fields: readonly Field[], pause: number): Edits {
  let turn = 0;
  return {
    act: async (stop) => {
      while (!stop.aborted) {
        await delay(chance.between(0, 2 * pause));
        const field = chance.pick(fields);
        const value = field.value(++turn);
        const answer = await field.write(value);
        if (accepted(answer)) field.tracked.acknowledged(value);
        else if (answer.status === 0) field.tracked.unsure(value);
        else journal.count('writes refused');
      }
    },
    check: async () => {
      for (const path of new Set(fields.map((field) => field.path))) {
        const answers = await api.everywhere(path);
        const [first] = answers;
        if (answers.some((answer) => answer.status !== first!.status || !isDeepStrictEqual(withoutLinks(answer), withoutLinks(first!))))
          journal.find('servers do not agree', {
            path,
            answers: answers.map(({ status, body }) => [status, body['revision'], body['updated_at'], body['extra'], body['reason']]),
          });
        if (first!.status !== 200 && first!.status !== 404)
          journal.find('no proper answer although no request was under way', { path, first });
        else
          for (const field of fields.filter((candidate) => candidate.path === path))
            field.tracked.seen(field.of(first!.status === 404 ? undefined : first!.body));
      }
    },
  };
}
const withoutLinks = ({ body }: Answer): string => JSON.stringify(body).replace(/http:\/\/[^"/]+/g, '');

/** Fields of a node whose states life.ts changes; the states are not checked here. */
export function editNode(context: LoadContext, uuid: string): Edits {
  const { api, journal } = context;
  const path = `/v1/nodes/${uuid}`;
  const patched = (name: string, value: (turn: number) => unknown, empty: unknown): Field => ({
    tracked: trackValue<unknown>(journal, `${name} of ${uuid}`, undefined),
    value,
    write: (wanted) => api.call('PATCH', path, [{ op: 'add', path: `/${name}`, value: wanted }]),
    path,
    of: (body) => (isDeepStrictEqual(body?.[name], empty) ? undefined : body?.[name]),
  });
  return writer(
    context,
    [
      patched('extra', (turn) => ({ turn }), {}),
      patched('description', (turn) => `turn ${turn}`, null),
      {
        ...patched('traits', (turn) => [`CUSTOM_TURN_${turn}`], []),
        write: (traits) => api.call('PUT', `${path}/traits`, { traits }),
      },
    ],
    PAUSE_MS,
  );
}

/** A node that is created and deleted, with its ports, and gets no orders. */
export function churnNode(context: LoadContext, number: number): Edits {
  const { api, journal, chance } = context;
  const uuid = chance.uuid();
  const home = chance.uuid();
  const make = (path: string, body: object, value: string): Field => {
    const own: TrackedValue<unknown> = trackValue<unknown>(journal, `the existence of ${path}/${value}`, undefined);
    return {
      tracked: own,
      // Created and deleted by turns.
      value: () => (own.last === undefined ? value : undefined),
      write: async (wanted) => {
        const answer =
          wanted === undefined ? await api.call('DELETE', `${path}/${value}`) : await api.call('POST', path, { uuid: value, ...body });
        // An earlier request, which was not answered, has done it.
        const done =
          wanted === undefined ? answer.status === 404 : answer.status === 409 && JSON.stringify(answer.body).includes('already exists');
        return done ? { status: 200, body: {} } : answer;
      },
      path: `${path}/${value}`,
      of: (body) => body?.['uuid'],
    };
  };
  const address = (index: number): string => `52:54:01:00:${number.toString(16).padStart(2, '0')}:${index.toString(16).padStart(2, '0')}`;
  const still = { driver: 'fake-hardware' };
  const ports = [0, 1].map((index) => make('/v1/ports', { node_uuid: home, address: address(index) }, chance.uuid()));
  const { act, check } = writer(
    context,
    [make('/v1/nodes', still, uuid), ...ports, make('/v1/deploy_templates', { name: `CUSTOM_T${number}`, steps: TEMPLATE }, chance.uuid())],
    PAUSE_MS,
  );
  let made = false;
  return {
    act: async (stop) => {
      while (!made && !stop.aborted) {
        const { status } = await api.call('POST', '/v1/nodes', { uuid: home, ...still });
        made = status === 201 || status === 409;
      }
      await act(stop);
    },
    check: async () => (made ? check() : undefined),
  };
}
const TEMPLATE = [{ interface: 'vendor', step: 'count_resumable', args: {}, priority: 10 }];

/** Allocations over a few available nodes of their own: each gets a node or an error, and its node and the allocation agree. */
export function allocate(context: LoadContext, resourceClass: string): Edits {
  const { api, journal, chance } = context;
  const nodes = [chance.uuid(), chance.uuid()];
  let ready = false;
  const prepare = async (): Promise<void> => {
    for (const uuid of nodes) {
      await api.call('POST', '/v1/nodes', { uuid, driver: 'fake-hardware', resource_class: resourceClass, automated_clean: false });
      const node = await read(context, `/v1/nodes/${uuid}`);
      if (!node || node['reservation'] !== null) return;
      if (node['power_state'] === null) await api.call('PUT', `/v1/nodes/${uuid}/states/power`, { target: 'power on' });
      const verb = { enroll: 'manage', manageable: 'provide' }[node['provision_state'] as string];
      if (verb) await api.call('PUT', `/v1/nodes/${uuid}/states/provision`, { target: verb });
      if (node['provision_state'] !== 'available' || node['power_state'] === null) return;
    }
    ready = true;
  };
  const there = new Set<string>();
  const once = async (): Promise<void> => {
    const uuid = chance.uuid();
    const path = `/v1/allocations/${uuid}`;
    const made = await api.call('POST', '/v1/allocations', { uuid, resource_class: resourceClass });
    if (made.status === 0 || accepted(made)) there.add(uuid);
    if (accepted(made)) journal.count('acknowledged writes');
    for (const until = Date.now() + 240_000; ;) {
      await delay(100);
      const found = await read(context, path);
      if (!found) {
        // A request without an answer may still be carried out, by a server that is suspended or busy now.
        if (made.status !== 0) there.delete(uuid);
        if (accepted(made)) journal.find('lost: an allocation', uuid);
        return;
      }
      if (found['state'] !== 'allocating') break;
      if (Date.now() > until) {
        journal.find('an allocation never ended', found);
        return;
      }
    }
    await delay(chance.between(0, 300));
    for (const until = Date.now() + 240_000; ;) {
      await delay(100);
      const { status } = await api.call('DELETE', path);
      if (status === 204 || status === 404) break;
      if (Date.now() > until) {
        journal.find('an allocation cannot be deleted', path);
        return;
      }
    }
    journal.count('acknowledged writes');
    there.delete(uuid);
  };
  return {
    act: async (stop) => {
      while (!stop.aborted) {
        if (ready) await once();
        else await prepare();
        await delay(chance.between(0, 300));
      }
    },
    check: async () => {
      const list = (await read(context, `/v1/allocations?resource_class=${resourceClass}`))?.['allocations'] as readonly Body[] | undefined;
      const found = list ?? [];
      for (const allocation of found)
        if (!there.has(allocation['uuid'] as string)) journal.find('a deleted allocation still exists', allocation);
      for (const uuid of nodes) {
        const node = await read(context, `/v1/nodes/${uuid}`);
        const owner = found.find((candidate) => candidate['node_uuid'] === uuid);
        if ((node?.['allocation_uuid'] ?? undefined) !== owner?.['uuid'] || (node?.['instance_uuid'] ?? undefined) !== owner?.['uuid'])
          journal.find('a node and its allocation do not agree', {
            node: brief(node),
            allocation: node?.['allocation_uuid'],
            instance: node?.['instance_uuid'],
            owner,
          });
        journal.count('checks of acknowledged writes');
      }
    },
  };
}
