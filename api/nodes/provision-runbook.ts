/** A runbook in a provision request: checks that it is approved for the node, and expands it to the verb's arguments. */
import { invalid, notAcceptable } from '../../model/errors';
import { repr } from '../../model/python';
import type { NodeRecord, RunbookRecord, StepRecord } from '../../model/records';
import { controlsOf } from '../../model/rules/step-controls';
import { checkPolicy } from '../pipeline/access';
import type { RequestOf, ApiContext } from '../pipeline/handler';
import { checkStepPolicies } from '../pipeline/step-policies';

/** From this version on, a node approves a runbook by having one of the runbook's traits; before, by having its name as a trait. */
const TRAITS_SINCE = 112;

function checkApproved({ uuid, name, traits }: RunbookRecord, node: NodeRecord, minor: number): void {
  const begins = `This runbook has not been approved for use on this node ${node.uuid}.`;
  if (minor < TRAITS_SINCE) {
    if (!node.traits.includes(name)) throw invalid(`${begins} Please ask an administrator to add it to your node traits.`);
    return;
  }
  if (traits.length === 0)
    throw invalid(`Runbook ${uuid} has no traits configured. Please ask an administrator to add traits to the runbook.`);
  if (!traits.some((trait) => node.traits.includes(trait)))
    throw invalid(
      `${begins} The node does not have any of the runbook's traits ${repr([...traits].sort())}. ` +
        'Please ask an administrator to add a matching trait to your node.',
    );
}

const withoutPriority = (step: StepRecord): StepRecord => ({
  interface: step.interface,
  step: step.step,
  args: step.args,
  ...(step.order === undefined ? {} : { order: step.order }),
  ...controlsOf(step),
});

type ProvisionQuery = RequestOf<'setProvision'>['query'];
/** The arguments of a provision verb, with its runbook expanded. Throws RunbookNotFound, HTTPForbidden, Invalid, NotAcceptable. */
export async function withRunbook(
  target: string,
  node: NodeRecord,
  request: RequestOf<'setProvision'>,
  context: ApiContext,
): Promise<ProvisionQuery> {
  const { query, minor, caller } = request;
  const ident = query.runbook;
  if (!ident) return query;
  if (minor < 92) throw notAcceptable();
  const runbook = await context.store.runbooks.find(ident);
  checkPolicy(request, context, 'runbook:use', { owner: runbook.owner, lessee: null });
  checkApproved(runbook, node, minor);
  // Runbooks that an administrator created or published need no check of their steps.
  if (runbook.owner !== null && !runbook.public) checkStepPolicies(runbook.steps, { caller }, context, node);
  const args: ProvisionQuery = { ...query, runbook: null, disable_ramdisk: runbook.disable_ramdisk };
  if (target !== 'clean' && target !== 'service') return args;
  const key = `${target}_steps` as const;
  if (query[key]?.length) throw invalid(`Please provide either "${key}" or a runbook, but not both.`);
  const steps = [...runbook.steps].sort((a, b) => (a.order ?? 0) - (b.order ?? 0));
  return { ...args, [key]: steps.map(withoutPriority) };
}
