import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { IpmiPool, IpmiTarget } from '../../../wire/ipmi/client';
import { createIpmitoolPool, ipmitoolArguments, ipmitoolError } from '../../../wire/ipmi/ipmitool';

type IpmitoolOptions = Parameters<typeof createIpmitoolPool>[0];
const TARGET: IpmiTarget = {
  address: '192.0.2.7',
  port: 623,
  username: 'admin',
  password: 'pass word',
  privilege: 'ADMINISTRATOR',
  cipherSuites: [17, 3],
};

describe('ipmitoolError', () => {
  it.each<[string, object]>([
    [
      '> RAKP 2 HMAC is invalid\nError: Unable to establish IPMI v2 / RMCP+ session',
      { kind: 'refused', message: 'wrong password (RAKP 2 HMAC)' },
    ],
    ['> RAKP 4 message has invalid integrity check value', { kind: 'refused', message: 'wrong K_g key (RAKP 4 integrity check value)' }],
    ['RAKP 2 message indicates an error : unauthorized name', { kind: 'refused', rakpStatus: 0x0d }],
    ['Invalid user name\nError: Unable to establish LAN session', { kind: 'refused', rakpStatus: 0x0d }],
    ['RAKP 2 message indicates an error : unauthorized role requested', { kind: 'refused', rakpStatus: 0x0a }],
    ['Error in open session response message : no matching cipher suite', { kind: 'refused', rakpStatus: 0x11 }],
    ['Error in open session response message : invalid authentication algorithm', { kind: 'refused', rakpStatus: 0x11 }],
    ['Error in open session response message : insufficient resources for session', { kind: 'refused', rakpStatus: 0x01 }],
    ['Error in open session response message : invalid role', { kind: 'refused', message: 'the BMC refused a session: invalid role' }],
    [
      'Activate Session command failed',
      { kind: 'refused', message: 'the BMC does not answer Activate Session: wrong password, most likely' },
    ],
    [
      'Activate Session error:\n\tNo session slot available\nError: Unable to establish LAN session',
      { kind: 'refused', completionCode: 0x81, message: 'the BMC refused a session: the BMC has no free session' },
    ],
    ['Activate Session error:\n\tNo slot available for given user - limit reached', { kind: 'refused', completionCode: 0x81 }],
    [
      'Activate Session error:\n\tRequested privilege level exceeds limit',
      { kind: 'refused', message: 'the BMC refused a session: Requested privilege level exceeds limit' },
    ],
    ['Set Session Privilege Level to ADMINISTRATOR failed: Unknown (0x81)', { kind: 'refused' }],
    [
      'Address lookup for nowhere.invalid failed\nCould not open socket!',
      { kind: 'unreachable', message: 'cannot resolve the address of the BMC nowhere.invalid' },
    ],
    [
      'Get Auth Capabilities error\nError: Unable to establish IPMI v2 / RMCP+ session',
      { kind: 'unreachable', message: 'the BMC at 192.0.2.7 port 623 does not answer' },
    ],
    [
      'Unable to send RAW command (channel=0x0 netfn=0xa lun=0x0 cmd=0x7f rsp=0xc1): Invalid command',
      { kind: 'completion', completionCode: 0xc1, message: 'invalid command (completion code 0xc1)' },
    ],
    [
      'Unable to send RAW command (channel=0x0 netfn=0x0 lun=0x0 cmd=0x8 rsp=0x80): Unknown (0x80)',
      { kind: 'completion', completionCode: 0x80, message: 'parameter not supported (completion code 0x80)' },
    ],
    ['Segmentation  fault', { kind: 'protocol', message: 'ipmitool failed: Segmentation fault' }],
    ['', { kind: 'protocol', message: 'ipmitool failed: no output' }],
  ])('parses %j', (text, expected) => expect(ipmitoolError(TARGET, text)).toMatchObject(expected));
  it('truncates a long output', () => expect(ipmitoolError(TARGET, 'x'.repeat(100_000)).message.length).toBeLessThan(400));
});

