/** IPMI through the program ipmitool, one process for each command: for BMCs that the native client cannot handle. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runProgram } from '../child-processes';
import { MAX_WAITING, type IpmiPool, type IpmiTarget, type RequestOptions } from './client';
import { COMMANDS, IpmiError, RAKP_STATUS, completionText, type IpmiFailure, type Refusal } from './constants';
import { runInQueue, createRequestQueue, withTimeout, type RequestQueue } from './request-queue';
import { unreachable } from './session';
import { retry } from '../../model/clock';
import { shortened } from '../../model/text';

interface IpmitoolOptions {
  readonly log: { debug(message: string, fields?: object): void };
  readonly clock: { now(): number; sleep(milliseconds: number, signal?: AbortSignal): Promise<void> };
  /** Passes the password by the environment instead of a file that only this user can read. */
  readonly passwordInEnvironment: boolean;
  /** ipmitool itself repeats packets, instead of being started again. */
  readonly ownRetries: boolean;
  /** Seconds between attempts. */
  readonly interval: number;
  /** Kills a process that takes too long. Otherwise it goes on, but its result is ignored. */
  readonly killOnTimeout: boolean;
  /** Logs ipmitool's standard error. */
  readonly debug: boolean;
  readonly program?: string;
}

/** Most bytes of output: a BMC's data in it is not trusted. */
const MAX_OUTPUT = 4 << 20;
/** Characters of output in an error, and in the log. */
const MAX_IN_ERROR = 300;
const MAX_LOGGED = 65_536;

/** Patterns in the standard error of ipmitool 1.8 (`-v`), the most specific first → the failure. */
const FAILURES: readonly (readonly [RegExp, IpmiFailure, (groups: readonly string[]) => string, Refusal?])[] = [
  [/RAKP 2 HMAC is invalid/, 'refused', () => 'wrong password (RAKP 2 HMAC)'],
  [/RAKP 4 message has invalid integrity check value/, 'refused', () => 'wrong K_g key (RAKP 4 integrity check value)'],
  [
    /unauthorized name|Invalid user name/,
    'refused',
    () => 'the BMC refused a session: wrong user name',
    { rakpStatus: RAKP_STATUS.unauthorizedName },
  ],
  [
    /unauthorized role/,
    'refused',
    () => 'the BMC refused a session: the user may not have the privilege level asked for',
    { rakpStatus: RAKP_STATUS.unauthorizedRole },
  ],
  [
    /insufficient resources for (session|role)/,
    'refused',
    () => 'the BMC refused a session: insufficient resources for session',
    { rakpStatus: RAKP_STATUS.insufficientResources },
  ],
  [
    /no matching cipher suite|invalid (?:authentication|integrity|confidentiality) algorithm|[Cc]ipher suite .*not supported|Unsupported cipher suite/,
    'refused',
    () => 'the BMC refused a session: the BMC does not offer the cipher suite',
    { rakpStatus: RAKP_STATUS.noCipherSuiteMatch },
  ],
  [/(?:open session response|RAKP [24]) message.* : (.*)/, 'refused', ([, why]) => `the BMC refused a session: ${why}`],
  // IPMI 1.5: the reason is on the line after "Activate Session error:".
  [
    /\tNo (?:session )?slot available/,
    'refused',
    () => 'the BMC refused a session: the BMC has no free session',
    { completionCode: 0x81, command: COMMANDS.activateSession },
  ],
  [
    /\t(Session sequence out of range|Requested privilege level exceeds limit)/,
    'refused',
    ([, why]) => `the BMC refused a session: ${why}`,
  ],
  [/Activate Session (?:command failed|error)/, 'refused', () => 'the BMC does not answer Activate Session: wrong password, most likely'],
  [/(Set Session Privilege Level to .* failed.*)/, 'refused', ([, what]) => `the BMC does not give the privilege level: ${what}`],
  [/Address lookup for (\S*) failed/, 'unreachable', ([, host]) => `cannot resolve the address of the BMC ${host}`],
];
const NO_ANSWER = /Get Auth Capabilities error|Unable to establish|No response|Session timeout|Close Session command failed/;
const REFUSED_COMMAND = /Unable to send RAW command .*netfn=0x([\da-f]+) .*cmd=0x([\da-f]+) rsp=0x([\da-f]+)/i;

/** The error of a failed run. @internal */
export function ipmitoolError(target: IpmiTarget, text: string): IpmiError {
  const refused = REFUSED_COMMAND.exec(text);
  if (refused) {
    const [networkFunction = 0, command = 0, code = 0] = refused.slice(1).map((word) => parseInt(word, 16));
    const of = [networkFunction, command] as const;
    return new IpmiError('completion', completionText(code, of), { completionCode: code, command: of });
  }
  for (const [pattern, kind, message, more] of FAILURES) {
    const groups = pattern.exec(text);
    if (groups) return new IpmiError(kind, message(groups), more);
  }
  if (NO_ANSWER.test(text)) return unreachable(target);
  return new IpmiError('protocol', `ipmitool failed: ${shortened(text.replace(/\s+/g, ' ').trim(), MAX_IN_ERROR) || 'no output'}`);
}

