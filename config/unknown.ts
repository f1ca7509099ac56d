/** The warnings about options of files that have no effect here: one for each section and reason. */
import { formatOptionName } from './names';
import { OPTIONS } from './options';
import { suggestionFor } from './suggestion';
import { withoutEffect } from './without-effect';

interface Place {
  /** `section.name`. */
  readonly key: string;
  /** File and line. */
  readonly from: string;
}
const KNOWN = OPTIONS.map(({ section, name }) => `${section}.${name}`);

/** Why an option that is not in `OPTIONS` has no effect; and, for a misspelt one, which may be meant. */
export function reasonFor(key: string): string {
  const because = withoutEffect(key);
  if (because !== undefined) return because;
  const meant = suggestionFor(key, KNOWN);
  return meant === undefined ? 'it is not known here' : `did you mean ${formatOptionName(meant)}?`;
}

/** A warning names at most this many options, and counts the others. */
const MAX_NAMED = 20;
/** At most this many warnings; the last one counts the other options. */
const MAX_WARNINGS = 50;
const listed = (places: readonly Place[]): string => {
  const named = places.slice(0, MAX_NAMED).map(({ key, from }) => `${formatOptionName(key)} (${from})`);
  return [...named, ...(places.length > MAX_NAMED ? [`and ${places.length - MAX_NAMED} more`] : [])].join(', ');
};

export function warningsOf(unknown: readonly Place[]): readonly string[] {
  const groups = new Map<string, { readonly because: string; readonly places: Place[] }>();
  for (const place of unknown) {
    const because = reasonFor(place.key);
    const group = `${place.key.slice(0, place.key.indexOf('.'))} ${because}`;
    const found = groups.get(group) ?? { because, places: [] };
    found.places.push(place);
    groups.set(group, found);
  }
  const all = [...groups.values()];
  const more = all.slice(MAX_WARNINGS).reduce((sum, { places }) => sum + places.length, 0);
  return [
    ...all.slice(0, MAX_WARNINGS).map(({ because, places }) => `without effect: ${listed(places)}: ${because}`),
    ...(more > 0 ? [`without effect: ${more} more options, which bloomery check lists`] : []),
  ];
}
