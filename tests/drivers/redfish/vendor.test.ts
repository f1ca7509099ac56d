import type { HttpMethod } from '../../../drivers/interfaces';
import { redfishVendor } from '../../../drivers/redfish/vendor';
import type { JsonObject } from '../../../model/records';
import { like, startsWith } from '../../support/expect';
import { NODE_UUID } from '../../support/task';
import { redfishError } from '../../wire/redfish/service';
import { redfishBench } from '../redfish-bench';

const { service, changes, bench } = redfishBench();
const EVENTS = '/redfish/v1/EventService';
const SUBSCRIPTIONS = `${EVENTS}/Subscriptions`;
const kept = { Id: '1', Context: 'c', Protocol: 'Redfish', Destination: 'https://listener.example/x', EventTypes: ['Alert'] };
const offer = (types?: readonly string[]): void => {
  Object.assign(service().resources['/redfish/v1/'] as object, { EventService: { '@odata.id': EVENTS } });
  service().resources[EVENTS] = { Subscriptions: { '@odata.id': SUBSCRIPTIONS }, ...(types ? { EventTypesForSubscription: types } : {}) };
  service().resources[SUBSCRIPTIONS] = { Members: [] };
  service().resources[`${SUBSCRIPTIONS}/1`] = { ...kept, HttpHeaders: [{ a: 'secret' }], Name: 'one' };
  service().reply = ({ method, path }) => {
    if (method === 'POST' && path === SUBSCRIPTIONS) return { status: 201, headers: { Location: `${SUBSCRIPTIONS}/1` } };
    return method === 'DELETE' ? { status: 204 } : undefined;
  };
};
const call = async (name: string, args: JsonObject = {}, task = bench().task): Promise<unknown> => {
  const method = redfishVendor.methods![name]!;
  await method.validate?.(task, args);
  return method.run(task, args, method.http[0] as HttpMethod);
};
const MINIMAL = { Destination: kept.Destination };

it('vendor methods are listed like those of Ironic', () => {
  expect(Object.entries(redfishVendor.methods!).map(([name, { http, async = true }]) => [name, http.join(), async])).toEqual([
    ['create_subscription', 'POST', false],
    ['delete_subscription', 'DELETE', false],
    ['eject_vmedia', 'POST', true],
    ['get_all_subscriptions', 'GET', false],
    ['get_subscription', 'GET', false],
  ]);
});

