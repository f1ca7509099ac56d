/**
 * What the pages name exists: the files and headings that they link, and the files, options, commands and scripts that they mention. Their
 * lines and table cells are short, and their first paragraph says what they are for.
 */
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

const sources = files
  .filter((path) => path.startsWith('commands/'))
  .map(read)
  .join('\n');
const scripts = Object.keys((JSON.parse(read('package.json')) as { scripts: object }).scripts);
const options = new Set(OPTIONS.flatMap((row) => [`[${row.section}]`, `[${row.section}]${row.name}`]));
/** Options of Ironic that the pages say are not here. */
const NOT_HERE = new Set([
  '[api]disallowed_enrollment_boot_modes',
  '[conductor]disable_kernel_parameter_parsing',
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

const withoutCode = (text: string): string => text.replace(/```[^]*?```/g, '');
/** The end of a sentence and the beginning of the next. The numbers and the bold leads of list items are no sentences. */
const TWO_SENTENCES = /[^\s.][.!?][)"*`]*\s+[\p{Lu}\d`"*([]/u;
const isLong = (line: string): boolean => line.replace(/\]\([^)]*\)/g, ']').length > 120;
const withoutLead = (line: string): string => line.replace(/^\s*(?:[-*] |\d+\. )?(?:\*\*[^*]+\*\*)?/, '');
const isRow = (line: string): boolean => line.trimStart().startsWith('|');

interface Form {
  readonly what: string;
  /** What breaks the rule. */
  readonly wrong: (text: string) => readonly string[];
  readonly sample: string;
}
const FORMS: readonly Form[] = [
  {
    what: 'lines of more than 120 characters have one sentence',
    wrong: (text) =>
      withoutCode(text)
        .split('\n')
        .filter((line) => !isRow(line) && isLong(line) && TWO_SENTENCES.test(withoutLead(line))),
    sample: `- The first sentence${' is long'.repeat(15)}. The second is short.`,
  },
  {
    what: 'table cells have one phrase',
    wrong: (text) =>
      withoutCode(text)
        .split('\n')
        .filter(isRow)
        .flatMap((line) => line.split(/(?<!\\)\|/))
        .filter((cell) => TWO_SENTENCES.test(cell)),
    sample: '| `name` | The first sentence. Another one |',
  },
  {
    what: 'each table begins with a line that separates its head',
    wrong: (text) => {
      const lines = withoutCode(text).split('\n');
      return lines.filter(
        (line, at) =>
          isRow(line) && !isRow(lines[at - 1] ?? '') && !/^[\s|:-]+$/.test(isRow(lines[at + 1] ?? '') ? lines[at + 1]! : 'none'),
      );
    },
    sample: '| a | b |\n|---|---|\n| 1 | 2 |\n\nA line between.\n| 3 | 4 |\n',
  },
  {
    what: 'the first paragraph says for whom the page is, and what it says',
    wrong: (text) => {
      const [, paragraph = ''] = text.split('\n\n');
      return /^This (?:page|record) is for (?:[^.:]|\.\S)+(?:: |\.\s+It [a-z]+s )/.test(paragraph) ? [] : [paragraph];
    },
    sample: '# A page\n\nThis page describes something.\n',
  },
];
describe.each(FORMS)('$what', ({ wrong, sample }) => {
  it.each(pages.filter((page) => page !== 'README.md'))('%s', (page) => {
    expect(wrong(read(page))).toEqual([]);
  });
  it('finds a page that breaks the rule', () => {
    expect(wrong(sample)).toHaveLength(1);
  });
});
