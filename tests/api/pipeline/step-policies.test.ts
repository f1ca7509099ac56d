import { checkStepPolicies } from '../../../api/pipeline/step-policies';
import type { Auth } from '../../../api/pipeline/handler';
import { NOBODY } from '../../../policy/caller';

const who = { ...NOBODY, user: 'u', project: 'p1' };
/** Only owners may run firmware.update; everybody may run every other step. */
const auth: Auth = {
  identify: async () => who,
  allowed: ({ project }, policy, target) => policy !== 'step:execute:firmware.update' || target?.owner === project,
};
const update = { interface: 'firmware', step: 'update' };
const log = { interface: 'vendor', step: 'log_passthrough' };

it.each([
  [[log], undefined, true],
  [[log, update], { owner: 'p1', lessee: null }, true],
  [[log, update], { owner: 'p2', lessee: null }, false],
  [[update], undefined, false],
])('the caller may run %j on %j: %p', (steps, node, may) => {
  const checked = (): void => checkStepPolicies(steps, { caller: who }, { auth }, node);
  if (may) expect(checked).not.toThrow();
  else expect(checked).toThrow('insufficient privileges to execute step update on interface firmware');
});
