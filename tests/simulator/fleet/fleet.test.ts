/** A fleet: the addresses of its BMCs, the differences of its machines, its stored state and its descriptions of nodes. */
import { request } from 'node:http';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../../model/clock';
import { silentLog } from '../../../model/log';
import { startingFaults } from '../../../commands/simulate';
import { describeMachine } from '../../../simulator/hardware/description';
import { startFleet, type Fleet } from '../../../simulator/fleet/fleet';
import { nodeOf, protocolOf } from '../../../simulator/fleet/describe-node';
import { parseAddressRange, addressOfMachine } from '../../../simulator/fleet/address-range';
import { serveRemote } from '../../../simulator/fleet/remote-control';
import { ipxeScript } from '../../../boot/ipxe';
import { NODE, smallIronic } from '../small-ironic';

type FleetSetup = Parameters<typeof startFleet>[0];
const start = (setup: Partial<FleetSetup>): Promise<Fleet> =>
  startFleet({
    count: 1,
    host: '127.0.0.1',
    log: silentLog,
    clock: systemClock,
    random: randomBytes,
    behaviour: { firmwareMs: 1, bootMs: 1, retryMs: 5 },
    ...setup,
  });

describe('parseAddressRange', () => {
  it.each([
    ['20000', { host: '127.0.0.1', port: 20000, count: 'ports' }, 3, { host: '127.0.0.1', port: 20003 }],
    ['10.0.0.254:623', { host: '10.0.0.254', port: 623, count: 'ports' }, 1, { host: '10.0.0.254', port: 624 }],
    ['127.9.0.254+:623', { host: '127.9.0.254', port: 623, count: 'addresses' }, 3, { host: '127.9.1.1', port: 623 }],
    ['[::1]:8000', { host: '::1', port: 8000, count: 'ports' }, 0, { host: '::1', port: 8000 }],
    ['127.0.0.2', { host: '127.0.0.2', port: 0, count: 'ports' }, 7, { host: '127.0.0.2', port: 0 }],
  ] as const)('parses %s', (text, place, index, at) => {
    const parsed = parseAddressRange(text, 10, '127.0.0.1');
    expect(parsed).toEqual(place);
    expect(addressOfMachine(parsed, index)).toEqual(at);
  });
  it.each([
    ['bmc.example:623', 'must be PORT, ADDRESS:PORT'],
    ['127.0.0.1:65530', "the last machine's port would be 65539"],
    ['::1+:623', 'must be PORT'],
    ['[::1]+:623', 'only IPv4 addresses count up'],
    ['127.0.0.1+', 'need a port'],
  ])('rejects %s', (text, message) => {
    expect(() => parseAddressRange(text, 10, '127.0.0.1')).toThrow(message);
  });
});

describe('describeMachine with a seed', () => {
  it('builds different machines, and the same ones again', () => {
    const builds = Array.from({ length: 50 }, (_, index) => describeMachine(index, '127.0.0.1', 7));
    expect(builds).toEqual(Array.from({ length: 50 }, (_, index) => describeMachine(index, '127.0.0.1', 7)));
    expect(new Set(builds.map(({ cpus, memoryMiB }) => `${cpus}/${memoryMiB}`)).size).toBeGreaterThan(10);
    expect(new Set(builds.flatMap(({ macs }) => macs)).size).toBe(builds.reduce((sum, { macs }) => sum + macs.length, 0));
    for (const { disks } of builds) expect(new Set(disks.map(({ name }) => name)).size).toBe(disks.length);
  });
});

it('startingFaults combines faults of all machines and of one', () => {
  const faults = startingFaults(['latency=5', 'sim-1:hang,latency=7']);
  expect([faults('sim-0'), faults('sim-1')]).toEqual([{ latency: 5 }, { latency: 7, hang: true }]);
  expect(() => startingFaults(['sim-1:bogus'])).toThrow('there is no fault "bogus"');
});

