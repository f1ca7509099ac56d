/** Changes that are read back: some services answer with success and keep nothing. */
import { isObject } from '../../model/json';
import { RedfishError, remarksOf } from './errors';
import { member } from './json';
import { patchPlaced, type RedfishResource, type SendRedfishRequest } from './resources';
import { followTask, isUnseen, startedTask } from './tasks';
import type { RedfishAnswer } from './transport';

/** A property that does not have the value that was written. */
export interface Unkept {
  /** Its name with those of the objects around it: `Boot/BootSourceOverrideTarget`. */
  readonly property: string;
  readonly asked: unknown;
  readonly found: unknown;
}

/** Some services show numbers and truth as texts, and nothing as an empty text. */
const written = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));
const isSame = (asked: unknown, found: unknown): boolean =>
  asked === null ? found === '' || found === null : written(asked) === written(found);
/** The single values that were written, with their names. Annotations (`@Redfish.…`) are not shown again. */
function valuesOf(asked: object, names: readonly string[] = []): readonly (readonly [readonly string[], unknown])[] {
  return Object.entries(asked)
    .filter(([name, value]) => !name.includes('@') && value !== undefined)
    .flatMap(([name, value]) => (isObject(value) ? valuesOf(value, [...names, name]) : [[[...names, name], value] as const]));
}
/**
 * The written values that are not shown. A property that no body shows is left out: the service does not tell it.
 * @param bodies the resources that may show a value; one of them is enough
 */
const unkeptOf = (asked: object, bodies: readonly unknown[]): readonly Unkept[] =>
  valuesOf(asked).flatMap(([names, value]) => {
    const shown = bodies.map((body) => member(body, ...names)).filter((found) => found !== undefined);
    const isKept = shown.length === 0 || shown.some((found) => isSame(value, found));
    return isKept ? [] : [{ property: names.join('/'), asked: value, found: shown[0] }];
  });
/** Whether a body shows all written values as they were written. */
const showsAll = (asked: object, body: unknown): boolean =>
  valuesOf(asked).every(([names, value]) => {
    const found = member(body, ...names);
    return found !== undefined && isSame(value, found);
  });

/** Milliseconds before each read of a change that is not shown yet. */
const PAUSES: readonly number[] = [0, 2000, 5000];
/** The same for a change that goes on and has no task. */
const UNSEEN_PAUSES: readonly number[] = [...PAUSES, 10_000, 20_000, 30_000];
/** Milliseconds for the task of a change. */
const TASK_MS = 120_000;

interface ReadBack {
  readonly clock: { now(): number; sleep(milliseconds: number, signal?: AbortSignal): Promise<void> };
  readonly signal: AbortSignal;
  /** The change may be shown later, and the caller waits for that: it is read only once. */
  readonly isLater?: boolean;
  /** The change is applied when the machine starts: its task or job ends only then. */
  readonly isForNextStart?: boolean;
  /** Further paths that may show the change. They are read only if the changed resource does not. */
  readonly alsoAt?: readonly string[];
  /** Whether a value that is not the written one means the same. */
  readonly tolerates?: (unkept: Unkept) => boolean;
}
interface KeptChange {
  /** The answer to the first request. */
  readonly answer: RedfishAnswer;
  /** Empty: the service shows the change, or does not tell it. */
  readonly unkept: readonly Unkept[];
  /** What the service said beside its success. */
  readonly remarks: string;
  /** The resource after the change; undefined: it was not read again, or could not be read. */
  readonly shown?: unknown;
}

/** The values that are not shown, also after a while. */
async function readBack(
  ask: SendRedfishRequest,
  path: string,
  body: object,
  { clock, signal, alsoAt = [], tolerates }: ReadBack,
  pauses: readonly number[],
): Promise<Pick<KeptChange, 'unkept' | 'shown'>> {
  // What cannot be read is not told.
  const shown = (place: string): Promise<unknown> =>
    ask('GET', place).then(
      (answer) => answer.body,
      (error: unknown) => {
        if (error instanceof RedfishError && error.kind !== 'closed') return undefined;
        throw error;
      },
    );
  let seen: Pick<KeptChange, 'unkept' | 'shown'> = { unkept: [] };
  for (const pause of pauses) {
    if (pause > 0) await clock.sleep(pause, signal);
    const bodies = [await shown(path)];
    const lost = (): readonly Unkept[] => unkeptOf(body, bodies).filter((value) => !tolerates?.(value));
    for (const place of alsoAt) if (lost().length > 0) bodies.push(await shown(place));
    seen = { unkept: lost(), shown: bodies[0] };
    if (seen.unkept.length === 0) break;
  }
  return seen;
}

/**
 * Changes a resource as `patchResource`, and reads it anew unless the answer shows the change. A change that is not kept is sent once more, with
 * `If-Match: *`: AMI drops changes without If-Match, and answers with success.
 * @throws RedfishError of the first request, or of its task
 */
export async function patchKept(ask: SendRedfishRequest, resource: RedfishResource, body: object, options: ReadBack): Promise<KeptChange> {
  const { answer, path } = await patchPlaced(ask, resource, body);
  const remarks = remarksOf(answer.body)
    .flatMap(({ id, text }) => (/\bSuccess$/i.test(id ?? '') ? [] : (text ?? id ?? [])))
    .join(' ');
  if (showsAll(body, answer.body)) return { answer, unkept: [], remarks, shown: answer.body };
  if (startedTask(answer) !== undefined && !options.isForNextStart) await followTask(ask, answer, { ...options, timeoutMs: TASK_MS });
  const isElsewhere = path !== resource.path;
  const look = (pauses: readonly number[]): Promise<Pick<KeptChange, 'unkept' | 'shown'>> =>
    readBack(ask, path, body, { ...options, alsoAt: [...(isElsewhere ? [resource.path] : []), ...(options.alsoAt ?? [])] }, pauses);
  const pauses = options.isLater ? [0] : PAUSES;
  const first = await look(isUnseen(answer) && !options.isLater ? UNSEEN_PAUSES : pauses);
  if (first.unkept.length === 0) return { ...first, answer, remarks };
  try {
    await ask('PATCH', path, { body, headers: { 'if-match': '*' } });
  } catch (error) {
    if (error instanceof RedfishError && error.kind === 'status') return { ...first, answer, remarks };
    throw error;
  }
  return { ...(await look(pauses)), answer, remarks };
}

/** Characters of a value in a message. */
const MAX_VALUE = 200;
const shownValue = (value: unknown): string => (JSON.stringify(value) ?? 'nothing').slice(0, MAX_VALUE);
/** The error of a change that the service accepted and does not keep. @param maker as the service names it */
export function unkeptError(
  path: string,
  maker: string | undefined,
  { unkept, remarks }: Pick<KeptChange, 'unkept' | 'remarks'>,
): RedfishError {
  const values = unkept.map(({ property, asked, found }) => `${property} was set to ${shownValue(asked)} and is ${shownValue(found)}`);
  const said = remarks === '' ? '' : ` The service said: ${remarks}`;
  return new RedfishError(
    'unkept',
    `the change of ${path} is accepted, not kept by the service (${maker ?? 'unknown maker'}): ${values.join('; ')}.${said}`,
  );
}
