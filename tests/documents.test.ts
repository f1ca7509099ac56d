/** What the pages name exists: the files and headings that they link, and the files, options, commands and scripts that they mention. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { OPTIONS } from '../config/options';

const root = join(__dirname, '..');
const below = (folder: string): readonly string[] =>
  readdirSync(folder, { withFileTypes: true })
    .filter(({ name }) => !['node_modules', 'dist', '.cache', '.git'].includes(name))
    .flatMap((entry) => (entry.isDirectory() ? below(join(folder, entry.name)) : [join(folder, entry.name)]));
const files = below(root).map((path) => relative(root, path));
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const pages = files.filter((path) => path === 'README.md' || /^docs\/.*\.md$/.test(path));

/** Every match of the first group in a page's text, or in its code only. */
const all = (text: string, pattern: RegExp): readonly string[] => [...text.matchAll(pattern)].map((match) => match[1]!);
const codeOf = (text: string): string => all(text, /(```[^]*?```|`[^`\n]+`)/g).join('\n');
/** As GitHub makes the anchors of headings. */
const anchorsOf = (text: string): readonly string[] =>
  all(text, /^#+ (.*)$/gm).map((heading) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
const asPattern = (name: string): RegExp => new RegExp(`(^|/)${name.replaceAll('.', '\\.').replaceAll('*', '[^/]*')}$`);

const sources = ['program.ts', ...files.filter((path) => path.startsWith('commands/'))].map(read).join('\n');
const scripts = Object.keys((JSON.parse(read('package.json')) as { scripts: object }).scripts);
const options = new Set(OPTIONS.flatMap((row) => [`[${row.section}]`, `[${row.section}]${row.name}`]));
/** Options of Ironic that the pages say are not here. */
const NOT_HERE = new Set([
  '[api]disallowed_enrollment_boot_modes',
  '[json_rpc]auth_strategy',
  '[metrics]backend',
  '[pxe_filter]dhcp_hostsdir',
  '[redfish]firmware_update_bmc_timeout',
]);

/** Files that operators write, and programs of the image. */
const OPERATORS_FILES = new Set(['policy.yaml', 'runlogwatch.sh']);

interface Rule {
  readonly what: string;
  readonly named: (page: string, text: string) => readonly string[];
  readonly isThere: (name: string, page: string) => boolean;
}
const RULES: readonly Rule[] = [
  {
    what: 'links',
    named: (_, text) => all(text, /\]\(([^)\s]+)\)/g).filter((link) => !/^[a-z]+:/.test(link)),
    isThere: (link, page) => {
      const [path = '', anchor] = link.split('#');
      const target = path === '' ? page : join(dirname(page), path);
      return existsSync(join(root, target)) && (anchor === undefined || anchorsOf(read(target)).includes(anchor));
    },
  },
  {
    what: 'files',
    named: (_, text) => all(codeOf(text), /`((?:[\w.*-]+\/)*[\w.*-]+\.(?:ts|mjs|sh|yaml|yml|md))`/g),
    isThere: (name) => OPERATORS_FILES.has(name) || files.some((path) => asPattern(name).test(path)),
  },
  {
    what: 'tests to run',
    named: (_, text) => all(codeOf(text), /(?:^|[\s`])(tests\/[a-z\d./-]*[a-z\d])(?![\w/])/gm),
    isThere: (name) => files.some((path) => path.startsWith(name)),
  },
  {
    what: 'options',
    named: (_, text) => all(codeOf(text), /(?:^|[\s`(])(\[[a-z]\w+\](?:[a-z]\w*[a-z0-9](?![\w…*]))?)/gm),
    isThere: (name) => options.has(name) || NOT_HERE.has(name),
  },
  {
    what: 'npm scripts',
    named: (_, text) => all(text, /npm run (?:-s )?([\w:]+)/g),
    isThere: (name) => scripts.includes(name),
  },
  {
    what: 'benchmarks',
    named: (_, text) => all(text, /npm run (?:-s )?bench -- ([\w|-]+)/g).flatMap((names) => names.split('|')),
    isThere: (name) => files.filter((path) => path.startsWith('scripts/bench')).some((path) => read(path).includes(name)),
  },
  {
    what: 'commands',
    named: (_, text) => all(codeOf(text), /(?:^|[`\s]|bin\/)bloomery ([a-z]+)/gm),
    isThere: (name) => sources.includes(`command('${name}`),
  },
  {
    what: 'options of commands',
    named: (_, text) =>
      all(codeOf(text), /(?:^|[`\s]|bin\/)bloomery [a-z]+ ([^`\n]*)/gm).flatMap((words) => all(words, /(?:^| )(--[a-z-]+)/g)),
    isThere: (name) => new RegExp(`['" ]${name}\\b(?!-)`).test(sources),
  },
];

describe.each(RULES)('$what that the documentation names exist', ({ named, isThere }) => {
  it.each(pages)('%s', (page) => {
    const names = [...new Set(named(page, read(page)))];
    expect(names.filter((name) => !isThere(name, page))).toEqual([]);
  });
});
it('each rule finds at least one name in the documentation', () => {
  const found = RULES.map(({ what, named }) => [what, pages.flatMap((page) => named(page, read(page))).length > 0]);
  expect(found).toEqual(RULES.map(({ what }) => [what, true]));
});
