/** Default configs: what their steps may be, checked when they are set, and their values beside those of a machine. */
import type { DeployInterface, Interface, PlannedStep, Step, StepArgument, StepKind } from '../../drivers/interfaces';
import { Fault, reasonOf } from '../../model/errors';
import { isObject, type JsonObject } from '../../model/json';
import type { InterfaceKind, StepRecord } from '../../model/records';
import { NETWORK_STEP, defaultRows, maskedDefault, runnable, type DefaultValues } from '../../model/rules/default-config';
import { askedPorts, portsProblem, storedPorts } from '../../model/rules/network-ports';
import type { BiosFacts, ConfigScope, ScopeSteps } from '../../store/store';
import type { Context } from '../core/context';
import type { NodeTask } from '../core/node-task';
import { withTask } from '../core/task';
import { defaultsOf } from '../steps/default-config';
import { machineFacts } from '../steps/machine-facts';
import { reservedStep } from '../steps/reserved-steps';
import { isOfType, stepId } from '../steps/steps';

const KINDS: readonly StepKind[] = ['clean', 'deploy', 'service'];
/** Steps of the agent, for nodes whose agent has not reported its steps yet. */
const OF_AGENTS: readonly string[] = [
  'deploy.erase_devices',
  'deploy.erase_devices_express',
  'deploy.erase_devices_metadata',
  'deploy.erase_pstore',
  'deploy.burnin_cpu',
  'deploy.burnin_disk',
  'deploy.burnin_memory',
  'deploy.burnin_network',
  'raid.create_configuration',
  'raid.delete_configuration',
];

/** What the nodes may run under the name of a step. */
interface Offer {
  readonly args: Readonly<Record<string, StepArgument>>;
  readonly checks: readonly NonNullable<Step['checkArguments']>[];
}
const merged = (offers: readonly Offer[]): Offer | undefined =>
  offers.length === 0
    ? undefined
    : { args: Object.assign({}, ...offers.map(({ args }) => args)) as Offer['args'], checks: offers.flatMap(({ checks }) => checks) };

/** The implementations of an interface that the nodes have; without nodes: all that are enabled. */
function implementations(context: Context, kind: InterfaceKind, { drivers }: ScopeSteps): readonly Interface[] {
  const { hardware } = context;
  const named: Readonly<Record<string, Interface>> = context.interfaces[kind];
  const used = drivers.flatMap(({ driver, ...names }) => {
    const type = Object.hasOwn(hardware.enabled, driver) ? hardware.enabled[driver] : undefined;
    // The driver is another conductor's.
    if (!type) return [];
    return [names[`${kind}_interface`] ?? type.defaults[kind] ?? ''];
  });
  const names = used.length > 0 ? used : Object.values(hardware.enabled).flatMap(({ enabled }) => enabled[kind]);
  return [...new Set(names)].flatMap((name) => (Object.hasOwn(named, name) ? [named[name]!] : []));
}
const ownOffers = (found: readonly Interface[], name: string): readonly Offer[] =>
  found
    .flatMap(({ steps = [] }) => steps)
    .filter((step) => step.step === name && KINDS.some((kind) => step.priority[kind] !== undefined))
    .map(({ args = {}, checkArguments }) => ({ args, checks: checkArguments ? [checkArguments] : [] }));

/** The steps that agents of these nodes have reported, as `agent_cached_KIND_steps` has them. */
const reported = ({ agentSteps }: ScopeSteps): readonly PlannedStep[] =>
  agentSteps
    .flatMap((byInterface) => (isObject(byInterface) ? Object.values(byInterface).flat() : []))
    .filter(isObject) as unknown as PlannedStep[];
/** @param deploys the deploy interfaces of the nodes */
function agentOffers(known: readonly PlannedStep[], asked: StepRecord, deploys: readonly DeployInterface[]): readonly Offer[] {
  const own = known.filter((step) => stepId(step) === stepId(asked));
  const withAgents = deploys.filter((deploy) => 'runAgentStep' in deploy);
  const isUsual = withAgents.length > 0 && OF_AGENTS.includes(stepId(asked));
  if (own.length === 0 && !isUsual) return [];
  const offers = own.map(({ argsinfo }) => ({ args: (argsinfo ?? {}) as Offer['args'], checks: [] }));
  return [...offers, ...withAgents.map(({ agentArguments }) => ({ args: agentArguments?.[stepId(asked)] ?? {}, checks: [] }))];
}
const listed = (names: readonly string[]): string => (names.length === 0 ? 'none' : [...new Set(names)].sort().join(', '));

/** What is wrong with the arguments; undefined: nothing. */
function argumentProblem(step: StepRecord, { args: known, checks }: Offer): string | undefined {
  for (const [name, value] of Object.entries(step.args)) {
    if (!Object.hasOwn(known, name))
      return `.${name}: the step ${stepId(step)} has no such argument. Its arguments: ${listed(Object.keys(known))}`;
    const { type, problem } = known[name]!;
    if (type !== undefined && !isOfType(type, value)) return `.${name}: it must be of the type ${type}`;
    const wrong = problem?.(value, step.args);
    if (wrong !== undefined) return `.${name}: it ${wrong}`;
  }
  const given: JsonObject = Object.fromEntries(
    Object.entries(step.args).map(([name, value]) => [name, runnable(stepId(step), name, value)]),
  );
  // The rest may come from another default config, or from a request.
  if (Object.entries(known).some(([name, { required }]) => required && !Object.hasOwn(given, name))) return undefined;
  const errors = checks.map((check) => {
    try {
      check(given);
      return undefined;
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      return reasonOf(error);
    }
  });
  // An interface of the scope may take what another does not.
  const reason = errors.every((error) => error !== undefined) ? errors[0] : undefined;
  return reason === undefined ? undefined : `: ${reason}`;
}

