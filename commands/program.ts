/** The command line: `bloomery serve`, `bloomery config`, and the commands in commands/. */
import { resolve } from 'node:path';
import { Command, InvalidArgumentError, Option } from 'commander';
import { addCheckCommand } from './check/check';
import { addDatabaseCommands } from './db';
import { addDemoCommand } from './demo';
import { addExamples } from './examples';
import { addImportCommand } from './import';
import { addManualCommands } from './manual';
import { addMetal3Commands } from './metal3';
import { addPolicyCommands } from './policy';
import { addSimulateCommand } from './simulate';
import { addTokenCommands } from './token';
import { addWhyCommand } from './why';
import { configurationFiles, databaseUrl, namingDatabaseUrl, withSetup, type SetupArguments } from './setup';
import { configurationPage, sampleFile } from '../config/documents';

import { ConfigurationError, loadOptions, readConfiguration } from '../config/load';
import { checkHost } from './check/host-checks';
import { listenHttp } from '../server/http-listener';
import { createLog } from '../server/logging';
import { ROLES, startServer, type Role } from '../server/server';
import { createMetrics } from '../server/metrics';
import { checkOptions, checkUsers, resolveOptions, sharesDatabaseOf } from '../server/settings';
import { schemeOf } from '../store/sql/connection';
import { programVersion } from '../server/version';
import { keepCapabilities } from '../wire/child-processes';
import { print, printError } from './output';

function parseRoles(text: string): readonly Role[] {
  const names = text.split(',').map((name) => name.trim());
  const wrong = names.find((name) => !(ROLES as readonly string[]).includes(name));
  if (wrong !== undefined) throw new InvalidArgumentError(`"${wrong}" is not a role: choose from ${ROLES.join(', ')}.`);
  return names as Role[];
}

interface ServeArguments extends SetupArguments {
  /** Absent: all roles; the introspection service only if it is enabled. */
  readonly roles?: readonly Role[];
  readonly logFormat?: 'json' | 'text';
}

/** Throws a ConfigurationError with these problems and those of the checks. */
function refuse(problems: readonly string[], ...checks: readonly (() => unknown)[]): void {
  const more = checks.flatMap((check) => {
    try {
      check();
      return [];
    } catch (error) {
      return [(error as Error).message];
    }
  });
  const all = [...problems, ...more];
  if (all.length > 0) throw new ConfigurationError(all.join('\n'));
}

async function serve({ stateDir, roles: named, logFormat, ...given }: ServeArguments): Promise<void> {
  const started = performance.now();
  const { options, warnings, refusals, problems } = readConfiguration(configurationFiles(given), process.env, {
    stateDir: resolve(stateDir),
  });
  const roles = named ?? ROLES.filter((role) => role !== 'inspector' || options['inspector_service.enabled']);
  const url = databaseUrl(options);
  refuse(
    [...problems.values(), ...refusals],
    () => checkOptions(options, roles, sharesDatabaseOf(options, url), resolve(stateDir)),
    () => roles.some((role) => role === 'api' || role === 'inspector') && checkUsers(options),
    () => url !== undefined && schemeOf(url),
  );
  const { log, flush, reopen } = createLog(logFormat === undefined ? options : { ...options, 'DEFAULT.use_json': logFormat === 'json' });
  process.once('exit', flush);
  // For log rotation: logrotate has renamed the file.
  const reloads = [reopen];
  process.on('SIGHUP', () => reloads.forEach((reload) => reload()));
  for (const warning of warnings) log.warn(warning);
  await keepCapabilities();
  const server = await startServer({
    ...{ options, roles, stateDir, log, measured: createMetrics({ process: true }) },
    databaseUrl: process.env['DATABASE_URL'] || undefined,
  });
  reloads.push(() => server.reload());
  const places = [...server.listening, `database ${server.database}`];
  print(`bloomery: ready in ${Math.round(performance.now() - started)} ms: ${places.join(', ')}, roles ${roles.join(',')}`);
  const now = new AbortController();
  const signal = await new Promise<string>((told) => {
    let first = true;
    for (const name of ['SIGTERM', 'SIGINT', 'SIGUSR2'] as const)
      process.on(name, () => {
        // A second signal ends the stop at once.
        if (!first && name !== 'SIGUSR2') now.abort();
        first = false;
        told(name);
      });
  });
  log.info('stopping', { signal });
  await server.stop({ drain: signal === 'SIGUSR2', now: now.signal });
  flush();
  // A client that never reads must not keep the process alive; everything has stopped.
  process.exit(0);
}

/** Limits of the listeners of metal3's containers. Firmware may stop reading for two minutes. */
const HTTP_LIMITS = { connections: { inAll: 4096, ofSource: 2048 }, readTimeoutMs: 120_000 };
const HTTP_TIMEOUTS = { headersTimeout: 10_000, requestTimeout: 300_000, keepAliveTimeout: 10_000, connectionsCheckingInterval: 2500 };
const METAL3: Parameters<typeof addMetal3Commands>[1] = {
  serve,
  defaults: () => {
    const { options } = loadOptions([], process.env);
    const { log, flush } = createLog(options);
    return { options: resolveOptions(options, '/data', { api: 0, http: 0, https: null }), log, flush };
  },
  listen: async ({ host, port, what, tls, listener, upgrade }, log) => {
    const listening = await listenHttp({ options: HTTP_TIMEOUTS, limits: HTTP_LIMITS, address: { host, port }, what, tls, log });
    listening.answer(listener);
    if (upgrade) listening.upgrade(upgrade);
    return () => listening.close();
  },
};

/** @internal */
export function createProgram(): Command {
  // Commands inherit `exitOverride`. Wrong arguments end with the status 2, because 1 is a result of `why` and `policy check`.
  const program = new Command('bloomery')
    .description("A bare-metal server that answers OpenStack Ironic's API.")
    .version(programVersion())
    .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2));

  withSetup(program.command('serve').description('Run the server in the foreground, until SIGTERM.'))
    .option(
      '--roles <list>',
      `comma-separated roles to run: ${ROLES.join(', ')} (default: all; inspector only with [inspector_service]enabled)`,
      parseRoles,
    )
    .addOption(
      new Option('--log-format <format>', 'format of the log (default: [DEFAULT]use_json, else text on a terminal)').choices([
        'json',
        'text',
      ]),
    )
    .action(serve);

  addCheckCommand(program, ROLES, parseRoles, checkHost);
  addDatabaseCommands(program);
  addTokenCommands(program);
  addWhyCommand(program);
  addPolicyCommands(program);
  addSimulateCommand(program);
  addDemoCommand(program);
  addManualCommands(program);
  addImportCommand(program);
  addMetal3Commands(program, METAL3);

  program
    .command('version')
    .description('Print the version.')
    .action(() => print(programVersion()));

  program
    .command('config')
    .description('Print the configuration options.')
    .option('--sample', 'as a configuration file with all defaults (default)')
    .option('--docs', 'as the Markdown page of the documentation')
    .action(({ docs }: { docs?: boolean }) => {
      print(docs ? configurationPage() : sampleFile());
    });
  addExamples(program);
  return program;
}

/** Runs the command line, and turns errors into one line and a status. @param words the arguments; absent: process.argv */
export async function runProgram(words?: readonly string[]): Promise<void> {
  try {
    await (words === undefined ? createProgram().parseAsync() : createProgram().parseAsync(words, { from: 'user' }));
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    printError(`bloomery: ${namingDatabaseUrl(message)}`);
    process.exit(error instanceof ConfigurationError ? 2 : 1);
  }
}
