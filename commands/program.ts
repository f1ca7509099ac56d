/** The command line: all commands, and what their errors become. */
import { Command } from 'commander';
import { ConfigurationError } from '../config/load';
import { programVersion } from '../server/version';
import { addCheckCommand } from './check/check';
import { addConfigCommand } from './config';
import { addDatabaseCommands } from './db';
import { addDefaultConfigCommands } from './default-config';
import { addDemoCommand } from './demo';
import { addErasureCommands } from './disks/erasures';
import { addSnapshotCommands } from './disks/snapshot';
import { addExamples } from './examples';
import { addConsoleCommands } from './nodes/console-log';
import { addHealthCommand } from './nodes/health';
import { addImportCommand } from './import';
import { addManualCommands } from './manual';
import { addMetal3Commands } from './metal3/programs';
import { print, printError } from './output';
import { addOutOfServiceCommand } from './nodes/out-of-service';
import { addPolicyCommands } from './policy';
import { addServeCommand } from './serve';
import { namingDatabaseUrl } from './setup';
import { addProbeCommand } from './probe/probe';
import { addSimulateCommand } from './simulate';
import { addResidentCommands } from './resident';
import { addTokenCommands } from './token';
import { addStepsCommand } from './steps';
import { addWhyCommand } from './why';

const addVersionCommand = (program: Command): void =>
  void program
    .command('version')
    .description('Print the version.')
    .action(() => print(programVersion()));

/** In the order of the help. */
const COMMANDS: readonly ((program: Command) => void)[] = [
  addServeCommand,
  addCheckCommand,
  addDatabaseCommands,
  addTokenCommands,
  addWhyCommand,
  addStepsCommand,
  addDefaultConfigCommands,
  addResidentCommands,
  addSnapshotCommands,
  addErasureCommands,
  addOutOfServiceCommand,
  addHealthCommand,
  addConsoleCommands,
  addPolicyCommands,
  addProbeCommand,
  addSimulateCommand,
  addDemoCommand,
  addManualCommands,
  addImportCommand,
  addMetal3Commands,
  addVersionCommand,
  addConfigCommand,
];

/** @internal */
export function createProgram(): Command {
  // Commands inherit `exitOverride`. Wrong arguments end with the status 2, because 1 is a result of `why` and `policy check`.
  const program = new Command('bloomery')
    .description("A bare-metal server that answers OpenStack Ironic's API.")
    .version(programVersion())
    .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2));
  for (const add of COMMANDS) add(program);
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
