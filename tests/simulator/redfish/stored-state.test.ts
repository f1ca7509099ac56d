/** The keys of the stored state: state folders of earlier versions have them. */
import { testBmc } from '../redfish-bmc';

it('each part of the stored state keeps its key', async () => {
  const bmc = await testBmc();
  const send = async (method: string, path: string, body: object): Promise<void> => {
    const { status, body: answer } = await bmc.ask(method, `/redfish/v1${path}`, body);
    if (status >= 300) throw new Error(`${method} ${path}: ${status} ${JSON.stringify(answer)}`);
  };
  try {
    bmc.files.set('/boot.iso', 'an image').set('/bmc', 'firmware bmc 3.0\n');
    await send('PATCH', '/Systems/sim-0', { IndicatorLED: 'Lit', AssetTag: 'mine', Boot: { HttpBootUri: 'http://192.0.2.1/x.iso' } });
    await send('PATCH', '/Systems/sim-0/Bios/Settings', { Attributes: { QuietBoot: true } });
    await send('PATCH', '/Systems/sim-0/SecureBoot', { SecureBootEnable: true });
    await send('PATCH', '/Managers/sim-0', { DateTimeLocalOffset: '+02:00' });
    await send('POST', '/AccountService/Accounts', { UserName: 'operator', Password: 'secret', RoleId: 'Operator' });
    await send('POST', '/EventService/Subscriptions', { Destination: 'http://127.0.0.1:1/' });
    await send('POST', '/Systems/sim-0/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia', { Image: `${bmc.filesUrl}/boot.iso` });
    const drive = { '@odata.id': '/redfish/v1/Systems/sim-0/Storage/RAID1/Drives/sda' };
    await send('POST', '/Systems/sim-0/Storage/RAID1/Volumes', { RAIDType: 'RAID0', Links: { Drives: [drive] } });
    const update = { ImageURI: `${bmc.filesUrl}/bmc` };
    await send('POST', '/UpdateService/Actions/UpdateService.SimpleUpdate', update);
    await bmc.idle('/redfish/v1/TaskService/Tasks/sim-0-2', 'Running');
    bmc.start();
    bmc.now += 100_000;
    await bmc.get('/Systems/sim-0');
    expect(bmc.system.hardware.snapshot()).toMatchObject({
      bios: { current: { QuietBoot: true }, taken: expect.any(Number) as number },
      firmware: { bmc: '3.0' },
      tasks: { last: 2, records: [{ id: 'sim-0-1' }, { id: 'sim-0-2' }] },
      volumes: [{ id: '1', storage: 'RAID1', raid: 'RAID0', drives: ['sda'] }],
      indicators: { system: 'Lit' },
      assetTag: 'mine',
      accounts: [{ name: 'admin' }, { name: 'operator', password: 'secret', role: 'Operator', enabled: true }],
      subscriptions: [{ id: '1', destination: 'http://127.0.0.1:1/' }],
      log: { next: 2, entries: [{ id: '1', text: 'The system was started.' }] },
      clock: { ahead: 0, offset: '+02:00' },
      secureBoot: { enabled: true, inForce: true },
      media: { Cd: { url: `${bmc.filesUrl}/boot.iso`, writeProtected: true } },
      httpBootUri: 'http://192.0.2.1/x.iso',
    });
  } finally {
    await bmc.close();
  }
});
