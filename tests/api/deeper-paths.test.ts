/** Paths that continue below a known one, and fields that a path names, as measured at Ironic. */
import { useApi } from '../support/api';
import { NEWEST } from '../support/newest';

const api = useApi();

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
/** Where Ironic answers 500, its router has found the method, and an argument is too many: 404 here. */
it.each<[string, readonly number[]]>([
  ['/v1/nodes/X/states/provision/x', [405, 405, 404, 405, 405]],
  ['/v1/nodes/X/states/power/x', [405, 405, 404, 405, 405]],
  ['/v1/nodes/X/states/provision/x/y', [405, 405, 404, 405, 405]],
  ['/v1/nodes/X/states/foo', [404, 405, 405, 405, 405]],
  ['/v1/nodes/X/maintenance/x', [405, 405, 404, 405, 404]],
  ['/v1/nodes/X/management/boot_device/foo', [404, 405, 404, 405, 405]],
  ['/v1/nodes/X/bios/a/b', [404, 405, 405, 405, 405]],
  ['/v1/nodes/X/history/a/b', [404, 405, 405, 405, 405]],
  ['/v1/nodes/X/firmware/x', [405, 405, 405, 405, 405]],
  ['/v1/drivers/fake-hardware/properties/x', [404, 405, 405, 405, 405]],
  ['/v1/drivers/foo/raid/x', [405, 405, 405, 405, 405]],
  ['/v1/drivers/foo/bar', [404, 405, 405, 405, 405]],
  ['/v1/lookup/x', [404, 405, 405, 405, 405]],
  ['/v1/heartbeat/a/b', [405, 404, 405, 405, 405]],
  ['/v1/nosuch/x', [404, 404, 404, 404, 404]],
])('%s: GET, POST, PUT, PATCH and DELETE get %j', async (path, expected) => {
  const answers = [];
  for (const method of METHODS)
    answers.push((await api.ask(method, path, NEWEST, ['GET', 'DELETE'].includes(method) ? {} : { body: {} })).status);
  expect(answers).toEqual(expected);
});

it.each([
  ['drivers', 'Could not find the following driver(s) or hardware type(s): a.'],
  ['conductors', 'Conductor a could not be found.'],
  ['allocations', 'Allocation a could not be found.'],
  ['deploy_templates', 'Deploy template a could not be found.'],
  ['portgroups', 'Portgroup a could not be found.'],
  ['runbooks', 'Runbook a could not be found.'],
  ['ports', 'Port a could not be found.'],
])('/v1/%s/a/b is not found before its field is checked; the query is checked first', async (resource, fault) => {
  expect(await api.ask('GET', `/v1/${resource}/a/b`, 104)).toMatchObject({ status: 404, fault });
});
it('a field of a path that does not exist is refused in the words for records', async () => {
  expect(await api.ask('GET', '/v1/drivers/fake-hardware/bar', 104)).toMatchObject({ status: 400, fault: 'Field(s) "bar" are not valid' });
  // A field that this version does not have is not valid either.
  expect(await api.ask('GET', '/v1/drivers/fake-hardware/default_firmware_interface', 85)).toMatchObject({
    status: 400,
    fault: 'Field(s) "default_firmware_interface" are not valid',
  });
  expect(await api.ask('GET', '/v1/drivers/nosuch?fields=bar', 104)).toMatchObject({
    status: 400,
    fault: expect.stringMatching(/^Schema error: 'bar' is not one of/) as unknown,
  });
});
