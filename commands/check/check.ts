/** `bloomery check`: what the options do here, and whether the server can start on this host. */
import { resolve } from 'node:path';
import { Option, type Command } from 'commander';
import { examine, type ExaminedOption } from '../../config/examine';
import { readConfiguration } from '../../config/load';
import { configurationFiles, databaseUrl, namingDatabaseUrl, parseRoles, withSetup, type SetupArguments } from '../setup';
import { print, printJson } from '../output';
import { printable } from '../../model/log';
import { ROLES, rolesOf, type Role } from '../../server/roles';
import type { Finding } from './check-row';
import { checkHost } from './host-checks';

/** Helps operators who expect another file: the service of the Debian package, for example, reads one that commands do not. */
const NO_FILE: Finding = {
  what: 'configuration',
  severity: 'note',
  message: 'no file was read: name it with --config-file; without this, /etc/ironic/ironic.conf is read if it exists',
};
interface CheckArguments extends SetupArguments {
  readonly roles?: readonly Role[];
  readonly json?: boolean;
}
interface CheckSummary {
  /** 0: all is well; 1: warnings; 2: the server does not start. */
  readonly status: 0 | 1 | 2;
  readonly text: string;
}

const counted = (count: number, noun: string, many = `${noun}s`): string => `${count} ${count === 1 ? noun : many}`;
/** @internal */
export function summaryOf(options: readonly ExaminedOption[], host: readonly Finding[]): CheckSummary {
  const results = (result: ExaminedOption['result']): number => options.filter((option) => option.result === result).length;
  const of = (severity: Finding['severity']): number => host.filter((candidate) => candidate.severity === severity).length;
  const refusals = results('refused') + of('refused');
  const warnings = options.filter(({ result, expected }) => result === 'no effect' && !expected).length + of('warning');
  const given = `${counted(results('works'), 'option')} of ${options.length} work`;
  const parts = [
    given,
    counted(results('no effect'), 'has no effect', 'have no effect'),
    counted(warnings, 'warning'),
    counted(refusals, 'refusal'),
  ];
  const [status, end] =
    refusals > 0
      ? ([2, 'the server does not start'] as const)
      : warnings > 0
        ? ([1, 'the server starts'] as const)
        : ([0, 'all is well'] as const);
  return { status, text: `${parts.join(', ')}: ${end}` };
}

const ORDER: readonly ExaminedOption['result'][] = ['refused', 'no effect', 'works'];
/** @internal */
export function checkPage(options: readonly ExaminedOption[], host: readonly Finding[]): string {
  const rows = ORDER.flatMap((result) => options.filter((option) => option.result === result)).map(
    ({ option, from, result, message }) => `  ${result.padEnd(10)} ${option} (${from})${message === null ? '' : `: ${message}`}`,
  );
  const found = host.map(({ what, severity, message }) => `  ${severity.padEnd(10)} ${what}: ${message}`);
  const lines = [...(rows.length === 0 ? [] : ['Options:', ...rows]), 'Host:', ...found, `Summary: ${summaryOf(options, host).text}`];
  return `${lines.map(printable).join('\n')}\n`;
}

export function addCheckCommand(program: Command): void {
  withSetup(
    program
      .command('check')
      .description(
        'Check what each option of the configuration does, and whether the server can start on this host: database, ports, files, certificates. ' +
          'Nothing is changed (exit status 0: all is well, 1: warnings, 2: the server does not start).',
      ),
  )
    .addOption(
      new Option('--roles <list>', `comma-separated roles that the server will run: ${ROLES.join(', ')} (default: as serve)`).argParser(
        parseRoles,
      ),
    )
    .option('--json', 'print the findings as JSON')
    .action(async ({ stateDir, roles: named, json, ...given }: CheckArguments) => {
      const files = configurationFiles(given);
      const configuration = readConfiguration(files, process.env, { stateDir: resolve(stateDir) });
      const { options } = configuration;
      const examined = examine(configuration);
      const found = await checkHost({ options, roles: rolesOf(named, options), stateDir, databaseUrl: databaseUrl(options) });
      const host = [
        ...(files.length === 0 ? [NO_FILE] : []),
        ...found.map((item) => ({ ...item, message: namingDatabaseUrl(item.message) })),
      ];
      const summary = summaryOf(examined, host);
      if (json) printJson({ options: examined, host, summary: summary.text, status: summary.status });
      else print(checkPage(examined, host));
      process.exitCode = summary.status;
    });
}
