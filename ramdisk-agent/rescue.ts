/** The agent's last command of a rescue: creates the user `rescue` with the password. Then the agent ends, and the user can log in. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AgentError } from '../model/agent/errors';

/** A crypt(5) hash: method, parameters and salt, hash. It has no colon and no line end, which would break the line in /etc/shadow. */
const HASH = /^\$[a-z0-9]{1,8}\$[./A-Za-z0-9$,=*-]{8,500}$/;

/** The ramdisk's init checks for this file when the agent has ended, and then allows logins on the consoles. */
const RESCUE_MARK = 'run/rescue';

/**
 * Creates the user, who has root's rights (user ID 0).
 * @param root folder of the system: /
 * @throws AgentError InvalidCommandParamsError for anything but a hash
 */
export async function openForRescue(root: string, password: unknown, hashed: unknown): Promise<void> {
  if (hashed !== true || typeof password !== 'string' || !HASH.test(password))
    throw new AgentError('InvalidCommandParamsError', 'finalize_rescue takes a hashed password (crypt) only.');
  for (const folder of ['etc', 'run']) await mkdir(join(root, folder), { recursive: true });
  await writeFile(join(root, 'etc/passwd'), 'root:x:0:0:root:/:/bin/sh\nrescue:x:0:0:rescue:/:/bin/sh\n');
  await writeFile(join(root, 'etc/group'), 'root:x:0:\n');
  await writeFile(join(root, 'etc/shadow'), `root:!:1::::::\nrescue:${password}:1::::::\n`, { mode: 0o600 });
  await writeFile(join(root, RESCUE_MARK), '');
}
