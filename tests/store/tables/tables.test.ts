import { randomUUID } from 'node:crypto';
import type { BootRecord, EnabledHardware, InterfaceKind, NodeRecord } from '../../../model/records';
import { useDatabase } from '../../support/database';

let now = Date.UTC(2026, 5, 1);
const stamp = (offset = 0): string => new Date(Date.UTC(2026, 5, 1) + offset).toISOString().replace('Z', '000+00:00');
const database = useDatabase({ clock: { now: () => now, sleep: async () => {} } });
const store = () => database.store();
let node: NodeRecord;
beforeEach(async () => {
  now = Date.UTC(2026, 5, 1);
  await database.clear();
  node = await store().nodes.create({ uuid: randomUUID(), driver: 'ipmi', name: 'one' });
});
const mac = (last: number): string => `52:54:00:ab:cd:${last.toString(16).padStart(2, '0')}`;

describe('ports', () => {
  const make = (last: number, more: object = {}) =>
    store().ports.create({ uuid: randomUUID(), node_uuid: node.uuid, address: mac(last), ...more });

  it('get defaults, and a MAC address in lower case', async () => {
    const uuid = randomUUID();
    const port = await store().ports.create({ uuid, node_uuid: node.uuid, address: mac(1).toUpperCase(), extra: { z: 1, a: 2 } });
    expect(port).toEqual({
      id: port.id,
      uuid,
      node_uuid: node.uuid,
      address: mac(1),
      name: null,
      extra: { z: 1, a: 2 },
      internal_info: {},
      pxe_enabled: true,
      local_link_connection: {},
      portgroup_uuid: null,
      physical_network: null,
      is_smartnic: false,
      description: null,
      vendor: null,
      category: null,
      available_for_dynamic_portgroup: true,
      created_at: stamp(),
      updated_at: null,
      revision: 1,
    });
    expect(await store().ports.find(uuid)).toEqual(port);
  });

  it('are found by UUID, name, node and MAC addresses', async () => {
    const [first, second] = [await make(1, { name: 'eth0' }), await make(2)];
    const elsewhere = await store().nodes.create({ uuid: randomUUID(), driver: 'ipmi' });
    const third = await make(3, { node_uuid: elsewhere.uuid });
    expect(await store().ports.find('eth0')).toEqual(first);
    expect(await store().ports.ofNode(node.uuid)).toEqual([first, second]);
    expect(await store().ports.ofNode('none')).toEqual([]);
    expect(await store().ports.byMacs([mac(3).toUpperCase(), mac(9), mac(1)])).toEqual([first, third]);
    expect(await store().ports.byMacs([])).toEqual([]);
    for (const ident of [randomUUID(), 'eth1', '', 'a\0'])
      await expect(store().ports.find(ident)).rejects.toMatchObject({ name: 'PortNotFound', message: `Port ${ident} could not be found.` });
  });

  it('reject conflicts and unknown nodes', async () => {
    const first = await make(1, { name: 'eth0' });
    const second = await make(2);
    const refused = async (attempt: Promise<unknown>, name: string, message: string) =>
      expect(attempt).rejects.toMatchObject({ name, message });
    await refused(make(1), 'MACAlreadyExists', `A port with MAC address ${mac(1)} already exists.`);
    await refused(make(3, { uuid: first.uuid }), 'PortAlreadyExists', `A port with UUID ${first.uuid} already exists.`);
    await refused(make(3, { name: 'eth0' }), 'PortDuplicateName', 'A port with name eth0 already exists.');
    await refused(make(3, { node_uuid: 'gone' }), 'NodeNotFound', 'Node gone could not be found.');
    await refused(
      store().ports.update(second.uuid, { address: mac(1).toUpperCase() }),
      'MACAlreadyExists',
      `A port with MAC address ${mac(1).toUpperCase()} already exists.`,
    );
    await refused(store().ports.update(second.uuid, { name: 'eth0' }), 'PortDuplicateName', 'A port with name eth0 already exists.');
    await refused(store().ports.update('gone', {}), 'PortNotFound', 'Port gone could not be found.');
    expect(await store().ports.list({})).toEqual([first, second]);
  });

  it('are updated and removed', async () => {
    const port = await make(1);
    now += 1000;
    const changes = { address: mac(7).toUpperCase(), extra: { x: 1 }, pxe_enabled: false, physical_network: 'net' };
    const after = await store().ports.update(port.uuid, changes);
    expect(after).toEqual({ ...port, ...changes, address: mac(7), updated_at: stamp(1000), revision: 2 });
    expect(await store().ports.update(port.uuid, {})).toMatchObject({ revision: 3 });
    await store().ports.remove(port.uuid);
    await expect(store().ports.remove(port.uuid)).rejects.toMatchObject({ name: 'PortNotFound' });
  });
});

