/**
 * The deploy interface `autodetect` does no work: the conductor gives the node another one when a flow begins
 * (conductor/hardware/deploy-interface.ts), and `autodetect` again when the flow, or the instance, is over.
 */
import type { DeployInterface, Task } from './interfaces';

const notChosen =
  (method: string) =>
  async ({ node }: Task): Promise<never> => {
    throw new Error(
      `${method} was called on the autodetect deploy interface for node ${node.uuid}, which does not perform any deployment itself. ` +
        'The autodetect interface did not switch to a concrete interface during switch_interface(). This indicates a bug or misconfiguration.',
    );
  };

export const autodetectDeploy: DeployInterface = {
  detects: true,
  cannotLoad: (options) => {
    const enabled = options['DEFAULT.enabled_deploy_interfaces'];
    if (options['DEFAULT.autodetect_deploy_interfaces'].includes('autodetect'))
      return "autodetect_deploy_interfaces has 'autodetect', which cannot choose itself: remove it";
    const missing = options['DEFAULT.autodetect_deploy_interfaces'].find((name) => !enabled.includes(name));
    if (missing === undefined) return undefined;
    return (
      `Deploy interface '${missing}' is configured in autodetect_deploy_interfaces but is not in enabled_deploy_interfaces. ` +
      `Please add '${missing}' to enabled_deploy_interfaces or remove it from autodetect_deploy_interfaces.`
    );
  },
  steps: [{ step: 'deploy', priority: { deploy: 100 }, run: notChosen('deploy') }],
  prepare: notChosen('prepare'),
  cleanUp: notChosen('clean_up'),
  tearDown: notChosen('tear_down'),
  prepareCleaning: notChosen('prepare_cleaning'),
  tearDownCleaning: notChosen('tear_down_cleaning'),
  prepareService: notChosen('prepare_service'),
  tearDownService: notChosen('tear_down_service'),
};