/** The bytes that `raw` prints. Other output is ignored. */
const bytesOf = (text: string): Buffer =>
  Buffer.from(
    text
      .split('\n')
      .filter((line) => /^( [\da-f]{2})+\s*$/i.test(line))
      .join('')
      .replace(/\s/g, ''),
    'hex',
  );
const byte = (value: number): string => `0x${value.toString(16).padStart(2, '0')}`;

/** The arguments without secrets: the process list shows them. @internal */
export function ipmitoolArguments(target: IpmiTarget, cipherSuite: number | undefined, lun = 0): readonly string[] {
  const { bridge } = target;
  const [first, second] = bridge?.hops ?? [];
  const hop = ({ channel, address }: NonNullable<typeof first>, names: readonly [string, string]): readonly string[] => [
    names[0],
    String(channel),
    names[1],
    byte(address),
  ];
  return [
    '-I',
    target.version === '1.5' ? 'lan' : 'lanplus',
    '-H',
    target.address,
    '-p',
    String(target.port),
    '-L',
    target.privilege,
    ...(target.username === '' ? [] : ['-U', target.username]),
    ...(cipherSuite === undefined ? [] : ['-C', String(cipherSuite)]),
    ...(bridge ? ['-m', byte(bridge.localAddress)] : []),
    ...(first && second ? hop(first, ['-B', '-T']) : []),
    ...(first ? hop(second ?? first, ['-b', '-t']) : []),
    ...(lun === 0 ? [] : ['-l', String(lun)]),
  ];
}

/** Only a shell can put binary bytes into the environment. The key does not appear in the process list. */
const WITH_KEY = 'k=$(printf "%b." "$KG_OCTAL"); unset KG_OCTAL; IPMI_KGKEY=${k%?}; export IPMI_KGKEY; exec "$0" "$@"';
function keyText(kg: Buffer): string {
  // HMAC pads keys with zeros itself.
  const significant = Buffer.from(kg.toString('latin1').replace(/(?<!\0)\0+$/, ''), 'latin1');
  if (significant.includes(0))
    throw new IpmiError(
      'refused',
      'a K_g key with a zero byte inside can be passed to ipmitool only where the process list shows it: use the native client',
    );
  return [...significant].map((value) => `\\0${value.toString(8).padStart(3, '0')}`).join('');
}

interface Run {
  readonly lun?: number | undefined;
  readonly command: readonly string[];
}

interface Credentials {
  /** `-f FILE` or `-E` */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Removes the file. */
  readonly end: () => Promise<void>;
}
interface PasswordFiles {
  readonly credentials: (target: IpmiTarget) => Promise<Credentials>;
  /** Removes the folder of the files. */
  readonly remove: () => Promise<void>;
}
/** Gives passwords to ipmitool: in files that only this user can read, or in the environment. */
function createPasswordFiles(inEnvironment: boolean): PasswordFiles {
  let folder: Promise<string> | undefined;
  let files = 0;
  return {
    credentials: async ({ password }) => {
      if (inEnvironment) return { args: ['-E'], env: { IPMI_PASSWORD: password }, end: async () => {} };
      folder ??= mkdtemp(join(tmpdir(), 'bloomery-ipmi-'));
      const file = join(await folder, String(files++));
      // For ipmitool an empty file means no password, and a zero byte is an empty password.
      await writeFile(file, password === '' ? '\0' : password, { mode: 0o600, flag: 'wx' });
      return { args: ['-f', file], env: {}, end: () => rm(file, { force: true }) };
    },
    remove: async () => {
      if (folder) await rm(await folder, { recursive: true, force: true });
    },
  };
}

interface Execution {
  readonly command: readonly [file: string, ...args: readonly string[]];
  readonly env: Readonly<Record<string, string>>;
  /** Absent: the process may take any time. */
  readonly timeoutMs: number | undefined;
  readonly signal: AbortSignal;
  /** Called when the process has ended. */
  readonly onEnd: (stderr: string) => void;
}
/** Runs one process, and returns its standard output. */
function execute(target: IpmiTarget, { command: [file, ...args], env, timeoutMs, signal, onEnd }: Execution): Promise<string> {
  return new Promise<string>((done, fail) => {
    const child = runProgram(
      'ipmitool',
      file,
      args,
      {
        variables: env,
        maxBuffer: MAX_OUTPUT,
        signal,
        killSignal: 'SIGKILL',
        encoding: 'latin1',
        ...(timeoutMs === undefined ? {} : { timeout: timeoutMs }),
      },
      (error, stdout, stderr) => {
        const settle = (): void => {
          onEnd(stderr);
          if (!error) done(stdout);
          else fail(signal.aborted ? (signal.reason as Error) : failureOf(target, error, stderr));
        };
        // After an abort the callback comes before the process has ended. Until then the next command must wait.
        if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) settle();
        else child.once('exit', settle);
      },
    );
  });
}

