/**
 * Bounds the work of the rules of one inspection. A short rule can ask for much: fields that stand for the whole inventory, in a loop, or
 * for a value that grows with each iteration.
 */
import { createTurns } from '../../../wire/turns';
import { executionFailure } from './rule';

/** Characters that the fields of one text stand for. */
const MAX_TEXT = 4 << 20;
/** Characters that all fields of one inspection stand for. */
const MAX_TEXTS = 16 << 20;
/** Conditions and actions of one inspection, each iteration of a loop by itself. */
const MAX_STEPS = 10_000;
/** Milliseconds that rules take before other work has its turn. */
const TURN_MS = 10;
/** The rules of one inspection in each turn, however many inspections run. */
const nextTurn = createTurns(1);

export interface RuleBounds {
  /** @returns a function that counts the characters of one text. It throws the Fault of a failed inspection above a limit. */
  text(): (characters: number) => void;
  /** Before each condition and action. Lets other work run, if it is time. Throws the Fault of a failed inspection above a limit. */
  step(): Promise<void>;
}
export function ruleBounds(): RuleBounds {
  let [all, steps] = [0, 0];
  let began = performance.now();
  return {
    text: () => {
      let own = 0;
      return (characters) => {
        own += characters;
        all += characters;
        if (own > MAX_TEXT) throw executionFailure(`the fields of a text stand for more than ${MAX_TEXT} characters`);
        if (all > MAX_TEXTS) throw executionFailure(`the fields of the rules stand for more than ${MAX_TEXTS} characters`);
      };
    },
    step: async () => {
      if (++steps > MAX_STEPS) throw executionFailure(`the rules have more than ${MAX_STEPS} conditions and actions, with those of loops`);
      if (performance.now() - began < TURN_MS) return;
      await nextTurn();
      began = performance.now();
    },
  };
}