it.each<[string, Partial<IpmiTarget>, number | undefined, string]>([
  ['IPMI 2.0', {}, 17, '-I lanplus -H 192.0.2.7 -p 623 -L ADMINISTRATOR -U admin -C 17'],
  [
    'IPMI 1.5 without a user',
    { version: '1.5', username: '', privilege: 'USER', port: 6230 },
    undefined,
    '-I lan -H 192.0.2.7 -p 6230 -L USER',
  ],
  [
    'single bridging',
    { bridge: { hops: [{ channel: 7, address: 0x82 }], localAddress: 0x20 } },
    3,
    '-I lanplus -H 192.0.2.7 -p 623 -L ADMINISTRATOR -U admin -C 3 -m 0x20 -b 7 -t 0x82',
  ],
  [
    'dual bridging',
    {
      bridge: {
        hops: [
          { channel: 0, address: 0x82 },
          { channel: 7, address: 0x72 },
        ],
        localAddress: 0x2c,
      },
    },
    3,
    '-I lanplus -H 192.0.2.7 -p 623 -L ADMINISTRATOR -U admin -C 3 -m 0x2c -B 0 -T 0x82 -b 7 -t 0x72',
  ],
])('ipmitoolArguments for %s', (_, changes, suite, expected) =>
  expect(ipmitoolArguments({ ...TARGET, ...changes }, suite).join(' ')).toBe(expected),
);

