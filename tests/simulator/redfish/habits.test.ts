/** Habits of makers: each one deviates as it says, and personalities show their identifiers and names. */
import { HABITS, type HabitName } from '../../../simulator/redfish/makers/habits';
import { PERSONALITIES, personalityOf, type PersonalityName } from '../../../simulator/redfish/makers/personalities';
import { BASIC, testBmc, type Answered, type TestBmc } from '../redfish-bmc';

const SYSTEM = '/redfish/v1/Systems/sim-0';
const once = { Boot: { BootSourceOverrideEnabled: 'Once', BootSourceOverrideTarget: 'Pxe' } };
const tagOf = ({ headers }: Answered): string | null => headers.get('etag');
const patch = (bmc: TestBmc, tag?: string): Promise<Answered> =>
  bmc.ask('PATCH', SYSTEM, once, { ...BASIC, ...(tag !== undefined && { 'if-match': tag }) });

/** Habit → what shows that the service has it. */
const SHOWN: { readonly [name in HabitName]?: (bmc: TestBmc) => Promise<void> } = {
  'etag-changes-at-read': async (bmc) => {
    const [first, second] = [tagOf(await bmc.ask('GET', SYSTEM)), tagOf(await bmc.ask('GET', SYSTEM))];
    expect(first).not.toBe(second);
    expect((await patch(bmc, first!)).status).toBe(412);
    expect((await patch(bmc, second!)).status).toBe(204);
    expect(bmc.boot.device).toBe('pxe');
  },
  'etag-demanded': async (bmc) => {
    expect((await patch(bmc)).status).toBe(428);
    expect((await patch(bmc, '*')).status).toBe(204);
  },
  'etag-demanded-in-silence': async (bmc) => {
    expect((await patch(bmc)).status).toBe(204);
    expect(bmc.boot.device).toBe('none');
    expect((await patch(bmc, '*')).status).toBe(204);
    expect(bmc.boot.device).toBe('pxe');
  },
  'etag-any-only': async (bmc) => {
    expect((await patch(bmc, tagOf(await bmc.ask('GET', SYSTEM))!)).status).toBe(412);
    expect((await patch(bmc, '*')).status).toBe(204);
  },
  'etag-unseen': async (bmc) => expect(tagOf(await bmc.ask('GET', SYSTEM))).toBeNull(),
  'etag-gzip': async (bmc) => {
    const tag = tagOf(await bmc.ask('GET', SYSTEM))!;
    expect(tag).toMatch(/^"\w+-gzip"$/);
    expect((await patch(bmc, tag)).status).toBe(412);
    expect((await patch(bmc, tag.replace('-gzip', ''))).status).toBe(204);
  },
  'etag-bare': async (bmc) => {
    const tag = tagOf(await bmc.ask('GET', SYSTEM))!;
    expect(tag).toMatch(/^\w+$/);
    expect((await patch(bmc, `"${tag}"`)).status).toBe(412);
    expect((await patch(bmc, tag)).status).toBe(204);
  },
  'boot-not-kept': async (bmc) => {
    expect((await patch(bmc)).status).toBe(200);
    expect(bmc.boot.device).toBe('none');
  },
  'sessions-at-root': async (bmc) => {
    const login = { UserName: 'admin', Password: 'password' };
    expect(await bmc.get('')).not.toHaveProperty('Links');
    expect((await bmc.ask('POST', '/redfish/v1/SessionService/Sessions', login, {})).status).toBe(401);
    const made = await bmc.ask('POST', '/redfish/v1/Sessions', login, {});
    expect(made.status).toBe(201);
    expect(made.headers.get('location')).toMatch(/^\/redfish\/v1\/Sessions\/\w+$/);
  },
  'sessions-end-403': async (bmc) => {
    const { headers } = await bmc.ask('POST', '/redfish/v1/SessionService/Sessions', { UserName: 'admin', Password: 'password' }, {});
    const token = { 'x-auth-token': headers.get('x-auth-token')! };
    const statuses: number[] = [];
    for (let tries = 0; tries < 8; tries++) statuses.push((await bmc.ask('GET', SYSTEM, undefined, token)).status);
    expect(statuses).toEqual([200, 200, 200, 200, 200, 200, 403, 403]);
  },
  'password-change-required': async (bmc) => {
    const refused = await bmc.ask('GET', SYSTEM);
    expect([refused.status, refused.body.error!.code]).toEqual([403, 'Base.1.8.PasswordChangeRequired']);
    expect((await bmc.ask('PATCH', '/redfish/v1/AccountService/Accounts/admin', { Password: 'changed-1' })).status).toBe(204);
    const changed = { authorization: `Basic ${Buffer.from('admin:changed-1').toString('base64')}` };
    expect((await bmc.ask('GET', SYSTEM, undefined, changed)).status).toBe(200);
  },
  'errors-at-top': async (bmc) => {
    const { status, body } = await bmc.ask('PATCH', SYSTEM, { Boot: { BootSourceOverrideTarget: 'Tape' } });
    expect([status, Object.keys(body)]).toEqual([400, ['@Message.ExtendedInfo']]);
  },
  'errors-beside-property': async (bmc) => {
    const { body } = await bmc.ask('PATCH', SYSTEM, { Boot: { BootSourceOverrideTarget: 'Tape' } });
    expect(Object.keys(body)).toEqual(['BootSourceOverrideTarget@Message.ExtendedInfo']);
  },
};

