/** Texts of configuration files that show each rule of the syntax. The results of oslo.config are in syntax.json. */
type Value = string | number | boolean | null | readonly string[] | Readonly<Record<string, string>>;
export type Result = 'error' | Readonly<Record<string, 'error' | { readonly value: Value | readonly Readonly<Record<string, string>>[] }>>;
export interface SyntaxCase {
  readonly name: string;
  readonly files: readonly string[];
  readonly variables?: Readonly<Record<string, string>>;
  /** The file is not UTF-8, but Latin-1. */
  readonly latin?: true;
  /** Whose values are compared, as `section.name`. */
  readonly options: readonly string[];
  /** Our result if it differs, and why. */
  readonly ours?: Result;
  readonly because?: string;
}

const [TEXT, URL, PORT, LIMIT, FLAG] = ['DEFAULT.host', 'deploy.http_url', 'api.port', 'api.max_limit', 'agent.require_tls'] as const;
const [LIST, DICT, MULTI, MULTI_DICT] = [
  'DEFAULT.enabled_boot_interfaces',
  'conductor.deploy_kernel_by_arch',
  'ipmi.additional_retryable_ipmi_errors',
  'conductor.clean_step_priority_override',
] as const;
const NUMBER = 'neutron.connect_retry_delay';
const OCTAL = 'api.unix_socket_mode';
const lineOf = (key: string, value: string): string => `[${key.split('.')[0]!}]\n${key.split('.')[1]!} = ${value}\n`;
const valueOf = (key: string, value: Value): Result => ({ [key]: { value } });

/** The value `error` stands for an error. */
type Difference = readonly [ours: Value, because: string];
/** Cases of one option and one value. */
const values = (key: string, ...rows: readonly (readonly [value: string, ...difference: Difference | []])[]): readonly SyntaxCase[] =>
  rows.map(([value, ...difference]) => ({
    name: `[${key.replace('.', ']')} = ${JSON.stringify(value)}`,
    files: [lineOf(key, value)],
    options: [key],
    ...(difference.length === 0
      ? {}
      : { ours: { [key]: difference[0] === 'error' ? 'error' : { value: difference[0] } }, because: difference[1] }),
  }));
const text = (name: string, file: string, key: string = TEXT, ours?: Result, because?: string): SyntaxCase => ({
  name,
  files: [file],
  options: [key],
  ...(ours === undefined ? {} : { ours, because: because! }),
});

const EMPTY = 'an empty value means that the option is not set';
const EMPTY_NUMBER = 'an option that needs a number has no empty value, which would fail later';
const EMPTY_ITEMS = 'empty items of lists have no meaning';
const LIST_TEXT = 'a list stands for its text in a file, not for a Python expression';
const GIVEN = 'a reference may name an option that is written in a file, even if nothing reads it';

