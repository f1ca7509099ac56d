import { NO_ROLES, parseUserRoles } from '../../../api/auth/user-roles';

it('reads roles and scopes, and adds implied roles', () => {
  const users = parseUserRoles(`
# Operators.
[admin]
roles = Admin
system = all

[ci]
roles = member, service
project = 5d3f
project_name = ci
project_domain = default
user_domain = default

[chief]
roles = manager
domain = default

[guest]
project = 5d3f
`);
  expect(Object.fromEntries(users)).toEqual({
    admin: { ...NO_ROLES, roles: ['admin', 'manager', 'member', 'reader'], system: true },
    ci: {
      ...NO_ROLES,
      roles: ['member', 'reader', 'service'],
      project: '5d3f',
      projectName: 'ci',
      projectDomain: 'default',
      userDomain: 'default',
    },
    chief: { ...NO_ROLES, roles: ['manager', 'member', 'reader'], domain: 'default' },
    guest: { ...NO_ROLES, project: '5d3f' },
  });
});

it.each([
  ['roles = admin', 'line 1: an option before the first section'],
  ['[a]\nroles', 'line 2: neither "name = value" nor a section'],
  ['[a]\nrole = admin', 'line 2: "role" must be one of roles, project, project_name,'],
  ['[a]\n__proto__ = admin', 'line 2: "__proto__" must be one of'],
  ['[a]\nroles = admin\nroles = reader', 'line 3: roles of a is given a second time'],
  ['[a]\nroles = admin\n[b]\nroles = reader\n[a]\nroles = reader', 'line 6: roles of a is given a second time'],
  ['[a]\nsystem = true', 'line 2: system of a must be all, or absent'],
  ['[a]\nproject =', 'line 2: project of a must be an id or a name of at most 255 characters'],
  [`[a]\n\nproject = ${'x'.repeat(256)}`, 'line 3: project of a must be'],
  ['[a]\nproject = x\u0000y', 'line 2: project of a must be'],
  [`[a]\nroles = ${Array.from({ length: 101 }, (_, index) => `r${index}`).join(',')}`, 'line 2: roles of a must be at most 100 roles'],
  ['[a]\nsystem = all\nproject = x', 'line 3: a: only one of project, domain and system can be given'],
  ['[a]\nroles = admin\nproject_name = x', 'line 3: a: project_name and project_domain need project'],
])('%j is refused', (text, message) => expect(() => parseUserRoles(text)).toThrow(message));
