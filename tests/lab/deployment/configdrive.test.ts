/** Our config drives as another reader sees them, in both trees, and those of another writer as we read them: Debian's genisoimage. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { configdriveOf } from '../../../drivers/agent/configdrive';
import { filesOfIso } from '../../../wire/images/iso9660-reader';
import { NODE_UUID, testTask } from '../../support/task';

const network = { links: Array.from({ length: 40 }, (_, at) => ({ id: `interface-${at}`, type: 'phy', mtu: 1500 })) };
let folder: string;
let image: string;
const isoinfo = (...words: string[]): string => execFileSync('isoinfo', ['-i', image, ...words], { encoding: 'utf8', timeout: 30_000 });
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'configdrive-'));
  image = join(folder, 'config-2.iso');
  const configdrive = { meta_data: { a: 'ä' }, network_data: network, user_data: '#cloud-config\n', vendor_data: { v: 1 } };
  const packed = await configdriveOf(testTask({ node: { instance_info: { configdrive } } }).task);
  writeFileSync(image, gunzipSync(Buffer.from(packed!, 'base64')));
});
afterAll(() => rmSync(folder, { recursive: true }));

it('our config drive has the volume label config-2 and Joliet names', () => {
  const said = isoinfo('-d');
  expect(said).toMatch(/^Volume id: config-2$/m);
  expect(said).toMatch(/Joliet with UCS level 3 found/);
});

it.each([
  ['primary', []],
  ['Joliet', ['-J']],
])('our config drive has every file in its %s tree', (_, tree) => {
  const listed = isoinfo(...tree, '-f').split('\n');
  const read = (name: string): string => isoinfo(...tree, '-x', `/openstack/latest/${name};1`);
  for (const name of ['meta_data.json', 'network_data.json', 'user_data', 'vendor_data2.json']) {
    for (const release of ['latest', '2012-08-10']) {
      expect(listed.map((path) => path.replace(/;1$/, ''))).toContain(`/openstack/${release}/${name}`);
    }
  }
  expect(JSON.parse(read('meta_data.json'))).toEqual({ uuid: NODE_UUID, name: 'n1', a: 'ä' });
  expect(JSON.parse(read('network_data.json'))).toEqual(network);
  expect(read('user_data')).toBe('#cloud-config\n');
  expect(JSON.parse(read('vendor_data2.json'))).toEqual({ v: 1 });
});

it.each([
  ["with Nova's options", ['-ldots', '-allow-lowercase', '-allow-multidot', '-l', '-publisher', 'p', '-J', '-r']],
  ['with mangled primary names', ['-J']],
])('our ISO 9660 reader reads what genisoimage writes %s', (_, words) => {
  const files: Readonly<Record<string, Buffer>> = {
    'openstack/latest/network_data.json': Buffer.from(JSON.stringify(network)),
    'openstack/latest/meta_data.json': Buffer.from('{}'),
    'openstack/content/0000': Buffer.alloc(70_000, 'a'),
    'ec2/2009-04-04/meta-data.json': Buffer.from('ä'),
    'ec2/latest/empty': Buffer.alloc(0),
  };
  const [tree, made] = [join(folder, `tree${words.length}`), join(folder, `made${words.length}.iso`)];
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(join(tree, path, '..'), { recursive: true });
    writeFileSync(join(tree, path), content);
  }
  execFileSync('genisoimage', ['-quiet', '-o', made, ...words, '-V', 'config-2', tree], { timeout: 30_000 });
  expect(filesOfIso(readFileSync(made), 64 << 20)).toEqual(files);
});
