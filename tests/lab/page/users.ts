/** A server whose users log in to the page by http_basic, all with one password. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hashSync } from 'bcryptjs';
import { startServerProcess, type RunningServer, type Sections } from '../../../demo/lab/server';

export const PASSWORD = 'a password';

/** @param roles user → the user's lines in the file of roles */
export function startServerWithUsers(
  folder: string,
  port: number,
  roles: Readonly<Record<string, string>>,
  { DEFAULT, ...sections }: Sections,
): Promise<RunningServer> {
  const [usersFile, rolesFile] = [join(folder, 'users'), join(folder, 'roles')];
  const users = Object.keys(roles).map((user) => `${user}:${hashSync(PASSWORD, 4)}\n`);
  writeFileSync(usersFile, users.join(''));
  writeFileSync(
    rolesFile,
    Object.entries(roles)
      .map(([user, lines]) => `[${user}]\n${lines}\n`)
      .join(''),
  );
  return startServerProcess(
    join(folder, 'server'),
    {
      DEFAULT: {
        my_ip: '127.0.0.1',
        auth_strategy: 'http_basic',
        http_basic_auth_user_file: usersFile,
        http_basic_roles_file: rolesFile,
        ...DEFAULT,
      },
      api: { host_ip: '127.0.0.1', port },
      ...sections,
    },
    undefined,
    ['--roles', 'api,conductor'],
  );
}
/** @returns the UUID */
export async function createNode(url: string, user: string, node: object): Promise<string> {
  const answer = await fetch(`${url}/v1/nodes`, {
    method: 'POST',
    headers: {
      authorization: `Basic ${Buffer.from(`${user}:${PASSWORD}`).toString('base64')}`,
      'content-type': 'application/json',
      'x-openstack-ironic-api-version': 'latest',
    },
    body: JSON.stringify(node),
  });
  expect(answer.status).toBe(201);
  return ((await answer.json()) as { readonly uuid: string }).uuid;
}
