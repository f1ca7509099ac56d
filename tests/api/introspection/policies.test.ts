import { checkOperation } from '../../../api/introspection/policies';
import { ROUTES } from '../../../api/introspection/routes';
import { NOBODY, type Caller } from '../../../policy/caller';
import { createEnforcer } from '../../../policy/enforcer';
import { optionsOf } from '../../support/options';

const auth = createEnforcer(optionsOf({}));
const admin: Caller = { ...NOBODY, user: 'a', roles: ['admin', 'manager', 'member', 'reader'] };
const operations = ROUTES.filter(({ isPublic }) => !isPublic).flatMap(({ methods }) =>
  Object.values(methods).map(({ operationId }) => operationId),
);
const isAllowed = (operationId: string, caller: Caller): boolean => {
  try {
    checkOperation(operationId, caller, auth);
    return true;
  } catch {
    return false;
  }
};

it.each(operations)('%s requires the system scope', (operationId) => {
  expect(isAllowed(operationId, { ...admin, system: true })).toBe(true);
  expect(isAllowed(operationId, { ...admin, project: 'p' })).toBe(false);
  expect(isAllowed(operationId, { ...NOBODY, user: 'r', roles: ['reader'], system: true })).toBe(
    /^(list|show)Introspections?$/.test(operationId),
  );
});
it('refuses an operation without a policy', () => {
  expect(() => checkOperation('new', { ...admin, system: true }, auth)).toThrow('Access was denied');
});
