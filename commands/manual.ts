/** `bloomery completion` and `bloomery manual`: shell completion and manual pages, made from the table of commands. */
import { Argument, type Command } from 'commander';
import { OPTIONS, type OptionRow } from '../config/options';
import { EXAMPLES } from './examples';
import { formatDefault } from '../config/documents';
import { print } from './output';

interface CommandEntry {
  /** Empty for the program itself. */
  readonly path: string;
  readonly command: Command;
}
/** The program and its commands, with the words that select each. */
function entriesOf(command: Command, path = ''): readonly CommandEntry[] {
  const below = command
    .createHelp()
    .visibleCommands(command)
    .filter((visibleCommand) => visibleCommand.name() !== 'help');
  return [{ path, command }, ...below.flatMap((child) => entriesOf(child, `${path} ${child.name()}`.trim()))];
}
const optionsOf = (command: Command): readonly string[] =>
  command
    .createHelp()
    .visibleOptions(command)
    .flatMap(({ long }) => (long ? [long] : []));

/** @param offer the shell's command that offers these words */
function cases(program: Command, offer: (words: string) => string): { readonly paths: string; readonly words: string } {
  const entries = entriesOf(program);
  const paths = entries
    .filter(({ path }) => path !== '')
    .map(({ path }) => {
      const words = path.split(' ');
      return `'${words.slice(0, -1).join(' ')} ${words.at(-1)!}'`;
    });
  const rows = entries.map(({ path, command }) => {
    const below = entries.filter(
      (entry) =>
        entry.path.startsWith(path === '' ? '' : `${path} `) && entry.path.split(' ').length === path.split(' ').filter(Boolean).length + 1,
    );
    const choices = command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? []);
    const words = [
      ...below.filter((entry) => entry.path !== '').map((entry) => entry.path.split(' ').at(-1)!),
      ...choices,
      ...optionsOf(command),
    ];
    return `    '${path}') ${offer(words.join(' '))} ;;`;
  });
  return { paths: paths.join('|'), words: rows.join('\n') };
}

const SHELLS: Readonly<Record<string, (program: Command) => string>> = {
  bash: (program) => {
    const { paths, words } = cases(program, (list) => `COMPREPLY=($(compgen -W '${list}' -- "$current"))`);
    return `_bloomery() {
  local current="\${COMP_WORDS[COMP_CWORD]}" chosen='' word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$chosen $word" in
      ${paths}) chosen="\${chosen:+$chosen }$word" ;;
    esac
  done
  case "$chosen" in
${words}
  esac
}
complete -o default -F _bloomery bloomery
`;
  },
  zsh: (program) => {
    const { paths, words } = cases(program, (list) => `compadd -- ${list}`);
    return `#compdef bloomery
local chosen='' word
for word in \${words[2,CURRENT-1]}; do
  case "$chosen $word" in
    ${paths}) chosen="\${chosen:+$chosen }$word" ;;
  esac
done
case "$chosen" in
${words}
esac
[[ $words[CURRENT] == -* ]] || _files
`;
  },
};

/** Escapes a text for roff, so that no part of it is a request or an escape sequence (groff(7)). */
const roff = (text: string): string =>
  text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(/^([.'])/gm, '\\&$1');
const heading = (name: string, section: number, version: string, about: string): string =>
  `.TH ${name} ${section} "" "Bloomery ${version}" "Bloomery"\n.ad l\n.nh\n.SH NAME\n${roff(about)}\n`;
/** Permits line breaks after commas and slashes, because long values may be wider than the page. */
const breakable = (text: string): string => text.replace(/(?<=\w)[,/](?=\S)/g, '$&\\:');
const item = (term: string, text: string): string => `.TP\n\\fB${breakable(roff(term))}\\fR\n${roff(text)}\n`;

const FILES = [
  ['/etc/ironic/ironic.conf', 'The configuration, unless --config-file or --config-dir names files.'],
  [
    '/etc/bloomery/ironic.conf, /etc/default/bloomery',
    'The configuration and the variables of the service of the Debian package. Commands do not read these files by default.',
  ],
  ['/var/lib/bloomery', 'The embedded database, the caches and the boot files.'],
  ['/usr/share/doc/bloomery/docs', 'The documentation, in the Debian package.'],
] as const;

function commandPage(program: Command): string {
  const help = program.createHelp();
  const parts = entriesOf(program).map(({ path, command }) => {
    const title = path === '' ? '.SH OPTIONS\n' : `.SS "bloomery ${roff(path)} ${roff(command.usage())}"\n${roff(command.description())}\n`;
    const rows = [
      ...help
        .visibleArguments(command)
        .map((visibleArgument) => item(`<${visibleArgument.name()}>`, help.argumentDescription(visibleArgument))),
      ...help.visibleOptions(command).map((visibleOption) => item(visibleOption.flags, help.optionDescription(visibleOption))),
    ];
    const examples = (EXAMPLES[path] ?? []).map((line) => `${roff(line)}\n`);
    return `${title}${rows.join('')}.PP\nExamples:\n.PP\n.EX\n${examples.join('')}.EE\n${path === '' ? '.SH COMMANDS\n' : ''}`;
  });
  return [
    heading('BLOOMERY', 1, program.version()!, `bloomery - ${program.description()}`),
    `.SH SYNOPSIS\n\\fBbloomery\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR ...]\n`,
    ...parts,
    `.SH EXIT STATUS\n0: success. 1: failure, or the answer is no. 2: the arguments or the configuration are wrong.\n`,
    `.SH FILES\n${FILES.map(([path, text]) => item(path, text)).join('')}`,
    `.SH SEE ALSO\n\\fBbloomery.conf\\fR(5)\n`,
  ].join('');
}

function configurationManual(program: Command): string {
  const rows: readonly OptionRow[] = OPTIONS;
  const sections = [...new Set(rows.map(({ section }) => section))].map((section) => {
    const items = rows
      .filter((row) => row.section === section)
      .map((row) => item(`${row.name} = ${formatDefault(row)}`.trimEnd(), `${row.help} (${row.kind})`));
    return `.SS [${section}]\n${items.join('')}`;
  });
  return [
    heading('BLOOMERY.CONF', 5, program.version()!, 'bloomery.conf - options of Bloomery, in the format of ironic.conf'),
    `.SH DESCRIPTION\n${roff('Each option is shown with its default. A variable OS_<SECTION>__<OPTION> sets an option too.')}\n.SH OPTIONS\n`,
    ...sections,
    `.SH SEE ALSO\n\\fBbloomery\\fR(1)\n`,
  ].join('');
}
const PAGES: Readonly<Record<string, (program: Command) => string>> = {
  'bloomery.1': commandPage,
  'bloomery.conf.5': configurationManual,
};

export function addManualCommands(program: Command): void {
  program
    .command('completion')
    .description('Print the completion script for a shell: source <(bloomery completion bash).')
    .addArgument(new Argument('<shell>', 'the shell').choices(Object.keys(SHELLS)))
    .action((shell: string) => print(SHELLS[shell]!(program)));
  program
    .command('manual')
    .description('Print a manual page in the format of man: bloomery manual | man -l -.')
    .addArgument(new Argument('[page]', 'the page').choices(Object.keys(PAGES)).default('bloomery.1'))
    .action((page: string) => print(PAGES[page]!(program)));
}
