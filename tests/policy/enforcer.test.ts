import { NOBODY, type Caller } from '../../policy/caller';
import { createEnforcer, type Enforcer } from '../../policy/enforcer';
import { withImpliedRoles } from '../../policy/implied-roles';
import { parseRule } from '../../policy/language';
import { POLICIES } from '../../policy/rules';
import { optionsOf } from '../support/options';
import type { Options } from '../../config/options';

type Allowed = (...check: Parameters<Enforcer['allowed']>) => boolean;
function allowedBy(rules: Readonly<Record<string, unknown>> = {}, changes: Partial<Options> = {}): Allowed {
  const enforcer = createEnforcer(optionsOf(changes), new Map(Object.entries(rules).map(([name, rule]) => [name, parseRule(rule)])));
  return (caller, policy, target) => enforcer.allowed(caller, policy, target);
}

const system = (role: string): Caller => ({ ...NOBODY, user: 'u', system: true, roles: withImpliedRoles([role]) });
const of = (project: string, role: string): Caller => ({ ...NOBODY, user: 'u', project, roles: withImpliedRoles([role]) });
const leased = { owner: 'o', lessee: 'l' };
const unowned = { owner: null, lessee: null };

it.each<[string, string, { owner: string | null; lessee: string | null } | undefined, boolean, Caller]>([
  ['system reader', 'node:get', leased, true, system('reader')],
  ['system reader', 'node:update', leased, false, system('reader')],
  ['system reader', 'node:list_all', undefined, true, system('reader')],
  ['system service', 'node:list_all', undefined, true, system('service')],
  ['owner reader', 'node:get', leased, true, of('o', 'reader')],
  ['owner reader', 'node:get:last_error', leased, true, of('o', 'reader')],
  ['lessee reader', 'node:get', leased, true, of('l', 'reader')],
  ['lessee reader', 'node:get:last_error', leased, false, of('l', 'reader')],
  ['lessee admin', 'node:set_provision_state', leased, true, of('l', 'admin')],
  ['lessee member', 'node:set_provision_state', leased, false, of('l', 'member')],
  ['lessee member', 'node:set_power_state', leased, true, of('l', 'member')],
  ['stranger admin', 'node:get', leased, false, of('x', 'admin')],
  ['stranger admin', 'node:get', unowned, false, of('x', 'admin')],
  ['stranger admin', 'node:get', undefined, false, of('x', 'admin')],
  ['owner service', 'node:get', leased, true, of('o', 'service')],
  ['owner admin', 'port:create', leased, true, of('o', 'admin')],
  ['owner member', 'port:create', leased, false, of('o', 'member')],
  ['owner admin', 'volume:create', leased, true, of('o', 'admin')],
  // The projects of allocations and runbooks are their own.
  ['owner reader', 'allocation:get', leased, true, of('o', 'reader')],
  ['lessee reader', 'allocation:get', leased, false, of('l', 'reader')],
  ['owner manager', 'runbook:use', leased, true, of('o', 'manager')],
  // Scopes.
  ['system reader', 'chassis:get', undefined, true, system('reader')],
  ['project reader', 'chassis:get', undefined, false, of('o', 'reader')],
  ['system admin', 'allocation:create_pre_rbac', undefined, false, system('admin')],
  ['project admin', 'allocation:create_pre_rbac', undefined, true, of('o', 'admin')],
  ['nobody', 'node:ipa_heartbeat', undefined, true, NOBODY],
  ['nobody', 'node:get', unowned, false, NOBODY],
  ['system admin', 'show_password', undefined, false, system('admin')],
  ['system admin', 'show_instance_secrets', undefined, false, system('admin')],
  ['system admin', 'step:execute:bios.apply_configuration', leased, true, system('admin')],
  ['nobody', 'step:execute:bios.apply_configuration', undefined, true, NOBODY],
  ['system admin', 'node:nonsense', undefined, false, system('admin')],
  ['system admin', 'baremetal:node:get', leased, false, system('admin')],
])('%s may do %s on %j: %s', (_name, policy, target, expected, caller) => {
  expect(allowedBy()(caller, policy, target)).toBe(expected);
});

