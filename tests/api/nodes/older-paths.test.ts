/** Older spellings of paths below a node, as the real Ironic 39 answers them; and bodies of DELETE. */
import { useApi } from '../../support/api';
import { NEWEST } from '../../support/newest';

const api = useApi();
const UUID = '1be26c0b-03f2-4d2e-ae87-c02d7f33c123';
beforeEach(async () => {
  const { nodes } = api.database.store();
  for (const { uuid } of await nodes.list({})) await nodes.remove(uuid);
  await nodes.create({ uuid: UUID, driver: 'fake-hardware', name: 'one' });
});
const missing = (name: string): string => `Missing mandatory parameter: ${name}`;

describe('older paths, with the node after the controller or as an argument', () => {
  it.each([
    ['GET', `states/${UUID}`, `${UUID}/states`],
    ['GET', `states?node_ident=${UUID}`, `${UUID}/states`],
    ['GET', 'states/one', `${UUID}/states`],
    ['GET', `states/console/${UUID}`, `${UUID}/states/console`],
    ['GET', `states/${UUID}/console`, `${UUID}/states/console`],
    ['GET', `states/console?node_ident=${UUID}`, `${UUID}/states/console`],
    ['GET', `management/boot_device/${UUID}`, `${UUID}/management/boot_device`],
    ['GET', `management/boot_device?node_ident=${UUID}`, `${UUID}/management/boot_device`],
    ['GET', `management/boot_device/${UUID}/supported`, `${UUID}/management/boot_device/supported`],
    ['GET', `management/boot_device/supported?node_ident=${UUID}`, `${UUID}/management/boot_device/supported`],
    ['GET', `management/indicators/${UUID}/led@system`, `${UUID}/management/indicators/led@system`],
    ['GET', `vendor_passthru/${UUID}/methods`, `${UUID}/vendor_passthru/methods`],
    ['GET', `vendor_passthru/methods?node_ident=${UUID}`, `${UUID}/vendor_passthru/methods`],
    ['POST', `vendor_passthru/${UUID}/sync`, `${UUID}/vendor_passthru/sync`],
    ['POST', `vendor_passthru/${UUID}?method=sync`, `${UUID}/vendor_passthru?method=sync`],
    ['POST', `vendor_passthru?node_ident=${UUID}&method=sync`, `${UUID}/vendor_passthru?method=sync`],
    ['GET', `validate?node=${UUID}`, `${UUID}/validate`],
    ['GET', `validate?node_uuid=${UUID}`, `${UUID}/validate`],
  ])('answer %s %s as %s', async (method, older, path) => {
    const expected = await api.ask(method, `/v1/nodes/${path}`);
    expect(expected.status).toBe(200);
    expect(await api.ask(method, `/v1/nodes/${older}`)).toMatchObject({ status: 200, body: expected.body });
  });
  it.each([
    ['PUT', `states/power/${UUID}`, { target: 'power off' }, 202, 'setPower'],
    ['PUT', 'states/power', { target: 'power off', node_ident: UUID }, 202, 'setPower'],
    ['PUT', `states/power?node_ident=${UUID}&target=power%20off`, undefined, 202, 'setPower'],
    ['PUT', `states/provision/${UUID}`, { target: 'manage' }, 202, 'provision'],
    ['PUT', `states/provision?node_ident=${UUID}`, { target: 'manage' }, 202, 'provision'],
    ['PUT', `states/console/${UUID}`, { enabled: false }, 202, 'setConsole'],
    ['PUT', `states/${UUID}/console`, { enabled: false }, 202, 'setConsole'],
    ['PUT', `states/boot_mode/${UUID}`, { target: 'uefi' }, 202, 'setBootMode'],
    ['PUT', `states/secure_boot/${UUID}`, { target: true }, 202, 'setSecureBoot'],
    ['PUT', `management/boot_device/${UUID}`, { boot_device: 'pxe' }, 204, 'setBootDevice'],
    ['PUT', 'management/boot_device', { boot_device: 'pxe', node_ident: UUID }, 204, 'setBootDevice'],
    ['PUT', `management/inject_nmi/${UUID}`, {}, 204, 'injectNmi'],
    ['PUT', `maintenance/${UUID}`, { reason: 'x' }, 202, 'setMaintenance'],
    ['PUT', `maintenance?node_ident=${UUID}`, { reason: 'x' }, 202, 'setMaintenance'],
    ['DELETE', `maintenance/${UUID}`, undefined, 202, 'setMaintenance'],
    ['DELETE', `maintenance?node_ident=${UUID}`, undefined, 202, 'setMaintenance'],
  ])('pass %s %s %j to the conductor', async (method, older, body, status, call) => {
    const before = api.conductor.calls.length;
    expect((await api.ask(method, `/v1/nodes/${older}`, NEWEST, { body })).status).toBe(status);
    expect(api.conductor.calls.slice(before)).toMatchObject([{ name: call, arguments: expect.arrayContaining([UUID]) as unknown }]);
  });
  it.each([
    ['GET', 'states', 400, missing('node_ident')],
    ['GET', 'states/console', 400, missing('node_ident')],
    ['GET', 'management/boot_device', 400, missing('node_ident')],
    ['GET', 'management/indicators', 400, missing('node_ident')],
    ['GET', `management/indicators/${UUID}`, 400, missing('indicator')],
    ['GET', 'vendor_passthru', 400, missing('node_ident')],
    ['GET', `vendor_passthru/${UUID}`, 400, missing('method')],
    ['DELETE', 'maintenance', 400, missing('node_ident')],
    ['GET', 'states?node_ident=', 400, 'Expected UUID or name for node_ident: '],
    ['GET', 'states/a%20b', 400, 'Expected UUID or name for node_ident: a b'],
    ['GET', `states?node=${UUID}`, 400, 'Unexpected arguments: node'],
    ['GET', 'states/power', 404, 'Node power could not be found.'],
    ['GET', `vendor_passthru/methods/${UUID}`, 404, 'Node methods could not be found.'],
    ['GET', 'management', 405, ''],
    ['GET', `management/${UUID}/boot_device`, 405, ''],
    ['GET', 'maintenance', 405, ''],
    ['PUT', `states/${UUID}/power`, 405, ''],
    ['PUT', 'states', 405, ''],
    ['DELETE', `states/console/${UUID}`, 405, ''],
    ['GET', `validate/${UUID}`, 404, 'Node validate could not be found.'],
  ])('refuse %s %s with %p %p', async (method, older, status, fault) =>
    expect(await api.ask(method, `/v1/nodes/${older}`)).toMatchObject({ status, fault }),
  );
  it('accept the name of a node since 1.5', async () => {
    expect((await api.ask('GET', '/v1/nodes/states/one', 4)).status).toBe(404);
    expect((await api.ask('GET', '/v1/nodes/states/one', 5)).status).toBe(200);
  });
});

