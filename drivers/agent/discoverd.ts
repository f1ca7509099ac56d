/**
 * Inspection by a service of its own (ironic-discoverd, ironic-inspector, or ours on port 5050): it boots the machine, takes the callback
 * of its ramdisk and writes the node by way of the API. Nobody holds the node meanwhile; a periodic look follows how it stands.
 */
import { readFileSync } from 'node:fs';
import { Fault, reasonOf } from '../../model/errors';
import { createIntrospectionClient, IntrospectionError, urlProblem, type IntrospectionClient } from '../../wire/http/introspection';
import { type InspectInterface, type CheckResult, type Outcome, ServiceUnavailable, type Task, done, failed, wait } from '../interfaces';
import type { DriverOptions } from '../options';
import type { NodeRecord } from '../../model/records';

export interface DiscoverdOptions {
  readonly 'discoverd.enabled': boolean;
  readonly 'discoverd.service_url': string | null;
  readonly 'discoverd.timeout': number;
  readonly 'discoverd.auth_type': string;
  readonly 'discoverd.username': string | null;
  readonly 'discoverd.password': string | null;
  readonly 'discoverd.cafile': string | null;
  readonly 'discoverd.certfile': string | null;
  readonly 'discoverd.keyfile': string | null;
  readonly 'discoverd.insecure': boolean;
}

const DISABLED =
  'Inspection by discoverd is disabled: it needs [discoverd]enabled = true and the URL of the service in [discoverd]service_url.';

function cannotLoad(options: DriverOptions): string | undefined {
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

/** The service that the options name; undefined: none. Throws an Error for the operator when its certificates cannot be read. */
export function discoverdService(options: DiscoverdOptions): IntrospectionClient | undefined {
  const url = options['discoverd.service_url'];
  if (!options['discoverd.enabled'] || url === null || urlProblem(url) !== undefined) return undefined;
  const [ca, cert, key] = [pem(options, 'cafile'), pem(options, 'certfile'), pem(options, 'keyfile')];
  return createIntrospectionClient({
    url,
    timeoutMs: options['discoverd.timeout'] * 1000,
    ...(options['discoverd.auth_type'] === 'http_basic'
      ? { user: { name: options['discoverd.username'] ?? '', password: options['discoverd.password'] ?? '' } }
      : {}),
    tls: { insecure: options['discoverd.insecure'], ...(ca ? { ca } : {}), ...(cert ? { cert } : {}), ...(key ? { key } : {}) },
  });
}

/** Which inspection the service was asked for: it bears the time when it began, so that what is left of an earlier one means nothing. */
const asked = (node: NodeRecord): boolean =>
  node.inspection_started_at !== null && node.driver_internal_info['discoverd_asked'] === node.inspection_started_at;

const over = (outcome: Outcome): CheckResult => ({ outcome, internal: { discoverd_asked: undefined } });

/** Another time: of a service that does not answer, no node need be asked for now. */
function later(task: Task, what: string, { kind, message }: IntrospectionError): void {
  task.log.warn(`The introspection service was asked ${what} in vain, and will be again`, { reason: message });
  if (kind === 'away') throw new ServiceUnavailable(`The introspection service does not answer: ${message}`);
}

async function isUnderWay(task: Task, service: IntrospectionClient): Promise<boolean> {
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
      // It works on it already: a conductor died before it had written down that it had asked.
      if (await isUnderWay(task, service)) return { internal: { discoverd_asked: task.node.inspection_started_at } };
      return over(failed(`Failed to start inspection: ${error.message}`));
    }
    later(task, 'for an introspection', error);
    return undefined;
  }
}

async function follow(task: Task, service: IntrospectionClient): Promise<CheckResult | undefined> {
  try {
    const { finished, error } = await service.status(task.node.uuid, task.signal);
    if (error !== null) return over(failed(`discoverd inspection failed: ${error}`));
    return finished ? over(done) : undefined;
  } catch (error) {
    if (!(error instanceof IntrospectionError)) throw error;
    // It took the order, and knows nothing of it: it will not come back to it.
    if (error.kind === 'unknown') return over(failed(`discoverd inspection failed: the service knows of none: ${error.message}`));
    later(task, 'how an introspection stands', error);
    return undefined;
  }
}

export const discoverdInspect: InspectInterface = {
  inBand: true,
  byService: true,
  cannotLoad,
  validate: async (task) => {
    if (!task.connections.introspection) throw new Fault('InvalidParameterValue', { message: DISABLED });
    const { supported } = task.driver.power;
    if (!supported.includes('power on') || !supported.includes('power off'))
      throw new Fault('InvalidParameterValue', {
        message: `Inspection by discoverd needs a power interface that powers machines on and off; ${task.node.power_interface} does not.`,
      });
  },
  inspect: async (task) => (task.connections.introspection ? wait : failed(DISABLED)),
  /** A service that does not know the node has nothing to abort. */
  abort: async (task) => {
    const service = task.connections.introspection;
    // What the service itself has ended, or refused to begin.
    if (!service || !asked(task.node)) return;
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
      // It must not be started twice.
      needsFreshNode: (node) => !asked(node),
      check: async (task) => {
        const service = task.connections.introspection;
        if (!service) return over(failed(DISABLED));
        return asked(task.node) ? follow(task, service) : start(task, service);
      },
    },
  ],
};
