/** Options that the commands share: the configuration files and the state directory. */
import { existsSync, readdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { Option, type Command } from 'commander';
import { ConfigurationError, loadOptions, type Loaded } from '../config/load';
import type { LoadedOptions } from '../config/options';

const defaultStateDir = (): string =>
  process.getuid?.() === 0 ? '/var/lib/bloomery' : join(process.env['XDG_STATE_HOME'] ?? join(homedir(), '.local/state'), 'bloomery');

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
      new Option('--config-dir <folder>', 'folder whose files *.conf are read after these, by name; may be repeated')
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

/** Throws ConfigurationError. */
export function readOptions({ configFile, configDir }: Pick<SetupArguments, 'configFile' | 'configDir'>): Loaded {
  const named = configFile.length + configDir.length > 0;
  const files = named
    ? [...configFile, ...configDir.flatMap(configurationsIn)]
    : ['/etc/ironic/ironic.conf'].filter((file) => existsSync(file));
  return loadOptions(files, process.env);
}

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
