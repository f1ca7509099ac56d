/** `bloomery import`: brings the nodes of an Ironic here, from its database. */
import type { Command } from 'commander';
import { readFileSync } from 'node:fs';
import { parseIni } from '../config/ini';
import { importIronic, type ImportSummary } from '../store/import/import';
import { openSource } from '../store/import/source';
import { migrate } from '../store/sql/schema';
import { onDatabase, say } from './database';
import { withSetup, type SetupArguments } from './setup';

interface ImportArguments extends SetupArguments {
  readonly ironicConfig?: string;
  readonly dryRun?: boolean;
}
const VARIABLE = 'IRONIC_DATABASE_URL';

/** The URL of Ironic's database. Not an argument: other users of the host see those. */
function sourceUrl({ ironicConfig }: ImportArguments): string {
  const url =
    ironicConfig === undefined
      ? process.env[VARIABLE]
      : parseIni(readFileSync(ironicConfig, 'utf8')).findLast(({ section, key }) => section === 'database' && key === 'connection')?.value;
  if (url) return url;
  throw new Error(
    ironicConfig === undefined
      ? `name Ironic's database: --ironic-config FILE, or ${VARIABLE}`
      : `${ironicConfig} has no [database]connection`,
  );
}

function summaryText({ tables, refused, warnings }: ImportSummary, dryRun: boolean): string {
  const rows = tables.filter(({ imported, present }) => imported + present > 0);
  const lines = rows.map(
    ({ what, imported, present }) => `${String(imported).padStart(8)} ${what}${present > 0 ? ` (${present} were here already)` : ''}`,
  );
  return [
    dryRun ? 'This would be imported:' : 'Imported:',
    ...(rows.length === 0 ? ['       0'] : lines),
    ...(refused.length > 0 ? ['', 'Not imported:', ...refused.map((line) => `  ${line}`)] : []),
    ...(warnings.length > 0 ? ['', 'To do:', ...warnings.map((line) => `  ${line}`)] : []),
    '',
  ].join('\n');
}

async function importFrom(given: ImportArguments): Promise<void> {
  const { dryRun = false } = given;
  const source = await openSource(sourceUrl(given));
  try {
    if (!source.tables.has('nodes') || !source.tables.has('node_traits'))
      throw new Error('this is not the database of an Ironic: it has no table nodes');
    await onDatabase(given, { make: true }, async ({ connected: { db }, options, signal }) => {
      await migrate(db);
      const summary = await importIronic(db, source, { dryRun, hardwareTypes: options['DEFAULT.enabled_hardware_types'], signal });
      process.stdout.write(summaryText(summary, dryRun));
      if (!dryRun) say('stop Ironic before a server here has these nodes: both would drive their BMCs');
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
        'Bring the nodes of an Ironic here, with all that belongs to them. Run it again to continue (exit status 1: something did not come).',
      )
      .option(
        '--ironic-config <file>',
        `Ironic's configuration, whose [database]connection is read (default: the variable ${VARIABLE} has the URL)`,
      )
      .option('--dry-run', 'only say what would come, and what would not'),
  ).action(importFrom);
}
