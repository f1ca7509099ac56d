/**
 * The manager that runs containers as steps, with the name, the version, the rules and the messages that ironic-python-agent's has. Only the
 * variant of the ramdisk with podman has it.
 */
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { AgentError } from '../../model/agent/errors';
import { reasonOf } from '../../model/errors';
import { isObject, objectOf } from '../../model/json';
import type { JsonObject } from '../../model/records';
import { preparePodman } from '../bootc/podman';
import type { Machine } from '../machine';
import type { HardwareManager, StepRow } from './manager';

const PROGRAM = 'bin/podman';
const [MAX_FILE, MAX_STEPS, MAX_OPTIONS, MAX_OPTION] = [256 * 1024, 100, 100, 1000];
const STEPS_FILE = '/etc/ironic-python-agent.d/mysteps.yaml';
/** Milliseconds. */
const [PULL_MS, RUN_MS] = [2 * 3_600_000, 24 * 3_600_000];
const RUN_OPTIONS = ['--rm', '--network=host'];

const wrong = (details: string): AgentError => new AgentError('HardwareManagerConfigurationError', details);
/** Of the server's settings. */
const settingsOf = ({ state }: Machine): JsonObject => objectOf(state.config['agent_containers']);

/** Words of a command line from a text, a list of texts, or nothing. Undefined: something else. */
function optionsIn(given: unknown): readonly string[] | undefined {
  const items: readonly unknown[] = given === undefined || given === null ? [] : Array.isArray(given) ? given : [given];
  if (items.length > MAX_OPTIONS || !items.every((item) => typeof item === 'string' && item.length <= MAX_OPTION)) return undefined;
  return items.flatMap((item) => String(item).split(/\s+/)).filter((word) => word !== '');
}
const plainReference = (reference: string): string => reference.replace(/^(?:docker|oci):\/\//, '');

interface Container {
  readonly image: unknown;
  readonly pull: unknown;
  readonly run: unknown;
}
/** The options to use. Throws for an image that the server does not allow. @param isTrusted the ramdisk itself names the image */
function allowed(machine: Machine, { image, pull, run }: Container, isTrusted: boolean) {
  if (typeof image !== 'string' || !/^[^\s-][^\s]{0,999}$/.test(image))
    throw new AgentError('InvalidCommandParamsError', `container_url must be a non-empty string, got ${typeof image}.`);
  const settings = settingsOf(machine);
  const [ownPull, ownRun] = [optionsIn(settings['pull_options']) ?? [], optionsIn(settings['run_options'] ?? RUN_OPTIONS) ?? RUN_OPTIONS];
  const list = Array.isArray(settings['allowed_containers']) ? settings['allowed_containers'].map(String) : [];
  const isListed = list.map(plainReference).includes(plainReference(image));
  if (!isTrusted && settings['allow_arbitrary_containers'] !== true && !isListed)
    throw new AgentError(
      'ContainerNotPermittedError',
      `Container image ${image} is not in [container]allowed_containers and [container]allow_arbitrary_containers is not enabled.`,
    );
  // Options may give a container the whole machine: who may not choose the image may not choose them.
  if (!isTrusted && settings['allow_arbitrary_containers'] !== true) return { image, pull: ownPull, run: ownRun };
  const [givenPull, givenRun] = [optionsIn(pull), optionsIn(run)];
  if (!givenPull || !givenRun)
    throw new AgentError('InvalidCommandParamsError', 'pull_options and run_options must be texts or lists of texts');
  return { image, pull: givenPull.length > 0 ? givenPull : ownPull, run: givenRun.length > 0 ? givenRun : ownRun };
}

async function runContainer(machine: Machine, container: Container, isTrusted: boolean): Promise<JsonObject> {
  const { image, pull, run } = allowed(machine, container, isTrusted);
  const { root, temporary, tree, fetching } = machine;
  await preparePodman({ run: machine.run, tree, root, temporary, trust: fetching.trust, signal: fetching.signal });
  try {
    await machine.run('podman', ['pull', ...pull, image], { timeoutMs: PULL_MS, signal: fetching.signal });
    await machine.run('podman', ['run', ...run, image], { timeoutMs: RUN_MS, signal: fetching.signal });
  } catch (error) {
    throw new AgentError('CommandExecutionError', `The container ${image} failed: ${reasonOf(error).slice(-2000)}`, { cause: error });
  }
  machine.log.info(`Container step completed for image: ${image}`);
  return { image };
}

const ARGSINFO = {
  container_url: { description: 'Container image URL', required: true },
  pull_options: { description: 'Pull options', required: false },
  run_options: { description: 'Run options', required: false },
};
const given = (step: string): StepRow => ({
  step,
  interface: 'deploy',
  priority: { clean: 0, deploy: 0, service: 0 },
  abortable: true,
  argsinfo: ARGSINFO,
  run: (machine, { container_url: image, pull_options: pull, run_options: run }) => runContainer(machine, { image, pull, run }, false),
});

/** A step of the file in the ramdisk. */
function stepOf(step: unknown, file: string, reserved: ReadonlySet<string>): StepRow {
  if (!isObject(step)) throw wrong(`Each container step in ${file} must be a mapping, got ${typeof step}.`);
  const { name, image, priority, interface: owner, reboot_requested: reboots, abortable, pull_options: pull, run_options: run } = step;
  for (const key of ['name', 'image'])
    if (typeof step[key] !== 'string' || step[key] === '')
      throw wrong(`Container step '${typeof name === 'string' ? name : '<unnamed>'}' in ${file} is missing the required '${key}' key.`);
  if (reserved.has(name as string))
    throw wrong(
      `Container step '${String(name)}' collides with an existing hardware manager method and would shadow it. Rename it in ${file}.`,
    );
  for (const key of ['priority', 'interface', 'reboot_requested', 'abortable'])
    if (!(key in step)) throw wrong(`Missing required key '${key}' in cleaning step: ${String(name)}`);
  if (!Number.isInteger(priority) || typeof owner !== 'string' || typeof reboots !== 'boolean' || typeof abortable !== 'boolean')
    throw wrong(
      `Container step '${String(name)}' in ${file}: priority must be a number, interface a text, reboot_requested and abortable true or false`,
    );
  return {
    step: name as string,
    interface: owner,
    // The file describes automated cleaning: elsewhere its steps run on request.
    priority: { clean: priority as number, deploy: 0, service: 0 },
    abortable,
    ...(reboots ? { rebootRequested: true as const } : {}),
    run: (machine) => runContainer(machine, { image, pull, run }, true),
  };
}
function stepsIn(machine: Machine, file: string, reserved: ReadonlySet<string>): readonly StepRow[] {
  const text = machine.tree.text(file);
  if (text === null) return [];
  if (text.length > MAX_FILE) throw wrong(`Could not read container steps from ${file}: it has more than ${MAX_FILE} characters`);
  let data: unknown;
  try {
    data = parse(text, { maxAliasCount: 100 });
  } catch (error) {
    throw wrong(`Could not read container steps from ${file}: ${reasonOf(error)}`);
  }
  if (data === null) return [];
  if (!isObject(data)) throw wrong(`Container steps file ${file} must contain a mapping with a 'steps' key, got ${typeof data}.`);
  const steps = data['steps'] ?? [];
  if (!Array.isArray(steps) || steps.length > MAX_STEPS)
    throw wrong(`'steps' in ${file} must be a list of at most ${MAX_STEPS}, got ${typeof steps}.`);
  return steps.map((step) => stepOf(step, file, reserved));
}

/** Undefined: this ramdisk has no podman. @param reserved steps of others @throws AgentError HardwareManagerConfigurationError */
export async function containerManager(machine: Machine, reserved: ReadonlySet<string>): Promise<HardwareManager | undefined> {
  const has = await access(join(machine.root, PROGRAM)).then(
    () => true,
    () => false,
  );
  if (!has) return undefined;
  const named = settingsOf(machine)['container_steps_file'];
  const own = [given('generic_container_step'), given('container_clean_step')];
  const file = typeof named === 'string' && named.startsWith('/') ? named : STEPS_FILE;
  const steps = stepsIn(machine, file, new Set([...reserved, ...own.map(({ step }) => step)]));
  return { name: 'ContainerHardwareManager', version: '2', support: 'mainline', steps: [...own, ...steps] };
}