describe('media', () => {
  it('are unique by node and role, and found by token until they are removed', async () => {
    const medium = {
      token: 't1',
      node_uuid: node.uuid,
      role: 'boot',
      content: { kind: 'image', source: '/x' },
      made_at: 1_700_000_000_123,
      swift_container: 'c',
    } as const;
    await store().media.put(medium);
    expect(await store().media.byToken('t1')).toEqual(medium);
    await store().media.put({ ...medium, token: 't2', swift_container: null });
    await store().media.put({ ...medium, token: 't3', role: 'configdrive' });
    expect(await store().media.byToken('t1')).toBeUndefined();
    expect(await store().media.ofNode(node.uuid, 'boot')).toMatchObject({ token: 't2', swift_container: 'c' });
    await store().media.remove(node.uuid, 'boot');
    expect(await store().media.ofNode(node.uuid, 'boot')).toBeUndefined();
    expect(await store().media.byToken('t3')).toMatchObject({ role: 'configdrive' });
    await expect(store().media.put({ ...medium, node_uuid: randomUUID() })).rejects.toMatchObject({ name: 'NodeNotFound' });
  });
});

describe('boot records', () => {
  const boot = (more: Partial<BootRecord> = {}): BootRecord => ({
    node_uuid: node.uuid,
    macs: [mac(1), mac(2)],
    method: 'ipxe',
    purpose: 'ramdisk',
    kernel_args: 'nofb ipa-api-url=http://127.0.0.1:6385 $x "y"',
    files: { ramdisk: '/srv/r', kernel: 'http://h/k', image: 'file:///i' },
    ...more,
  });
  it('keep the last requests of their machines until another record is put', async () => {
    await store().boots.put(boot({ macs: [mac(2)] }));
    expect(await store().boots.requestsOf(node.uuid)).toEqual({});
    await store().boots.noteRequests([
      { node_uuid: node.uuid, requests: { DHCP: 'at one', HTTP: 'at one' } },
      { node_uuid: randomUUID(), requests: { DHCP: 'of a node without a record' } },
    ]);
    await store().boots.noteRequests([{ node_uuid: node.uuid, requests: { HTTP: 'at two' } }]);
    expect(await store().boots.requestsOf(node.uuid)).toEqual({ DHCP: 'at one', HTTP: 'at two' });
    await store().boots.put(boot({ macs: [mac(2)] }));
    expect(await store().boots.requestsOf(node.uuid)).toEqual({});
    expect(await store().boots.requestsOf(randomUUID())).toBeUndefined();
  });

  it('are unique by node, and found by any MAC address in any case', async () => {
    const kept = await store().boots.put(boot({ macs: [mac(0xa1).toUpperCase(), mac(2)], cpu_arch: 'aarch64' }));
    expect(kept).toEqual({
      ...boot({ macs: [mac(0xa1), mac(2)], cpu_arch: 'aarch64' }),
      token: expect.stringMatching(/^[0-9a-f]{32}$/) as string,
    });
    expect(await store().boots.ofNode(node.uuid)).toEqual(kept);
    expect(await store().boots.byToken(kept.token)).toEqual(kept);
    expect(await store().boots.byToken(node.uuid)).toBeUndefined();
    expect(await store().boots.forMac(mac(0xa1))).toEqual(kept);
    expect(await store().boots.forMac(mac(0xa1).toUpperCase())).toEqual(kept);
    expect(await store().boots.forMac(mac(3))).toBeUndefined();
    expect(await store().boots.forMac('{}')).toBeUndefined();
    const { token } = kept;
    await store().boots.put(boot({ purpose: 'disk', files: {}, macs: [mac(3)] }));
    expect(await store().boots.forMac(mac(2))).toBeUndefined();
    expect(await store().boots.forMac(mac(3))).toEqual({ ...boot({ purpose: 'disk', files: {}, macs: [mac(3)] }), cpu_arch: null, token });
    await store().boots.remove(node.uuid);
    await store().boots.remove(node.uuid);
    expect(await store().boots.ofNode(node.uuid)).toBeUndefined();
    expect((await store().boots.put(boot())).token).not.toBe(token);
  });
  it('the newer one is returned if two have the same MAC address', async () => {
    const other = await store().nodes.create({ uuid: randomUUID(), driver: 'ipmi' });
    await store().boots.put(boot());
    now += 1;
    await store().boots.put(boot({ node_uuid: other.uuid }));
    expect((await store().boots.forMac(mac(1)))?.node_uuid).toBe(other.uuid);
    now += 1;
    await store().boots.put(boot());
    expect((await store().boots.forMac(mac(1)))?.node_uuid).toBe(node.uuid);
  });
  it('without MAC addresses apply to unknown machines while all of these records are equal', async () => {
    const unknown = mac(0xee);
    await store().boots.put(boot({ macs: [] }));
    expect(await store().boots.forMac(unknown)).toMatchObject(boot({ macs: [] }));
    const port = await store().ports.create({ uuid: randomUUID(), node_uuid: node.uuid, address: mac(0xef) });
    expect(await store().boots.forMac(port.address)).toBeUndefined();
    const other = await store().nodes.create({ uuid: randomUUID(), driver: 'ipmi' });
    await store().boots.put(boot({ node_uuid: other.uuid, macs: [], kernel_args: 'other' }));
    expect(await store().boots.forMac(unknown)).toBeDefined();
    await store().boots.put(boot({ node_uuid: other.uuid, macs: [], files: { kernel: 'other', ramdisk: '/srv/r' } }));
    expect(await store().boots.forMac(unknown)).toBeUndefined();
    await store().boots.put(boot({ node_uuid: other.uuid, macs: [], purpose: 'disk', files: {} }));
    expect(await store().boots.forMac(unknown)).toMatchObject(boot({ macs: [] }));
  });
  it('need an existing node', async () => {
    await expect(store().boots.put(boot({ node_uuid: 'gone' }))).rejects.toMatchObject({
      name: 'NodeNotFound',
      message: 'Node gone could not be found.',
    });
  });
});

