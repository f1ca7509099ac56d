/** Our config drives as another reader sees them: isoinfo of Debian's genisoimage, in both trees. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { configdriveOf } from '../../../drivers/agent/configdrive';
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

it('is a volume of the name that instances look for, with Joliet', () => {
  const said = isoinfo('-d');
  expect(said).toMatch(/^Volume id: config-2$/m);
  expect(said).toMatch(/Joliet with UCS level 3 found/);
});

it.each([
  ['primary', []],
  ['Joliet', ['-J']],
])('has every file in its %s tree', (_, tree) => {
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
