/** Options that the commands share: the configuration files and the state directory. */
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { Option, type Command } from 'commander';
import { loadOptions } from '../config/load';
import type { Options } from '../config/options';

const defaultStateDir = (): string =>
  process.getuid?.() === 0 ? '/var/lib/bloomery' : join(process.env['XDG_STATE_HOME'] ?? join(homedir(), '.local/state'), 'bloomery');

const append = (file: string, before: readonly string[]): readonly string[] => [...before, file];

export interface SetupArguments {
  readonly configFile: readonly string[];
  readonly stateDir: string;
}
/** Adds the options that select the server. */
export const withSetup = (command: Command): Command =>
  command
    .addOption(
      new Option('--config-file <file>', 'configuration file in the format of ironic.conf; may be repeated')
        .argParser(append)
        .default([], '/etc/ironic/ironic.conf if it exists'),
    )
    .option('--state-dir <folder>', 'folder of the embedded database and the caches', defaultStateDir());

/** Throws ConfigurationError. */
export function readOptions({ configFile }: SetupArguments): { readonly options: Options; readonly warnings: readonly string[] } {
  const files = configFile.length > 0 ? configFile : ['/etc/ironic/ironic.conf'].filter((file) => existsSync(file));
  return loadOptions(files, process.env);
}

/** DATABASE_URL has precedence over [database]connection. Undefined: the embedded database. */
export const databaseUrl = (options: Options): string | undefined =>
  process.env['DATABASE_URL'] || options['database.connection'] || undefined;