describe('subscriptions', () => {
  it.each<[JsonObject, JsonObject]>([
    [MINIMAL, { ...MINIMAL, Protocol: 'Redfish', Context: '', EventTypes: ['Alert'] }],
    [
      { ...MINIMAL, Protocol: 'SNMP', Context: 'c', EventTypes: ['Other'], HttpHeaders: [{ a: 'b' }] },
      { ...MINIMAL, Protocol: 'SNMP', Context: 'c', EventTypes: ['Other'], HttpHeaders: [{ a: 'b' }] },
    ],
    [
      { ...MINIMAL, HttpHeaders: [], EventTypes: [] },
      { ...MINIMAL, Protocol: 'Redfish', Context: '', EventTypes: [] },
    ],
  ])('create_subscription with %j succeeds, without the headers in the response', async (args, body) => {
    offer();
    expect(await call('create_subscription', args)).toEqual(kept);
    expect(changes()).toEqual([body]);
  });
  it.each<[JsonObject, string]>([
    [{}, 'Destination None is not a valid URI'],
    [{ Destination: 5 }, 'Destination 5 is not a valid URI'],
    [{ Destination: '/x' }, 'Destination /x is not a valid URI'],
    [{ Destination: 'https://a b' }, 'Destination https://a b is not a valid URI'],
    [{ ...MINIMAL, Context: 5 }, 'Context 5 is not a valid string'],
    [{ ...MINIMAL, Protocol: ['x'] }, "Protocol ['x'] is not a string"],
    [{ ...MINIMAL, HttpHeaders: { a: 'b' } }, "HttpHeaders {'a': 'b'} is not a list of headers"],
    [{ ...MINIMAL, EventTypes: ['Odd'] }, "EventTypes ['Odd'] is not a valid value, allowed values ['Alert', 'Other']"],
    [{ ...MINIMAL, EventTypes: 'Alert' }, "EventTypes Alert is not a valid value, allowed values ['Alert', 'Other']"],
  ])('create_subscription rejects %j', async (args, message) => {
    offer(['Alert', 'Other']);
    await expect(call('create_subscription', args)).rejects.toMatchObject({ status: 400, message });
    expect(changes()).toEqual([]);
  });
  it('create_subscription fails without the headers in the error', async () => {
    offer();
    service().reply = ({ method }) => (method === 'POST' ? { status: 400, body: redfishError('full') } : undefined);
    const error = await call('create_subscription', { ...MINIMAL, HttpHeaders: [{ authorization: 'hidden' }] }).catch(
      (item: unknown) => item,
    );
    expect(error).toMatchObject({
      status: 500,
      message: startsWith(`Redfish exception occurred. Error: Failed to create subscription on node ${NODE_UUID}. Subscription payload: `),
    });
    expect((error as Error).message).toContain('full');
    expect((error as Error).message).not.toContain('hidden');
  });
  it('get_all_subscriptions and get_subscription return subscriptions without headers', async () => {
    offer();
    expect(await call('get_all_subscriptions')).toEqual({ Members: [] });
    expect(await call('get_subscription', { id: '1' })).toEqual(kept);
  });
  it('delete_subscription sends a DELETE', async () => {
    offer();
    await call('delete_subscription', { id: '1' });
    expect(service().asked.at(-1)).toMatchObject({ method: 'DELETE', path: `${SUBSCRIPTIONS}/1` });
  });
  it.each(['7', '../../Systems/1', '..', 'a/b', 'a?b'])('delete_subscription and get_subscription do not find the id %s', async (id) => {
    offer();
    const said = (method: string): object => ({
      message: startsWith(
        `Redfish exception occurred. Error: Redfish ${method} failed for subscription ${id} on node ${NODE_UUID}. Error: `,
      ),
    });
    await expect(call('delete_subscription', { id })).rejects.toMatchObject({ status: 404, ...said('delete_subscription') });
    await expect(call('get_subscription', { id })).rejects.toMatchObject({ status: 500, ...said('get_subscription') });
    expect(service().asked.some(({ method, path }) => method === 'DELETE' || path.includes('/Systems'))).toBe(false);
  });
  it.each(['delete_subscription', 'get_subscription'])('%s requires an id', async (name) => {
    await expect(call(name)).rejects.toMatchObject({ status: 400, message: "id can't be None" });
  });
  it.each(['get_all_subscriptions', 'create_subscription'])('%s fails without an EventService', async (name) => {
    await expect(call(name, MINIMAL)).rejects.toMatchObject({ status: 500, message: like(/EventService is missing from the resource/) });
  });
});

describe('eject_vmedia', () => {
  it.each([
    [undefined, undefined],
    ['cd', ['cdrom']],
    ['DVD', ['cdrom']],
    ['usb', ['disk']],
    ['floppy', ['floppy']],
  ])('with boot_device %s ejects the expected media types', async (device, expected) => {
    const { task } = bench();
    const seen: unknown[] = [];
    const detach = async (_: unknown, types: unknown): Promise<void> => void seen.push(types);
    Object.assign(task.driver, { management: { ...task.driver.management, virtualMedia: { detach } } });
    await call('eject_vmedia', device === undefined ? {} : { boot_device: device }, task);
    expect(seen).toEqual([expected]);
  });
  it('rejects an unknown boot_device', async () => {
    await expect(call('eject_vmedia', { boot_device: 'tape' })).rejects.toMatchObject({
      status: 400,
      message: 'Boot device tape is not a valid value ',
    });
  });
});