describe('inventories', () => {
  it('are unique by node, and stored unchanged but for characters that jsonb refuses', async () => {
    expect(await store().inventories.find(node.uuid)).toBeUndefined();
    const first = {
      inventory: { interfaces: [{ name: 'eth0', mac_address: mac(1), z: 1, a: ['x'] }], more: null },
      plugin_data: { b: 1 },
    };
    await store().inventories.put(node.uuid, first);
    expect(await store().inventories.find(node.uuid)).toEqual(first);
    await store().inventories.put(node.uuid, { inventory: { interfaces: [], a: ['\0'] }, plugin_data: {} });
    expect(await store().inventories.find(node.uuid)).toMatchObject({ inventory: { a: ['\ufffd'] } });
    await store().inventories.put(node.uuid, { inventory: { interfaces: [] }, plugin_data: {} });
    expect(await store().inventories.find(node.uuid)).toEqual({ inventory: { interfaces: [] }, plugin_data: {} });
    await expect(store().inventories.put('gone', first)).rejects.toMatchObject({ name: 'NodeNotFound' });
  });
});

describe('conductors', () => {
  const hardware: EnabledHardware = {
    defaults: { power: 'ipmitool' } as Partial<Record<InterfaceKind, string>> as Record<InterfaceKind, string | null>,
    enabled: { power: ['ipmitool', 'fake'] } as Partial<Record<InterfaceKind, string[]>> as Record<InterfaceKind, string[]>,
  };
  const offer = { conductor_group: '', drivers: { ipmi: hardware }, address: 'http://192.0.2.1:8089' };
  it('register, touch, drain, unregister and register again', async () => {
    const { conductors } = store();
    const all = () => conductors.list(60);
    expect(await conductors.register({ ...offer, hostname: 'h1', instance: 'one' }, null)).toBe(true);
    const made = (await all())[0]!;
    expect(made).toEqual({
      ...offer,
      id: made.id,
      hostname: 'h1',
      instance: 'one',
      online: true,
      alive: true,
      locks_valid: true,
      created_at: stamp(),
      updated_at: stamp(),
      revision: 1,
    });
    now += 60_000;
    expect(await conductors.alive(60)).toEqual({ version: `${made.id}:1`, conductors: [made] });
    now += 1000;
    expect(await conductors.alive(60)).toEqual({ version: '', conductors: [] });
    expect((await all())[0]).toMatchObject({ online: true, alive: false, locks_valid: false });
    await conductors.touch('h1', 'one');
    expect(await all()).toEqual([{ ...made, updated_at: stamp(61_000) }]);
    await conductors.drain('h1', 'one');
    expect((await all())[0]).toMatchObject({ online: false, alive: false, locks_valid: true });
    await conductors.unregister('h1', 'one');
    expect(await all()).toEqual([{ ...made, online: false, alive: false, locks_valid: false, instance: null, updated_at: stamp(61_000) }]);
    expect(await conductors.alive(60)).toEqual({ version: '', conductors: [] });
    expect(await conductors.register({ ...offer, hostname: 'h1', conductor_group: 'g', instance: 'two' }, null)).toBe(true);
    const again = { ...made, conductor_group: 'g', instance: 'two', updated_at: stamp(61_000), revision: 2 };
    expect(await conductors.alive(60)).toEqual({ version: `${made.id}:2`, conductors: [again] });
    await conductors.register({ ...offer, hostname: 'h2', instance: 'one' }, null);
    expect((await all()).map(({ hostname }) => hostname)).toEqual(['h1', 'h2']);
    for (const unknown of [conductors.touch('h3', 'one'), conductors.unregister('h1', 'one')])
      await expect(unknown).rejects.toMatchObject({ name: 'ConductorNotFound' });
  });

  it('one instance at a time has a hostname, and only a silent conductor is declared dead', async () => {
    const { conductors } = store();
    const register = (instance: string, over: string | null) => conductors.register({ ...offer, hostname: 'h4', instance }, over);
    expect([await register('one', null), await register('two', null), await register('two', 'one')]).toEqual([true, false, true]);
    expect(await conductors.declareDead('h4', 60)).toBe(false);
    now += 61_000;
    expect([await conductors.declareDead('h4', 60), await conductors.declareDead('nobody', 60)]).toEqual([true, true]);
    expect((await conductors.list(60)).find(({ hostname }) => hostname === 'h4')).toMatchObject({ online: false, instance: null });
    await expect(conductors.touch('h4', 'two')).rejects.toMatchObject({ name: 'ConductorNotFound' });
    now += 1_000_000;
    expect(await conductors.removeExpired(900, 10)).toContain('h4');
  });

  it('share a secret that is created once', async () => {
    expect(await store().secrets.shared('a', () => 'first')).toBe('first');
    expect(await store().secrets.shared('a', () => 'second')).toBe('first');
  });
});