it('refuses scopes that a policy does not name, unless [oslo_policy]enforce_scope is off', () => {
  const domain: Caller = { ...NOBODY, user: 'u', domain: 'd', roles: ['reader', 'admin'] };
  const anyone = { 'baremetal:chassis:get': 'role:reader', 'baremetal:node:get': 'role:reader' };
  const open = { 'oslo_policy.enforce_scope': false };
  for (const [caller, policy] of [
    [of('p', 'reader'), 'chassis:get'],
    [domain, 'chassis:get'],
    [domain, 'node:get'],
  ] as const) {
    expect(allowedBy(anyone)(caller, policy)).toBe(false);
    expect(allowedBy(anyone, open)(caller, policy)).toBe(true);
  }
});

it('also applies the former rules when [oslo_policy]enforce_new_defaults is off', () => {
  const former = { 'oslo_policy.enforce_new_defaults': false };
  const admin = of('x', 'admin');
  const observer: Caller = { ...NOBODY, project: 'x', projectName: 'baremetal', roles: ['baremetal_observer'] };
  expect(allowedBy({}, former)(admin, 'node:get', leased)).toBe(true);
  expect(allowedBy()(admin, 'node:get', leased)).toBe(false);
  expect(allowedBy({}, former)(observer, 'node:get', leased)).toBe(true);
  expect(allowedBy({}, former)(observer, 'node:update', leased)).toBe(false);
  // A rule of the operator replaces both defaults.
  expect(allowedBy({ 'baremetal:node:get': '!' }, former)(admin, 'node:get', leased)).toBe(false);
  expect(allowedBy({}, former)({ ...admin, isAdminProject: false }, 'allocation:create', leased)).toBe(true);
});

it("an operator's rule for the former name of a rule replaces that rule, unless it equals a default", () => {
  const own = { 'baremetal:node:update': 'role:mechanic' };
  const mechanic: Caller = { ...NOBODY, project: 'x', roles: ['mechanic'] };
  expect(allowedBy(own)(mechanic, 'node:update:driver_info', leased)).toBe(true);
  expect(allowedBy(own)(of('o', 'member'), 'node:update:driver_info', leased)).toBe(false);
  expect(allowedBy(own)(mechanic, 'node:update:shard', leased)).toBe(false);
  // Unless the operator's rule equals a default.
  for (const same of ['rule:is_admin', 'rule:baremetal:node:update:driver_info'])
    expect(allowedBy({ 'baremetal:node:update': same })(of('o', 'member'), 'node:update:driver_info', leased)).toBe(true);
});

it('a step needs the rule that the operator defines for it', () => {
  const allowed = allowedBy({ 'baremetal:step:execute:firmware.update': 'project_id:%(node.owner)s' });
  expect(allowed(of('o', 'member'), 'step:execute:firmware.update', leased)).toBe(true);
  expect(allowed(of('l', 'admin'), 'step:execute:firmware.update', leased)).toBe(false);
  expect(allowed(of('l', 'admin'), 'step:execute:firmware.update')).toBe(false);
  expect(allowed(of('l', 'admin'), 'step:execute:firmware.other', leased)).toBe(true);
});

it('gives a service the rights of the system only with rbac_service_role_elevated_access and in rbac_service_project_name', () => {
  const service: Caller = { ...of('p', 'service'), projectName: 'services' };
  const changes = { 'DEFAULT.rbac_service_role_elevated_access': true, 'DEFAULT.rbac_service_project_name': 'services' };
  expect(allowedBy({}, changes)(service, 'node:list_all')).toBe(true);
  expect(allowedBy({}, changes)({ ...service, projectName: 'other' }, 'node:list_all')).toBe(false);
  expect(allowedBy({}, changes)({ ...service, roles: ['admin'] }, 'node:list_all')).toBe(false);
  expect(allowedBy()({ ...service, projectName: 'service' }, 'node:list_all')).toBe(false);
});

