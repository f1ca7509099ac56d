/**
 * Inspection by an external service (ironic-discoverd, ironic-inspector, or ours on port 5050). It boots the machine, gets the callback of
 * its ramdisk and writes the node through the API. Meanwhile the node is not reserved; a periodic check polls the service.
 */
import { readFileSync } from 'node:fs';
import type { Options } from '../../config/options';
import { Fault, reasonOf } from '../../model/errors';
import { createIntrospectionClient, IntrospectionError, urlProblem, type IntrospectionClient } from '../../wire/http/introspection';
import { type InspectInterface, type CheckResult, type Outcome, ServiceUnavailable, type Task, done, failed, wait } from '../interfaces';
import type { NodeRecord } from '../../model/records';

type DiscoverdOptions = Pick<
  Options,
  | 'discoverd.enabled'
  | 'discoverd.service_url'
  | 'discoverd.timeout'
  | 'discoverd.auth_type'
  | 'discoverd.username'
  | 'discoverd.password'
  | 'discoverd.cafile'
  | 'discoverd.certfile'
  | 'discoverd.keyfile'
  | 'discoverd.insecure'
>;

const DISABLED =
  'Inspection by discoverd is disabled: it needs [discoverd]enabled = true and the URL of the service in [discoverd]service_url.';

function cannotLoad(options: Options): string | undefined {
  if (!options['discoverd.enabled']) return undefined;
  const url = options['discoverd.service_url'];
  if (url === null || url === '') return '[discoverd]enabled is true, and [discoverd]service_url names no service';
  const problem = urlProblem(url);
  return problem === undefined ? undefined : `[discoverd]service_url cannot be used: ${problem}`;
}

function pem(options: DiscoverdOptions, name: 'cafile' | 'certfile' | 'keyfile'): string | undefined {
  const path = options[`discoverd.${name}`];
  if (path === null) return undefined;
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new Error(`cannot read [discoverd]${name}: ${reasonOf(error)}`, { cause: error });
  }
}

/** The configured service; undefined: none. Throws an Error for the operator when its certificates cannot be read. */
export function discoverdService(options: DiscoverdOptions): IntrospectionClient | undefined {
  const url = options['discoverd.service_url'];
  if (!options['discoverd.enabled'] || url === null || urlProblem(url) !== undefined) return undefined;
  const [ca, cert, key] = [pem(options, 'cafile'), pem(options, 'certfile'), pem(options, 'keyfile')];
  return createIntrospectionClient({
    url,
    timeoutMs: options['discoverd.timeout'] * 1000,
    user:
      options['discoverd.auth_type'] === 'http_basic'
        ? { name: options['discoverd.username'] ?? '', password: options['discoverd.password'] ?? '' }
        : undefined,
    tls: { insecure: options['discoverd.insecure'], ca: ca || undefined, cert: cert || undefined, key: key || undefined },
  });
}

/** Whether the service was asked for the current inspection. The mark is its start time: marks of earlier inspections do not count. */
const isRequested = (node: NodeRecord): boolean =>
  node.inspection_started_at !== null && node.driver_internal_info['discoverd_asked'] === node.inspection_started_at;

const ended = (outcome: Outcome): CheckResult => ({ outcome, internal: { discoverd_asked: undefined } });

/** Logs that the next round repeats the request. Throws ServiceUnavailable, which ends this round, when the service does not respond. */
function retryLater(task: Task, request: string, { kind, message }: IntrospectionError): void {
  task.log.warn(`The introspection service did not answer the request for ${request}; it is repeated later`, { reason: message });
  if (kind === 'unreachable') throw new ServiceUnavailable(`The introspection service does not answer: ${message}`);
}

async function isRunning(task: Task, service: IntrospectionClient): Promise<boolean> {
  try {
    const { finished, error } = await service.status(task.node.uuid, task.signal);
    return !finished && error === null;
  } catch (error) {
    if (!(error instanceof IntrospectionError)) throw error;
    return false;
  }
}

async function start(task: Task, service: IntrospectionClient): Promise<CheckResult | undefined> {
  try {
    await service.start(task.node.uuid, task.signal);
    return { internal: { discoverd_asked: task.node.inspection_started_at } };
  } catch (error) {
    if (!(error instanceof IntrospectionError)) throw error;
    if (error.kind === 'refused' || error.kind === 'unknown') {
      // The service already inspects the node: a conductor died before it could save that it had sent the request.
      if (await isRunning(task, service)) return { internal: { discoverd_asked: task.node.inspection_started_at } };
      return ended(failed(`Failed to start inspection: ${error.message}`));
    }
    retryLater(task, 'an introspection', error);
    return undefined;
  }
}

async function follow(task: Task, service: IntrospectionClient): Promise<CheckResult | undefined> {
  try {
    const { finished, error } = await service.status(task.node.uuid, task.signal);
    if (error !== null) return ended(failed(`discoverd inspection failed: ${error}`));
    return finished ? ended(done) : undefined;
  } catch (error) {
    if (!(error instanceof IntrospectionError)) throw error;
    // The service accepted the request and has lost it.
    if (error.kind === 'unknown') return ended(failed(`discoverd inspection failed: the service knows of none: ${error.message}`));
    retryLater(task, 'the state of an introspection', error);
    return undefined;
  }
}

export const discoverdInspect: InspectInterface = {
  inBand: true,
  byService: true,
  cannotLoad,
  validate: async (task) => {
    if (!task.connections.introspection) throw new Fault('InvalidParameterValue', { message: DISABLED });
    const { on, off } = task.driver.power;
    if (!on || !off)
      throw new Fault('InvalidParameterValue', {
        message: `Inspection by discoverd needs a power interface that powers machines on and off; ${task.node.power_interface} does not.`,
      });
  },
  inspect: async (task) => (task.connections.introspection ? wait : failed(DISABLED)),
  /** A service that does not know the node has nothing to abort. */
  abort: async (task) => {
    const service = task.connections.introspection;
    // Not requested: the service has not been asked yet, has refused, or has already ended the inspection.
    if (!service || !isRequested(task.node)) return;
    try {
      await service.abort(task.node.uuid, task.signal);
    } catch (error) {
      if (!(error instanceof IntrospectionError)) throw error;
      if (error.kind !== 'unknown')
        throw new Fault('DriverOperationError', { message: `the introspection service did not abort: ${error.message}` }, { cause: error });
    }
  },
  periodics: [
    {
      name: 'introspection status',
      every: (options) => options['discoverd.status_check_period'],
      states: ['inspect wait'],
      // The inspection must not be started twice.
      needsFreshNode: (node) => !isRequested(node),
      check: async (task) => {
        const service = task.connections.introspection;
        if (!service) return ended(failed(DISABLED));
        return isRequested(task.node) ? follow(task, service) : start(task, service);
      },
    },
  ],
};
