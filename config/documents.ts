/** Generates documents from the option table: the sample file and the page of the documentation. */
import { entry } from './markdown';
import { OPTIONS, type OptionRow } from './options';

const ROWS: readonly OptionRow[] = OPTIONS;
const sections = (): string[] => [...new Set(ROWS.map((row) => row.section))];
const limitOf = (row: OptionRow, limit: number): string => (row.kind === 'octal' ? limit.toString(8) : String(limit));
const limits = (row: OptionRow): string =>
  [
    row.choices && `one of ${row.choices.join(', ')}`,
    row.min !== undefined && `at least ${limitOf(row, row.min)}`,
    row.max !== undefined && `at most ${limitOf(row, row.max)}`,
  ]
    .filter((part) => typeof part === 'string')
    .join('; ');

/** A default as it would be written in a file. */
export function formatDefault(row: OptionRow): string {
  if (row.default === null) return '';
  if (Array.isArray(row.default)) return row.default.join(',');
  if (typeof row.default === 'object')
    return Object.entries(row.default)
      .map(([key, value]) => `${key}:${value}`)
      .join(',');
  return String(row.default);
}

/** An ironic.conf with every option commented out at its default. */
export const sampleFile = (): string =>
  sections()
    .map((section) => {
      const rows = ROWS.filter((row) => row.section === section);
      const texts = rows.map((row) => {
        const extra = limits(row);
        return `# ${row.help}${extra ? ` (${row.kind}; ${extra})` : ` (${row.kind})`}\n#${row.name} = ${formatDefault(row)}`.trimEnd();
      });
      return `[${section}]\n\n${texts.join('\n\n')}\n`;
    })
    .join('\n');

/** docs/reference/configuration.md. */
export const configurationPage = (): string =>
  [
    '# Configuration',
    '',
    'This page is for operators who write an `ironic.conf`: it lists every option with its type and default.',
    'It is generated from `config/options.ts`; do not edit it (`UPDATE_DOCS=1 npx jest tests/config/load` writes it).',
    '',
    'Section and option names are those of `ironic.conf`.',
    'The line of an option shows its type, its limits and its default.',
    '`not in Ironic` marks options that Ironic does not have.',
    'A variable `OS_<SECTION>__<OPTION>` sets an option too, and takes precedence over the files.',
    'Options that are not listed here have no effect, and a warning names them.',
    'The server does not start with a security option that has no effect here.',
    '',
    ...sections().flatMap((section) => [
      `## [${section}]`,
      '',
      ...ROWS.filter((row) => row.section === section).map((row) => {
        const shown = formatDefault(row);
        const facts = [row.kind, limits(row), shown && `default \`${shown}\``, row.ours && 'not in Ironic'];
        return entry(`**\`${row.name}\`**: ${facts.filter(Boolean).join('; ')}`, row.help);
      }),
      '',
    ]),
  ].join('\n');