it('a caller without a project does not count as the owner of a node without an owner', () => {
  const nowhere: Caller = { ...NOBODY, user: 'u', roles: ['admin', 'member', 'reader'] };
  const inDomain = { ...nowhere, domain: 'd' };
  const rules = { 'baremetal:node:get': 'project_id:%(node.owner)s', 'baremetal:port:get': 'not project_id:%(node.owner)s' };
  const allowed = allowedBy(rules, { 'oslo_policy.enforce_scope': false });
  for (const caller of [nowhere, inDomain]) {
    expect(allowed(caller, 'node:get', unowned)).toBe(false);
    expect(allowed(caller, 'port:get', unowned)).toBe(false);
    expect(allowed(caller, 'port:get', leased)).toBe(true);
    expect(allowed(caller, 'node:set_power_state', unowned)).toBe(false);
  }
  expect(allowed(system('reader'), 'node:get', unowned)).toBe(false);
  expect(allowed(of('p', 'reader'), 'node:get', unowned)).toBe(false);
});

it.each(['None', 'null', 'undefined', 'none', ''])('a caller of the project %j owns nothing that has no owner', (project) => {
  const caller: Caller = { ...of(project, 'admin'), projectName: project };
  const targets = [unowned, { owner: '', lessee: '' }, undefined];
  const names = POLICIES.filter(({ check }) => /%\(/.test(check)).map(({ name }) => name.replace(/^baremetal:/, ''));
  expect(names.length).toBeGreaterThan(50);
  const elevated = { 'DEFAULT.rbac_service_role_elevated_access': true, 'DEFAULT.rbac_service_project_name': '' };
  const [allowed, stranger] = [allowedBy({}, elevated), of('x', 'admin')];
  for (const policy of names)
    for (const target of targets) expect([policy, allowed(caller, policy, target)]).toEqual([policy, allowed(stranger, policy)]);
});

it.each<[string, Caller, boolean]>([
  ['user_id:u and user_domain_id:d', { ...NOBODY, user: 'u', userDomain: 'd' }, true],
  ['project_domain_id:d and domain_id:e', { ...NOBODY, projectDomain: 'd', domain: 'e' }, true],
  ['system:all', { ...NOBODY, system: true }, true],
  ['system_scope:None', NOBODY, true],
  ['is_public_api:True', NOBODY, true],
  ['is_public_api:True', { ...NOBODY }, false],
  ['is_admin_project:True', NOBODY, true],
  ['is_admin_project:False', { ...NOBODY, isAdminProject: false }, true],
  ['service_roles:service and service_user_id:s', { ...NOBODY, service: { ...NOBODY, user: 's', roles: ['service'] } }, true],
  ['service_user_id:None and service_project_id:None', NOBODY, true],
  ['service_user_domain_id:a or service_project_domain_id:b', NOBODY, false],
  ['user_id:%(project_id)s', { ...NOBODY, user: 'same', project: 'same' }, true],
  ['is_admin:True', { ...NOBODY, roles: ['admin'] }, false],
  ['config.service_project_name:service', NOBODY, false],
])('evaluates %s with the credentials of the caller', (rule, caller, expected) => {
  expect(allowedBy({ 'baremetal:driver:ipa_lookup': rule })(caller, 'driver:ipa_lookup')).toBe(expected);
});

it('refuses circular references, including those through former rules', () => {
  expect(() => allowedBy({ 'baremetal:node:get': 'rule:baremetal:node:get' })).toThrow(/refers to itself/);
  const own = { 'baremetal:node:get': 'rule:baremetal:node:list' };
  expect(() => allowedBy(own)).not.toThrow();
  expect(() => allowedBy(own, { 'oslo_policy.enforce_new_defaults': false })).toThrow(
    /baremetal:node:get → baremetal:node:list → baremetal:node:get/,
  );
});
