/** The program `bloomery`: runs the command line, and turns errors into one line and a status. */
import { ConfigurationError } from './config/load';
import { createProgram } from './program';

createProgram()
  .parseAsync()
  .catch((error: unknown) => {
    const message = error instanceof Error ? error.message : String(error);
    // The variable wins over the option.
    const named = process.env['DATABASE_URL']
      ? message.replace(/^\[database\]connection(?= (?:must be|is not) )/, 'DATABASE_URL')
      : message;
    console.error(`bloomery: ${named}`);
    process.exit(error instanceof ConfigurationError ? 2 : 1);
  });
