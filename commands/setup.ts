/** Options that the commands share: the configuration files, the state directory and the roles. */
import { existsSync, readdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { InvalidArgumentError, Option, type Command } from 'commander';
import { ConfigurationError, loadOptions, type Loaded } from '../config/load';
import type { LoadedOptions } from '../config/options';
import { ROLES, type Role } from '../server/roles';

const defaultStateDir = (): string =>
  process.getuid?.() === 0 ? '/var/lib/bloomery' : join(process.env['XDG_STATE_HOME'] || join(homedir(), '.local/state'), 'bloomery');

const append = (file: string, before: readonly string[]): readonly string[] => [...before, file];

export interface SetupArguments {
  readonly configFile: readonly string[];
  readonly configDir: readonly string[];
  readonly stateDir: string;
}
/** Adds the option of configuration files. */
export const withConfigFiles = (command: Command): Command =>
  command
    .addOption(
      new Option('--config-file <file>', 'configuration file in the format of ironic.conf; may be repeated')
        .argParser(append)
        .default([], '/etc/ironic/ironic.conf if it exists'),
    )
    .addOption(
      new Option('--config-dir <folder>', 'folder of *.conf files, read by name after those of --config-file; may be repeated')
        .argParser(append)
        .default([], 'none'),
    );
/** Adds the options that select the server. */
export const withSetup = (command: Command): Command =>
  withConfigFiles(command).addOption(
    new Option('--state-dir <folder>', 'folder of the embedded database and the caches').default(
      defaultStateDir(),
      '/var/lib/bloomery as root, else ~/.local/state/bloomery',
    ),
  );

/** Roles, as an argument of commander. */
export function parseRoles(text: string): readonly Role[] {
  const names = text.split(',').map((name) => name.trim());
  const wrong = names.find((name) => !(ROLES as readonly string[]).includes(name));
  if (wrong !== undefined) throw new InvalidArgumentError(`"${wrong}" is not a role: choose from ${ROLES.join(', ')}.`);
  return names as Role[];
}

/** The files to read, in order. */
export function configurationFiles({ configFile, configDir }: Pick<SetupArguments, 'configFile' | 'configDir'>): readonly string[] {
  const named = configFile.length + configDir.length > 0;
  return named ? [...configFile, ...configDir.flatMap(configurationsIn)] : ['/etc/ironic/ironic.conf'].filter((file) => existsSync(file));
}
/** Throws ConfigurationError. */
export const readOptions = (given: Pick<SetupArguments, 'configFile' | 'configDir'>): Loaded =>
  loadOptions(configurationFiles(given), process.env);

/** As in oslo.config: the files *.conf of the folder itself, by name. */
function configurationsIn(folder: string): readonly string[] {
  try {
    const names = readdirSync(folder).filter((name) => name.endsWith('.conf') && !name.startsWith('.'));
    return names.sort().map((name) => join(folder, name));
  } catch (error) {
    throw new ConfigurationError(`--config-dir: cannot read ${folder}: ${(error as Error).message}`);
  }
}

/** DATABASE_URL wins over [database]connection; undefined: the embedded database. */
export const databaseUrl = (options: LoadedOptions): string | undefined =>
  process.env['DATABASE_URL'] || options['database.connection'] || undefined;
/** If the URL of the database comes from DATABASE_URL, the message names that variable instead of the option. */
export const namingDatabaseUrl = (message: string): string =>
  process.env['DATABASE_URL'] ? message.replace(/^\[database\]connection(?= (?:must be|is not) )/m, 'DATABASE_URL') : message;
