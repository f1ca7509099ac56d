/** Requests about deploy templates, runbooks and inspection rules: versions, bodies, queries and patches that fit and that do not. */
import { get, MAX, quietly, send, type Sent, type Step } from './steps';

const ONE = 'aaaaaaaa-0000-4000-8000-00000000d001';
const TWO = 'aaaaaaaa-0000-4000-8000-00000000d002';
const NEW = 'aaaaaaaa-0000-4000-8000-00000000d0ff';
const NOBODY = 'cccccccc-0000-4000-8000-000000000000';
const LONG = 'x'.repeat(256);
const VERSIONS = ['1.1', '1.31', '1.50', '1.80', '1.96', '1.109', '1.115', 'latest', '1.116', 'junk', null];

type Body = Readonly<Record<string, unknown>>;
/** Of one resource. */
interface Area {
  readonly path: string;
  readonly since: number;
  readonly named: boolean;
  /** What is there from the start. */
  readonly rows: readonly Body[];
  /** A second version at which something came. */
  readonly more?: number;
}
const one = ({ path }: Area, ident = ONE): string => `${path}/${ident}`;
const setup = ({ path, rows }: Area): Step[] => rows.map((row) => send('POST', path, row));
/** Every method on every path, at every version. */
const everyVersion = ({ path }: Area, create: Body): Step[] =>
  VERSIONS.flatMap((version): Step[] => [
    ...[path, `${path}/${ONE}`].map((where) => ({
      method: 'GET',
      path: where,
      version,
    })),
    { method: 'POST', path, version, body: { ...create, uuid: NEW } },
    { method: 'PATCH', path: `${path}/${NEW}`, version, body: [] },
    { method: 'DELETE', path: `${path}/${NEW}`, version },
    quietly(send('DELETE', `${path}/${NEW}`, undefined)),
  ]);
const routing = ({ path, since, more }: Area): Step[] =>
  [since - 1, more ?? since].flatMap((minor) =>
    [
      path,
      `${path}/`,
      `${path}/${NOBODY}`,
      `${path}/nobody`,
      `${path}/a%20b`,
      `${path}/detail`,
      `${path}/${ONE}/name`,
      `${path}/${ONE}/x/y`,
    ]
      .flatMap((where): Step[] => [
        get(where, minor),
        ...['HEAD', 'PUT', 'DELETE'].map((method): Sent => ({ method, path: where, version: `1.${minor}` })),
        send('POST', where, { nosuch: 1 }, minor),
        send('PATCH', where, [], minor),
        send('PATCH', where, [{ op: 'nosuch' }], minor),
      ])
      .filter((step) => !('method' in step && step.method === 'DELETE' && step.path.includes(ONE))),
  );
const queries = ({ path, since }: Area, words: readonly string[]): Step[] =>
  [
    ...['1', '2', '0', '-1', 'x', '', '1000000', '1&limit=2'].map((value) => `limit=${value}`),
    ...[ONE, TWO, NOBODY, 'zz', 'CUSTOM_ONE', '', 'a%20b'].map((value) => `marker=${value}`),
    ...['desc', 'up', '', 'DESC'].map((value) => `sort_dir=${value}`),
    ...['id', 'uuid', 'created_at', 'updated_at', 'links', 'nosuch', '', ...words].map((value) => `sort_key=${value}`),
    ...['uuid', 'uuid,nosuch', 'nosuch', 'links', '', 'UUID', 'created_at', ...words].map((value) => `fields=${value}`),
    ...['true', 'False', 'zz', '', '1'].map((value) => `detail=${value}`),
    'detail=true&fields=uuid',
    'detail=false&fields=uuid',
    'limit=1&detail=true',
    'limit=1&detail=false',
    'limit=1&fields=uuid,links',
    `limit=1&sort_dir=desc&sort_key=created_at`,
    `limit=1&marker=${ONE}`,
    'nosuch=1',
    'nosuch=1&other=2',
    'fields=uuid&fields=created_at',
  ]
    .flatMap((query) => [get(`${path}?${query}`), ...(query === 'nosuch=1' ? [get(`${path}?${query}`, since)] : [])])
    .concat(
      ['uuid', 'uuid,nosuch', 'links', '', ...words].flatMap((value) => [
        get(`${path}/${ONE}?fields=${value}`),
        get(`${path}/${ONE}/${value}`),
      ]),
      get(`${path}/${ONE}?nosuch=1`),
      get(`${path}/${ONE}?detail=true`),
    );
