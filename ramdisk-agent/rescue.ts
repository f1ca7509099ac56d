/** The last act of the agent in a rescue system: whoever knows the password may log in, as `rescue`; then it leaves the machine to them. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AgentError } from './system/errors';

/** crypt(5): a method, its parameters and salt, the hash. What stands in a line of /etc/shadow: no colon, no line end. */
const HASH = /^\$[a-z0-9]{1,8}\$[./A-Za-z0-9$,=*-]{8,500}$/;

/** What the ramdisk's first process looks for when the agent has ended: it lets people in at the consoles then. */
export const RESCUE_MARK = 'run/rescue';

/**
 * Makes the user, with all rights.
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
