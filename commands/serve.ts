/** `bloomery serve`: the server. */
import { resolve } from 'node:path';
import { Option, type Command } from 'commander';
import { ConfigurationError, readConfiguration } from '../config/load';
import { createLog } from '../server/logging';
import { createMetrics } from '../server/metrics';
import { ROLES, rolesOf, type Role } from '../server/roles';
import { startServer } from '../server/server';
import { checkOptions, checkUsers } from '../server/setting-checks';
import { sharesDatabaseOf } from '../server/settings';
import { schemeOf } from '../store/sql/connection';
import { keepCapabilities } from '../wire/child-processes';
import { print } from './output';
import { configurationFiles, databaseUrl, parseRoles, withSetup, type SetupArguments } from './setup';

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

/** Runs the server until a signal stops it. */
export async function serve({ stateDir, roles: named, logFormat, ...given }: ServeArguments): Promise<void> {
  const started = performance.now();
  const { options, warnings, refusals, problems } = readConfiguration(configurationFiles(given), process.env, {
    stateDir: resolve(stateDir),
  });
  const roles = rolesOf(named, options);
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
  process.on('SIGHUP', () => {
    reloads.forEach((reload) => reload());
    log.info('SIGHUP: the log file is opened again; certificates and policies are read again');
  });
  for (const warning of warnings) log.warn(warning);
  await keepCapabilities();
  const server = await startServer({
    options,
    roles,
    stateDir,
    log,
    measured: createMetrics({ process: true }),
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

export function addServeCommand(program: Command): void {
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
}