/** Creations: each is taken back. */
const creations = ({ path, named }: Area, bodies: readonly unknown[], minors: readonly number[] = [MAX]): Step[] =>
  bodies.flatMap((body) =>
    minors.flatMap((minor): Step[] => [
      send('POST', path, body, minor),
      ...[NEW, ...(named ? ['CUSTOM_NEW'] : [])].map((ident) => quietly(send('DELETE', `${path}/${ident}`, undefined))),
    ]),
  );
/** The same, looked at in between. */
const looked = (area: Area, bodies: readonly unknown[], minors: readonly number[] = [MAX]): Step[] =>
  bodies.flatMap((body) =>
    minors.flatMap((minor): Step[] => [
      send('POST', area.path, body, minor),
      get(one(area, NEW), minor),
      quietly(send('DELETE', one(area, NEW), undefined)),
    ]),
  );
const AWAY: Readonly<Record<string, Body>> = {
  '/v1/deploy_templates': { interface: 'raid', step: 'away', args: {}, priority: 1 },
  '/v1/runbooks': { interface: 'raid', step: 'away', args: {}, order: 1 },
};
/** Patches: each is put back by the original. */
const patches = (area: Area, restore: readonly object[], list: readonly unknown[], minors: readonly number[] = [MAX]): Step[] =>
  list.flatMap((body) =>
    minors.flatMap((minor): Step[] => [
      send('PATCH', one(area), body, minor),
      // The order of steps tells which of them were there before: first others, then the ones from the start.
      ...(area.named ? [quietly(send('PATCH', one(area), [replace('/steps', [AWAY[area.path]])]))] : []),
      quietly(send('PATCH', one(area), restore)),
    ]),
  );
const replace = (path: string, value: unknown): object => ({ op: 'replace', path, value });
const add = (path: string, value: unknown): object => ({ op: 'add', path, value });
const remove = (path: string): object => ({ op: 'remove', path });
const ODD_PATCHES: readonly unknown[] = [
  [],
  {},
  'x',
  null,
  '{bad',
  [replace('/nosuch', 1)],
  [add('/nosuch', 1)],
  [remove('/nosuch')],
  [replace('/uuid', NEW)],
  [add('/uuid', NEW)],
  [remove('/uuid')],
  [replace('/id', 5)],
  [replace('/created_at', 'x')],
  [replace('/links', [])],
  [replace('name', 'x')],
  [replace('/', 'x')],
  [replace('', 'x')],
  [{ op: 'replace', path: '/name' }],
  [{ op: 'test', path: '/name', value: 'x' }],
  [{ op: 'move', from: '/name', path: '/extra' }],
  [{ op: 'replace', path: '/extra', value: {}, more: 1 }],
  [{ path: '/name', value: 'x' }],
  [{ op: 'replace', value: 'x' }],
  ['x'],
];
const EXTRA_PATCHES: readonly unknown[] = [
  [replace('/extra', { a: { b: [1] } })],
  [add('/extra', { a: 1 })],
  [add('/extra/a', 1)],
  [add('/extra/a/b', 1)],
  [replace('/extra/k', 2)],
  [replace('/extra/none', 2)],
  [remove('/extra/k')],
  [remove('/extra/none')],
  [remove('/extra')],
  [replace('/extra', null)],
  [replace('/extra', 'x')],
  [replace('/extra', [])],
  [add('/extra/__proto__', 1)],
  [add('/extra/a', 1), replace('/extra/none', 1)],
];

