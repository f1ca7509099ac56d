/** A node that gets order after order. Each accepted order must end, whichever process is killed meanwhile. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Chance } from './chance';
import { accepted, type Api, type Body } from './client';
import { knows, nextOrder, type Order } from './flows';
import type { Journal } from './journal';
import type { StepLog } from './step-log';

/** What all parts of the load share. */
export interface LoadContext {
  readonly api: Api;
  readonly chance: Chance;
  readonly journal: Journal;
  readonly log: StepLog;
}
/** Works until it is told to stop, and then ends what it began. */
export type Actor = (stop: AbortSignal) => Promise<void>;

/** An accepted order must be over by then; generous, since the machine that runs the tests may be busy. */
const ORDER_MS = 240_000;
const LOOK_MS = 250;
/** The error of a step that was cut off: its new conductor cannot know whether it ran. */
const CUT_OFF = /can't be resumed/;
/** The agent's token was lost with the only answer that has it. The load aborted the operation, or the operation timed out. */
const AGENT_LOST = /^By request|^Timeout reached/;
const RESTARTED = /aborted due to conductor restart/;

const SHOWN_FIELDS = [
  'uuid',
  'provision_state',
  'target_provision_state',
  'power_state',
  'target_power_state',
  'reservation',
  'last_error',
  'maintenance',
  'clean_step',
  'deploy_step',
  'service_step',
  'driver_internal_info',
  'provision_updated_at',
  'updated_at',
];
/** The members of a node that a finding shows. */
export const brief = (node: Body | undefined): Body => Object.fromEntries(SHOWN_FIELDS.map((name) => [name, node?.[name]]));

/** Tries again until the node is there: a server that is just starting is no loss. */
export async function read(context: LoadContext, path: string): Promise<Body | undefined> {
  for (let tried = 0; tried < 480; tried++) {
    const { status, body } = await context.api.call('GET', path);
    if (status === 200) return body;
    if (status === 404) return undefined;
    await delay(500);
  }
  context.journal.find('no server answered for four minutes', path);
  return undefined;
}

/** Stands for an order while the node has none. */
const NOTHING: Order = { verb: 'none', to: '', body: {}, once: [], counted: [] };

/** No conductor holds the node, and no power change is pending. */
const atRest = (node: Body): boolean => node['reservation'] === null && node['target_power_state'] === null;

async function speakAsAgent({ api }: LoadContext, uuid: string, token: { value: string }): Promise<boolean> {
  const looked = await api.call('GET', `/v1/lookup?node_uuid=${uuid}`);
  const given = (looked.body['config'] as Body | undefined)?.['agent_token'];
  if (typeof given === 'string' && !given.startsWith('*')) token.value = given;
  const beat = { callback_url: 'http://127.0.0.1:9', agent_token: token.value, agent_version: '11.0.0' };
  const answer = await api.call('POST', `/v1/heartbeat/${uuid}`, beat);
  return answer.status !== 400 && answer.status !== 401;
}

/** Waits until the order is over. @returns the node as it is then */
async function follow(context: LoadContext, uuid: string, order: Order, before: string): Promise<Body> {
  const { api, journal, log } = context;
  const until = Date.now() + ORDER_MS;
  const token = { value: '' };
  for (;;) {
    const node = await read(context, `/v1/nodes/${uuid}`);
    if (!node) {
      journal.find('a node is gone', uuid);
      return { uuid, provision_state: 'enroll' };
    }
    const state = node['provision_state'] as string;
    if (atRest(node) && (state === order.to || knows(state))) {
      log.check();
      const failed = state.endsWith(' failed');
      const error = String(node['last_error']);
      const excused = (order.once.length > 0 && CUT_OFF.test(error)) || (order.agent && AGENT_LOST.test(error));
      const missing = order.counted.filter((step) => log.begun(step) === 0);
      if (!failed && state === order.to && missing.length > 0)
        journal.find('an accepted order was lost', { order, missing, node: brief(node) });
      else if (state === before && state !== order.to) journal.find('an accepted order was lost', { order, node: brief(node) });
      else if (state !== order.to && !excused) journal.find(`${order.verb} ended in ${state}`, { order, node: brief(node) });
      journal.count(state === order.to ? `orders done: ${order.verb}` : 'orders failed at a step that may run once');
      return node;
    }
    if (order.agent && state === 'service wait' && !(await speakAsAgent(context, uuid, token)))
      // The token was in an answer that was lost with its server. An agent cannot know it, so the load aborts the operation.
      await api.call('PUT', `/v1/nodes/${uuid}/states/provision`, { target: 'abort' });
    if (Date.now() > until) {
      journal.find('stuck', { order, node: brief(node) });
      return node;
    }
    await delay(LOOK_MS);
  }
}