it('nodeOf describes nodes for the BMC protocols of each machine', async () => {
  const fleet = await start({ count: 3, protocols: (index) => (index === 2 ? ['ipmi'] : ['ipmi', 'redfish']) });
  try {
    const nodes = fleet.machines.map((machine, index) => nodeOf(machine, protocolOf(machine, index)));
    expect(nodes.map(({ node }) => node['driver'])).toEqual(['ipmi', 'redfish', 'ipmi']);
    expect(nodes[1]).toMatchObject({
      node: { name: 'sim-1', driver_info: { redfish_address: fleet.machines[1]!.redfish.address }, properties: { cpus: 8, local_gb: 100 } },
      ports: [{ pxe_enabled: true }, { pxe_enabled: false }],
    });
  } finally {
    await fleet.close();
  }
});

describe('stored state of machines', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'bloomery-fleet-'));
  });
  afterEach(() => {
    rmSync(folder, { recursive: true, force: true });
  });

  it('restores power, boot device and agent with its token after a restart', async () => {
    const ironic = await smallIronic();
    const boot = {
      node_uuid: NODE,
      token: NODE,
      macs: [],
      method: 'ipxe',
      purpose: 'ramdisk',
      kernel_args: `ipa-api-url=${ironic.url}`,
      files: {},
    } as const;
    const mac = describeMachine(0, '').macs[0]!.replaceAll(':', '-');
    ironic.files.set(`/ipxe/${mac}`, ipxeScript(boot, ironic.url));
    ironic.files.set(`/boot/${NODE}/kernel`, 'kernel').set(`/boot/${NODE}/ramdisk`, 'ramdisk');
    let fleet = await start({ count: 2, bootUrl: ironic.url, stateFolder: folder });
    try {
      fleet.machines[1]!.control.setBoot({ device: 'pxe', persistent: true, mode: 'bios' });
      await fleet.machines[0]!.control.act('on');
      await ironic.beat(1);
      const before = fleet.machines.map(({ control }) => control.snapshot());
      await fleet.close();
      expect(readdirSync(folder).sort()).toEqual(['agents-0.json', 'sim-0.json', 'sim-1.json']);
      const lookups = ironic.lookups.length;
      fleet = await start({ count: 2, bootUrl: ironic.url, stateFolder: folder });
      expect(fleet.machines.map(({ control }) => control.snapshot())).toEqual(before);
      await ironic.beat(2);
      expect(ironic.lookups).toHaveLength(lookups);
      // A server refuses a heartbeat with another address or certificate.
      expect(ironic.beats[1]).toEqual(ironic.beats[0]);
      expect(ironic.beats[0]!.callback_url).toMatch(/^https:/);
      expect(fleet.machines[0]!.control.phase()).toBe('agent');
      expect(fleet.machines[1]!.control.boot()).toEqual({ device: 'pxe', persistent: true, mode: 'bios' });
    } finally {
      await fleet.close();
      await ironic.close();
    }
  });
  it('keeps the maker of a machine', async () => {
    const systemIds: string[] = [];
    for (const maker of [() => ({ personality: 'dell-idrac10' as const, habits: ['tasks-untold' as const] }), undefined]) {
      const fleet = await start({ stateFolder: folder, ...(maker && { maker }) });
      systemIds.push(fleet.machines[0]!.redfish.systemId);
      await fleet.machines[0]!.control.act('on');
      await fleet.close();
    }
    expect(systemIds).toEqual(Array(2).fill('/redfish/v1/Systems/System.Embedded.1'));
    const maker = { personality: 'dell-idrac10', habits: ['tasks-untold'] };
    expect(JSON.parse(readFileSync(join(folder, 'sim-0.json'), 'utf8'))).toMatchObject({
      maker,
      hardware: { firmware: { bmc: '1.20.25.00' } },
    });
  });
  it('is rejected with the name of the file if it is invalid', async () => {
    writeFileSync(join(folder, 'sim-0.json'), '{"version":');
    await expect(start({ stateFolder: folder })).rejects.toThrow('sim-0.json is not the state of a simulated machine');
    writeFileSync(join(folder, 'sim-0.json'), '{"version":99}');
    await expect(start({ stateFolder: folder })).rejects.toThrow('another version');
  });
  it('is complete despite a partly written file of an earlier run', async () => {
    writeFileSync(join(folder, 'sim-0.json.new'), '{');
    const fleet = await start({ stateFolder: folder });
    await fleet.machines[0]!.control.act('on');
    await fleet.close();
    expect(readdirSync(folder)).toEqual(['agents-0.json', 'sim-0.json']);
    expect(JSON.parse(readFileSync(join(folder, 'sim-0.json'), 'utf8'))).toMatchObject({ version: 1, machine: { on: {} } });
  });
});