const step = { interface: 'deploy', step: 'one', args: {}, priority: 10 };
const TEMPLATES: Area = {
  path: '/v1/deploy_templates',
  since: 55,
  named: true,
  rows: [
    {
      uuid: ONE,
      name: 'CUSTOM_ONE',
      steps: [
        {
          interface: 'bios',
          step: 'apply',
          args: { settings: [{ name: 'a', value: 'b' }], admin_password: 'x', a: { token: 'y' } },
          priority: 150,
        },
        step,
      ],
      extra: { k: 1 },
    },
    { uuid: TWO, name: 'CUSTOM_TWO', steps: [{ ...step, priority: '20' }], description: 'two' },
  ],
};
const template = { uuid: NEW, name: 'CUSTOM_NEW', steps: [step] };
/** Steps that are wrong (and some that are right) in templates and runbooks. */
const stepsOf = (good: Body, rank: string): readonly unknown[] => {
  const without = (name: string): Body => Object.fromEntries(Object.entries(good).filter(([key]) => key !== name));
  return [
    undefined,
    null,
    [],
    {},
    'x',
    [5],
    [null],
    [{}],
    [good],
    [good, good],
    [good, { ...good, [rank]: 1 }, { ...good, step: 'two' }],
    [good, { ...good, step: 'two' }],
    [good, { ...good, interface: 'raid' }],
    ...Object.keys(good).map((name) => [without(name)]),
    ...['raid', 'bios', 'management', 'power', 'firmware', 'vendor', 'boot', 'network', 'nosuch', '', 5, null].map((name) => [
      { ...good, interface: name },
    ]),
    ...['', 5, null, 'x'.repeat(255), LONG].map((name) => [{ ...good, step: name }]),
    ...[null, [], 'x', { a: null }, { password: 'x' }, { deep: { SECRET_token: 'x', list: [{ password: 'z' }] } }].map((args) => [
      { ...good, args },
    ]),
    ...[0, 1, -1, 1.5, 2.0, '0', '7', '007', '', '-1', 'x', null, true, 2147483647].map((value) => [{ ...good, [rank]: value }]),
    [{ ...good, nosuch: 1 }],
    [{ ...good, execute_on_child_nodes: true }],
    [{ ...good, priority: 1, order: 1 }],
    [good, { ...good, step: '' }],
  ];
};
/** Members of the body other than the steps. */
const membersOf = (good: Body): readonly unknown[] => [
  {},
  [],
  'x',
  null,
  '{bad',
  { name: good['name'] },
  { steps: good['steps'] },
  ...[
    null,
    '',
    5,
    'nosuch',
    'CUSTOM_',
    'CUSTOM_a',
    'HW_CPU_X86_VMX',
    'a b',
    'a/b',
    'CUSTOM_TWO',
    `CUSTOM_${'X'.repeat(248)}`,
    `CUSTOM_${'X'.repeat(249)}`,
  ].map((name) => ({ ...good, name })),
  ...[null, '', 5, 'zz', ONE, NEW.replaceAll('-', '')].map((uuid) => ({ ...good, uuid })),
  ...[null, {}, { a: 1 }, [], 'x', 5, { __proto: 1 }].map((extra) => ({ ...good, extra })),
  ...[null, '', 'words', 5, 'x'.repeat(255), LONG].map((description) => ({ ...good, description })),
  { ...good, nosuch: 1 },
  { ...good, nosuch: 1, other: 2 },
  { ...good, traits: [] },
  { ...good, created_at: 'x' },
  { ...good, name: 5, steps: 5 },
];
/** Patches of lists of steps. */
const stepPatches = (good: Body, rank: string): readonly unknown[] => [
  [add('/steps/-', { ...good, step: 'two' })],
  [add('/steps/0', { ...good, step: 'two' })],
  [add('/steps/2', { ...good, step: 'two' })],
  [add('/steps/9', { ...good, step: 'two' })],
  [add('/steps/x', { ...good, step: 'two' })],
  [add('/steps/-', good)],
  [add('/steps/-', 5)],
  [add('/steps/-', {})],
  [add('/steps', [good])],
  [replace('/steps', [good])],
  [
    replace('/steps', [
      { ...good, args: { a: 1 } },
      { ...good, step: 'two' },
    ]),
  ],
  [replace('/steps', [good, good])],
  [replace('/steps', [])],
  [replace('/steps', null)],
  [replace('/steps', 'x')],
  [replace('/steps', {})],
  [replace('/steps', [5])],
  [remove('/steps')],
  [remove('/steps/0')],
  [remove('/steps/1')],
  [remove('/steps/5')],
  [remove('/steps/0'), remove('/steps/0')],
  [remove('/steps/-')],
  [replace('/steps/0', { ...good, step: 'three' })],
  [replace('/steps/0', null)],
  [replace('/steps/-', good)],
  [replace('/steps/0/step', 'renamed')],
  [replace('/steps/0/step', '')],
  [replace('/steps/0/step', 5)],
  [replace('/steps/0/interface', 'raid')],
  [replace('/steps/0/interface', 'boot')],
  [replace('/steps/0/interface', null)],
  [replace('/steps/0/args', { b: 2 })],
  [replace('/steps/0/args', null)],
  [replace('/steps/0/args', [])],
  [add('/steps/0/args/b', 2)],
  [replace('/steps/0/args/settings', [])],
  [replace('/steps/0/args/admin_password', 'y')],
  [remove('/steps/0/args/settings')],
  [remove('/steps/0/args/none')],
  [remove('/steps/0/args')],
  [remove('/steps/0/step')],
  [remove('/steps/0/interface')],
  [remove(`/steps/0/${rank}`)],
  [replace(`/steps/0/${rank}`, 5)],
  [replace(`/steps/0/${rank}`, '5')],
  [replace(`/steps/0/${rank}`, -5)],
  [replace(`/steps/0/${rank}`, null)],
  [replace(`/steps/0/${rank}`, 'x')],
  [add('/steps/0/nosuch', 1)],
  [replace('/steps/0/nosuch', 1)],
  [replace('/steps/0/step', 'one'), replace('/steps/0/interface', good['interface'])],
];
const namePatches: readonly unknown[] = [
  [replace('/name', 'CUSTOM_THREE')],
  [add('/name', 'CUSTOM_THREE')],
  [replace('/name', 'CUSTOM_TWO')],
  [replace('/name', 'CUSTOM_ONE')],
  [replace('/name', 'HW_CPU_X86_VMX')],
  [replace('/name', 'free.name')],
  [replace('/name', 'a b')],
  [replace('/name', '')],
  [replace('/name', null)],
  [replace('/name', 5)],
  [replace('/name', LONG)],
  [remove('/name')],
  [replace('/name/x', 1)],
  [replace('/description', 'words')],
  [add('/description', 'words')],
  [add('/description', LONG)],
  [add('/description', 5)],
  [add('/description', null)],
  [remove('/description')],
  [replace('/name', 'CUSTOM_THREE'), replace('/steps', [])],
  [add('/disable_ramdisk', true)],
];
const elsewhere = (area: Area): Step[] => [
  send('PATCH', one(area, 'CUSTOM_TWO'), [replace('/extra', { by: 'name' })]),
  send('PATCH', one(area, 'nobody'), [replace('/extra', {})]),
  send('PATCH', one(area, NOBODY), [replace('/extra', {})]),
  send('PATCH', one(area, NOBODY), [replace('/nosuch', {})]),
  get(one(area, 'CUSTOM_TWO')),
  get(one(area, 'CUSTOM_TWO.json')),
  get(one(area, 'CUSTOM_TWO.json'), 90),
  get(one(area, ONE.toUpperCase())),
  get(one(area, ONE.replaceAll('-', ''))),
  get(`${area.path}?sort_key=name&sort_dir=desc&limit=2`),
];
/** At the end, two of each stay for the requests that come after. */
const deletions = (area: Area, good: Body): Step[] => [
  send('POST', area.path, good),
  send('DELETE', one(area, String(good['name'])), undefined),
  send('POST', area.path, good),
  send('DELETE', one(area, NEW), undefined),
  send('DELETE', one(area, NEW), undefined),
  send('DELETE', one(area, 'nobody'), undefined),
  send('DELETE', one(area, 'a%20b'), undefined),
  send('DELETE', area.path, undefined),
];

