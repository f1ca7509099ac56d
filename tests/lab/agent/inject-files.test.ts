/** The step inject_files on a disk with a partition table and a real ext4 file system, which the kernel mounts, and debugfs reads. */
import { execFileSync } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../../model/clock';
import { silentLog } from '../../../model/log';
import type { JsonObject } from '../../../model/records';
import type { Machine } from '../../../ramdisk-agent/machine';
import { injectFiles } from '../../../ramdisk-agent/managers/inject-files';
import { parseParameters } from '../../../ramdisk-agent/parameters';
import { run as runProgram, type Run } from '../../../ramdisk-agent/system/run';
import { tree } from '../../../ramdisk-agent/system/tree';
import { needs } from '../support/needs';

jest.setTimeout(120_000);
const MiB = 2 ** 20;
const GiB = 2 ** 30;
const START = MiB;
let folder: string;
let disk: string;
beforeAll(() => {
  needs({ 'mkfs.ext4': 'e2fsprogs', sfdisk: 'fdisk' });
});
const sh = (program: string, ...args: readonly string[]): string =>
  execFileSync(program, args, { stdio: ['pipe', 'pipe', 'pipe'] }).toString();

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'inject-files-'));
  disk = join(folder, 'disk');
  writeFileSync(disk, '');
  truncateSync(disk, 5 * GiB);
  execFileSync('sfdisk', ['-q', disk], { input: `label: gpt\nstart=${START / 512}, size=${(64 * MiB) / 512}, type=L\n` });
  mkdirSync(join(folder, 'root/etc'), { recursive: true });
  writeFileSync(join(folder, 'root/etc/motd'), 'old');
  writeFileSync(join(folder, 'root/etc/gone'), 'old');
  // It must lead to a file of the instance, never of this machine.
  symlinkSync(join(folder, 'outside'), join(folder, 'root/etc/trap'));
  symlinkSync('/etc', join(folder, 'root/link'));
  sh('mkfs.ext4', '-q', '-F', '-E', `offset=${START},root_owner=0:0`, '-d', join(folder, 'root'), disk, '64M');
  const block = join(folder, 'tree/sys/block', `..${disk}`.replaceAll('/', '!'));
  mkdirSync(join(block, 'queue'), { recursive: true });
  writeFileSync(join(block, 'size'), String((5 * GiB) / 512));
  symlinkSync('x', join(block, 'device'));
  mkdirSync(join(folder, 'tree/proc'));
  writeFileSync(join(folder, 'tree/proc/mounts'), '');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** The kernel has no partitions of a file: they are mounted by their place. The disk is found as /dev/../tmp/…. */
const placed = ['-o', `loop,offset=${START},sizelimit=${64 * MiB}`];
const run: Run = async (program, args, options) => {
  // A file has no buffers to flush.
  if (program === 'blockdev') return '';
  const words = program === 'mount' ? args.flatMap((word) => (word.includes(disk) ? [...placed, disk] : [word])) : args;
  return runProgram(program, words, options);
};
const machineOf = (node: JsonObject = {}): Machine =>
  ({
    tree: tree(join(folder, 'tree')),
    root: join(folder, 'tree'),
    temporary: folder,
    run,
    log: silentLog,
    clock: systemClock,
    parameters: parseParameters(''),
    fetching: { trust: { insecure: false }, timeoutMs: 10_000, signal: new AbortController().signal },
    bootedFromMedium: false,
    state: { node: { uuid: 'u1', ...node }, ports: [{ address: 'm1' }], config: {}, partitionUuids: null, api: null },
  }) as unknown as Machine;
const debugfs = (command: string): string => sh('debugfs', '-R', command, `${disk}?offset=${START}`);
const base64 = (text: string): string => Buffer.from(text).toString('base64');

it('puts files of the node and of the step into the instance, with modes, owners and links', async () => {
  const server = createServer((request, response) => response.end(`content of ${request.url!}`));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/{node[uuid]}/{ports[0][address]}`;
  try {
    const properties = { inject_files: [{ path: '/etc/motd', content: base64('new') }] };
    const files = [
      { path: '/etc/deep/er/file', content: base64('deep'), mode: 0o640, dirmode: 0o700, owner: 7, group: 8 },
      { path: '/etc/fetched', content: url },
      { path: '/etc/gone', deleted: true },
      { path: '/etc/trap', content: base64('caught') },
      { path: '/link/linked', content: base64('by a link') },
      { path: '/at-root', content: base64('top'), partition: 1 },
    ];
    expect(await injectFiles(machineOf({ properties }), { files })).toEqual({ injected: 7 });
  } finally {
    server.close();
  }
  const content = (path: string): string => debugfs(`cat ${path}`);
  expect(['/etc/motd', '/etc/deep/er/file', '/etc/fetched', '/etc/linked', '/at-root', `${folder}/outside`].map(content)).toEqual([
    'new',
    'deep',
    'content of /u1/m1',
    'by a link',
    'top',
    'caught',
  ]);
  expect(() => readFileSync(join(folder, 'outside'))).toThrow('ENOENT');
  expect(debugfs('stat /etc/deep/er/file')).toMatch(/Mode: {2}0640[^]*User: {5}7 {3}Group: {5}8/);
  expect(debugfs('stat /etc/deep/er')).toMatch(/Mode: {2}0700/);
  expect(debugfs('ls -p /etc')).not.toContain('/gone/');
  sh('e2fsck', '-fn', `${disk}?offset=${START}`);
});
it.each<[string, JsonObject, string]>([
  ['a folder that no partition has', { path: '/opt/x', content: 'YQ==' }, 'No partition found with path opt, scanned: '],
  ['a URL that does not answer', { path: '/etc/x', content: 'http://127.0.0.1:9/x' }, 'Failed to process file /etc/x. '],
])('%s fails the step, and nothing stays mounted', async (_, file, text) => {
  await expect(injectFiles(machineOf(), { files: [file] })).rejects.toThrow(text);
  expect(readFileSync('/proc/mounts', 'utf8')).not.toContain(folder);
});
