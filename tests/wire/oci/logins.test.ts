/** Whose logins a registry gets that a user has named. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loginsFor } from '../../../wire/oci/logins';
import { driverOptions } from '../../support/task';

let folder: string;
beforeAll(() => void (folder = mkdtempSync(join(tmpdir(), 'logins-'))));
afterAll(() => rmSync(folder, { recursive: true }));

const auth = Buffer.from('operator:secret').toString('base64');
const login = [{ username: 'operator', password: 'secret' }, expect.anything()];
/** The registry gets the token that the login is good for. */
it.each([
  ['the registry of somebody else that names the token server of another', 'evil.example', { 'auth.example.org': { auth } }, []],
  ['a registry that has an entry of its own', 'registry.example.org', { 'registry.example.org': {}, 'auth.example.org': { auth } }, login],
  ['a registry on the host of its token server', 'auth.example.org:5000', { 'auth.example.org': { auth } }, login],
  ['a registry with a login of its own', 'registry.example.org', { 'registry.example.org': { auth } }, login],
])('%s', async (_, registry, auths, expected) => {
  const file = join(folder, 'auth.json');
  writeFileSync(file, JSON.stringify({ auths }));
  const options = driverOptions({ 'oci.authentication_config': file });
  await expect(loginsFor(registry, 'auth.example.org', { secrets: undefined, permitsUser: true, options })).resolves.toEqual(expected);
});
