/** `bloomery default-config …`: default arguments of steps, for a resource class, a property or a node. */
import { InvalidArgumentError, type Command } from 'commander';
import { printable } from '../model/log';
import type { DefaultRow } from '../model/rules/default-config';
import type { DefaultConfigRecord } from '../model/records';
import { change, get, parseJson } from './endpoint';
import { print, printJson, reported } from './output';

interface CommonArguments {
  readonly url?: string;
  readonly json?: boolean;
}
type Config = Pick<DefaultConfigRecord, 'description' | 'node_uuid' | 'property' | 'resource_class' | 'steps' | 'uuid' | 'value'>;

const FORMS = 'class:NAME, property:NAME=VALUE or node:NODE';
interface ScopeArgument {
  readonly kind: 'class' | 'node' | 'property';
  readonly name: string;
  /** Of a property. */
  readonly value: string;
}
function parseScope(text: string): ScopeArgument {
  const [, property, value] = /^property:([^=]+)=(.+)$/s.exec(text) ?? [];
  if (property !== undefined && value !== undefined) return { kind: 'property', name: property, value };
  const [, kind, name] = /^(class|node):(.+)$/s.exec(text) ?? [];
  if (kind === undefined || name === undefined) throw new InvalidArgumentError(`must be ${FORMS}.`);
  return { kind: kind as 'class' | 'node', name, value: '' };
}
function parseStep(text: string): { readonly interface: string; readonly step: string } {
  const [, owner, step] = /^([^.]+)\.(.+)$/s.exec(text) ?? [];
  if (owner === undefined || step === undefined)
    throw new InvalidArgumentError('must be INTERFACE.STEP, such as bios.apply_configuration.');
  return { interface: owner, step };
}
/** ARGUMENT=VALUE; a value that is no JSON is a text. */
function parseArgument(text: string, before: readonly (readonly [string, unknown])[] = []): readonly (readonly [string, unknown])[] {
  const [, name, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
  if (name === undefined || value === undefined) throw new InvalidArgumentError('must be ARGUMENT=VALUE, with a value in JSON or a text.');
  const parsed = parseJson(value);
  return [...before, [name, parsed === undefined ? value : parsed]];
}
function parsePriority(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('must be a whole number.');
  return Number(text);
}

const scopeText = ({ resource_class: resourceClass, property, value, node_uuid: node }: Config): string =>
  resourceClass !== null ? `class:${resourceClass}` : property !== null ? `property:${property}=${value!}` : `node:${node!}`;
/** The scope as fields of the resource. The UUID of a node is found by its name. */
async function fieldsOf({ kind, name, value }: ScopeArgument, url: string | undefined): Promise<Readonly<Record<string, string>>> {
  if (kind === 'class') return { resource_class: name };
  if (kind === 'property') return { property: name, value };
  const uuid = await get(
    url,
    `nodes/${encodeURIComponent(name)}?fields=uuid`,
    (body) => (body as { readonly uuid?: string } | undefined)?.uuid,
  );
  return { node_uuid: uuid };
}
const configsIn = (body: unknown): readonly Config[] | undefined => {
  const { default_configs: configs } = (body ?? {}) as { readonly default_configs?: unknown };
  return Array.isArray(configs) ? (configs as readonly Config[]) : undefined;
};
async function find(fields: Readonly<Record<string, string>>, url: string | undefined): Promise<Config | undefined> {
  return (await get(url, `default_configs?${new URLSearchParams(fields).toString()}`, configsIn))[0];
}

/** A line for each step. */
const configLines = (config: Config): readonly string[] => [
  `${printable(scopeText(config))}${config.description ? `: ${printable(config.description)}` : ''}`,
  ...config.steps.map(({ interface: owner, step, args, priority }) => {
    const rank = priority === undefined ? '' : `, priority ${priority}`;
    return `  ${printable(`${owner}.${step}`)}${rank} ${printable(JSON.stringify(args))}`;
  }),
];
/** A line for each default value of a node. */
export const defaultLines = (rows: readonly DefaultRow[]): readonly string[] =>
  rows.map(({ step, argument, value, origin, now, state }) => {
    const differs = state === 'differs' ? `; the machine has ${JSON.stringify(now)}` : '';
    const mark = state === 'differs' ? '!' : ' ';
    return `${mark} ${printable(`${step} ${argument} = ${JSON.stringify(value)} (${origin}${differs})`)}`;
  });

const list = ({ url, json }: CommonArguments): Promise<void> =>
  reported(async () => {
    const configs: Config[] = [];
    for (let marker = ''; ;) {
      const page = await get(url, `default_configs?limit=500${marker}`, configsIn);
      configs.push(...page);
      if (page.length < 500) break;
      marker = `&marker=${page.at(-1)!.uuid}`;
    }
    if (json) printJson(configs);
    else print(configs.length === 0 ? 'There are no default configs.' : configs.flatMap(configLines).join('\n'));
  });
const show = (scope: ScopeArgument, { url, json }: CommonArguments): Promise<void> =>
  reported(async () => {
    const config = await find(await fieldsOf(scope, url), url);
    if (!config) throw new Error('there is no such default config');
    if (json) printJson(config);
    else print(configLines(config).join('\n'));
  });

interface SetArguments extends CommonArguments {
  readonly priority?: number;
  readonly description?: string;
}
const set = (
  scope: ScopeArgument,
  step: ReturnType<typeof parseStep>,
  args: ReturnType<typeof parseArgument> = [],
  { url, priority, description }: SetArguments,
): Promise<void> =>
  reported(async () => {
    const fields = await fieldsOf(scope, url);
    const config = await find(fields, url);
    const rank = priority === undefined ? {} : { priority };
    const whole = { ...step, args: Object.fromEntries(args), ...rank };
    if (!config)
      await change(url, 'POST', 'default_configs', { ...fields, steps: [whole], ...(description === undefined ? {} : { description }) });
    else {
      const at = config.steps.findIndex((known) => known.interface === step.interface && known.step === step.step);
      // Only what changes is sent: the secrets of the other arguments are masked in what was read.
      const operations = [
        ...(at < 0 ? [{ op: 'add', path: '/steps/-', value: whole }] : []),
        ...(at < 0 ? [] : args.map(([name, value]) => ({ op: 'add', path: `/steps/${at}/args/${pointer(name)}`, value }))),
        ...(at < 0 || priority === undefined ? [] : [{ op: 'add', path: `/steps/${at}/priority`, value: priority }]),
        ...(description === undefined ? [] : [{ op: 'add', path: '/description', value: description }]),
      ];
      await change(url, 'PATCH', `default_configs/${config.uuid}`, operations);
    }
    print('set');
  });
/** A name in a JSON pointer (RFC 6901 §3). */
const pointer = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1');

const unset = (
  scope: ScopeArgument,
  step: ReturnType<typeof parseStep> | undefined,
  argument: string | undefined,
  { url }: CommonArguments,
): Promise<void> =>
  reported(async () => {
    const config = await find(await fieldsOf(scope, url), url);
    if (!config) throw new Error('there is no such default config');
    const path = `default_configs/${config.uuid}`;
    const at = config.steps.findIndex((known) => known.interface === step?.interface && known.step === step.step);
    if (step && at < 0) throw new Error(`it has no step ${step.interface}.${step.step}`);
    if (argument !== undefined) await change(url, 'PATCH', path, [{ op: 'remove', path: `/steps/${at}/args/${pointer(argument)}` }]);
    else if (step && config.steps.length > 1) await change(url, 'PATCH', path, [{ op: 'remove', path: `/steps/${at}` }]);
    else await change(url, 'DELETE', path);
    print('unset');
  });

export function addDefaultConfigCommands(program: Command): void {
  const commands = program.command('default-config').description('Default arguments of steps, by resource class, property and node.');
  const common = (command: Command): Command => command.option('--url <url>', 'the server, as for bloomery why');
  common(commands.command('list').description('List the default configs.')).option('--json', 'print them as JSON').action(list);
  common(commands.command('show').description('Show the default config of a resource class, a property or a node.'))
    .argument('<scope>', FORMS, parseScope)
    .option('--json', 'print it as JSON')
    .action(show);
  common(commands.command('set').description('Set default arguments of a step.'))
    .argument('<scope>', FORMS, parseScope)
    .argument('<step>', 'INTERFACE.STEP', parseStep)
    .argument('[arguments...]', 'ARGUMENT=VALUE, with a value in JSON or a text', parseArgument)
    .option('--priority <number>', 'the priority of the step in automated cleaning', parsePriority)
    .option('--description <text>', 'a description of the default config')
    .action(set);
  common(commands.command('unset').description('Remove a default config, a step of it, or an argument of a step.'))
    .argument('<scope>', FORMS, parseScope)
    .argument('[step]', 'INTERFACE.STEP', parseStep)
    .argument('[argument]', 'the argument')
    .action(unset);
}
