/** /v1/nodes/X/states, power, provision and maintenance. */
import { Fault, invalid, notAcceptable } from '../../model/errors';
import { repr } from '../../model/python';
import { isObject } from '../../model/json';
import type { JsonObject, NodeRecord } from '../../model/records';
import { isUuid } from '../../model/idents';
import { eraseProblem, keepProblem } from '../../model/agent/erasure';
import { nextState, TRANSITIONS, VERBS } from '../../model/states';
import { isGateOpen } from '../../model/versions';
import { AlreadyRead, type ProvisionArgs } from '../../conductor/conductor';
import { storableOf } from '../schema/arguments';
import { checkConfigdrive, checkDrive } from './configdrive';
import { checkPolicy } from '../pipeline/access';
import { columnsOf } from '../pipeline/fields';
import { readableNode } from '../pipeline/node-access';
import { nodeOf, visibleNode } from '../pipeline/node-find';
import { withMaintenanceNotifications } from '../pipeline/notifications';
import { rewrite, rewritesFor } from '../pipeline/present';
import { accepted } from './machine-states';
import { withRunbook } from './provision-runbook';
import type { Answer, Request, RequestOf, RequestOn, SomeHandlers, ApiContext } from '../pipeline/handler';
import { describeAtLength } from '../schema/schema';
import { controlsProblem } from '../pipeline/steps';
import { checkStepPolicies } from '../pipeline/step-policies';

async function showStates(request: RequestOf<'showStates'>, context: ApiContext): Promise<Answer> {
  const { minor } = request;
  const node = await nodeOf(request, context, 'node:get_states');
  const rules = rewritesFor(minor);
  // Unlike here, Ironic shows values in the states that it redacts in the node.
  const shown = columnsOf(readableNode(node, request, context));
  const rows = context.document.fields('States').filter(({ gate }) => isGateOpen(gate, minor));
  return { status: 200, body: Object.fromEntries(rows.map(({ name }) => [name, rewrite(rules, name, shown[name])])) };
}

/** Power targets and the versions that introduced them. */
const POWER: Readonly<Record<string, number>> = { 'power on': 1, 'power off': 1, rebooting: 1, 'soft rebooting': 27, 'soft power off': 27 };

async function setPower(request: RequestOf<'setPower'>, context: ApiContext): Promise<Answer> {
  const { minor, query, params } = request;
  const node = await nodeOf(request, context, 'node:set_power_state');
  const { target } = query;
  const timeout = query.timeout ?? undefined;
  const known = target !== null && Object.hasOwn(POWER, target);
  if ((known && POWER[target]! > minor) || (timeout && minor < 27)) throw notAcceptable();
  if (timeout !== undefined && timeout < 1) throw invalid('timeout has to be positive integer');
  const refused = (state: string | null): Fault =>
    new Fault('InvalidStateRequested', { action: target ?? repr(null), node: params.node_ident, state: state ?? repr(null) });
  if (!known) throw refused(node.power_state);
  if (node.provision_state === 'clean wait' || node.provision_state === 'cleaning') throw refused(node.provision_state);
  if (node.disable_power_off && (target === 'power off' || target === 'soft power off'))
    throw new Fault('PowerStateFailure', { pstate: target });
  await context.conductor.setPower(node.uuid, target, timeout);
  return accepted(request);
}

/** Verbs whose version is checked after the state and the body. Every version accepts `undeploy`, although it is documented since 1.73. */
const CHECKED_LATE = ['unhold', 'service', 'undeploy'];

/** The version and the state must allow the verb. Otherwise 409 while the node is reserved, else 400. */
function checkVerb(target: string | null, node: NodeRecord, minor: number): void {
  const verb = target !== null && Object.hasOwn(VERBS, target) ? VERBS[target] : undefined;
  if (verb && verb.since > minor && !CHECKED_LATE.includes(target!)) throw notAcceptable();
  if ((target === 'active' || target === 'rebuild') && node.maintenance)
    throw new Fault('NodeInMaintenance', { op: 'provisioning', node: node.uuid });
  if (verb && nextState(node.provision_state, verb.event)) return;
  if (node.reservation) throw new Fault('NodeLocked', { node: node.uuid, host: node.reservation });
  throw new Fault('InvalidStateRequested', { action: target ?? repr(null), node: node.uuid, state: node.provision_state });
}

