import { gunzipSync, gzipSync } from 'node:zlib';
import { checkConfigdrive, configdriveFiles, configdriveOf } from '../../../drivers/agent/configdrive';
import { noopNetwork } from '../../../drivers/noop';
import type { JsonObject } from '../../../model/records';
import { isoImage } from '../../../wire/images/iso9660';
import { testTask } from '../../support/task';

const RECORDER = { 'bloomery-recorder': { url: 'http://10.0.0.1:6385', node: 'n', token: 't', interval: 300 } };
const SECTOR = 2048;
const NOW = Date.parse('2026-02-03T04:05:06Z');

/** A reader written from ECMA-119 alone: volume id, and every file by its path, of the tree that the descriptor in `sector` begins. */
function read(image: Buffer, sector: number): { readonly volume: string; readonly files: Record<string, string> } {
  const descriptor = image.subarray(sector * SECTOR, (sector + 1) * SECTOR);
  expect(descriptor.toString('latin1', 1, 6)).toBe('CD001');
  const joliet = descriptor[0] === 2;
  const name = (bytes: Buffer) => (joliet ? Buffer.from(bytes).swap16().toString('utf16le') : bytes.toString('latin1'));
  expect(descriptor.readUInt32LE(80) * SECTOR).toBe(image.length);
  expect(descriptor.readUInt32LE(80)).toBe(descriptor.readUInt32BE(84));
  const files: Record<string, string> = {};
  const walk = (record: Buffer, path: string, depth: number): void => {
    expect(depth).toBeLessThan(9);
    const start = record.readUInt32LE(2) * SECTOR;
    const size = record.readUInt32LE(10);
    expect(record.readUInt32BE(6) * SECTOR).toBe(start);
    if ((record[25]! & 2) === 0) {
      files[path.replace(/;1$/, '')] = image.toString('utf8', start, start + size);
      return;
    }
    for (let at = start; at < start + size;) {
      const length = image[at]!;
      if (length === 0) {
        at = (Math.floor(at / SECTOR) + 1) * SECTOR;
        continue;
      }
      expect(Math.floor(at / SECTOR)).toBe(Math.floor((at + length - 1) / SECTOR));
      const row = image.subarray(at, at + length);
      const id = row.subarray(33, 33 + row[32]!);
      if (id.length > 1 || id[0]! > 1) walk(row, path === '' ? name(id) : `${path}/${name(id)}`, depth + 1);
      at += length;
    }
  };
  walk(descriptor.subarray(156, 190), '', 0);
  return { volume: name(descriptor.subarray(40, 72)).trim(), files };
}

/** The path tables name every folder with the sector of its own extent. */
function folders(image: Buffer, sector: number): readonly (readonly [string, number, boolean])[] {
  const descriptor = image.subarray(sector * SECTOR);
  const size = descriptor.readUInt32LE(132);
  const little = image.subarray(descriptor.readUInt32LE(140) * SECTOR);
  const big = image.subarray(descriptor.readUInt32BE(148) * SECTOR);
  const found: [string, number, boolean][] = [];
  for (let at = 0; at < size;) {
    const length = little[at]!;
    expect(big.readUInt32BE(at + 2)).toBe(little.readUInt32LE(at + 2));
    const extent = little.readUInt32LE(at + 2);
    // The first record of a folder is itself.
    const self = image.readUInt32LE(extent * SECTOR + 2);
    found.push([little.toString('latin1', at + 8, at + 8 + length), little.readUInt16LE(at + 6), self === extent]);
    at += 8 + length + (length % 2);
  }
  return found;
}

describe('ISO image', () => {
  it.each([
    ['primary', 16],
    ['Joliet', 17],
  ])('contains every file in its %s directory tree', (_, sector) => {
    const files = {
      'a/b/meta_data.json': Buffer.from('{"x":1}'),
      'a/user_data': Buffer.from('#!'),
      'a/empty': Buffer.alloc(0),
      top: Buffer.alloc(5000, 'z'),
    };
    const image = isoImage('config-2', files, NOW);
    expect(read(image, sector)).toEqual({
      volume: 'config-2',
      files: Object.fromEntries(Object.entries(files).map(([path, bytes]) => [path, bytes.toString()])),
    });
  });
  it('keeps each directory record within one sector in a directory of many files', () => {
    const names = Array.from({ length: 150 }, (_, at) => `folder/file-${String(at).padStart(4, '0')}`);
    const image = isoImage('many', Object.fromEntries(names.map((name) => [name, Buffer.from(name)])), NOW);
    for (const sector of [16, 17]) expect(read(image, sector).files).toEqual(Object.fromEntries(names.map((name) => [name, name])));
  });
  it('has path tables in the order that ECMA-119 requires', () => {
    const image = isoImage('v', { 'b/z/1': Buffer.from('1'), 'a/y/2': Buffer.from('2'), 'a/x/3': Buffer.from('3') }, NOW);
    expect(folders(image, 16)).toEqual([
      ['\0', 1, true],
      ['a', 1, true],
      ['b', 1, true],
      ['x', 2, true],
      ['y', 2, true],
      ['z', 3, true],
    ]);
  });
  it('is identical for the same content and time', () => {
    const make = () => isoImage('v', { 'a/b': Buffer.from('x') }, NOW);
    expect(make().equals(make())).toBe(true);
  });
});

