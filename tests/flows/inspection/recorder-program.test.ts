/** `bloomery-agent record` as a program (npm test builds it): its messages for wrong arguments, and that it ends on a signal. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { folder } from '../../ramdisk-agent/support';

const start = (...words: string[]) => spawn(process.execPath, [join(__dirname, '../../../dist/ramdisk-agent/main.js'), 'record', ...words]);
async function ended(child: ReturnType<typeof start>) {
  let [output, errors] = ['', ''];
  child.stdout.on('data', (part: Buffer) => (output += part.toString()));
  child.stderr.on('data', (part: Buffer) => (errors += part.toString()));
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null];
  return { code, signal, output, errors };
}
const token = join(folder(), 'token');
writeFileSync(token, 'secret-token');
const identity = ['--node', 'n', '--token-file', token];

it('prints its options with --help', async () => {
  const { code, output } = await ended(start('--help'));
  expect(code).toBe(0);
  for (const option of ['--url', '--token-file', '--interval', '--once']) expect(output).toContain(option);
});

it('reports wrong options in one line', async () => {
  const given: readonly (readonly [string, readonly string[]])[] = [
    ["Unknown option '--often'", ['--often']],
    ['--interval is a number from 1 to 86400, not "0"', ['--interval', '0']],
    ['--jitter is a number from 0 to 1, not "2"', ['--jitter', '2']],
    ['--url is http://… or https://…, not "ftp://x"', ['--url', 'ftp://x']],
    ['--root /nonexistent is not the root of a host', ['--root', '/nonexistent']],
    ['--ca: ENOENT', ['--ca', '/nonexistent']],
    ['--token-file: /dev/null is empty', ['--once', '--url', 'http://127.0.0.1:1', '--node', 'n', '--token-file', '/dev/null']],
    ['--url is not given, and the config drive (/nonexistent) does not say it: ENOENT', ['--once', '--config-drive', '/nonexistent']],
  ];
  const said = await Promise.all(given.map(([, words]) => ended(start(...words))));
  for (const [index, { code, errors }] of said.entries()) {
    expect(code).toBe(1);
    expect(errors).toMatch(/^[^\n]+\n$/);
    expect(errors).toContain(given[index]![0]);
  }
});

describe('with a service', () => {
  let server: Server;
  const url = (): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  let answer: number | undefined;
  beforeAll(async () => {
    server = createServer((request, response) => {
      request.resume();
      // Undefined: no answer, so that the request hangs.
      if (answer !== undefined) response.writeHead(answer).end('no');
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  afterAll(async () => {
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  });

  it.each([401, 403, 413, 429, 500])('that answers %s, reports the status without the token', async (status) => {
    answer = status;
    const { code, output, errors } = await ended(start('--once', '--url', url(), ...identity));
    expect(code).toBe(1);
    expect(errors).toContain(`the service answers ${status}`);
    expect(output + errors).not.toContain('secret-token');
  });

  it('that hangs, ends at once on SIGTERM', async () => {
    answer = undefined;
    const child = start('--interval', '1', '--url', url(), ...identity);
    const end = ended(child);
    const first = await Promise.race([once(server, 'request').then(() => 'request'), end.then(({ errors }) => errors)]);
    expect(first).toBe('request');
    child.kill('SIGTERM');
    expect(await end).toMatchObject({ code: 0, signal: null });
  });
});
