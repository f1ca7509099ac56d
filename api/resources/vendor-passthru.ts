/** …/vendor_passthru of nodes and drivers: calls vendor methods, named in the path or in the query. */
import type { HttpMethod, VendorAnswer } from '../../conductor/conductor';
import { invalid, invalidParameter } from '../../model/errors';
import { isObject } from '../../model/json';
import { withoutSecrets } from '../../model/masks';
import { str } from '../../model/python';
import type { JsonObject } from '../../model/records';
import { checkDriverServed } from './drivers';
import { nodeOf, onNode } from '../pipeline/node-find';
import type { Answer, ApiContext, Request, RequestOn, SomeHandlers } from '../pipeline/handler';

function methodOf({ query, params }: Request): string {
  const name = params['method'] ?? query['method'];
  if (typeof name !== 'string' || !name) throw invalid('Method not specified');
  return name;
}
function argsOf({ body }: Request): JsonObject {
  const args = body ?? {};
  if (isObject(args)) return args;
  throw invalidParameter(`Expected types <class 'dict'> for data: ${str(withoutSecrets(args))}`);
}
const answered = ({ async, result }: VendorAnswer): Answer => (async ? { status: 202 } : { status: 200, body: result });

type Call<Param extends string> = (request: RequestOn<Param>, context: ApiContext, http: HttpMethod) => Promise<VendorAnswer>;
const ofNode: Call<'node_ident'> = async (request, context, http) => {
  const node = await nodeOf(request, context, 'node:vendor_passthru');
  return context.conductor.callVendor(node.uuid, methodOf(request), http, argsOf(request));
};
const ofDriver: Call<'driver_name'> = async (request, context, http) => {
  const driver = request.params.driver_name;
  await checkDriverServed(driver, context);
  return context.conductor.callDriverVendor(driver, methodOf(request), http, argsOf(request));
};

/** The operations for a method whose name is in the path (`getVendor`), and in the query (`getVendorOf`). */
function calls<Param extends string>(call: Call<Param>) {
  const of =
    (http: HttpMethod) =>
    async (request: RequestOn<Param>, context: ApiContext): Promise<Answer> =>
      answered(await call(request, context, http));
  return { get: of('GET'), post: of('POST'), put: of('PUT'), patch: of('PATCH'), delete: of('DELETE') };
}
const ofNodes = calls(ofNode);
const ofDrivers = calls(ofDriver);

export const vendorHandlers = {
  getVendor: ofNodes.get,
  getVendorOf: ofNodes.get,
  postVendor: ofNodes.post,
  postVendorOf: ofNodes.post,
  putVendor: ofNodes.put,
  putVendorOf: ofNodes.put,
  patchVendor: ofNodes.patch,
  patchVendorOf: ofNodes.patch,
  deleteVendor: ofNodes.delete,
  deleteVendorOf: ofNodes.delete,
  getDriverVendor: ofDrivers.get,
  getDriverVendorOf: ofDrivers.get,
  postDriverVendor: ofDrivers.post,
  postDriverVendorOf: ofDrivers.post,
  putDriverVendor: ofDrivers.put,
  putDriverVendorOf: ofDrivers.put,
  patchDriverVendor: ofDrivers.patch,
  patchDriverVendorOf: ofDrivers.patch,
  deleteDriverVendor: ofDrivers.delete,
  deleteDriverVendorOf: ofDrivers.delete,
  listVendorMethods: onNode(({ driver }, _, { conductor }) => conductor.vendorMethods(driver)),
  listDriverVendorMethods: async ({ params }, context) => {
    const driver = params.driver_name;
    await checkDriverServed(driver, context);
    return { status: 200, body: await context.conductor.driverVendorMethods(driver) };
  },
} satisfies SomeHandlers;