function checkDisableRamdisk(target: string, minor: number): void {
  const since = { clean: 70, service: 108 }[target];
  if (since === undefined) throw invalid('disable_ramdisk is supported only with manual cleaning or servicing');
  if (minor < since) throw notAcceptable('disable_ramdisk is not acceptable in this API version');
}

/** The verbs that clean the machine by themselves. */
const ERASING = ['deleted', 'undeploy', 'provide'];
type ProvisionRequest = RequestOf<'setProvision'>;
/** Checks that each member of the body belongs to the verb. */
function checkKeys(target: string, query: ProvisionRequest['query'], node: NodeRecord, minor: number): void {
  const given = (name: `${'clean' | 'deploy' | 'service'}_steps`): boolean => Boolean(query[name]?.length);
  const only = (name: string, verb: string): Fault => invalid(`"${name}" is only valid when setting target provision state to ${verb}`);
  if ((query.disable_ramdisk ?? null) !== null) checkDisableRamdisk(target, minor);
  if (given('clean_steps') && target !== 'clean') throw only('clean_steps', 'clean');
  if (given('deploy_steps')) {
    if (minor < 69) throw notAcceptable('Request not acceptable. The minimal required API version should be 1.69');
    if (target !== 'active' && target !== 'rebuild') throw only('deploy_steps', 'active or rebuild');
  }
  if (typeof query.rescue_password === 'string' && target !== 'rescue') throw only('rescue_password', 'rescue');
  // A transition may be newer than its verb: abort in `inspect wait` and `wait call-back`.
  const edge = TRANSITIONS.find(([from, event]) => from === node.provision_state && event === VERBS[target]!.event);
  if ((edge?.[3] ?? 1) > minor) throw notAcceptable();
  if (target === 'unhold' && minor < VERBS['unhold']!.since) throw notAcceptable();
  if (given('service_steps') && target !== 'service') throw only('service_steps', 'service');
  for (const name of ['erase', 'keep'] as const)
    if ((query[name] ?? null) !== null && !ERASING.includes(target)) throw only(name, 'deleted or provide');
  if (target === 'service' && minor < VERBS['service']!.since) throw notAcceptable();
}

/** Checks the children that a step runs on: those that it names, or else all. The caller must be allowed to change the state of each. */
async function checkChildren(
  { step, limit_child_node_execution: limit }: JsonObject,
  node: NodeRecord,
  request: Request,
  context: ApiContext,
) {
  const named: readonly unknown[] = Array.isArray(limit) ? limit : [];
  for (const child of named) {
    if (!isUuid(child)) throw invalid(`Invalid entry detected for execute_on_child_node parameter in step ${String(step)}.`);
    checkPolicy(request, context, 'node:set_provision_state', await visibleNode(child, request, context));
  }
  if (named.length > 0) return;
  for (const child of await context.store.nodes.listColumns(['owner', 'lessee'], { children: node.uuid }))
    checkPolicy(request, context, 'node:set_provision_state', child);
}

async function checkSteps(
  kind: 'clean' | 'deploy' | 'service',
  steps: readonly JsonObject[],
  node: NodeRecord,
  request: Request,
  context: ApiContext,
): Promise<void> {
  const schema = { clean: 'CleanSteps', deploy: 'DeploySteps', service: 'ServiceSteps' }[kind];
  const problem = context.validators(schema, () => context.document.schemas[schema]!, describeAtLength)(steps);
  if (problem !== undefined) throw invalid(`Invalid ${kind}_steps: ${problem}`);
  const wrong = controlsProblem(steps);
  if (wrong !== undefined) throw invalid(`Invalid ${kind}_steps: ${wrong}`);
  for (const step of steps) if (step['execute_on_child_nodes']) await checkChildren(step, node, request, context);
  const names = steps.map(({ interface: item, step }) => `${String(item)}.${String(step)}`);
  const bad = names.find((name) => context.options[`api.disallow_${kind}_steps`].includes(name));
  if (bad) throw new Fault('StepNotAllowed', { step: bad, step_type: kind });
}

