/** The program `bloomery`. */
import { runProgram } from './commands/program';

void runProgram();