describe('config drive', () => {
  const uuid = 'u-1';
  const meta = { uuid, name: 'n1' };
  it.each([
    ['no parts', {}, { 'meta_data.json': meta }],
    ['its own uuid and name', { meta_data: { uuid: 'mine', name: 'me', a: 1 } }, { 'meta_data.json': { uuid: 'mine', name: 'me', a: 1 } }],
    ['null metadata', { meta_data: null }, { 'meta_data.json': meta }],
    [
      'all parts',
      { network_data: { links: [] }, user_data: { users: [] }, vendor_data: { v: 1 } },
      { 'meta_data.json': meta, 'network_data.json': { links: [] }, user_data: { users: [] }, 'vendor_data2.json': { v: 1 } },
    ],
    ['empty parts', { network_data: {}, user_data: '', vendor_data: {} }, { 'meta_data.json': meta }],
  ])('contains the default and given metadata files with %s', (_, given, expected) => {
    const files = configdriveFiles(given, { uuid, name: 'n1' });
    for (const version of ['latest', '2012-08-10']) {
      const own = Object.entries(files).filter(([path]) => path.startsWith(`openstack/${version}/`));
      expect(Object.fromEntries(own.map(([path, bytes]) => [path.split('/')[2], JSON.parse(bytes.toString())]))).toEqual(expected);
    }
  });
  it('keeps text user_data unchanged', () => {
    expect(configdriveFiles({ user_data: '#cloud-config\n' }, { uuid, name: null })['openstack/latest/user_data']?.toString()).toBe(
      '#cloud-config\n',
    );
  });
  it.each([
    ['a URL', 'http://x/cd', 'http://x/cd'],
    ['base64', 'H4sIAAAA', 'H4sIAAAA'],
    ['undefined', undefined, undefined],
    ['an empty string as undefined', '', undefined],
    ['null as undefined', null, undefined],
  ])('passes on %s', async (_, given, expected) => {
    expect(await configdriveOf(testTask({ node: { instance_info: { configdrive: given } }, recorder: RECORDER }).task)).toBe(expected);
  });
  it('packs an object as base64 of a gzipped ISO image', async () => {
    const packed = await configdriveOf(testTask({ node: { instance_info: { configdrive: { user_data: 'hello' } } } }).task);
    const { volume, files } = read(gunzipSync(Buffer.from(packed!, 'base64')), 17);
    expect([volume, files['openstack/latest/user_data']]).toEqual(['config-2', 'hello']);
  });
  it.each([
    ['without vendor_data of the client', undefined, RECORDER],
    ['together with vendor_data of the client', { a: 1 }, { ...RECORDER, a: 1 }],
    ['not if the client sets bloomery-recorder', { 'bloomery-recorder': null }, { 'bloomery-recorder': null }],
    ['not if vendor_data is a string', '{}', {}],
  ])("adds the recorder's settings to vendor_data: %s", async (_, vendor_data, expected) => {
    const configdrive = { user_data: 'hello', ...(vendor_data === undefined ? {} : { vendor_data }) };
    const packed = await configdriveOf(testTask({ node: { instance_info: { configdrive } }, recorder: RECORDER }).task);
    const { files } = read(gunzipSync(Buffer.from(packed!, 'base64')), 17);
    expect(JSON.parse(files['openstack/latest/vendor_data2.json']!)).toEqual(expected);
  });
});