export const CASES: readonly SyntaxCase[] = [
  // Lines.
  text('an equals sign', '[DEFAULT]\nhost=a'),
  text('a colon', '[DEFAULT]\nhost: a'),
  text('a colon before an equals sign', '[DEFAULT]\nhost: a=b'),
  text('an equals sign before a colon', '[DEFAULT]\nhost = a:b'),
  text('tabs around the equals sign', '[DEFAULT]\nhost\t=\ta\t'),
  text('spaces at the end', '[DEFAULT]\nhost = a   '),
  text('spaces within the value', '[DEFAULT]\nhost = a  b'),
  text('no value', '[DEFAULT]\nhost =', TEXT, valueOf(TEXT, null), EMPTY),
  text('no space before the value', '[DEFAULT]\nhost =a'),
  text('a carriage return at the end', '[DEFAULT]\r\nhost = a\r\n'),
  text('carriage returns only', '[DEFAULT]\rhost = a\r'),
  text('no line end', '[DEFAULT]\nhost = a'),
  text('blank lines', '\n\n[DEFAULT]\n\n\nhost = a\n\n'),
  text('a line of spaces', '[DEFAULT]\n   \nhost = a'),
  text('a non-breaking space at the end', '[DEFAULT]\nhost = a\u00A0'),
  text('a byte order mark', '\uFEFF[DEFAULT]\nhost = a', TEXT, valueOf(TEXT, 'a'), 'editors write this mark: it is no part of the text'),
  text(
    'a byte order mark before a comment',
    '\uFEFF# text\n[DEFAULT]\nhost = a',
    TEXT,
    valueOf(TEXT, 'a'),
    'editors write this mark: it is no part of the text',
  ),
  text('letters with accents', '[DEFAULT]\nhost = éü'),
  { name: 'text in Latin-1', files: ['[DEFAULT]\nhost = é'], latin: true, options: [TEXT] },
  text('no equals sign', '[DEFAULT]\nhost'),
  text('no name', '[DEFAULT]\n= a'),
  text('an option before the first section', 'host = a'),
  text('an empty file', ''),
  text('an option twice', '[DEFAULT]\nhost = a\nhost = b'),
  text('the name in capitals', '[DEFAULT]\nHOST = a'),
  text('the name with a hyphen', '[api]\nmax-limit = 5', LIMIT),
  // Comments.
  text('a comment with #', '[DEFAULT]\n# host = b\nhost = a'),
  text('a comment with ;', '[DEFAULT]\n; host = b\nhost = a'),
  text('a # after the value', '[DEFAULT]\nhost = a # b'),
  text('a ; after the value', '[DEFAULT]\nhost = a ; b'),
  text('a # at once after the value', '[DEFAULT]\nhost = a#b'),
  text('a comment that is indented, after an option', '[DEFAULT]\nhost = a\n  # b'),
  text('a comment that is indented, after a section', '[DEFAULT]\n  # b\nhost = a'),
  text('a comment between a value and its continuation', '[DEFAULT]\nhost = a\n# c\n  b'),
  // Continuation lines.
  text('a continuation line', '[DEFAULT]\nhost = a\n  b'),
  text('a continuation line with a tab', '[DEFAULT]\nhost = a\n\tb'),
  text('several continuation lines', '[DEFAULT]\nhost = a\n  b\n  c\n'),
  text('a continuation line that looks like an option', '[DEFAULT]\nhost = a\n  port = 5'),
  text('a continuation line that looks like a section', '[DEFAULT]\nhost = a\n  [api]'),
  text('a value that begins in a continuation line', '[DEFAULT]\nhost =\n  a'),
  text('a continuation line after a blank line', '[DEFAULT]\nhost = a\n\n  b'),
  text('a continuation line after a section', '[DEFAULT]\n  b'),
  text('a list in continuation lines', '[DEFAULT]\nenabled_boot_interfaces =\n  a,\n  b\n', LIST),
  text('a list in continuation lines without commas', '[DEFAULT]\nenabled_boot_interfaces =\n  a\n  b\n', LIST),
  text('a dict in continuation lines', '[conductor]\ndeploy_kernel_by_arch = a:1,\n  b:2\n', DICT),
  // Sections.
  text('a section in capitals', '[API]\nmax_limit = 5', LIMIT),
  text('a section in both', '[API]\nmax_limit = 5\n[api]\nmax_limit = 6', LIMIT),
  text('a section in both, capitals last', '[api]\nmax_limit = 5\n[Api]\nmax_limit = 6', LIMIT),
  text('[default]', '[default]\nhost = a'),
  text('[Default]', '[Default]\nhost = a'),
  text('a section twice', '[api]\nmax_limit = 5\n[DEFAULT]\nhost = a\n[api]\nport = 6', LIMIT),
  text('a section with spaces', '[ api ]\nmax_limit = 5', LIMIT),
  text('a section with spaces after it', '[api]   \nmax_limit = 5', LIMIT),
  text('a section without an end', '[api\nmax_limit = 5', LIMIT),
  text('a section without a name', '[]\nmax_limit = 5', LIMIT),
  text('a section with a comment', '[api] # text\nmax_limit = 5', LIMIT),
  text('a section that is unknown', '[nowhere]\nx = 5\n[api]\nmax_limit = 5', LIMIT),
  text('a section with brackets', '[[api]]\nmax_limit = 5', LIMIT),
  // Quotes.
  text('double quotes', '[DEFAULT]\nhost = "a b"'),
  text('single quotes', "[DEFAULT]\nhost = 'a b'"),
  text('spaces in quotes', '[DEFAULT]\nhost = " a "'),
  text('quotes in quotes', '[DEFAULT]\nhost = "\'a\'"'),
  text('quotes twice', '[DEFAULT]\nhost = ""a""'),
  text('different quotes', '[DEFAULT]\nhost = "a\''),
  text('one quote', '[DEFAULT]\nhost = "', TEXT, valueOf(TEXT, null), EMPTY),
  text('an open quote', '[DEFAULT]\nhost = "a'),
  text('empty quotes', '[DEFAULT]\nhost = ""', TEXT, valueOf(TEXT, null), EMPTY),
  text('quotes within', '[DEFAULT]\nhost = a"b"'),
  text('quotes at both ends of two parts', '[DEFAULT]\nhost = "a" and "b"'),
  text('quotes over two lines', '[DEFAULT]\nhost = "a\n  b"'),
  text('quotes around the first of two lines', '[DEFAULT]\nhost = "a"\n  b'),
  text('quotes around a number', '[api]\nmax_limit = "5"', LIMIT),
  text('quotes around a list', '[DEFAULT]\nenabled_boot_interfaces = "a,b"', LIST),
  text('quotes around an item of a list', '[DEFAULT]\nenabled_boot_interfaces = "a",b', LIST),
  text('a reference in quotes', '[DEFAULT]\nhost = "$my_ip"'),
  // Numbers, truth values.
  ...values(
    PORT,
    ['80'],
    ['0'],
    ['65535'],
    ['65536'],
    ['-1'],
    ['+80'],
    ['8_0'],
    ['0x50'],
    ['8e1'],
    ['80.0'],
    ['x'],
    ['0080'],
    ['', 'error', EMPTY_NUMBER],
  ),
  ...values(
    NUMBER,
    ['1.5'],
    ['.5'],
    ['5.'],
    ['1e1'],
    ['1_0'],
    ['x'],
    ['1,5'],
    ['nan', 'error', 'no option can use it'],
    ['inf', 'error', 'no option can use it'],
    [''],
  ),
  ...values(OCTAL, ['660'], ['0660'], ['0o660'], ['0O660'], ['8'], ['x']),
  ...values(FLAG, ['true'], ['True'], ['TRUE'], ['yes'], ['on'], ['1'], ['false'], ['No'], ['off'], ['0'], ['2'], ['y'], ['enabled'], ['']),
  ...values('deploy.default_boot_mode', ['bios'], ['BIOS'], ['legacy'], ['']),
  // Lists.
  ...values(
    LIST,
    ['a'],
    ['a,b'],
    ['a, b ,c'],
    ['a,b,'],
    ['a,b,,'],
    ['a,,b', ['a', 'b'], EMPTY_ITEMS],
    [',a', ['a'], EMPTY_ITEMS],
    [','],
    [''],
    ['a b'],
    ['[a,b]'],
    ['a,a'],
  ),
  // Dicts.
  ...values(
    DICT,
    ['a:1'],
    ['a:1,b:2'],
    [' a : 1 , b : 2 '],
    ['a:b:c'],
    ['a:http://h:1/x'],
    ['a:'],
    ['a,b:1'],
    ['a'],
    ['a:1,b'],
    [':1'],
    ['a:1,a:2'],
    ['a:1,', { a: '1' }, EMPTY_ITEMS],
    ['a:1,,b:2', { a: '1', b: '2' }, EMPTY_ITEMS],
    [''],
    ['a=1'],
  ),
  // References.
  text('a reference', '[DEFAULT]\nhost = $my_ip'),
  text('a reference in braces', '[DEFAULT]\nhost = ${my_ip}'),
  text('a reference before text', '[DEFAULT]\nhost = ${my_ip}x'),
  text('a reference before a hyphen', '[DEFAULT]\nhost = $my_ip-x'),
  text('a reference before a full stop', '[DEFAULT]\nhost = $my_ip.'),
  text('a reference in braces before a full stop', '[DEFAULT]\nhost = ${my_ip}.x'),
  text('a reference in another section', '[deploy]\nhttp_url = http://$my_ip:8080', URL),
  text('a reference to a section', '[deploy]\nhttp_url = http://x:${api.port}', URL),
  text('a reference to a section without braces', '[deploy]\nhttp_url = http://x:$api.port/', URL),
  text('a reference to a value of a file', '[api]\nport = 0_99\n[deploy]\nhttp_url = http://x:${api.port}', URL),
  text('a reference within its section', '[deploy]\nexternal_http_url = http://y\nhttp_url = $external_http_url', URL),
  text('a reference to a section, which DEFAULT does not have', '[deploy]\nhttp_url = $port', URL),
  text(
    'a reference to DEFAULT by its name',
    '[deploy]\nhttp_url = ${DEFAULT.host}',
    URL,
    valueOf(URL, 'here'),
    'the section DEFAULT can be named like any other',
  ),
  text('a reference to a section in capitals', '[deploy]\nhttp_url = ${API.port}', URL),
  text('a reference in capitals', '[deploy]\nhttp_url = $MY_IP', URL),
  text('a reference to what is not there', '[deploy]\nhttp_url = $nowhere', URL),
  text('a reference in braces to what is not there', '[deploy]\nhttp_url = ${nowhere}/x', URL),
  text('a reference to a section that is not there', '[deploy]\nhttp_url = ${nowhere.x}', URL),
  text('a reference to a section itself', '[deploy]\nhttp_url = $api', URL),
  text('a reference to an unknown option of the file', '[DEFAULT]\nmine = a\nhost = $mine', TEXT, valueOf(TEXT, 'a'), GIVEN),
  text('a reference to an option without a value', '[DEFAULT]\nhost = a${api.public_endpoint}b'),
  text('a reference to an empty option', '[api]\npublic_endpoint =\n[DEFAULT]\nhost = a${api.public_endpoint}b'),
  text('a reference to a truth value', '[DEFAULT]\nhost = ${agent.require_tls}'),
  text(
    'a reference to a list',
    '[DEFAULT]\nenabled_boot_interfaces = a,b\nhost = $enabled_boot_interfaces',
    TEXT,
    valueOf(TEXT, 'a,b'),
    LIST_TEXT,
  ),
  text(
    'a reference to a dict',
    '[conductor]\ndeploy_kernel_by_arch = a:1\n[DEFAULT]\nhost = ${conductor.deploy_kernel_by_arch}',
    TEXT,
    valueOf(TEXT, 'a:1'),
    LIST_TEXT,
  ),
  text('a reference to a value that is wrong', '[api]\nport = x\n[deploy]\nhttp_url = ${api.port}', URL),
  text(
    'a reference to a former name',
    '[DEFAULT]\nhost = ${api.tls_minimum_version}',
    TEXT,
    valueOf(TEXT, '1.3'),
    'a former name stands for the present one everywhere',
  ),
  text('a reference to itself', '[DEFAULT]\nhost = $host'),
  text('two references to each other', '[deploy]\nhttp_url = $external_http_url\nexternal_http_url = $http_url', URL),
  text(
    'a reference to a reference',
    '[DEFAULT]\nmy_ip = 192.0.2.9\n[deploy]\nexternal_http_url = http://$my_ip\nhttp_url = $external_http_url/x',
    URL,
  ),
  text('a reference in a number', '[api]\nmax_limit = $port', LIMIT),
  text('a reference in a list', '[DEFAULT]\nenabled_boot_interfaces = a,$host', LIST),
  text('a reference in a dict', '[conductor]\ndeploy_kernel_by_arch = a:http://$my_ip/x', DICT),
  text('a reference in the key of a dict', '[conductor]\ndeploy_kernel_by_arch = $host:x', DICT),
  text(
    'a reference in one of several values',
    '[ipmi]\nadditional_retryable_ipmi_errors = $my_ip\nadditional_retryable_ipmi_errors = b',
    MULTI,
  ),
  text('a reference to the default of an option that refers to another', '[DEFAULT]\nhost = ${inspector.hooks}', TEXT),
  text('two dollars', '[DEFAULT]\nhost = $$my_ip'),
  text('a dollar with a backslash', '[DEFAULT]\nhost = \\$my_ip'),
  text('a dollar with two backslashes', '[DEFAULT]\nhost = \\\\$my_ip'),
  text('three dollars', '[DEFAULT]\nhost = $$$my_ip'),
  text('a dollar at the end', '[DEFAULT]\nhost = a$'),
  text('a dollar before a digit', '[DEFAULT]\nhost = $1'),
  text('a dollar before a space', '[DEFAULT]\nhost = a $ b'),
  text('a dollar before a brace that is not closed', '[DEFAULT]\nhost = ${my_ip'),
  text('a dollar before empty braces', '[DEFAULT]\nhost = ${}'),
  text('a dollar before braces with a space', '[DEFAULT]\nhost = ${ my_ip }'),
  text('a percent sign', '[DEFAULT]\nhost = %(my_ip)s'),
  text('an escaped reference to an escaped value', '[deploy]\nexternal_http_url = http://h/$$x\nhttp_url = $external_http_url', URL),
  // Several values.
  text('an option that counts several times', '[ipmi]\nadditional_retryable_ipmi_errors = a\nadditional_retryable_ipmi_errors = b', MULTI),
  text(
    'commas in an option that counts several times',
    '[ipmi]\nadditional_retryable_ipmi_errors = a, b\nadditional_retryable_ipmi_errors = c',
    MULTI,
  ),
  text('an empty value of an option that counts several times', '[ipmi]\nadditional_retryable_ipmi_errors =', MULTI),
  text('the same value several times', '[ipmi]\nadditional_retryable_ipmi_errors = a\nadditional_retryable_ipmi_errors = a', MULTI),
  text(
    'pairs that count several times',
    '[conductor]\nclean_step_priority_override = a.b:1\nclean_step_priority_override = c.d:2,e.f:3',
    MULTI_DICT,
  ),
  text(
    'a pair whose later value counts',
    '[conductor]\nclean_step_priority_override = a.b:1\nclean_step_priority_override = a.b:2',
    MULTI_DICT,
  ),
  {
    name: 'several values in several files',
    files: [
      '[ipmi]\nadditional_retryable_ipmi_errors = a\nadditional_retryable_ipmi_errors = b',
      '[IPMI]\nadditional_retryable_ipmi_errors = c',
    ],
    options: [MULTI],
  },
  { name: 'several files', files: ['[DEFAULT]\nhost = a\n[api]\nport = 1', '[DEFAULT]\nhost = b'], options: [TEXT, PORT] },
  {
    name: 'a reference to a value of a later file',
    files: ['[deploy]\nhttp_url = http://$my_ip', '[DEFAULT]\nmy_ip = 192.0.2.8'],
    options: [URL],
  },
  // Former names.
  text('a former name', '[api]\ntls_minimum_version = 1.2', 'api.server_tls_minimum_version'),
  text(
    'a former name before the present one',
    '[api]\ntls_minimum_version = 1.2\nserver_tls_minimum_version = 1.3',
    'api.server_tls_minimum_version',
  ),
  text(
    'a former name after the present one',
    '[api]\nserver_tls_minimum_version = 1.3\ntls_minimum_version = 1.2',
    'api.server_tls_minimum_version',
  ),
  {
    name: 'a former name in a later file',
    files: ['[api]\nserver_tls_minimum_version = 1.3', '[api]\ntls_minimum_version = 1.2'],
    options: ['api.server_tls_minimum_version'],
  },
  text('a former name with a hyphen', '[neutron]\nuser-name = a', 'neutron.username'),
  text('a former name with an underscore', '[neutron]\nuser_name = a', 'neutron.username'),
  // Variables.
  { name: 'a variable', files: ['[DEFAULT]\nhost = a'], variables: { OS_DEFAULT__HOST: 'b' }, options: [TEXT] },
  { name: 'a variable with a reference', files: [''], variables: { OS_DEPLOY__HTTP_URL: 'http://$my_ip' }, options: [URL] },
  { name: 'a variable in quotes', files: [''], variables: { OS_DEFAULT__HOST: '"b"' }, options: [TEXT] },
  { name: 'an empty variable', files: ['[agent]\nrequire_tls = no'], variables: { OS_AGENT__REQUIRE_TLS: '' }, options: [FLAG] },
  { name: 'a variable with a list', files: [''], variables: { OS_DEFAULT__ENABLED_BOOT_INTERFACES: 'a, b' }, options: [LIST] },
  {
    name: 'a variable of an option that counts several times',
    files: [''],
    variables: { OS_IPMI__ADDITIONAL_RETRYABLE_IPMI_ERRORS: 'ab' },
    options: [MULTI],
    ours: valueOf(MULTI, ['ab']),
    because: 'a variable is one value, not one for each character',
  },
  // Empty values of options without a default.
  ...values('api.public_endpoint', ['', null, EMPTY]),
  ...values('deploy.erase_devices_priority', ['']),
];