const restoreTemplate = [replace('/name', 'CUSTOM_ONE'), replace('/extra', { k: 1 }), replace('/steps', TEMPLATES.rows[0]!['steps'])];
const deployTemplates = (): Step[] => [
  ...setup(TEMPLATES),
  ...everyVersion(TEMPLATES, template),
  ...routing(TEMPLATES),
  ...queries(TEMPLATES, ['name', 'steps', 'extra', 'description']),
  ...creations(TEMPLATES, [...membersOf(template), ...stepsOf(step, 'priority').map((steps) => ({ ...template, steps }))]),
  ...looked(
    TEMPLATES,
    ['7', '007', 2.0].map((priority) => ({ ...template, steps: [{ ...step, priority }] })),
  ),
  ...creations(TEMPLATES, [template, { ...template, name: 'free' }, { ...template, description: 'd' }], [54, 55, 111]),
  ...patches(TEMPLATES, restoreTemplate, [...ODD_PATCHES, ...EXTRA_PATCHES, ...namePatches, ...stepPatches(step, 'priority')]),
  ...patches(TEMPLATES, restoreTemplate, [namePatches[0], EXTRA_PATCHES[0], namePatches[13]], [54, 55, 111]),
  ...elsewhere(TEMPLATES),
  ...deletions(TEMPLATES, template),
];