/** The default values of a node, compared with its machine. */
export async function defaultRowsOf(task: NodeTask): Promise<DefaultValues> {
  const defaults = await defaultsOf(task);
  if (defaults.length === 0) return { rows: [], isRead: true };
  const { facts, isRead } = await machineFacts(task, defaults, ['bios', 'firmware', 'management', 'raid']);
  return { rows: defaultRows(defaults, facts), isRead };
}
/** See Calls.readDefaults. The client waits for the BMC. */
export async function readDefaults(context: Context, uuid: string): Promise<DefaultValues> {
  const impatient: Context = { ...context, options: { ...context.options, ...context.hardware.impatient } };
  const { rows, isRead } = await withTask(impatient, uuid, { purpose: 'read default config', lock: 'shared' }, defaultRowsOf);
  return { rows: rows.map(maskedDefault), isRead };
}

/** Why no BIOS takes a value of a setting that it has; undefined: one takes it. */
function valueProblem(value: unknown, facts: readonly BiosFacts[]): string | undefined {
  const problems = facts.map(({ read_only: fixed, allowable_values: allowed, lower_bound: low, upper_bound: high }) => {
    if (fixed) return '.name: the setting is read-only';
    if (allowed && allowed.length > 0 && !allowed.includes(value))
      return `.value: it must be one of ${allowed.slice(0, 50).map(String).join(', ')}`;
    const isOutside = (low !== null && Number(value) < low) || (high !== null && Number(value) > high);
    return isOutside ? `.value: it must be from ${low ?? 'any'} to ${high ?? 'any'}` : undefined;
  });
  return problems.every((problem) => problem !== undefined) ? problems[0] : undefined;
}
/** Checks BIOS settings against the machines of the scope, as far as their BIOSes were read. Undefined: nothing is wrong. */
async function biosProblem({ store }: Context, scope: ConfigScope, { args: { settings } }: StepRecord): Promise<string | undefined> {
  if (!Array.isArray(settings)) return undefined;
  const asked = settings as readonly { readonly name: string; readonly value: unknown }[];
  const known = await store.defaultConfigs.biosOf(
    scope,
    asked.map(({ name }) => name),
  );
  if (known === undefined) return undefined;
  for (const [at, { name, value }] of asked.entries()) {
    const facts = known.filter((row) => row.name === name);
    const problem = facts.length === 0 ? `.name: no BIOS of these nodes has a setting ${name}` : valueProblem(value, facts);
    if (problem !== undefined) return `.settings[${at}]${problem}`;
  }
  return undefined;
}
/** Checks modes of network ports against the machines of the scope, as far as their adapters were read. Undefined: nothing is wrong. */
async function portModesProblem({ store }: Context, scope: ConfigScope, { args: { ports } }: StepRecord): Promise<string | undefined> {
  const found = askedPorts(ports);
  if ('problem' in found) return undefined;
  const problem = portsProblem(found.asked, (await store.defaultConfigs.portsOf(scope)).map(storedPorts));
  return problem === undefined ? undefined : `.${problem}`;
}
/** The steps whose arguments are checked against what was read of the machines. */
const AGAINST_MACHINES: Readonly<Record<string, typeof biosProblem>> = {
  'bios.apply_configuration': biosProblem,
  [NETWORK_STEP]: portModesProblem,
};

/** See Calls.checkDefaultConfig. */
export async function checkDefaultConfig(context: Context, scope: ConfigScope, steps: readonly StepRecord[]): Promise<void> {
  const ofScope = await context.store.defaultConfigs.stepsOf(scope);
  const known = reported(ofScope);
  const deploys = implementations(context, 'deploy', ofScope) as readonly DeployInterface[];
  for (const [at, step] of steps.entries()) {
    const found = implementations(context, step.interface as InterfaceKind, ofScope);
    const reserved = reservedStep(step);
    const offers = [
      ...ownOffers(found, step.step),
      ...(reserved ? [{ args: reserved.args ?? {}, checks: [] }] : []),
      ...agentOffers(known, step, deploys),
    ];
    const offer = merged(offers);
    const refuse = (field: string): never => {
      throw new Fault('InvalidParameterValue', { message: `steps[${at}]${field}` });
    };
    if (!offer) {
      const others = [...found.flatMap(({ steps: own = [] }) => own), ...known.filter(({ interface: owner }) => owner === step.interface)];
      refuse(`.step: the interface ${step.interface} has no step ${step.step}. Its steps: ${listed(others.map((other) => other.step))}`);
    }
    const problem = argumentProblem(step, offer!) ?? (await AGAINST_MACHINES[stepId(step)]?.(context, scope, step));
    if (problem !== undefined) refuse(`.args${problem}`);
  }
}
