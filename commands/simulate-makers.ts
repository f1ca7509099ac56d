/** The options of `bloomery simulate` for makers: personalities and habits of the BMCs. */
import { InvalidArgumentError } from 'commander';
import { suggestionFor } from '../config/suggestion';
import { HABITS, isHabit, type HabitName } from '../simulator/redfish/makers/habits';
import { PERSONALITIES, isPersonality, type MakerChoice, type PersonalityName } from '../simulator/redfish/makers/personalities';

const parser =
  <Name extends string>(kind: string, isKnown: (name: string) => name is Name, known: readonly string[]) =>
  (text: string, before: readonly Name[]): readonly Name[] => {
    const names = text.split(',').filter((name) => name !== '');
    const wrong = names.find((name) => !isKnown(name));
    if (wrong === undefined) return [...before, ...names.filter(isKnown)];
    const meant = suggestionFor(wrong, known);
    throw new InvalidArgumentError(
      `there is no ${kind} "${wrong.slice(0, 40)}"${meant === undefined ? `: bloomery simulate --help lists them` : `; did you mean ${meant}?`}`,
    );
  };
/** Parses NAME,NAME. */
export const parsePersonalities = parser<PersonalityName>('personality', isPersonality, Object.keys(PERSONALITIES));
/** Parses NAME,NAME. */
export const parseHabits = parser<HabitName>('habit', isHabit, Object.keys(HABITS));

/** The deviations of the machine with an index: the personalities take turns. Undefined: neither is given. */
export const makersOf =
  (personalities: readonly PersonalityName[], habits: readonly HabitName[]) =>
  (index: number): MakerChoice | undefined =>
    personalities.length === 0 && habits.length === 0
      ? undefined
      : { personality: personalities.length === 0 ? undefined : personalities[index % personalities.length], habits };

const rows = (table: Readonly<Record<string, string>>): string =>
  Object.entries(table)
    .map(([name, about]) => `  ${name.padEnd(28)} ${about}`)
    .join('\n');
const texts = <Row>(table: Readonly<Record<string, Row>>, text: (row: Row) => string): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(table).map(([name, row]) => [name, text(row)]));
export const MAKERS_HELP = `
Personalities, for example --personality dell-idrac9,hpe-ilo5:
${rows(texts<{ readonly product: string }>(PERSONALITIES, ({ product }) => product))}

Habits, for example --habits etag-changes-at-read:
${rows(texts<{ readonly about: string }>(HABITS, ({ about }) => about))}`;