it.each(Object.keys(SHOWN) as HabitName[])('%s', async (name) => {
  const bmc = await testBmc(undefined, { habits: [name] });
  try {
    await SHOWN[name]!(bmc);
  } finally {
    await bmc.close();
  }
});

/** Reads the resources that links of the root lead to, in three steps. @returns those that fail (500) */
async function failing(bmc: TestBmc): Promise<readonly string[]> {
  const seen = new Set(['/redfish/v1']);
  const wrong: string[] = [];
  let next = ['/redfish/v1'];
  for (let depth = 0; depth < 3; depth++) {
    const found: string[] = [];
    for (const path of next) {
      const answer = await bmc.ask('GET', path, undefined, { ...BASIC, connection: 'close' }).catch(() => undefined);
      if (answer?.status === 500) wrong.push(path);
      for (const [, link] of JSON.stringify(answer?.body ?? {}).matchAll(/"@odata\.id":"(\/redfish\/v1\/[^"#]*)"/g))
        if (!seen.has(link!)) found.push(link!);
      for (const link of found) seen.add(link);
    }
    next = [...new Set(found)].filter((path) => !/JsonSchemas|Registries|AccountService|FirmwareInventory/.test(path));
  }
  return wrong;
}
it.each(Object.keys(HABITS) as HabitName[])('with %s alone, no resource fails', async (name) => {
  const bmc = await testBmc(undefined, { habits: [name] });
  try {
    expect(await failing(bmc)).toEqual([]);
  } finally {
    await bmc.close();
  }
});

it.each(Object.keys(PERSONALITIES) as PersonalityName[])('%s has its own identifiers in all links', async (name) => {
  const { ids } = personalityOf(name);
  const bmc = await testBmc(undefined, { personality: name });
  // As many times as it takes: some services refuse a login, drop a connection or are busy at times.
  const get = async (path: string): Promise<Answered['body']> => {
    for (let tries = 0; tries < 10; tries++) {
      const answer = await bmc.ask('GET', path, undefined, { ...BASIC, connection: 'close' }).catch(() => undefined);
      if (answer?.status === 200) return answer.body;
    }
    throw new Error(`${path} is not there`);
  };
  try {
    const bodies = [];
    for (const [collection, id] of [
      ['Systems', ids.system],
      ['Managers', ids.manager],
      ['Chassis', ids.chassis],
    ] as const) {
      const path = `/redfish/v1/${collection}`;
      expect(JSON.stringify(await get(path))).toContain(`"${path}/${id}"`);
      const body = await get(`${path}/${id}`);
      expect(body).toMatchObject({ '@odata.id': `${path}/${id}`, Id: id });
      bodies.push(body);
    }
    expect(JSON.stringify(bodies)).not.toContain('/sim-0');
    expect(await failing(bmc)).toEqual([]);
  } finally {
    await bmc.close();
  }
});