const order = { interface: 'deploy', step: 'one', args: {}, order: 10 };
const RUNBOOKS: Area = {
  path: '/v1/runbooks',
  since: 92,
  named: true,
  more: 112,
  rows: [
    {
      uuid: ONE,
      name: 'CUSTOM_ONE',
      steps: [{ interface: 'bios', step: 'apply', args: { settings: [{ name: 'a', value: 'b' }], admin_password: 'x' }, order: 1 }, order],
      extra: { k: 1 },
      description: 'one',
    },
    { uuid: TWO, name: 'CUSTOM_TWO', steps: [{ ...order, order: '20' }], public: true, disable_ramdisk: true },
  ],
};
const runbook = { uuid: NEW, name: 'CUSTOM_NEW', steps: [order] };
const restoreRunbook = [
  replace('/name', 'CUSTOM_ONE'),
  replace('/extra', { k: 1 }),
  replace('/steps', RUNBOOKS.rows[0]!['steps']),
  replace('/description', 'one'),
  replace('/disable_ramdisk', false),
  replace('/public', false),
];
const ownerBodies = [
  ...[null, true, false, 'true', 5].flatMap((value) => [
    { ...runbook, public: value },
    { ...runbook, disable_ramdisk: value },
  ]),
  ...[null, '', 'someone', 5, 'x'.repeat(255), LONG].map((owner) => ({ ...runbook, owner })),
  { ...runbook, owner: 'someone', public: true },
  { ...runbook, name: 'free.name-1' },
  { ...runbook, name: 'a b' },
  { ...runbook, description: 'words' },
];
const ownerPatches: readonly unknown[] = [
  ...[true, false, null, 'true', 5].flatMap((value) => [[replace('/public', value)], [replace('/disable_ramdisk', value)]]),
  ...[null, '', 'someone', 5, LONG].map((value) => [replace('/owner', value)]),
  [add('/owner', 'someone')],
  [remove('/owner')],
  [remove('/public')],
  [remove('/disable_ramdisk')],
  [replace('/owner', 'someone'), replace('/public', true)],
  [replace('/public', true), replace('/owner', 'someone')],
  [replace('/owner', 'someone'), replace('/public', false)],
  [replace('/owner', null), replace('/public', true)],
  [{ op: 'replace', path: '/owner' }],
  [{ op: 'replace', path: '/public' }],
  [replace('/owner/x', 1)],
  [replace('/public/x', 1)],
  [replace('/ownership', 1)],
  [replace('/traits', [])],
  [add('/traits/-', 'CUSTOM_A')],
  [remove('/traits')],
];
const ofTraits = (): Step[] => {
  const traits = `${one(RUNBOOKS)}/traits`;
  const bodies: readonly unknown[] = [
    { traits: ['CUSTOM_B', 'CUSTOM_A'] },
    { traits: ['CUSTOM_A', 'CUSTOM_A', 'HW_CPU_X86_VMX'] },
    { traits: [] },
    { traits: ['nosuch'] },
    { traits: [5] },
    { traits: ['CUSTOM_A', ''] },
    { traits: null },
    { traits: 'CUSTOM_A' },
    { traits: Array.from({ length: 51 }, (_, index) => `CUSTOM_${index}`) },
    { traits: ['CUSTOM_A'], nosuch: 1 },
    {},
    [],
    null,
    'x',
  ];
  return [
    ...[91, 92, 111, 112, MAX].flatMap((minor): Step[] => [
      get(traits, minor),
      send('PUT', traits, { traits: ['CUSTOM_V'] }, minor),
      send('PUT', `${traits}/CUSTOM_W`, undefined, minor),
      get(one(RUNBOOKS), minor),
      send('DELETE', `${traits}/CUSTOM_V`, undefined, minor),
      send('DELETE', traits, undefined, minor),
      send('POST', traits, {}, minor),
      send('PATCH', traits, [], minor),
      get(`${traits}/CUSTOM_V`, minor),
      send('POST', `${traits}/CUSTOM_V`, {}, minor),
      send('PATCH', `${traits}/CUSTOM_V`, [], minor),
      get(`${traits}/x/y`, minor),
      get(`${RUNBOOKS.path}/nobody/traits`, minor),
      send('PUT', `${RUNBOOKS.path}/nobody/traits`, { traits: [] }, minor),
      send('DELETE', `${RUNBOOKS.path}/nobody/traits`, undefined, minor),
      send('PUT', `${RUNBOOKS.path}/a%20b/traits/CUSTOM_A`, undefined, minor),
    ]),
    ...bodies.flatMap((body) => [send('PUT', traits, body), get(traits)]),
    send('PUT', traits, undefined),
    send('PUT', traits, { traits: ['CUSTOM_A'] }),
    ...[
      'CUSTOM_B',
      'CUSTOM_B',
      'CUSTOM_A',
      'nosuch',
      'custom_a',
      `CUSTOM_${'X'.repeat(248)}`,
      `CUSTOM_${'X'.repeat(249)}`,
      'a%20b',
    ].flatMap((trait) => [send('PUT', `${traits}/${trait}`, undefined), get(traits)]),
    send('PUT', `${traits}/CUSTOM_C`, {}),
    send('PUT', `${traits}/CUSTOM_D`, { traits: ['CUSTOM_E'] }),
    send('PUT', `${traits}/CUSTOM_D`, { nosuch: 1 }),
    send('PUT', `${RUNBOOKS.path}/CUSTOM_ONE/traits/CUSTOM_F`, undefined),
    send('PUT', `${RUNBOOKS.path}/CUSTOM_ONE/traits`, { traits: ['CUSTOM_G'] }),
    get(traits),
    get(one(RUNBOOKS)),
    get(`${RUNBOOKS.path}?fields=traits`),
    get(`${RUNBOOKS.path}?detail=true`),
    send('DELETE', `${traits}/CUSTOM_NOSUCH`, undefined),
    send('DELETE', `${traits}/nosuch`, undefined),
    send('DELETE', `${traits}/CUSTOM_G`, undefined),
    send('DELETE', traits, undefined),
    get(traits),
    // Changing a runbook leaves its traits.
    send('PUT', traits, { traits: ['CUSTOM_KEPT'] }),
    send('PATCH', one(RUNBOOKS), [replace('/extra', {})]),
    get(one(RUNBOOKS)),
    send('DELETE', traits, undefined),
  ];
};
const runbooks = (): Step[] => [
  ...setup(RUNBOOKS),
  ...everyVersion(RUNBOOKS, runbook),
  ...routing(RUNBOOKS),
  ...queries(RUNBOOKS, ['name', 'steps', 'extra', 'description', 'public', 'owner', 'disable_ramdisk', 'traits']),
  ...['owner', 'description', 'traits'].flatMap((name) =>
    [92, 111].flatMap((minor) => [
      get(`${RUNBOOKS.path}?fields=${name}`, minor),
      get(`${one(RUNBOOKS)}?fields=${name}`, minor),
      get(`${RUNBOOKS.path}?sort_key=${name}`, minor),
    ]),
  ),
  ...['true', 'false', 'x', '', 'someone'].map((project) => get(`${RUNBOOKS.path}?project=${project}`)),
  ...creations(RUNBOOKS, [...membersOf(runbook), ...stepsOf(order, 'order').map((steps) => ({ ...runbook, steps }))]),
  ...looked(RUNBOOKS, [
    { ...runbook, steps: [{ ...order, order: '7' }] },
    { ...runbook, steps: [{ interface: 'deploy', step: 'one', order: 7 }] },
  ]),
  ...creations(RUNBOOKS, ownerBodies, [92, 111, MAX]),
  ...patches(RUNBOOKS, restoreRunbook, [...ODD_PATCHES, ...EXTRA_PATCHES, ...namePatches, ...stepPatches(order, 'order')]),
  ...patches(RUNBOOKS, restoreRunbook, ownerPatches),
  ...patches(RUNBOOKS, restoreRunbook, [namePatches[0], namePatches[5], namePatches[13], namePatches[18], ownerPatches[0]], [91, 92, 111]),
  ...ofTraits(),
  ...elsewhere(RUNBOOKS),
  ...deletions(RUNBOOKS, runbook),
];