/** What is wrong with the choice of what becomes of the disks; undefined: nothing. */
function chosenErasureProblem({ erase, keep }: ProvisionArgs): string | undefined {
  const [word, hints] = [erase === undefined ? undefined : eraseProblem(erase), keep === undefined ? undefined : keepProblem(keep)];
  if (word !== undefined) return `erase ${word}`;
  return hints === undefined ? undefined : `keep${hints.startsWith('[') ? '' : ' '}${hints}`;
}

/** Checks the arguments that a verb requires. */
async function checkRequired(target: string, args: ProvisionArgs, node: NodeRecord, request: Request, context: ApiContext): Promise<void> {
  const missing = (name: string): Fault => invalid(`"${name}" is required when setting target provision state to ${target}`);
  const wrong = chosenErasureProblem(args);
  if (wrong !== undefined) throw invalid(wrong);
  if (args.deploy_steps?.length) await checkSteps('deploy', args.deploy_steps, node, request, context);
  if (target === 'rescue' && !args.rescue_password?.trim())
    throw invalid('A non-empty "rescue_password" is required when setting target provision state to rescue');
  for (const kind of ['clean', 'service'] as const) {
    if (target !== kind) continue;
    const steps = args[`${kind}_steps`];
    if (!steps?.length) throw missing(`${kind}_steps`);
    await checkSteps(kind, steps, node, request, context);
  }
}

const isStep = (value: unknown): value is { readonly interface: string; readonly step: string } => {
  if (!isObject(value)) return false;
  const { interface: owner, step } = value;
  return typeof owner === 'string' && typeof step === 'string';
};
/** Arguments of the request that are not arguments of the verb. */
const NO_ARGUMENTS = ['node_ident', 'target', 'runbook'];

/** Steps that the request names have policies of their own. Those of a runbook are checked with the runbook. */
function checkPoliciesOfSteps(node: NodeRecord, request: ProvisionRequest, context: ApiContext): void {
  const { query } = request;
  for (const kind of ['clean_steps', 'service_steps'] as const)
    if (query[kind]?.length) checkPolicy(request, context, `node:set_provision_state:${kind}`, node);
  const named = (['deploy_steps', 'clean_steps', 'service_steps'] as const).flatMap((kind) => query[kind] ?? []);
  checkStepPolicies(named.filter(isStep), request, context, node);
}

/** A lessee could leave something for the next one, so the choice has a policy of its own. */
function checkErasePolicy(node: NodeRecord, request: ProvisionRequest, context: ApiContext): void {
  const { erase, keep } = request.query;
  if ((erase ?? keep ?? null) !== null) checkPolicy(request, context, 'node:set_provision_state:erase', node);
}

async function setProvision(request: RequestOf<'setProvision'>, context: ApiContext): Promise<Answer> {
  const { minor } = request;
  const node = await nodeOf(request, context, 'node:set_provision_state');
  const verb = request.query.target;
  if (!request.query.runbook) checkPoliciesOfSteps(node, request, context);
  checkErasePolicy(node, request, context);
  checkVerb(verb, node, minor);
  const target = verb!;
  checkConfigdrive(target, request.query.configdrive, minor, context);
  const query = await withRunbook(target, node, request, context);
  checkKeys(target, query, node, minor);
  const args = Object.fromEntries(
    Object.entries(query).filter(([name, value]) => value !== null && !NO_ARGUMENTS.includes(name)),
  ) as ProvisionArgs;
  await checkRequired(target, args, node, request, context);
  checkDrive(args.configdrive);
  await context.conductor.provision(node.uuid, target, args, new AlreadyRead(node));
  return accepted(request);
}

async function maintain(request: RequestOn<'node_ident'>, context: ApiContext, on: boolean, given?: string | null): Promise<Answer> {
  const node = await nodeOf(request, context, on ? 'node:set_maintenance' : 'node:clear_maintenance');
  const reason = typeof given === 'string' ? storableOf('reason', given) : null;
  const after = { ...node, maintenance: on, maintenance_reason: reason };
  await withMaintenanceNotifications(context, request, after, () => context.conductor.setMaintenance(node.uuid, on, reason));
  return { status: 202 };
}

export const nodeStateHandlers = {
  showStates,
  setPower,
  setProvision,
  setMaintenance: (request, context) => maintain(request, context, true, request.query.reason),
  clearMaintenance: (request, context) => maintain(request, context, false),
} satisfies SomeHandlers;
