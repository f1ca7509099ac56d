/** Every operation as a quarter of the callers. whole-sweep.test.ts tries all. */
import { sample } from './sweep';

sample.of = 4;