describe('paths that have no operation', () => {
  const missing = (name: string) => `Missing mandatory parameter: ${name}`;
  it.each([
    ['GET', 'drivers/properties', 400, missing('driver_name')],
    ['GET', 'drivers/raid/logical_disk_properties', 400, missing('driver_name')],
    ['GET', 'drivers/vendor_passthru', 400, missing('driver_name')],
    ['GET', 'drivers/vendor_passthru/methods', 400, missing('driver_name')],
    ['GET', 'drivers/raid', 405, ''],
    ['PUT', 'drivers/properties', 405, ''],
    ['GET', 'drivers/nobody/properties', 404, "The driver 'nobody' is unknown."],
    ['GET', `nodes/${UUID}/states/unknown`, 404, 'The resource could not be found.'],
    ...['PUT', 'POST', 'PATCH', 'DELETE'].flatMap((method): [string, string, number, string][] => [
      [method, `nodes/${UUID}/states/unknown`, 405, ''],
      [method, `nodes/${UUID}/states/unknown/more`, 405, ''],
      [method, 'nodes/nobody/states/unknown', 405, ''],
    ]),
  ])('refuse %s %s with %p %p', async (method, path, status, fault) =>
    expect(await api.ask(method as 'GET', `/v1/${path}`)).toMatchObject({ status, fault }),
  );
});

describe('a body of DELETE', () => {
  it('is refused if it has members, which would be arguments', async () => {
    const refused = await api.ask('DELETE', `/v1/nodes/${UUID}`, NEWEST, { body: { a: 1 } });
    expect(refused).toMatchObject({ status: 400, fault: 'Unexpected arguments: a' });
  });
  it.each([['{}'], ['[1]'], ['"x"'], ['null'], ['no JSON']])('is ignored when it is %s', async (body) => {
    expect((await api.ask('DELETE', `/v1/nodes/${UUID}`, NEWEST, { body })).status).toBe(204);
  });
});