export interface Life {
  readonly uuid: string;
  readonly act: Actor;
}
export function liveNode(context: LoadContext, name: string): Life {
  const { api, chance, journal } = context;
  const uuid = chance.uuid();
  let state: string | undefined;

  const create = async (): Promise<void> => {
    const body = { uuid, name, driver: 'fake-hardware', driver_info: {}, automated_clean: chance.percent(70) };
    const { status } = await api.call('POST', '/v1/nodes', body);
    if (status !== 201 && status !== 409) return delay(LOOK_MS);
    state = 'enroll';
  };
  const provision = async (): Promise<void> => {
    const before = state!;
    const order = nextOrder(chance, before);
    // A node that failed in the middle of a step is in maintenance until an operator ends that.
    if (before.endsWith(' failed') && !(await api.call('DELETE', `/v1/nodes/${uuid}/maintenance`)).status) return delay(LOOK_MS);
    const answer = await api.call('PUT', `/v1/nodes/${uuid}/states/provision`, order.body);
    if (accepted(answer)) {
      journal.count('orders accepted');
      state = (await follow(context, uuid, order, before))['provision_state'] as string;
      return;
    }
    if (answer.status === 400) journal.find('refused', { order: order.body, state, said: answer.body });
    // The order may have been accepted all the same, and then it must end.
    const node = await settled(order);
    if (node) state = node['provision_state'] as string;
  };
  /** After a request without an answer, or one that came too early (409). */
  const settled = async (order: Order): Promise<Body | undefined> => {
    for (const until = Date.now() + ORDER_MS; ;) {
      await delay(LOOK_MS);
      const node = await read(context, `/v1/nodes/${uuid}`);
      if (!node || (atRest(node) && knows(node['provision_state'] as string))) return node;
      if (node['provision_state'] === 'service wait') await api.call('PUT', `/v1/nodes/${uuid}/states/provision`, { target: 'abort' });
      if (Date.now() > until) {
        journal.find('stuck after an order without an answer', { order, node: brief(node) });
        return node;
      }
    }
  };
  const power = async (): Promise<void> => {
    const target = chance.pick(['power on', 'power off', 'rebooting', 'soft rebooting']);
    const answer = await api.call('PUT', `/v1/nodes/${uuid}/states/power`, { target });
    const { status } = answer;
    const node = await settled({ ...NOTHING, verb: target });
    if (!accepted({ status, body: {} }) || !node) return;
    journal.count('power orders accepted');
    const wanted = target === 'power off' ? 'power off' : 'power on';
    if (node['power_state'] === wanted) return;
    const history = await read(context, `/v1/nodes/${uuid}/history?detail=true`);
    if (!RESTARTED.test(JSON.stringify([node['last_error'], history])))
      journal.find('an accepted power order was lost', { target, node: brief(node) });
    else journal.count('power orders given up with a conductor');
  };
  return {
    uuid,
    act: async (stop) => {
      while (!stop.aborted) {
        if (state === undefined) await create();
        else if (!knows(state)) state = (await settled(NOTHING))?.['provision_state'] as string | undefined;
        else if (state !== 'enroll' && knows(state) && chance.percent(20)) await power();
        else await provision();
      }
    },
  };
}
