/** …/vendor_passthru of nodes and drivers: calls vendor methods, named in the path or in the query. */
import type { HttpMethod, VendorAnswer } from '../../conductor/conductor';
import { Fault } from '../../model/errors';
import { withoutSecrets } from '../../model/masks';
import { str } from '../../model/python';
import type { JsonObject } from '../../model/records';
import { checkDriverServed } from './drivers';
import { nodeOf } from '../resource/node-find';
import type { Answer, Handler, Handlers, Request, ApiContext } from '../resource/handler';

function methodOf({ query }: Request): string {
  const name = query['method'] as string | null;
  if (!name) throw new Fault('Invalid', { message: 'Method not specified' });
  return name;
}
function argsOf({ body }: Request): JsonObject {
  const args = body ?? {};
  if (typeof args !== 'object' || Array.isArray(args))
    throw new Fault('InvalidParameterValue', { message: `Expected types <class 'dict'> for data: ${str(withoutSecrets(args))}` });
  return args as JsonObject;
}
const answered = ({ async, result }: VendorAnswer): Answer => (async ? { status: 202 } : { status: 200, body: result });

type Call = (request: Request, context: ApiContext, http: HttpMethod) => Promise<VendorAnswer>;
const ofNode: Call = async (request, context, http) => {
  const node = await nodeOf(request, context, 'node:vendor_passthru');
  return context.conductor.callVendor(node.uuid, methodOf(request), http, argsOf(request));
};
const ofDriver: Call = async (request, context, http) => {
  const driver = request.params['driver_name']!;
  await checkDriverServed(driver, context);
  return context.conductor.callDriverVendor(driver, methodOf(request), http, argsOf(request));
};

const METHODS: readonly HttpMethod[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
/** getVendor, postVendor, …: one operation for each HTTP method, and for a name in the path or in the query. */
const calls = (name: string, call: Call): Handlers =>
  Object.fromEntries(
    METHODS.flatMap((http) => {
      const handler: Handler = async (request, context) => answered(await call(request, context, http));
      const id = `${http.toLowerCase()}${name}`;
      return [
        [id, handler],
        [`${id}Of`, handler],
      ];
    }),
  );

export const vendorHandlers: Handlers = {
  ...calls('Vendor', ofNode),
  ...calls('DriverVendor', ofDriver),
  listVendorMethods: async (request, context) => {
    const node = await nodeOf(request, context, 'node:vendor_passthru');
    return { status: 200, body: await context.conductor.vendorMethods(node.driver) };
  },
  listDriverVendorMethods: async ({ params }, context) => {
    const driver = params['driver_name']!;
    await checkDriverServed(driver, context);
    return { status: 200, body: await context.conductor.driverVendorMethods(driver) };
  },
};
