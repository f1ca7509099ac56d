import { randomBytes, randomUUID } from 'node:crypto';
import { createAgentTokens } from '../../../api/pipeline/agent-tokens';
import { MASK } from '../../../model/masks';
import type { NodeChanges } from '../../../model/records';
import { useDatabase } from '../../support/database';

const database = useDatabase();
const process = (host: string) => createAgentTokens(database.store(), host, randomBytes);
const give = async (tokens: ReturnType<typeof process>, uuid: string) => tokens.give(await database.store().nodes.findLookup(uuid));
async function newNode(changes: NodeChanges = {}): Promise<string> {
  const { nodes } = database.store();
  const { uuid } = await nodes.create({ uuid: randomUUID(), driver: 'fake-hardware' });
  await nodes.update(uuid, { provision_state: 'clean wait', ...changes });
  return uuid;
}

it('gives a token once, and a mask after that', async () => {
  const uuid = await newNode();
  const one = process('one');
  const all = await Promise.all([give(one, uuid), give(one, uuid), give(process('two'), uuid)]);
  expect(all.filter((token) => token !== MASK)).toEqual([expect.stringMatching(/^[\w-]{43}$/)]);
  expect(await give(one, uuid)).toBe(MASK);
});

it('gives a token again, once, if the process may have been killed before it answered', async () => {
  const uuid = await newNode();
  const token = await give(process('one'), uuid);
  const next = process('one');
  expect(await Promise.all([give(next, uuid), give(next, uuid)])).toEqual(expect.arrayContaining([token, MASK]));
  expect(await give(next, uuid)).toBe(MASK);
});

it.each<[string, (uuid: string) => Promise<unknown>]>([
  ['a heartbeat came', (uuid) => database.store().nodes.mergeInternal(uuid, { agent_url: 'https://192.0.2.1:9999' })],
  ['it is part of a boot medium', (uuid) => database.store().nodes.mergeInternal(uuid, { agent_secret_token_giver: undefined })],
])('gives a token not again if %s', async (_, change) => {
  const uuid = await newNode();
  await give(process('one'), uuid);
  await change(uuid);
  expect(await give(process('one'), uuid)).toBe(MASK);
});

it('gives no token that another host gave, and none while the power changes', async () => {
  const uuid = await newNode();
  await give(process('one'), uuid);
  expect(await give(process('two'), uuid)).toBe(MASK);
  expect(await give(process('on'), uuid)).toBe(MASK);
  const changing = await newNode({ target_power_state: 'power on' });
  await expect(give(process('one'), changing)).rejects.toMatchObject({ status: 409 });
});
