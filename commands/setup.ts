/** Options that the commands share: the configuration files and the state directory. */
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { Option, type Command } from 'commander';
import { loadOptions, type Loaded } from '../config/load';
import type { LoadedOptions } from '../config/options';

const defaultStateDir = (): string =>
  process.getuid?.() === 0 ? '/var/lib/bloomery' : join(process.env['XDG_STATE_HOME'] ?? join(homedir(), '.local/state'), 'bloomery');

const append = (file: string, before: readonly string[]): readonly string[] => [...before, file];

export interface SetupArguments {
  readonly configFile: readonly string[];
  readonly stateDir: string;
}
/** Adds the option of configuration files. */
export const withConfigFiles = (command: Command): Command =>
  command.addOption(
    new Option('--config-file <file>', 'configuration file in the format of ironic.conf; may be repeated')
      .argParser(append)
      .default([], '/etc/ironic/ironic.conf if it exists'),
  );
/** Adds the options that select the server. */
export const withSetup = (command: Command): Command =>
  withConfigFiles(command).addOption(
    new Option('--state-dir <folder>', 'folder of the embedded database and the caches').default(
      defaultStateDir(),
      '/var/lib/bloomery as root, else ~/.local/state/bloomery',
    ),
  );

/** The files to read, in order. */
export const configurationFiles = ({ configFile }: Pick<SetupArguments, 'configFile'>): readonly string[] =>
  configFile.length > 0 ? configFile : ['/etc/ironic/ironic.conf'].filter((file) => existsSync(file));
/** Throws ConfigurationError. */
export const readOptions = (given: Pick<SetupArguments, 'configFile'>): Loaded => loadOptions(configurationFiles(given), process.env);

/** DATABASE_URL wins over [database]connection; undefined: the embedded database. */
export const databaseUrl = (options: LoadedOptions): string | undefined =>
  process.env['DATABASE_URL'] || options['database.connection'] || undefined;
