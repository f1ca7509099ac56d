/** `bloomery import`: imports the nodes of an Ironic, from its database or its API. */
import type { Command } from 'commander';
import { INTERFACE_KINDS } from '../model/records';
import type { LoadedOptions } from '../config/options';
import { importIronic, type ImportSummary } from '../store/import/import';
import { migrate } from '../store/sql/schema';
import { onDatabase, printProgress } from './database';
import { ADDRESS_HELP, openArguments, readSecrets, type SourceArguments } from './import-source';
import { withSetup, type SetupArguments } from './setup';
import { print } from './output';
import { printable } from '../model/log';

interface ImportArguments extends SetupArguments, SourceArguments {
  readonly dryRun?: boolean;
}

function summaryText({ tables, refused, warnings }: ImportSummary, dryRun: boolean): string {
  const rows = tables.filter(({ imported, present }) => imported + present > 0);
  const lines = rows.map(
    ({ what, imported, present }) => `${String(imported).padStart(8)} ${what}${present > 0 ? ` (${present} were here already)` : ''}`,
  );
  return [
    dryRun ? 'This would be imported:' : 'Imported:',
    ...(rows.length === 0 ? ['       0'] : lines),
    ...(refused.length > 0 ? ['', 'Not imported:', ...refused.map((line) => `  ${printable(line)}`)] : []),
    ...(warnings.length > 0 ? ['', 'To do:', ...warnings.map((line) => `  ${printable(line)}`)] : []),
    '',
  ].join('\n');
}
/** The enabled hardware types and interfaces, from the options `enabled_…`. */
function enabledHere(options: LoadedOptions): Readonly<Record<string, readonly string[]>> {
  const values = new Map<string, unknown>(Object.entries(options));
  const kinds = ['hardware_types', ...INTERFACE_KINDS.map((kind) => `${kind}_interfaces`)];
  return Object.fromEntries(
    kinds.flatMap((kind) => {
      const names = values.get(`DEFAULT.enabled_${kind}`);
      return Array.isArray(names) ? [[kind, names as readonly string[]]] : [];
    }),
  );
}

async function importFrom(given: ImportArguments): Promise<void> {
  const { dryRun = false } = given;
  const secrets = readSecrets(given.secrets);
  const source = await openArguments(given);
  try {
    await onDatabase(given, { make: true }, async ({ connected: { db }, options, signal }) => {
      await migrate(db);
      const summary = await importIronic(db, source, { dryRun, secrets, enabled: enabledHere(options), signal });
      print(summaryText(summary, dryRun));
      if (!dryRun) printProgress('stop Ironic before a server here has these nodes: both would drive their BMCs');
      if (summary.refused.length > 0) process.exitCode = 1;
    });
  } finally {
    await source.close();
  }
}

export function addImportCommand(program: Command): void {
  withSetup(
    program
      .command('import')
      .description(
        'Import the nodes of an Ironic server, with all that belongs to them. Run it again to continue (exit status 1: not all was imported).',
      )
      .option('--ironic-config <file>', ADDRESS_HELP)
      .option(
        '--api [url]',
        "import from Ironic's API instead, with the OS_… variables of the openstack command (default URL: the one in Keystone's catalog)",
      )
      .option('--secrets <file>', 'YAML or JSON file with secrets that the API does not show: node → field → key → value')
      .option('--dry-run', 'only print what would be imported, and what would not'),
  ).action(importFrom);
}
