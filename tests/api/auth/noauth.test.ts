import { noauth } from '../../../api/auth/noauth';
import { NOBODY } from '../../../policy/caller';

const identify = (headers: Readonly<Record<string, string>>) => noauth.identify(headers, '/v1/nodes', 'GET', 'test');

it.each<[Readonly<Record<string, string>>, object]>([
  [{}, {}],
  [
    { 'x-user-id': 'u', 'x-user-name': 'jo', 'x-user-domain-id': 'd' },
    { user: 'u', userName: 'jo', userDomain: 'd' },
  ],
  [
    { 'x-project-id': 'p', 'x-project-name': 'metal', 'x-project-domain-id': 'd', 'x-roles': 'Admin, member ,,' },
    { project: 'p', projectName: 'metal', projectDomain: 'd', roles: ['admin', 'member'] },
  ],
  [
    { 'openstack-system-scope': 'all', 'x-domain-id': 'd' },
    { system: true, domain: 'd' },
  ],
  [{ 'openstack-system-scope': 'some' }, {}],
  // Former names of the headers.
  [
    { 'x-user': 'u', 'x-tenant-id': 'p', 'x-tenant-name': 'n', 'x-role': 'r' },
    { user: 'u', project: 'p', projectName: 'n', roles: ['r'] },
  ],
  [{ 'x-user-id': 'u', 'x-user': 'v', 'x-project-id': '' }, { user: 'u' }],
])('identifies the caller by the headers %j', async (headers, expected) =>
  expect(await identify(headers)).toEqual({ ...NOBODY, exempt: true, ...expected }),
);

it('limits the length of a name and the number of roles', async () => {
  const { user, roles } = await identify({ 'x-user-id': 'x'.repeat(60_000), 'x-roles': 'r,'.repeat(30_000) });
  expect([user!.length, roles.length]).toEqual([1024, 100]);
});
