/**
 * Hardware managers of the site: programs in the ramdisk (docs/hardware-managers.md). Each gets one JSON object at its standard input, and
 * writes one to its standard output: what it offers, or how a step went.
 */
import { isObject, objectOf } from '../../model/json';
import { reasonOf } from '../../model/errors';
import type { JsonObject } from '../../model/records';
import { AgentError } from '../../model/agent/errors';
import type { Machine } from '../machine';
import { type HardwareManager, type StepRow, STEP_KINDS, type Support, SUPPORT } from './manager';

/** Where the ramdisk has them. @internal */
export const MANAGERS_FOLDER = '/lib/hardware-managers';
/** Of the objects: the agent refuses programs that need another version. */
const PROTOCOL = 1;
const [MAX_MANAGERS, MAX_STEPS] = [16, 100];
/** Bytes of an answer, and of its result, which goes to the server. */
const [MAX_OUTPUT, MAX_RESULT] = [2 ** 20, 64 * 1024];
/** Seconds: of the description, and of a step that does not say how long it may take. */
const [DESCRIBE_S, STEP_S, LONGEST_S] = [60, 3600, 24 * 86_400];
const NAME = /^[A-Za-z]\w{0,63}$/;
const VERSION = /^[\w.+-]{1,32}$/;

const isNamed = (value: unknown, pattern: RegExp): value is string => typeof value === 'string' && pattern.test(value);

async function asked({ run, fetching }: Machine, program: string, question: JsonObject, seconds: number): Promise<JsonObject> {
  const input = `${JSON.stringify({ protocol: PROTOCOL, ...question })}\n`;
  const output = await run(program, [], { input, timeoutMs: seconds * 1000, maxBytes: MAX_OUTPUT, signal: fetching.signal });
  const answer: unknown = JSON.parse(output);
  if (!isObject(answer)) throw new Error('the answer is no JSON object');
  return answer;
}

interface Context {
  readonly program: string;
  readonly manager: string;
}
/** @throws Error that names the member */
function stepIn(given: unknown, { program, manager }: Context): StepRow {
  if (!isObject(given)) throw new Error('each of the steps must be an object');
  const {
    step,
    interface: owner = 'deploy',
    priority,
    abortable = false,
    reboot_requested: reboots = false,
    argsinfo,
    timeout = STEP_S,
  } = given;
  if (!isNamed(step, NAME)) throw new Error(`step must be a name of letters, digits and _, not ${JSON.stringify(step)?.slice(0, 100)}`);
  const of = (member: string): string => `${member} of the step ${step}`;
  if (!isNamed(owner, NAME)) throw new Error(`${of('interface')} must be the name of an interface`);
  if (!isObject(priority) || Object.keys(priority).length === 0)
    throw new Error(`${of('priority')} must be an object with clean, deploy or service`);
  for (const [kind, value] of Object.entries(priority))
    if (!(STEP_KINDS as readonly string[]).includes(kind) || !Number.isInteger(value) || (value as number) < 0 || (value as number) > 1000)
      throw new Error(`${of(`priority.${kind.slice(0, 100)}`)} must be a number from 0 to 1000, and its kind clean, deploy or service`);
  if (typeof abortable !== 'boolean' || typeof reboots !== 'boolean')
    throw new Error(`${of('abortable and reboot_requested')} must be true or false`);
  if (argsinfo !== undefined && !isArgsInfo(argsinfo)) throw new Error(`${of('argsinfo')} must be an object of {description, required}`);
  if (!Number.isInteger(timeout) || (timeout as number) < 1 || (timeout as number) > LONGEST_S)
    throw new Error(`${of('timeout')} must be a number from 1 to ${LONGEST_S}`);
  return {
    step,
    interface: owner,
    priority,
    abortable,
    ...(reboots ? { rebootRequested: true as const } : {}),
    ...(argsinfo === undefined ? {} : { argsinfo }),
    run: (machine, args) => execute(machine, { program, manager }, { step, args }, timeout as number),
  };
}
const isArgsInfo = (value: unknown): value is JsonObject =>
  isObject(value) &&
  Object.values(value).every((info) => isObject(info) && typeof info['description'] === 'string' && typeof info['required'] === 'boolean');

async function execute(machine: Machine, { program, manager }: Context, call: JsonObject, seconds: number): Promise<unknown> {
  const failure = (details: string, cause?: unknown): AgentError =>
    new AgentError('CommandExecutionError', `${manager} failed in step ${String(call['step'])}: ${details}`, { cause });
  let answer: JsonObject;
  try {
    answer = await asked(
      machine,
      program,
      { method: 'execute', node: machine.state.node, ports: machine.state.ports ?? [], ...call },
      seconds,
    );
  } catch (error) {
    throw failure(reasonOf(error).slice(0, 2000), error);
  }
  const { error, result = null } = answer;
  if (error !== undefined && error !== null) throw failure((typeof error === 'string' ? error : JSON.stringify(error)).slice(0, 2000));
  if (JSON.stringify(result).length > MAX_RESULT) throw failure(`the result has more than ${MAX_RESULT} characters`);
  return result;
}

/** Undefined: it does not support this machine. @throws Error that names what is wrong */
async function described(machine: Machine, program: string): Promise<HardwareManager | undefined> {
  const { protocol = PROTOCOL, name, version, support, steps = [] } = await asked(machine, program, { method: 'describe' }, DESCRIBE_S);
  if (protocol !== PROTOCOL) throw new Error(`it speaks protocol ${JSON.stringify(protocol).slice(0, 20)}, and this agent ${PROTOCOL}`);
  if (!isNamed(name, NAME)) throw new Error('name must be of letters, digits and _');
  if (!isNamed(version, VERSION)) throw new Error('version must be a text such as 1.2');
  if (typeof support !== 'string' || !Object.hasOwn(SUPPORT, support))
    throw new Error(`support must be one of ${Object.keys(SUPPORT).join(', ')}`);
  if (!Array.isArray(steps) || steps.length > MAX_STEPS) throw new Error(`steps must be a list of at most ${MAX_STEPS}`);
  const rows = steps.map((step) => stepIn(step, { program, manager: name }));
  return support === 'none' ? undefined : { name, version, support: support as Support, steps: rows };
}

/**
 * The managers of the site that support this machine. Throws CommandExecutionError for a program that does not describe itself: without its
 * steps, a machine would count as clean that is not.
 */
export async function siteManagers(machine: Machine): Promise<readonly HardwareManager[]> {
  const programs = machine.tree.list(MANAGERS_FOLDER);
  if (programs.length > MAX_MANAGERS)
    throw new AgentError('CommandExecutionError', `${MANAGERS_FOLDER} has more than ${MAX_MANAGERS} programs`);
  const found = await Promise.all(
    programs.map(async (file) => {
      try {
        return await described(machine, `${MANAGERS_FOLDER}/${file}`);
      } catch (error) {
        const details = `The hardware manager ${MANAGERS_FOLDER}/${file} does not describe itself: ${reasonOf(error).slice(0, 1000)}`;
        throw new AgentError('CommandExecutionError', details, { cause: error });
      }
    }),
  );
  return found.filter((manager) => manager !== undefined);
}
/** Passwords of the node that a program of the site does not need are masked by the server already. */
export const portsOf = (params: JsonObject): readonly JsonObject[] => {
  const given = params['ports'];
  return Array.isArray(given) ? given.map(objectOf) : [];
};
