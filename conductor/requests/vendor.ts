/** …/vendor_passthru: calls vendor methods by name. */
import type { HttpMethod, VendorMethod } from '../../drivers/interfaces';
import { invalidParameter, reasonOf } from '../../model/errors';
import type { JsonObject } from '../../model/records';
import type { VendorAnswer, VendorMethodInfo } from '../core/call-types';
import type { Context } from '../core/context';
import { observeLog } from '../core/health';
import { defaultInterface } from '../hardware/hardware';
import { startTask, taskOf, withTask } from '../core/task';
import type { NodeTask } from '../core/node-task';

type Methods<Subject> = Readonly<Record<string, VendorMethod<Subject>>>;

const described = <Subject>(methods: Methods<Subject> | undefined): Readonly<Record<string, VendorMethodInfo>> =>
  Object.fromEntries(
    Object.entries(methods ?? {})
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, { http, description, async = true, exclusive = true }]) => [
        name,
        { http_methods: http, async, description, attach: false, require_exclusive_lock: exclusive },
      ]),
  );

/** Throws InvalidParameterValue if there is no such method, or if it does not take this HTTP method or these arguments. */
function methodFor<Subject>(
  methods: Methods<Subject> | undefined,
  name: string,
  http: HttpMethod,
  args: JsonObject,
): VendorMethod<Subject> {
  const method = methods && Object.hasOwn(methods, name) ? methods[name]! : undefined;
  if (!method) throw invalidParameter(`No handler for method ${name}`);
  if (!method.http.includes(http)) throw invalidParameter(`The method ${name} does not support HTTP ${http}`);
  const unexpected = method.args ? Object.keys(args).filter((key) => !method.args!.includes(key)) : [];
  if (unexpected.length > 0) throw invalidParameter(`Unexpected arguments: ${unexpected.join(', ')}`);
  return method;
}

/** The methods of the hardware type's default interface, whatever interface the node has. Ironic lists them by hardware type too. */
export const vendorMethods = (context: Context, driver: string): Readonly<Record<string, VendorMethodInfo>> =>
  described(defaultInterface(context, driver, 'vendor').methods);

/** Runs after the response, without a reservation. */
function detached({ workers, log }: Context, name: string, work: () => Promise<unknown>): VendorAnswer {
  workers.take().run(async () => {
    await work().catch((error: unknown) => log.warn(`vendor method ${name} failed`, { reason: reasonOf(error) }));
  });
  return { async: true, result: null };
}

export async function callVendor(context: Context, uuid: string, name: string, http: HttpMethod, args: JsonObject): Promise<VendorAnswer> {
  const purpose = 'calling vendor passthru';
  const prepare = async (task: NodeTask): Promise<() => Promise<unknown>> => {
    const method = methodFor(task.driver.vendor.methods, name, http, args);
    await method.validate?.(task, args);
    return () => method.run(task, args, http);
  };
  const sharedTask = await taskOf(context, await context.store.nodes.find(uuid), false);
  const { async = true, exclusive = true, signals } = methodFor(sharedTask.driver.vendor.methods, name, http, args);
  if (!exclusive) {
    const work = await prepare(sharedTask);
    if (async) return detached(context, name, work);
    const result = await work();
    if (signals) await observeLog(context, uuid, signals(result));
    return { async, result };
  }
  if (!async) return withTask(context, uuid, { purpose, retry: true }, async (task) => ({ async, result: await (await prepare(task))() }));
  await startTask(context, uuid, { purpose, retry: true }, async (task) => {
    const work = await prepare(task);
    return async () => {
      await work();
    };
  });
  return { async: true, result: null };
}

export const driverVendorMethods = (context: Context, driver: string): Readonly<Record<string, VendorMethodInfo>> =>
  described(defaultInterface(context, driver, 'vendor').driverMethods);

export async function callDriverVendor(
  context: Context,
  driver: string,
  name: string,
  http: HttpMethod,
  args: JsonObject,
): Promise<VendorAnswer> {
  const called = methodFor(defaultInterface(context, driver, 'vendor').driverMethods, name, http, args);
  await called.validate?.(undefined, args);
  if (called.async === false) return { async: false, result: await called.run(undefined, args, http) };
  return detached(context, name, () => called.run(undefined, args, http));
}