const condition = { op: 'eq', args: { values: ['{node.driver}', 'x'] } };
const action = { op: 'set-attribute', args: { path: '/extra/a', value: 'b' } };
const RULES: Area = {
  path: '/v1/inspection_rules',
  since: 96,
  named: false,
  rows: [
    { uuid: ONE, description: 'one', conditions: [condition], actions: [action], priority: 5 },
    { uuid: TWO, actions: [action], sensitive: true, phase: 'main' },
  ],
};
const rule = { uuid: NEW, conditions: [], actions: [action] };
const restoreRule = [
  replace('/description', 'one'),
  replace('/conditions', [condition]),
  replace('/actions', [action]),
  replace('/priority', 5),
  replace('/phase', 'main'),
];
const OPERATORS: Readonly<Record<string, Body>> = {
  eq: { values: [1, 2] },
  lt: { values: [1, 2], force_strings: true },
  gt: { values: [] },
  'is-empty': { value: '' },
  'in-net': { address: '10.0.0.1', subnet: '10.0.0.0/8' },
  matches: { value: 'a', regex: 'a.*' },
  contains: { value: 'a', regex: '(' },
  'one-of': { value: 'a', values: ['a'] },
  'is-none': { value: null },
  'is-true': { value: true },
  'is-false': { value: false },
};
const ACTIONS: Readonly<Record<string, Body>> = {
  fail: { msg: 'no' },
  log: { msg: 'yes', level: 'info' },
  'set-attribute': { path: 'extra.a', value: 1 },
  'extend-attribute': { path: 'extra.a', value: 1, unique: true },
  'del-attribute': { path: 'extra.a' },
  'set-capability': { name: 'a', value: 'b' },
  'unset-capability': { name: 'a' },
  'add-trait': { name: 'CUSTOM_A' },
  'remove-trait': { name: 'CUSTOM_A' },
  'set-plugin-data': { path: 'a', value: 1 },
  'extend-plugin-data': { path: 'a', value: 1, unique: false },
  'unset-plugin-data': { path: 'a' },
  'set-port-attribute': { port_id: 'p', path: 'extra.a', value: 1 },
  'extend-port-attribute': { port_id: 'p', path: 'extra.a', value: 1 },
  'del-port-attribute': { port_id: 'p', path: 'extra.a' },
  'api-call': { url: 'http://x', timeout: 1 },
};
/** An operation with its arguments right, too few, too many, and as a list. */
const forms = (op: string, args: Body): readonly Body[] => [
  { op, args },
  { op, args: {} },
  { op, args: { ...args, nosuch: 1 } },
  { op, args: [] },
];
const odd = (good: Body): readonly unknown[] => [
  5,
  null,
  'x',
  [],
  {},
  { op: good['op'] },
  { args: {} },
  ...['nosuch', '', 5, null, '!eq', '! eq', '!!eq', ' eq ', 'EQ'].map((op) => ({ ...good, op })),
  ...[null, 'x', 5].map((args) => ({ ...good, args })),
  ...[null, 'x', 5, [], {}, ['a'], { a: 1 }].map((loop) => ({ ...good, loop })),
  ...['any', 'all', 'first', 'last', 'nosuch', null].map((multiple) => ({ ...good, loop: ['a'], multiple })),
  { ...good, multiple: 'all' },
  { ...good, nosuch: 1 },
];
const ruleBodies: readonly unknown[] = [
  {},
  [],
  'x',
  null,
  '{bad',
  rule,
  { uuid: NEW, actions: [action] },
  { actions: null },
  { actions: [] },
  { actions: {} },
  { actions: 'x' },
  { ...rule, conditions: null },
  { ...rule, conditions: [] },
  { ...rule, conditions: {} },
  { ...rule, nosuch: 1 },
  { ...rule, nosuch: 1, other: 2 },
  // A UUID that is none would be taken there, and stay.
  ...[null, 5, ONE, NEW.replaceAll('-', '')].map((uuid) => ({ ...rule, uuid })),
  ...[null, '', 'words', 5, 'x'.repeat(255), LONG].map((description) => ({ ...rule, description })),
  ...[null, '', 'main', 'early', 5, 'x'.repeat(16), 'x'.repeat(17)].map((phase) => ({ ...rule, phase })),
  ...[null, 0, 1, 9999, 10000, -1, 1.5, '5', true, 2147483648].map((priority) => ({ ...rule, priority })),
  ...[null, true, false, 'true', 5].map((sensitive) => ({ ...rule, sensitive })),
  { ...rule, sensitive: 'true', priority: '10', nosuch: 1 },
  { ...rule, description: 5, actions: [{ op: 'fail', args: 5 }, {}], conditions: [5] },
  { ...rule, phase: 'early', priority: 10000 },
  { ...rule, phase: 'early', priority: -1 },
];
const rulePatches: readonly unknown[] = [
  ...[null, '', 'words', 5, LONG].map((value) => [replace('/description', value)]),
  [remove('/description')],
  ...[null, 0, 9999, 10000, -1, 'x', 1.5].map((value) => [replace('/priority', value)]),
  [remove('/priority')],
  ...[null, 'main', 'early', 5].map((value) => [replace('/phase', value)]),
  [remove('/phase')],
  [replace('/sensitive', false)],
  [replace('/sensitive', null)],
  [replace('/sensitive', 'x')],
  [remove('/sensitive')],
  [replace('/conditions', [])],
  [replace('/conditions', null)],
  [remove('/conditions')],
  [remove('/conditions/0')],
  [add('/conditions/-', condition)],
  [add('/conditions/-', { op: 'nosuch', args: {} })],
  [add('/conditions/-', { op: '!is-none', args: { value: 'a' } })],
  [replace('/conditions/0/op', 'lt')],
  [replace('/conditions/0/args', {})],
  [replace('/conditions/0/args/values', [1])],
  [replace('/conditions/5/op', 'lt')],
  [add('/conditions/0/loop', ['a'])],
  [add('/conditions/0/loop', ['a']), add('/conditions/0/multiple', 'all')],
  [replace('/actions', [action, action])],
  [replace('/actions', [])],
  [remove('/actions')],
  [remove('/actions/0')],
  [add('/actions/-', { op: 'fail', args: { msg: 'x' } })],
  [add('/actions/0', { op: 'set-plugin-data', args: { path: 'a', value: 1 } })],
  [replace('/actions/0/op', 'nosuch')],
  [replace('/actions/0/op', 'fail')],
  [replace('/actions/0/args/value', { a: 1 })],
  [remove('/actions/0/args/value')],
];
const inspectionRules = (): Step[] => [
  ...setup(RULES),
  ...everyVersion(RULES, rule),
  ...routing(RULES),
  ...queries(RULES, ['description', 'priority', 'phase', 'sensitive', 'conditions', 'actions']),
  ...['main', 'early', ''].map((phase) => get(`${RULES.path}?phase=${phase}`)),
  get(`${RULES.path}?phase=main&limit=1`),
  ...creations(RULES, ruleBodies),
  ...creations(RULES, [rule], [95, 96]),
  ...Object.entries(OPERATORS).flatMap(([op, args]) =>
    [...forms(op, args), { op: `!${op}`, args }].flatMap((one) => creations(RULES, [{ ...rule, conditions: [one] }])),
  ),
  ...Object.entries(ACTIONS).flatMap(([op, args]) => forms(op, args).flatMap((one) => creations(RULES, [{ ...rule, actions: [one] }]))),
  ...odd(condition).flatMap((one) => creations(RULES, [{ ...rule, conditions: [one] }])),
  ...odd(action).flatMap((one) => creations(RULES, [{ ...rule, actions: [one] }])),
  ...looked(
    RULES,
    [
      { op: 'eq', args: [[1], true, 3] },
      { op: '!eq', args: { values: [] }, loop: ['a'], multiple: 'all', nosuch: 1 },
    ].flatMap((one) => [
      { ...rule, conditions: [one] },
      { ...rule, conditions: [one, one] },
    ]),
  ),
  ...looked(RULES, [{ ...rule, actions: [{ op: 'set-plugin-data', args: { path: 'a', value: 1 } }] }]),
  ...creations(RULES, [
    { ...rule, conditions: [{ op: 'eq', args: {} }], actions: [{ op: 'fail', args: {} }] },
    { ...rule, sensitive: true, conditions: [condition] },
  ]),
  ...patches(RULES, restoreRule, [...ODD_PATCHES, ...rulePatches]),
  ...patches(RULES, restoreRule, [[replace('/description', 'x')]], [95, 96]),
  send('PATCH', one(RULES, TWO), [replace('/sensitive', false)]),
  send('PATCH', one(RULES, TWO), [replace('/sensitive', null)]),
  send('PATCH', one(RULES, TWO), [remove('/sensitive')]),
  quietly(send('PATCH', one(RULES, TWO), [replace('/sensitive', true)])),
  get(one(RULES, TWO)),
  send('PATCH', one(RULES, TWO), [replace('/sensitive', true), replace('/description', 'hidden')]),
  send('PATCH', one(RULES, NOBODY), [replace('/description', 'x')]),
  send('PATCH', one(RULES, 'zz'), [replace('/description', 'x')]),
  get(one(RULES, ONE.toUpperCase())),
  get(one(RULES, ONE.replaceAll('-', ''))),
  get(`${RULES.path}?detail=true`),
  send('PATCH', one(RULES, ONE), [replace('/sensitive', true)]),
  get(one(RULES)),
  get(`${RULES.path}?fields=uuid,actions,sensitive`),
  get(`${RULES.path}?fields=uuid,actions`),
  get(`${one(RULES)}?fields=actions`),
  ...deletions(RULES, { ...rule, name: NEW }),
  send('DELETE', `${RULES.path}?confirm=true`, undefined),
];

export const templateGroups: Readonly<Record<string, () => readonly Step[]>> = { deployTemplates, runbooks, inspectionRules };