/** Uses the first of the cipher suites that the BMC accepts. */
async function withSuites(target: IpmiTarget, run: (cipherSuite: number | undefined) => Promise<string>): Promise<string> {
  if (target.version === '1.5') return run(undefined);
  let refusal: IpmiError | undefined;
  for (const cipherSuite of target.cipherSuites) {
    try {
      return await run(cipherSuite);
    } catch (error) {
      if (!(error instanceof IpmiError) || error.rakpStatus !== RAKP_STATUS.noCipherSuiteMatch) throw error;
      refusal = error;
    }
  }
  throw refusal ?? new IpmiError('refused', 'no cipher suite was named');
}

export function createIpmitoolPool(options: IpmitoolOptions): IpmiPool {
  const { log, clock, interval, program = 'ipmitool' } = options;
  const passwords = createPasswordFiles(options.passwordInEnvironment);
  const queues = new Map<string, RequestQueue>();
  const closing = new AbortController();

  const once = async (
    target: IpmiTarget,
    cipherSuite: number | undefined,
    { command, lun }: Run,
    deadline: number,
    signal: AbortSignal,
  ): Promise<string> => {
    const left = deadline - clock.now();
    if (left <= 0) throw unreachable(target);
    signal.throwIfAborted();
    const key = target.kg ? { KG_OCTAL: keyText(target.kg) } : undefined;
    const { args: loginArgs, env, end } = await passwords.credentials(target);
    const tries = options.ownRetries ? Math.max(1, Math.floor(left / 1000 / Math.max(1, interval))) : 1;
    const args = [
      ...ipmitoolArguments(target, cipherSuite, lun),
      ...loginArgs,
      ...(key ? ['-K'] : []),
      // Without -v it does not report why there is no session.
      '-v',
      '-R',
      String(tries),
      '-N',
      String(Math.max(1, Math.min(interval, Math.floor(left / 1000)))),
      ...command,
    ];
    const work = execute(target, {
      command: key ? ['sh', '-c', WITH_KEY, program, ...args] : [program, ...args],
      env: { ...env, ...key },
      timeoutMs: options.killOnTimeout ? left : undefined,
      signal,
      onEnd: (stderr) => {
        void end().catch(() => {});
        if (options.debug) log.debug('ipmitool', { args, stderr: shortened(stderr, MAX_LOGGED) });
      },
    });
    try {
      return await (options.killOnTimeout ? work : withTimeout(work, left, () => unreachable(target), signal));
    } catch (error) {
      work.catch(() => {});
      throw error;
    }
  };
  const run = async (target: IpmiTarget, what: Run, { timeoutMs, signal }: RequestOptions): Promise<string> => {
    const both = signal ? AbortSignal.any([signal, closing.signal]) : closing.signal;
    const began = clock.now();
    const bounds = { deadline: began + timeoutMs, signal: both };
    const key = `${target.address} ${target.port}`;
    const queue = queues.get(key) ?? createRequestQueue();
    queues.set(key, queue);
    if (queue.waiting >= MAX_WAITING)
      throw new IpmiError('closed', `more than ${MAX_WAITING} requests wait for the BMC at ${target.address}`);
    try {
      return await runInQueue(
        queue,
        began,
        () => unreachable(target),
        bounds,
        () => {
          let started = began;
          const attempt = (): Promise<string> => {
            started = clock.now();
            return withSuites(target, (suite) => once(target, suite, what, bounds.deadline, both));
          };
          return retry({ clock, signal: both }, attempt, (error) => {
            const now = clock.now();
            const next = Math.max(now, started + interval * 1000);
            const mayPass = error instanceof IpmiError && error.kind === 'unreachable' && !options.ownRetries;
            return mayPass && next < bounds.deadline ? next - now : undefined;
          });
        },
      );
    } finally {
      if (queue.waiting === 0) queues.delete(key);
    }
  };

  return {
    request: async (target, networkFunction, command, data, requestOptions) => {
      const args = ['raw', ...[networkFunction, command, ...data].map(byte)];
      return bytesOf(await run(target, { command: args, lun: requestOptions.lun }, requestOptions));
    },
    runProgram: (target, command, requestOptions) => run(target, { command }, requestOptions),
    close: async () => {
      closing.abort(new IpmiError('closed', 'the IPMI client is closed'));
      await Promise.allSettled([...queues.values()].map(({ end }) => end));
      await passwords.remove();
    },
  };
}

function failureOf(target: IpmiTarget, error: Error & { readonly code?: unknown; readonly killed?: unknown }, stderr: string): IpmiError {
  if (error.code === 'ENOENT') return new IpmiError('closed', 'ipmitool is not installed here ([ipmi]client)');
  if (error.code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER') return new IpmiError('protocol', 'the output of ipmitool is too long');
  return error.killed === true ? unreachable(target) : ipmitoolError(target, stderr);
}
