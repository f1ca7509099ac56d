/** The recorder on running hosts: what it reports, when it pushes, and what it does when no server answers. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { changesBetween, digestOf } from '../../model/hardware-records';
import { silentLog } from '../../model/log';
import { readConfigDrive } from '../../ramdisk-agent/config-drive';
import { tree } from '../../ramdisk-agent/system/tree';
import { settingsOnDrive } from '../../ramdisk-agent/drive-settings';
import { cached, readHardware } from '../../ramdisk-agent/record-hardware';
import { firstPause, keepPushing, pauseAfter, pushOnce, type Recording } from '../../ramdisk-agent/recorder';
import { isoImage } from '../../wire/images/iso9660';
import { fakeClock, fileTree, folder } from './support';

const pci = '../../../devices/pci0000:00/0000:00:01.0';
const FILES: Readonly<Record<string, string>> = {
  'proc/cpuinfo': 'processor\t: 0\nmodel name\t: CPU\ncpu MHz\t: 1999.9\n',
  'proc/meminfo': 'MemTotal: 482304 kB\n',
  'sys/devices/system/memory/block_size_bytes': '8000000\n',
  ...Object.fromEntries([0, 1, 2, 32].map((block) => [`sys/devices/system/memory/memory${block}/online`, '1\n'])),
  ...Object.fromEntries(['sda', 'md0', 'rbd0', 'loop0'].map((name) => [`sys/block/${name}/size`, '2048\n'])),
  'sys/block/sda/device/wwid': 'naa.5000c500a1b2c3d4\n',
  'sys/block/sda/device/rev': 'SN04\n',
  'sys/class/net/eth0/address': '52:54:00:00:00:99\n',
  'sys/class/net/eth0/bonding_slave/perm_hwaddr': '52:54:00:00:00:01\n',
  'sys/class/net/eth0/speed': '1000\n',
  'sys/class/net/eth0/device': `->${pci}`,
  'sys/class/net/vf0/address': '52:54:00:00:00:02\n',
  'sys/class/net/vf0/device': '->../../../devices/pci0000:00/0000:00:01.1',
  'sys/class/net/bond0/address': '52:54:00:00:00:99\n',
  'sys/devices/pci0000:00/0000:00:01.0/vendor': '0x8086\n',
  'sys/devices/pci0000:00/0000:00:01.1/physfn': '->../0000:00:01.0',
  'sys/bus/platform/devices/ipmi_bmc.0/firmware_revision': '2.40\n',
  'dev/ipmi0': '',
  ...Object.fromEntries(
    ['0000:00:01.0', '0000:00:01.1'].flatMap((bus) => [
      [`sys/bus/pci/devices/${bus}/device`, '0x1533\n'],
      [`sys/bus/pci/devices/${bus}/vendor`, '0x8086\n'],
      [`sys/bus/pci/devices/${bus}/class`, '0x020000\n'],
    ]),
  ),
  'sys/bus/pci/devices/0000:00:01.1/physfn': '->../0000:00:01.0',
  'sys/class/dmi/id/sys_vendor': 'Maker\n',
  'sys/class/dmi/id/bios_version': '1.2\n',
};
const said = async (program: string): Promise<string> =>
  program === 'ethtool' ? 'driver: igb\nfirmware-version: 3.25, 0x800005cf \n' : 'IP Address  : 192.0.2.9\n';
const around = (files: Readonly<Record<string, string>>, run = said) => ({
  tree: tree(fileTree(files)),
  run,
  addresses: () => ({}),
  machine: 'x86_64',
  hostname: () => 'host',
  bootInterface: null,
  bootedFromMedium: false,
});

describe('what the recorder reads', () => {
  it('readHardware returns the hardware without changing values or virtual devices', async () => {
    const told = await readHardware(around(FILES));
    expect(told['disks']).toMatchObject([{ name: '/dev/sda', wwn: '0x5000c500a1b2c3d4', firmware: 'SN04', size: 1048576 }]);
    expect(told['interfaces']).toEqual([
      {
        name: 'eth0',
        mac_address: '52:54:00:00:00:01',
        has_carrier: false,
        speed_mbps: 1000,
        vendor: '0x8086',
        product: null,
        pci_address: '0000:00:01.0',
        driver: null,
        client_id: null,
        firmware: '3.25, 0x800005cf',
      },
    ]);
    expect(told['pci_devices']).toMatchObject([{ bus: '0000:00:01.0', product_id: '1533' }]);
    expect(told).toMatchObject({
      // As for a user who may not read the SMBIOS table.
      memory: { physical_mb: null, present_mb: 512, modules: null },
      system_vendor: { manufacturer: 'Maker', product_name: '', firmware: { vendor: '', version: '1.2' } },
      bmc_address: '192.0.2.9',
      bmc_firmware: '2.40',
      hostname: 'host',
    });
  });
  it('digestOf stays the same when only frequency or free memory change, and changesBetween ignores the link', async () => {
    const later = {
      ...FILES,
      'proc/cpuinfo': FILES['proc/cpuinfo']!.replace('1999.9', '800.1'),
      'proc/meminfo': 'MemTotal: 482300 kB\n',
    };
    const before = await readHardware(around(FILES));
    expect(digestOf(await readHardware(around(later)))).toBe(digestOf(before));
    const linked = await readHardware(around({ ...later, 'sys/class/net/eth0/carrier': '1\n', 'sys/class/net/eth0/speed': '100\n' }));
    expect(digestOf(linked)).not.toBe(digestOf(before));
    expect(changesBetween(before, linked, 10)).toEqual([]);
  });
  it('cached keeps the former output when the BMC does not respond', async () => {
    const clock = fakeClock();
    const answers = [async () => 'address', () => Promise.reject(new Error('busy')), async () => 'another'];
    const run = cached(() => answers.shift()!(), clock);
    const heard = [];
    for (let hour = 0; hour < 3; hour++) {
      heard.push(await run('ipmitool', ['1']));
      await clock.advance(3_600_001);
    }
    expect(heard).toEqual(['address', 'address', 'another']);
  });
  it('cached queries the BMC once an hour', async () => {
    const clock = fakeClock();
    let asked = 0;
    const run = cached(async () => String(++asked), clock);
    const ask = async () => [await run('ipmitool', ['1']), await run('ipmitool', ['1'])];
    expect(await ask()).toEqual(['1', '1']);
    await clock.advance(3_600_001);
    expect(await ask()).toEqual(['2', '2']);
  });
});

describe('config drive', () => {
  const files = (text: string) => ({
    'openstack/latest/vendor_data2.json': Buffer.from(text),
    'openstack/latest/user_data': Buffer.from('x'),
  });
  const image = (text: string): string => {
    const path = join(folder(), 'drive');
    writeFileSync(path, isoImage('config-2', files(text), 0));
    return path;
  };
  const own = { url: 'http://192.0.2.1', node: 'n', token: 't', interval: 60 };
  const data = JSON.stringify({ 'bloomery-recorder': own, other: 1 });
  it('is read from a device or a directory', () => {
    expect(settingsOnDrive(image(data), 'bloomery-recorder')).toEqual(own);
    expect(settingsOnDrive(fileTree({ 'openstack/latest/vendor_data2.json': data }), 'bloomery-recorder')).toEqual(own);
    expect(readConfigDrive(image(data), 'openstack/latest/user_data')).toBe('x');
    expect(readConfigDrive(image(data), 'openstack/latest/none')).toBeNull();
  });
  it.each([
    ['no settings of the recorder', '{}', {}],
    ['invalid JSON', '{', { problem: expect.stringContaining('JSON') as unknown }],
    ['other types', JSON.stringify({ 'bloomery-recorder': { url: 1, node: [], token: 't', interval: 'x' } }), { token: 't' }],
    ['an invalid interval', JSON.stringify({ 'bloomery-recorder': { token: 't', interval: 0 } }), { token: 't' }],
  ])('with %s contains no other settings', (_, text, expected) =>
    expect(settingsOnDrive(image(text), 'bloomery-recorder')).toEqual(expected),
  );
  it.each([
    ['not an image', Buffer.alloc(40_000)],
    ['a short file', Buffer.from('CD001')],
    [
      'a folder that is larger than the device',
      Buffer.concat([Buffer.alloc(32768), Buffer.from('\x01CD001', 'latin1'), Buffer.alloc(2042, 0xff)]),
    ],
  ])('that is %s contains no settings', (_, bytes) => {
    const path = join(folder(), 'drive');
    writeFileSync(path, bytes);
    expect(Object.keys(settingsOnDrive(path, 'bloomery-recorder')).filter((name) => name !== 'problem')).toEqual([]);
  });
  it('that does not exist is reported as a problem', () =>
    expect(settingsOnDrive('/nonexistent', 'bloomery-recorder')).toEqual({ problem: expect.stringContaining('ENOENT') as unknown }));
});

describe('pushes', () => {
  let server: Server;
  let answers: number[];
  const asked: { readonly token: unknown; readonly body: Record<string, unknown> }[] = [];
  const identity = async () => ({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/`, node: 'n', token: 'secret' });
  const hardware = { disks: [], interfaces: [] };
  const recording = (more: Partial<Recording> = {}): Recording => ({
    pace: { intervalMs: 300_000, jitter: 0.3 },
    identity,
    read: async () => hardware,
    bootId: 'b',
    trust: { insecure: false },
    clock: fakeClock(),
    random: () => 0.5,
    log: silentLog,
    signal: new AbortController().signal,
    ...more,
  });
  beforeAll(async () => {
    server = createServer((request, response) => {
      const parts: Buffer[] = [];
      request.on('data', (part: Buffer) => parts.push(part));
      request.on('end', () => {
        const body = JSON.parse(gunzipSync(Buffer.concat(parts)).toString()) as Record<string, unknown>;
        asked.push({ token: request.headers['x-recorder-token'], body });
        response.writeHead(answers.shift() ?? 200).end('{}');
      });
    });
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  });
  beforeEach(() => {
    asked.length = 0;
  });
  afterAll(async () => {
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  });

  it('send a digest, and the whole record if the server does not know the digest', async () => {
    answers = [409, 200, 200];
    expect(await pushOnce(recording())).toBe('recorded');
    expect(await pushOnce(recording())).toBe('unchanged');
    const digest = { token: 'secret', body: { digest: digestOf(hardware), boot_id: 'b' } };
    expect(asked).toEqual([digest, { token: 'secret', body: { hardware, boot_id: 'b' } }, digest]);
  });
  it.each([
    ['refused', [403]],
    ['refused after the digest', [409, 413]],
    ['unavailable', [503]],
  ])('fail with the status of a refusal: %s', async (_, given) => {
    answers = [...given];
    await expect(pushOnce(recording())).rejects.toThrow(`the service answers ${given.at(-1)}`);
  });
  it('continue after failures with longer pauses, and log each change once', async () => {
    answers = [];
    const stop = new AbortController();
    const pauses: number[] = [];
    const lines: string[] = [];
    const failing = [false, true, true, true, true, false, false];
    const log = { ...silentLog, info: (line: string) => void lines.push(line), warn: (line: string) => void lines.push(line) };
    const clock = {
      now: () => 0,
      sleep: async (milliseconds: number) => {
        pauses.push(milliseconds / 1000);
        if (pauses.length > failing.length) stop.abort();
      },
    };
    const read = async () => {
      if (failing[pauses.length - 1]) throw new Error('no way there');
      return hardware;
    };
    await keepPushing(recording({ clock, log, read, signal: stop.signal }));
    expect(pauses).toEqual([150, 300, 450, 600, 600, 600, 300, 300]);
    const well = 'The hardware is as it was recorded';
    expect(lines).toEqual([well, 'The hardware could not be pushed: no way there', well]);
  });
});

it('10,000 recorders spread their pushes after a common start and after an hour without the service', () => {
  const pace = { intervalMs: 300_000, jitter: 0.3 };
  // A random generator of the test (the LCG of Numerical Recipes), so that every run is the same.
  let seed = 7;
  const random = (): number => (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) / 2 ** 32;
  const [COUNT, HOUR, WINDOW] = [10_000, 3_600_000, 1000];
  const [gone, back, end] = [HOUR, 2 * HOUR, 3 * HOUR];
  const windows = new Uint32Array(end / WINDOW);
  for (let recorder = 0; recorder < COUNT; recorder++) {
    let failures = 0;
    for (let at = firstPause(pace, random); at < end; at += pauseAfter(pace, failures, random)) {
      windows[Math.floor(at / WINDOW)]!++;
      failures = at >= gone && at < back ? failures + 1 : 0;
    }
  }
  const mean = COUNT / (pace.intervalMs / WINDOW);
  const peak = (from: number, to: number): number => Math.max(...windows.slice(from / WINDOW, to / WINDOW)) / mean;
  expect(peak(0, gone)).toBeLessThan(2);
  expect(peak(gone, back)).toBeLessThan(2);
  expect(peak(back, end)).toBeLessThan(2);
  // All are back within two and a half intervals, long before [recorder]stale_after counts from the service's start.
  expect(2 * 1.3 * pace.intervalMs).toBeLessThan(900_000);
});
