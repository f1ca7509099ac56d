/** The program `bloomery`. */
import { runProgram } from './program';

void runProgram();
