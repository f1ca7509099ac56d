/** `bloomery config`: the table of options, as a file and as a page. */
import type { Command } from 'commander';
import { configurationPage, sampleFile } from '../config/documents';
import { print } from './output';

export function addConfigCommand(program: Command): void {
  program
    .command('config')
    .description('Print the configuration options.')
    .option('--sample', 'as a configuration file with all defaults (default)')
    .option('--docs', 'as the Markdown page of the documentation')
    .action(({ docs }: { docs?: boolean }) => {
      print(docs ? configurationPage() : sampleFile());
    });
}