describe('HTTP control of a fleet', () => {
  it('returns machines, and changes their faults, behaviour and power', async () => {
    const fleet = await start({ count: 2 });
    const remote = await serveRemote(fleet, { host: '127.0.0.1', port: 0, log: silentLog });
    const call = async (method: string, path: string, body?: unknown, headers = {}): Promise<readonly [number, unknown]> => {
      const answer = await fetch(`http://127.0.0.1:${remote.port}${path}`, {
        method,
        headers,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      return [answer.status, await answer.json()];
    };
    try {
      expect(await call('PUT', '/machines/all/faults', { latency: 1 })).toEqual([200, { machines: 2 }]);
      expect(await call('PATCH', '/machines/sim-1/faults', { hang: true })).toMatchObject([200, { faults: { latency: 1, hang: true } }]);
      expect(await call('POST', '/machines/sim-1/power', { action: 'on' })).toMatchObject([200, { power: 'on' }]);
      expect(await call('PATCH', '/machines/sim-1/behaviour', { bootMs: 5 })).toMatchObject([200, {}]);
      expect(await call('GET', '/machines')).toMatchObject([200, { machines: [{ name: 'sim-0', power: 'off' }, { name: 'sim-1' }] }]);
      expect(await call('GET', '/machines/sim-0')).toMatchObject([200, { ipmi: { port: fleet.machines[0]!.ipmi.port }, disks: {} }]);
      for (const [method, path, body, status, error] of [
        ['GET', '/machines/sim-9', undefined, 404, 'there is no machine sim-9'],
        ['PUT', '/machines/sim-0/faults', { speed: 1 }, 400, 'there is no fault'],
        ['PUT', '/machines/sim-0/faults', [], 400, 'faults are an object'],
        ['PATCH', '/machines/sim-0/behaviour', { bootMs: 'soon' }, 400, 'bootMs cannot be'],
        ['POST', '/machines/sim-0/power', { action: 'explode' }, 400, 'action is one of'],
        ['DELETE', '/machines/sim-0', undefined, 405, 'cannot be done'],
        ['GET', '/', undefined, 404, 'there are /machines'],
      ] as const)
        expect(await call(method, path, body)).toEqual([status, { error: expect.stringContaining(error) as string }]);
      expect((await call('GET', '/machines', undefined, { origin: 'http://evil.example' }))[0]).toBe(403);
      // DNS rebinding: a page of another host, whose name the attacker lets resolve to this host.
      const named = (host: string) =>
        new Promise((done) =>
          request({ host: '127.0.0.1', port: remote.port, path: '/machines', headers: { host } }, (answer) => {
            answer.resume();
            done(answer.statusCode);
          }).end(),
        );
      for (const host of ['localhost.evil.example', '127.evil.example', '[::1].evil.example', 'evil.example', 'localhost@evil.example'])
        expect([host, await named(host)]).toEqual([host, 403]);
      for (const host of ['localhost:6390', '127.0.0.1', '[::1]:6390']) expect([host, await named(host)]).toEqual([host, 200]);
    } finally {
      await remote.close();
      await fleet.close();
    }
  });
});