describe('ipmitool process', () => {
  let folder: string;
  let pool: IpmiPool;
  let slept: number[];
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'bloomery-ipmitool-'));
    slept = [];
  });
  afterEach(async () => {
    await pool.close();
    rmSync(folder, { recursive: true });
  });
  /** A program in place of ipmitool: a line of a shell script, which writes its arguments to the file `args`. */
  const with_ = (script: string, options: Partial<IpmitoolOptions> = {}): void => {
    const program = join(folder, 'ipmitool');
    writeFileSync(program, `#!/bin/sh\necho "$@" >> ${folder}/args\n${script}\n`);
    chmodSync(program, 0o755);
    let now = 0;
    pool = createIpmitoolPool({
      passwordInEnvironment: false,
      ownRetries: false,
      interval: 5,
      killOnTimeout: true,
      debug: false,
      program,
      log: { debug: () => {} },
      clock: {
        now: () => now,
        sleep: async (milliseconds) => {
          slept.push(milliseconds);
          now += milliseconds;
        },
      },
      ...options,
    });
  };
  const calls = (): readonly string[] => readFileSync(join(folder, 'args'), 'utf8').trim().split('\n');
  const ask = (changes: Partial<IpmiTarget> = {}, options: object = {}): Promise<Buffer> =>
    pool.request({ ...TARGET, ...changes }, 0, 1, Buffer.from([1, 255]), { timeoutMs: 20_000, ...options });

  it('gets the password from a file with mode 0600, which is deleted afterwards', async () => {
    with_(
      `while [ "$1" != -f ]; do shift; done; stat -c %a "$2" > ${folder}/mode; cat "$2" > ${folder}/password; echo "$2" > ${folder}/file; printf ' 61 00\\n 01\\n'`,
    );
    expect(await ask()).toEqual(Buffer.from([0x61, 0, 1]));
    const read = (name: string): string => readFileSync(join(folder, name), 'utf8');
    expect([read('mode'), read('password')]).toEqual(['600\n', 'pass word']);
    expect(calls()[0]).toMatch(/^-I lanplus .* -C 17 -f \S+ -v -R 1 -N 5 raw 0x00 0x01 0x01 0xff$/);
    expect(calls()[0]).not.toContain('pass word');
    await pool.close();
    expect(existsSync(read('file').trim())).toBe(false);
  });
  it('gets the password from the environment with passwordInEnvironment', async () => {
    with_(`printf %s "$IPMI_PASSWORD" > ${folder}/password; echo ' 61'`, { passwordInEnvironment: true });
    await ask();
    expect(readFileSync(join(folder, 'password'), 'utf8')).toBe('pass word');
    expect(calls()[0]).toContain(' -E -v ');
  });
  it('gets a K_g key of any bytes except NUL from the environment', async () => {
    with_(`printf %s "$IPMI_KGKEY" > ${folder}/key; echo "\${KG_OCTAL-gone}" > ${folder}/gone; echo ' 61'`);
    const kg = Buffer.from([1, 0xff, 0x27, 0x0a, 0x5c, 0x80, 0x0a]);
    await ask({ kg: Buffer.concat([kg, Buffer.alloc(13)]) });
    expect(readFileSync(join(folder, 'key'))).toEqual(kg);
    expect(readFileSync(join(folder, 'gone'), 'utf8')).toBe('gone\n');
    expect(calls()[0]).toContain(' -K ');
    await expect(ask({ kg: Buffer.from([1, 0, 2]) })).rejects.toMatchObject({ kind: 'refused' });
  });
  it('is started for each cipher suite until one is supported', async () => {
    with_(
      `case "$*" in *"-C 17"*) echo 'Error in open session response message : no matching cipher suite' >&2; exit 1;; esac; echo ' 61'`,
    );
    expect(await ask()).toEqual(Buffer.from([0x61]));
    expect(calls().map((line) => /-C \d+/.exec(line)?.[0])).toEqual(['-C 17', '-C 3']);
  });
  it('is started again at the interval while the BMC does not answer, or once with -R if ownRetries is set', async () => {
    const silent = "echo 'Error: Unable to establish IPMI v2 / RMCP+ session' >&2; exit 1";
    with_(silent);
    await expect(ask()).rejects.toMatchObject({ kind: 'unreachable' });
    expect([calls().length, slept]).toEqual([4, [5000, 5000, 5000]]);
    await pool.close();
    rmSync(join(folder, 'args'));
    with_(silent, { ownRetries: true });
    await expect(ask()).rejects.toMatchObject({ kind: 'unreachable' });
    expect(calls()).toEqual([expect.stringContaining('-R 4 -N 5')]);
  });
  it('is not started again after a refusal', async () => {
    with_("echo '> RAKP 2 HMAC is invalid' >&2; exit 1");
    await expect(ask()).rejects.toMatchObject({ message: 'wrong password (RAKP 2 HMAC)' });
    expect(calls().length).toBe(1);
  });
  it('runs one at a time per BMC', async () => {
    with_(`mkdir ${folder}/running || exit 1; sleep 0.02; rmdir ${folder}/running; echo ' 61'`);
    await Promise.all(Array.from({ length: 5 }, () => ask()));
    expect(calls().length).toBe(5);
  });
  it('is killed after the timeout', async () => {
    with_('exec sleep 600');
    await expect(ask({}, { timeoutMs: 100 })).rejects.toMatchObject({ kind: 'unreachable' });
  });
  it('is killed when the request is aborted', async () => {
    with_(`echo $$ > ${folder}/pid.new; mv ${folder}/pid.new ${folder}/pid; exec sleep 600`);
    const stop = new AbortController();
    const asked = ask({}, { signal: stop.signal });
    while (!existsSync(join(folder, 'pid'))) await new Promise((done) => setTimeout(done, 5));
    stop.abort(new Error('enough'));
    await expect(asked).rejects.toThrow('enough');
    const pid = Number(readFileSync(join(folder, 'pid'), 'utf8'));
    expect(() => process.kill(pid, 0)).toThrow('ESRCH');
  });
  it('fails when its output exceeds the limit', async () => {
    with_('exec yes');
    await expect(ask()).rejects.toMatchObject({ kind: 'protocol' });
  });
  it('fails when the program is not installed', async () => {
    with_('', { program: '/nonexistent/ipmitool' });
    await expect(ask()).rejects.toMatchObject({ kind: 'closed', message: expect.stringContaining('not installed') as unknown });
  });
});