describe('checkConfigdrive', () => {
  const MIB = 2 ** 20;
  const check = (configdrive: unknown) => checkConfigdrive(testTask({ node: { instance_info: { configdrive } } }).task);
  const large = gzipSync(Buffer.alloc(64 * MIB + 1)).toString('base64');
  it.each<[string, unknown]>([
    ['no config drive', undefined],
    ['a URL', 'https://192.0.2.1/drive'],
    ['64 MiB', gzipSync(Buffer.alloc(64 * MIB)).toString('base64')],
    ['parts', { user_data: 'x'.repeat(MIB) }],
  ])('accepts %s', async (_, given) => {
    await expect(check(given)).resolves.toBeUndefined();
  });
  it.each<[string, unknown, RegExp]>([
    ['more than 64 MiB', large, /configdrive of instance_info: Config drive size exceeds maximum limit of 64MiB\.$/],
    [
      'more than 64 MiB in two members of the file, of which the second is small',
      Buffer.concat([gzipSync(Buffer.alloc(64 * MIB)), gzipSync('x')]).toString('base64'),
      /exceeds maximum limit of 64MiB/,
    ],
    ['parts of more than 64 MiB', { user_data: 'x'.repeat(33 * MIB) }, /exceeds maximum limit of 64MiB/],
    ['what is no gzip', Buffer.from('a drive').toString('base64'), /configdrive of instance_info: it is not base64 encoded gzip content/],
    ['a cut gzip', gzipSync(Buffer.alloc(MIB)).subarray(0, 100).toString('base64'), /or the content is malformed/],
  ])('refuses %s', async (_, given, message) => {
    await expect(check(given)).rejects.toMatchObject({ status: 400, message: expect.stringMatching(message) as string });
  });
});

describe('network_data.json of a config drive that is an ISO image', () => {
  const made = { links: [{ id: 'iface0', mtu: 1450 }] };
  const NETWORK_DATA = 'openstack/latest/network_data.json';
  const others = {
    'openstack/latest/meta_data.json': '{"uuid":"u"}',
    'openstack/2012-08-10/network_data.json': '{}',
    'ec2/a-long name': 'ä',
  };
  const drive = (files: Readonly<Record<string, string>>): string => {
    const image = isoImage('config-2', Object.fromEntries(Object.entries(files).map(([path, text]) => [path, Buffer.from(text)])), NOW);
    return gzipSync(image).toString('base64');
  };
  const run = async (configdrive: string, options = {}) => {
    const asked: unknown[] = [];
    const network = {
      ...noopNetwork,
      completeConfigdrive: async (_: unknown, parts: JsonObject): Promise<JsonObject> => {
        asked.push(parts);
        return /links/.test(JSON.stringify(parts)) ? parts : { ...parts, network_data: made };
      },
    };
    const { task } = testTask({ node: { instance_info: { configdrive } }, driver: { network }, options, recorder: RECORDER });
    return { asked, given: await configdriveOf(task) };
  };
  it.each([
    ['is empty', '{}', {}],
    ['is not JSON', '{', undefined],
  ])('is completed by the network interface when it %s, and all other files are kept', async (_, text, before) => {
    const { asked, given } = await run(drive({ ...others, [NETWORK_DATA]: text }));
    expect(asked).toEqual([{ network_data: before }]);
    const { volume, files } = read(gunzipSync(Buffer.from(given!, 'base64')), 17);
    expect(volume).toBe('config-2');
    expect(files).toEqual({ ...others, [NETWORK_DATA]: JSON.stringify(made) });
  });
  it.each<readonly [string, string, object]>([
    ['is complete', drive({ ...others, [NETWORK_DATA]: '{"links":[{"mtu":1500}]}' }), {}],
    ['is missing', drive(others), {}],
    ['is excluded by disable_configdrive_check', drive({ [NETWORK_DATA]: '{}' }), { 'conductor.disable_configdrive_check': true }],
    ['is not in an ISO image', gzipSync(Buffer.alloc(100_000)).toString('base64'), {}],
    ['is in data that is not gzipped', 'AAAA', {}],
    ['is in more than 64 MiB', gzipSync(Buffer.alloc((64 << 20) + 1)).toString('base64'), {}],
    ['is behind a URL', 'http://x/cd', {}],
  ])('stays unchanged when it %s', async (_, configdrive, options) => {
    expect((await run(configdrive, options)).given).toBe(configdrive);
  });
  it('stays unchanged when the network interface changes nothing', async () => {
    const configdrive = drive({ ...others, [NETWORK_DATA]: '{"networks":[]}' });
    const network = { ...noopNetwork, completeConfigdrive: async (_: unknown, parts: JsonObject): Promise<JsonObject> => ({ ...parts }) };
    const { task } = testTask({ node: { instance_info: { configdrive } }, driver: { network } });
    expect(await configdriveOf(task)).toBe(configdrive);
  });
});
