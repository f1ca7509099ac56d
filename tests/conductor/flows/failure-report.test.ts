import { gzipSync } from 'node:zlib';
import { failureLines } from '../../../conductor/flows/failure-report';
import { logTail } from '../../../conductor/flows/log-tail';
import { tar } from '../../../ramdisk-agent/logs';

describe('failureLines', () => {
  it('has a line for each known fact, and the end of the log', () => {
    expect(failureLines({ step: 'deploy.write_image', command: undefined, concerns: 'disk /dev/sda' }, ['one', 'two'], [])).toEqual([
      'step: deploy.write_image',
      'concerns: disk /dev/sda',
      "end of the agent's log:",
      'one',
      'two',
    ]);
    expect(failureLines({ step: undefined }, [], [])).toEqual([]);
  });
  it('bounds each fact and the log, and keeps facts on one line', () => {
    const lines = failureLines({ agent: `a\nb${'x'.repeat(100_000)}` }, ['y'.repeat(100_000)], []);
    expect(lines[0]).toMatch(/^agent: a bx/);
    expect(lines.join('\n').length).toBeLessThan(10_000);
  });
  it('masks known secrets, passwords, and credentials and signatures in URLs', () => {
    const log = [
      'the token TOKEN-OF-THE-AGENT',
      'GET http://user:word@images/a?temp_url_sig=abc&x=1',
      'image_server_password=hunter2',
      '{"auth_token": "t"}',
    ];
    expect(failureLines({ agent: 'TOKEN-OF-THE-AGENT' }, log, ['TOKEN-OF-THE-AGENT'])).toEqual([
      'agent: ******',
      "end of the agent's log:",
      'the token ******',
      'GET http://******@images/a?temp_url_sig=******&x=1',
      'image_server_password=******',
      '{"auth_token": "******"}',
    ]);
  });
});

describe('logTail', () => {
  const archive = (files: readonly (readonly [string, string])[]): Buffer => gzipSync(tar(files, 0));
  const lines = (count: number): string => Array.from({ length: count }, (_, index) => `line ${index}\n`).join('');
  it.each(['agent.log', 'journal', 'var/log/ironic-python-agent.log'])('finds the last lines of %s behind other files', async (name) => {
    const found = await logTail(
      archive([
        ['dmesg', 'x'.repeat(70_000)],
        ['empty', ''],
        [name, lines(5000)],
        ['ps', 'p'],
      ]),
    );
    expect(found).toEqual(lines(5000).trim().split('\n').slice(-10));
  });
  it('finds nothing in what is no such archive, and the beginning of one that breaks off', async () => {
    expect(await logTail(Buffer.from('not gzip'))).toEqual([]);
    expect(await logTail(gzipSync('a text'))).toEqual([]);
    expect(await logTail(archive([['ps', 'p']]))).toEqual([]);
    const whole = archive([['agent.log', lines(20)]]);
    expect(await logTail(whole.subarray(0, whole.length - 8))).toEqual(lines(20).trim().split('\n').slice(-10));
  });
  it('reads a bounded part of what unpacks to very much', async () => {
    const bomb = gzipSync(Buffer.concat([tar([['x', 'y']], 0).subarray(0, 1024), Buffer.alloc(80 * 2 ** 20)]));
    expect(await logTail(bomb)).toEqual([]);
  });
  it('cuts long lines, and escapes what controls a terminal', async () => {
    const [line] = await logTail(archive([['agent.log', `\u001b[2J${'x'.repeat(10_000)}`]]));
    expect(line!.length).toBeLessThan(500);
    expect(line).toMatch(/^\\u001b\[2J/);
  });
});
