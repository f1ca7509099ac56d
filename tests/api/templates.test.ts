import { matching, useApi } from '../support/api';
import { NEWEST } from '../support/newest';

const api = useApi();
const ONE = 'aaaaaaaa-0000-4000-8000-000000000001';
const TWO = 'aaaaaaaa-0000-4000-8000-000000000002';
const NOBODY = 'cccccccc-0000-4000-8000-000000000000';
interface Step {
  readonly interface: string;
  readonly step: string;
  readonly args?: object;
  readonly priority?: number | string;
  readonly order?: number | string;
}
const stepsOf = (answer: { readonly body: object }): readonly Step[] => (answer.body as { steps: readonly Step[] }).steps;

describe('deploy templates', () => {
  const path = `/v1/deploy_templates/${ONE}`;
  const bios: Step = { interface: 'bios', step: 'apply', args: { admin_password: 'x', settings: [{ token: 'y' }] }, priority: 150 };
  const deploy: Step = { interface: 'deploy', step: 'write', args: {}, priority: 10 };
  const create = (body: object) =>
    api.ask('POST', '/v1/deploy_templates', NEWEST, { body: { name: 'CUSTOM_NEW', steps: [deploy], ...body } });
  const patch = (body: unknown) => api.ask('PATCH', path, NEWEST, { body });

  beforeEach(async () => {
    await api.database.query('DELETE FROM deploy_templates');
    await create({ uuid: ONE, name: 'CUSTOM_ONE', steps: [bios, deploy] });
  });

  it('show masked secrets, and keep the real ones when they are patched', async () => {
    const answer = await api.ask('GET', path);
    expect(stepsOf(answer)[0]!.args).toEqual({ admin_password: '******', settings: [{ token: '******' }] });
    expect(answer.text).not.toContain('"x"');
    await patch([{ op: 'add', path: '/steps/0/args/more', value: 1 }]);
    const [row] = await api.database.query<{ steps: readonly Step[] }>('SELECT steps FROM deploy_templates');
    expect(row!.steps.map(({ args }) => args)).toContainEqual({ admin_password: 'x', settings: [{ token: 'y' }], more: 1 });
  });

  it('answer a priority as it was sent, and store it as a number', async () => {
    const made = await create({ uuid: TWO, steps: [{ ...deploy, priority: '007' }] });
    expect([made.status, made.headers['location'], stepsOf(made)[0]!.priority]).toEqual([
      201,
      `${api.url()}/v1/deploy_templates/${TWO}`,
      '007',
    ]);
    expect(stepsOf(await api.ask('GET', `/v1/deploy_templates/${TWO}`))[0]!.priority).toBe(7);
  });

  it('accept a description, but do not store it', async () => {
    expect((await create({ description: 'words' })).body).not.toHaveProperty('description');
    expect((await api.ask('GET', '/v1/deploy_templates?fields=description')).fault).toBe('Field(s) "description" are not valid');
  });

  it.each([
    [{ name: 'free' }, 400, /^Schema error for template: 'free' is not valid under any of the given schemas/],
    [{ name: 'CUSTOM_ONE' }, 409, 'A deploy template with name CUSTOM_ONE already exists.'],
    [{ uuid: ONE }, 409, `A deploy template with UUID ${ONE} already exists.`],
    [{ steps: [] }, 400, 'Schema error for template: [] should be non-empty'],
    [{ steps: [{ ...deploy, args: undefined }] }, 400, "Schema error for template: 'args' is a required property"],
    [{ steps: [{ ...deploy, interface: 'boot' }] }, 400, /^Schema error for template: 'boot' is not one of \['vendor', /],
    [
      { steps: [deploy, { ...deploy, priority: 1 }] },
      400,
      /^Deploy template invalid: Duplicate .* Duplicates: interface: deploy, step: write\.$/,
    ],
  ])('are refused with %j', async (body, status, sentence) => {
    const answer = await create(body);
    expect(answer.status).toBe(status);
    expect(answer.fault).toEqual(typeof sentence === 'string' ? sentence : matching(sentence));
    expect((await api.ask('GET', '/v1/deploy_templates')).body['deploy_templates']).toHaveLength(1);
  });

  it.each([
    ['/steps/-', 'add', { ...deploy, step: 'two' }, ['apply', 'write', 'two']],
    // A new step comes after the existing ones, whatever its index in the patch.
    ['/steps/0', 'add', { ...deploy, step: 'two' }, ['apply', 'write', 'two']],
    ['/steps/0/args', 'replace', { a: 1 }, ['write', 'apply']],
    ['/steps/0/nosuch', 'add', 1, ['apply', 'write']],
    [
      '/steps',
      'replace',
      [
        { ...deploy, step: 'b' },
        { ...deploy, step: 'a' },
      ],
      ['a', 'b'],
    ],
    ['/steps/0', 'remove', undefined, ['write']],
    ['/steps/1/priority', 'replace', '5', ['apply', 'write']],
  ])('are patched at %s with %s', async (where, op, value, names) => {
    const answer = await patch([{ op, path: where, value }]);
    expect([answer.status, stepsOf(answer).map(({ step }) => step)]).toEqual([200, names]);
    expect(stepsOf(await api.ask('GET', path))).toEqual(stepsOf(answer));
  });
  it.each([
    [[{ op: 'add', path: '/steps/-', value: deploy }], /^Deploy template invalid: Duplicate/],
    [[{ op: 'replace', path: '/steps', value: null }], "Schema error for patch: None is not of type 'array'"],
    [[{ op: 'add', path: '/steps/-', value: 5 }], "Schema error for patch: 5 is not of type 'object'"],
    [[{ op: 'remove', path: '/steps' }], "Schema error for patch: 'steps' is a required property"],
    [
      [{ op: 'replace', path: '/uuid', value: TWO }],
      'Cannot patch /uuid. Only the following can be updated: extra, name, steps, description',
    ],
    [
      [
        { op: 'replace', path: '/name', value: 'CUSTOM_NEW' },
        { op: 'remove', path: '/extra/none' },
      ],
      /can't remove a non-existent object 'none'$/,
    ],
  ])('refuse the patch %j', async (body, sentence) => {
    const answer = await patch(body);
    expect(answer.status).toBe(400);
    expect(answer.fault).toEqual(typeof sentence === 'string' ? sentence : matching(sentence));
    expect((await api.ask('GET', path)).body).toMatchObject({ name: 'CUSTOM_ONE', updated_at: null });
  });

  it('accept only a UUID as the marker of a list', async () => {
    expect((await api.ask('GET', `/v1/deploy_templates?marker=${ONE}`)).body['deploy_templates']).toEqual([]);
    expect((await api.ask('GET', '/v1/deploy_templates?marker=CUSTOM_ONE')).fault).toBe('Deploy template CUSTOM_ONE could not be found.');
    expect((await api.ask('GET', '/v1/deploy_templates/CUSTOM_ONE')).body.uuid).toBe(ONE);
  });
  it.each([
    ['GET', path, 404],
    ['GET', `${path}/x/y`, 404],
    ['PUT', '/v1/deploy_templates', 405],
    ['DELETE', path, 405],
  ])('do not exist before 1.55: %s %s', async (method, where, status) => {
    expect(await api.ask(method, where, 54)).toMatchObject({ status, fault: 'The API version does not allow deploy templates' });
  });
});

describe('runbooks', () => {
  const path = `/v1/runbooks/${ONE}`;
  const step: Step = { interface: 'deploy', step: 'write', order: 1 };
  const create = (body: object, minor = NEWEST, headers = {}) =>
    api.ask('POST', '/v1/runbooks', minor, { body: { name: 'CUSTOM_NEW', steps: [step], ...body }, headers });
  const patch = (body: unknown, minor = NEWEST) => api.ask('PATCH', path, minor, { body });
  const traits = async () => (await api.ask('GET', `${path}/traits`)).body['traits'];

  beforeEach(async () => {
    await api.database.query('DELETE FROM runbooks');
    await create({ uuid: ONE, name: 'one', description: 'first' });
  });

  it('have defaults for omitted fields', async () => {
    expect((await api.ask('GET', path)).body).toMatchObject({
      description: 'first',
      owner: null,
      public: false,
      disable_ramdisk: false,
      traits: [],
      extra: {},
      steps: [{ ...step, args: {} }],
    });
  });
  it.each([
    [{ name: 'free.name' }, 111, 400, /is not valid under any of the given schemas/],
    [{ name: 'a b' }, 112, 400, "Schema error for runbook: 'a b' does not match '^[A-Za-z0-9\\\\-._~]+$'"],
    [{ description: 'x' }, 111, 400, "Schema error for runbook: Additional properties are not allowed ('description' was unexpected)"],
    [{ traits: [] }, NEWEST, 400, "Schema error for runbook: Additional properties are not allowed ('traits' was unexpected)"],
    [{ name: 'one' }, NEWEST, 409, 'A runbook with name one already exists.'],
    [{ owner: 'me' }, NEWEST, 400, 'Cannot create a runbook as a project scoped admin with an owner other than your own project.'],
    [{ steps: [step, step] }, NEWEST, 400, /^Deploy template invalid: Duplicate/],
  ])('are refused with %j at 1.%p', async (body, minor, status, sentence) => {
    const answer = await create(body, minor);
    expect([answer.status, answer.fault]).toEqual([status, typeof sentence === 'string' ? sentence : matching(sentence)]);
  });
  it('belong to the project of their creator, which cannot make them public', async () => {
    const mine = { 'X-Project-Id': 'mine' };
    expect((await create({ uuid: TWO }, NEWEST, mine)).body['owner']).toBe('mine');
    expect(await create({ name: 'two', public: true }, NEWEST, mine)).toMatchObject({
      status: 400,
      fault: 'Cannot create a public runbook as a project scoped admin.',
    });
  });
  it('that are public have no owner', async () => {
    await patch([{ op: 'replace', path: '/owner', value: 'me' }]);
    expect((await patch([{ op: 'replace', path: '/public', value: true }])).body).toMatchObject({ public: true, owner: null });
    expect((await patch([{ op: 'add', path: '/owner', value: 'me' }])).fault).toBe(
      "Couldn't apply patch '[{'op': 'add', 'path': '/owner', 'value': 'me'}]'. Reason: There cannot be an owner for a public runbook",
    );
    expect((await api.ask('GET', '/v1/runbooks?project=true')).body['runbooks']).toHaveLength(1);
    const both = await patch([
      { op: 'replace', path: '/public', value: false },
      { op: 'replace', path: '/owner', value: 'me' },
    ]);
    expect(both.body).toMatchObject({ public: false, owner: 'me' });
    expect((await api.ask('GET', '/v1/runbooks?project=true')).body['runbooks']).toEqual([]);
  });
  it('have no later fields at older versions', async () => {
    const { body } = await api.ask('GET', path, 111);
    expect([body['description'], body['traits']]).toEqual([undefined, undefined]);
    expect((await api.ask('GET', `${path}?fields=traits`, 111)).fault).toBe('Field(s) "traits" are not valid');
    expect((await patch([{ op: 'remove', path: '/description' }], 111)).fault).toBe(
      'Cannot patch /description. Only the following can be updated: disable_ramdisk, extra, name, owner, public, steps',
    );
    // A name that only later versions accept does not prevent a change of another field.
    expect((await patch([{ op: 'add', path: '/extra/a', value: 1 }], 111)).status).toBe(200);
  });

  it('have traits that are replaced, kept by patches, added and removed', async () => {
    const put = (where: string, body?: unknown) => api.ask('PUT', `${path}/traits${where}`, NEWEST, body === undefined ? {} : { body });
    await put('', { traits: ['CUSTOM_B', 'CUSTOM_A', 'CUSTOM_B'] });
    expect(await traits()).toEqual(['CUSTOM_A', 'CUSTOM_B']);
    expect((await put('/CUSTOM_C')).headers['location']).toBe(`${api.url()}/v1/runbooks/${ONE}/traits/CUSTOM_C`);
    expect((await put('/free')).fault).toEqual(matching(/^Schema error for trait: 'free' is not valid/));
    expect((await put('', {})).fault).toEqual(matching(/^A single runbook trait may be added via PUT/));
    expect((await put('/CUSTOM_D', { traits: [] })).status).toBe(400);
    await patch([{ op: 'add', path: '/extra/a', value: 1 }]);
    expect(await traits()).toEqual(['CUSTOM_A', 'CUSTOM_B', 'CUSTOM_C']);
    expect((await api.ask('DELETE', `${path}/traits/CUSTOM_NOSUCH`)).status).toBe(204);
    await api.ask('DELETE', `${path}/traits/CUSTOM_A`);
    expect(await traits()).toEqual(['CUSTOM_B', 'CUSTOM_C']);
    await api.ask('DELETE', `${path}/traits`);
    expect(await traits()).toEqual([]);
  });
  it.each([
    ['GET', path, 91, 404, 'The API version does not allow runbooks'],
    ['POST', '/v1/runbooks', 91, 405, 'The API version does not allow runbooks'],
    ['PUT', `${path}/traits`, 111, 404, 'The API version does not allow runbook traits'],
    ['GET', '/v1/runbooks/nobody/traits', NEWEST, 404, 'Runbook nobody could not be found.'],
    ['GET', '/v1/runbooks/a%20b/traits', NEWEST, 400, 'Expected a logical name or UUID but received a b.'],
  ])('refuse %s %s at 1.%p with %p', async (method, where, minor, status, fault) => {
    expect(await api.ask(method, where, minor)).toMatchObject({ status, fault });
  });
});

describe('inspection rules', () => {
  const path = `/v1/inspection_rules/${ONE}`;
  const condition = { op: '!eq', args: { values: ['{node.driver}', 'x'] } };
  const action = { op: 'set-attribute', args: { path: 'extra/a', value: 'b' } };
  const create = (body: object) => api.ask('POST', '/v1/inspection_rules', NEWEST, { body: { actions: [action], ...body } });
  const patch = (body: unknown) => api.ask('PATCH', path, NEWEST, { body });

  beforeEach(async () => {
    await api.database.query('DELETE FROM inspection_rules');
    await create({ uuid: ONE, conditions: [condition], priority: 5 });
  });

  it('need only actions, and have defaults for the rest', async () => {
    const made = await create({ uuid: TWO });
    expect(made).toMatchObject({ status: 201, headers: { location: `${api.url()}/v1/inspection_rules/${TWO}` } });
    expect(made.body).toMatchObject({ priority: 0, phase: 'main', sensitive: false, conditions: [], actions: [action], description: null });
    expect(made.body.links[0]).toEqual({ href: `${api.url()}/v1/inspection/${TWO}`, rel: 'self' });
  });
  it.each([
    [{ actions: [] }, 'Schema error: [] should be non-empty'],
    [{ conditions: [{ op: 'like', args: {} }] }, /^Schema error: 'like' is not one of \['eq', /],
    [{ conditions: [{ op: 'eq', args: 'x' }] }, "Schema error: 'x' is not of type 'array', 'object'"],
    [{ conditions: [{ op: 'eq', args: {} }] }, 'Invalid parameters for condition operator eq: missing required argument(s): values'],
    [{ priority: 10_000 }, 'Priority must be between 0 and 9999 for user-defined rules.'],
    [{ phase: null }, 'Invalid phase: None. Valid phases are: main'],
    [{ phase: 'early', priority: 10_000 }, /^Multiple validation errors occurred: Invalid phase: early\. Valid phases are: main; Priority/],
    [{ uuid: 'zz' }, 'Expected UUID for uuid: zz'],
    // The first error in the order of the schema.
    [{ sensitive: 'true', priority: '10', nosuch: 1 }, "Schema error: '10' is not of type 'integer'"],
  ])('are refused with %j', async (body, sentence) => {
    const answer = await create(body);
    expect([answer.status, answer.fault]).toEqual([400, typeof sentence === 'string' ? sentence : matching(sentence)]);
    expect((await api.ask('GET', '/v1/inspection_rules')).body['inspection_rules']).toHaveLength(1);
  });

  it('that are sensitive hide their conditions and actions, and stay sensitive', async () => {
    const secret = { ...action, args: { path: 'driver_info/x', value: 'hush' } };
    await create({ uuid: TWO, actions: [secret], conditions: [condition], sensitive: true });
    const { body, text } = await api.ask('GET', '/v1/inspection_rules?detail=true');
    expect((body['inspection_rules'] as readonly object[])[1]).toMatchObject({ uuid: TWO, actions: null, conditions: null });
    expect(text).not.toContain('hush');
    for (const operation of [{ op: 'replace', value: false }, { op: 'replace', value: null }, { op: 'remove' }]) {
      const answer = await api.ask('PATCH', `/v1/inspection_rules/${TWO}`, NEWEST, { body: [{ ...operation, path: '/sensitive' }] });
      expect(answer.status).toBe(400);
      expect(answer.fault).toEqual(matching(/Reason: Inspection rules cannot have the sensitive flag unset\.$/));
    }
    expect(
      (await api.ask('PATCH', `/v1/inspection_rules/${TWO}`, NEWEST, { body: [{ op: 'add', path: '/description', value: 'x' }] })).status,
    ).toBe(200);
  });

  it.each([
    [{ op: 'remove', path: '/priority' }, { priority: 0 }],
    [{ op: 'remove', path: '/phase' }, { phase: null }],
    [{ op: 'remove', path: '/conditions' }, { conditions: [] }],
    [{ op: 'add', path: '/conditions/0/loop', value: ['a'] }, { conditions: [{ ...condition, loop: ['a'], multiple: 'any' }] }],
    [{ op: 'add', path: '/actions/0/loop', value: {} }, { actions: [action] }],
    [{ op: 'replace', path: '/created_at', value: 'x' }, { uuid: ONE }],
  ])('are patched by %j', async (operation, expected) => {
    expect((await patch([operation])).body).toMatchObject(expected);
    expect((await api.ask('GET', path)).body).toMatchObject(expected);
  });
  it.each([
    [{ op: 'replace', path: '/nosuch', value: 1 }, 400, /can't replace a non-existent object 'nosuch'$/],
    [{ op: 'replace', path: '/uuid', value: TWO }, 404, `Rule ${TWO} could not be found.`],
    [{ op: 'remove', path: '/actions/0' }, 400, 'Schema error for patch: [] should be non-empty'],
    [{ op: 'replace', path: '/conditions/0/args', value: {} }, 400, /missing required argument\(s\): values$/],
  ])('refuse the patch %j', async (operation, status, sentence) => {
    const answer = await patch([operation]);
    expect([answer.status, answer.fault]).toEqual([status, typeof sentence === 'string' ? sentence : matching(sentence)]);
  });

  it('link to the next page with the path that Ironic uses', async () => {
    expect((await api.ask('GET', '/v1/inspection_rules?limit=1&phase=main')).body.next).toBe(
      `${api.url()}/v1/inspection?filters={'phase': 'main'}&sort_key=id&sort_dir=asc&fields=uuid,priority,phase,description&limit=1&marker=${ONE}`,
    );
  });
  it.each([
    ['GET', path, 95, 404, 'The API version does not allow inspection rules'],
    ['GET', `${path}/priority`, 95, 404, 'The API version does not allow inspection rules'],
    ['DELETE', '/v1/inspection_rules', 95, 405, 'The API version does not allow inspection rules'],
    ['DELETE', '/v1/inspection_rules', NEWEST, 400, 'Missing mandatory parameter: inspection_rule_uuid'],
    ['GET', '/v1/inspection_rules/zz', NEWEST, 400, "Schema error: 'zz' is not a 'uuid'"],
    ['GET', `/v1/inspection_rules/${NOBODY}`, NEWEST, 404, `Rule ${NOBODY} could not be found.`],
    [
      'GET',
      '/v1/inspection_rules?sort_key=actions',
      NEWEST,
      400,
      "Schema error: 'actions' should not be valid under {'type': 'string', 'enum': ['actions', 'conditions']}",
    ],
  ])('refuse %s %s at 1.%p with %p', async (method, where, minor, status, fault) => {
    expect(await api.ask(method, where, minor)).toMatchObject({ status, fault });
  });
});