describe('leases', () => {
  it('are unique by address, and a machine may have several', async () => {
    const expires_at = 1_800_000_000_123;
    await store().leases.put({ mac: mac(0xaa).toUpperCase(), address: '10.0.0.1', expires_at });
    await store().leases.put({ mac: mac(2), address: '10.0.0.2', expires_at });
    expect(await store().leases.list()).toEqual([
      { mac: mac(0xaa), address: '10.0.0.1', expires_at },
      { mac: mac(2), address: '10.0.0.2', expires_at },
    ]);
    await store().leases.put({ mac: mac(2), address: '10.0.0.1', expires_at: expires_at + 1 });
    await store().leases.put({ mac: `${mac(2)}/00000001`, address: 'fd00::1', expires_at });
    const leases = [
      { mac: mac(2), address: '10.0.0.1', expires_at: expires_at + 1 },
      { mac: mac(2), address: '10.0.0.2', expires_at },
      { mac: `${mac(2)}/00000001`, address: 'fd00::1', expires_at },
    ];
    expect(await store().leases.list()).toEqual(leases);
    await store().ports.create({ uuid: randomUUID(), node_uuid: node.uuid, address: mac(2) });
    const ofNodes = [randomUUID(), node.uuid].map((uuid) => store().leases.ofNode(uuid));
    expect(await Promise.all(ofNodes)).toEqual([[], expect.arrayContaining(leases)]);
    for (const { address } of leases) await store().leases.remove(address);
    expect(await store().leases.list()).toEqual([]);
  });
});

describe('transaction', () => {
  it('commits all changes together', async () => {
    const made = await store().transaction(async (inner) => {
      const port = await inner.ports.create({ uuid: randomUUID(), node_uuid: node.uuid, address: mac(1) });
      await inner.nodes.update(node.uuid, { name: 'two' });
      expect((await store().nodes.find(node.uuid)).name).toBe('one');
      return port;
    });
    expect(await store().ports.find(made.uuid)).toEqual(made);
    expect(await store().nodes.find('two')).toMatchObject({ revision: 2 });
  });
  it('rolls back after an error, and throws the same error', async () => {
    const reason = new Error('enough');
    const attempt = store().transaction(async (inner) => {
      await inner.nodes.update(node.uuid, { name: 'two' });
      await inner.leases.put({ mac: mac(1), address: '10.0.0.1', expires_at: 1 });
      throw reason;
    });
    await expect(attempt).rejects.toBe(reason);
    const fault = store().transaction(async (inner) => {
      await inner.nodes.remove(node.uuid);
      await inner.nodes.find('nobody');
    });
    await expect(fault).rejects.toMatchObject({ name: 'NodeNotFound', details: { node: 'nobody' } });
    expect(await store().nodes.find(node.uuid)).toEqual(node);
    expect(await store().leases.list()).toEqual([]);
  });
  it('nested in another can be rolled back alone', async () => {
    await store().transaction(async (outer) => {
      await outer.nodes.update(node.uuid, { name: 'two' });
      const inner = outer.transaction(async (within) => {
        await within.nodes.update(node.uuid, { name: 'three' });
        await within.nodes.create({ uuid: node.uuid, driver: 'x' });
      });
      await expect(inner).rejects.toMatchObject({ name: 'NodeAlreadyExists' });
    });
    expect(await store().nodes.find(node.uuid)).toMatchObject({ name: 'two' });
  });
});
