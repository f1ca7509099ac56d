/** Failures of a Redfish service as one kind of Error, with the service's own messages. */
import { isObject } from '../../model/json';
import { shortened } from '../../model/text';
import { member, textOf, textsOf } from './json';

/**
 * `unreachable` nothing was sent; `untrusted` nothing was sent, because of the service's certificate; `interrupted` no complete response,
 * so the service may have processed the request; `status` an error status; `protocol` the response is not valid Redfish; `task` an
 * asynchronous task failed or took too long; `unkept` the service accepted a change and does not show it; `closed` the client is closed.
 */
type RedfishFailure = 'unreachable' | 'untrusted' | 'interrupted' | 'status' | 'protocol' | 'task' | 'unkept' | 'closed';
export class RedfishError extends Error {
  override readonly name = 'RedfishError';
  readonly status?: number;
  /** Message identifiers of an error response, such as `Base.1.8.ActionParameterValueConflict`. */
  readonly messageIds: readonly string[];
  /** Milliseconds after which the service wants a repetition (Retry-After). */
  readonly retryAfterMs?: number;
  /** The response is a page for people: some services show their log-in page when a session has ended. */
  readonly isPage: boolean;
  constructor(
    readonly kind: RedfishFailure,
    message: string,
    more: {
      readonly status?: number | undefined;
      readonly messageIds?: readonly string[] | undefined;
      readonly retryAfterMs?: number | undefined;
      readonly isPage?: boolean | undefined;
      readonly cause?: unknown;
    } = {},
  ) {
    super(message, more.cause === undefined ? {} : { cause: more.cause });
    this.messageIds = more.messageIds ?? [];
    this.isPage = more.isPage ?? false;
    if (more.status !== undefined) this.status = more.status;
    if (more.retryAfterMs !== undefined) this.retryAfterMs = more.retryAfterMs;
  }
}
/** Whether it is an error response, optionally with one of these statuses. */
export const isStatus = (error: unknown, ...statuses: readonly number[]): error is RedfishError =>
  error instanceof RedfishError && error.kind === 'status' && (statuses.length === 0 || statuses.includes(error.status ?? 0));
/** The result of the work; undefined: the service answers with this status. */
export const unlessStatus = <T>(status: number, work: Promise<T>): Promise<T | undefined> =>
  work.catch((error: unknown) => {
    if (isStatus(error, status)) return undefined;
    throw error;
  });
/** Whether an error response has the message of this name, in any registry and version: `PropertyUnknown`. */
export const hasMessage = (error: unknown, name: string): boolean =>
  error instanceof RedfishError && error.messageIds.some((id) => id === name || id.endsWith(`.${name}`));

/** Secrets of a request that a service may quote in its messages. */
export interface Echoes {
  readonly pattern: RegExp;
  /** The secrets as they are written in JSON. */
  readonly written: readonly string[];
}
/** Characters. Shorter secrets are not masked, since they occur in messages by chance. */
const SHORTEST_ECHO = 4;
/** Undefined: there is no secret. */
export function echoesOf(secrets: readonly (string | undefined)[]): Echoes | undefined {
  const texts = secrets.filter((secret) => secret !== undefined && secret.length >= SHORTEST_ECHO) as string[];
  if (texts.length === 0) return undefined;
  const escaped = texts
    .sort((left, right) => right.length - left.length)
    .map((text) => text.replace(/\W/gu, (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`));
  return { pattern: new RegExp(escaped.join('|'), 'gu'), written: texts.map((text) => JSON.stringify(text).slice(1, -1)) };
}
/** Members with texts for people. */
const MESSAGE = /^(?:code|message|messageargs|messageid|relatedproperties|resolution)$/i;
/** A copy whose messages have stars in place of the secrets. */
export function withoutEchoes(value: unknown, pattern: RegExp, isMessage = false): unknown {
  if (typeof value === 'string') return isMessage ? value.replace(pattern, '******') : value;
  if (Array.isArray(value)) return value.map((item) => withoutEchoes(item, pattern, isMessage));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => {
      const isText = MESSAGE.test(key) || (key === 'error' && typeof item === 'string');
      return [key, withoutEchoes(item, pattern, isMessage || isText)];
    }),
  );
}

/** Characters of a service's text in a message. */
const MAX_CHARACTERS = 1000;
/** Messages that are read of one response. */
const MAX_MESSAGES = 20;
/** Characters of a name that a message tells. */
const MAX_NAME = 200;

/** A message of ExtendedInfo, of a Task or of a Bios resource. */
interface RedfishMessage {
  /** The registry key. */
  readonly id: string | undefined;
  readonly text: string | undefined;
  readonly args: readonly string[];
}
const shortTextOf = (value: unknown): string | undefined => {
  const text = textOf(value);
  return text && shortened(text, MAX_CHARACTERS);
};
/** A list, or the one member of a list that was left out. */
const manyOf = (value: unknown): readonly unknown[] => (typeof value === 'object' && value !== null ? [value].flat() : []);

/** The messages of ExtendedInfo or of a Task: text and registry key, as far as present. */
export function messagesOf(list: unknown): readonly RedfishMessage[] {
  return manyOf(list)
    .slice(0, MAX_MESSAGES)
    .map((info) => ({
      id: textOf(member(info, 'MessageId'))?.slice(0, MAX_CHARACTERS),
      text: shortTextOf(member(info, 'Message')),
      args: (textsOf(member(info, 'MessageArgs')) ?? []).slice(0, MAX_MESSAGES).map((value) => value.slice(0, MAX_CHARACTERS)),
    }));
}
/** The messages that an answer of success has beside its properties: what the service did not do, for instance (DSP0266 §9.5.11.2). */
export const remarksOf = (body: unknown): readonly RedfishMessage[] =>
  messagesOf([...extendedOf(member(body, 'error')), ...extendedOf(body)]);
/** The text of a message. Names that only its arguments or its related properties tell follow in brackets. */
function wordsOf(info: unknown): string | undefined {
  const text = shortTextOf(member(info, 'Message')) ?? shortTextOf(member(info, 'MessageId'));
  const names = [member(info, 'MessageArgs'), member(info, 'RelatedProperties')]
    .flatMap((list) => textsOf(list) ?? [])
    .slice(0, MAX_MESSAGES)
    .map((name) => name.replace(/^#?\//, '').slice(0, MAX_NAME))
    .filter((name, index, all) => name !== '' && text?.includes(name) !== true && all.indexOf(name) === index);
  if (names.length === 0) return text;
  return `${text === undefined ? '' : `${text} `}(${names.join(', ')})`;
}

const EXTENDED = '@Message.ExtendedInfo';
/** The ExtendedInfo of an object (DSP0266 §9.5.11.2): its own, and that beside its properties, which some services send instead. */
function extendedOf(value: unknown): readonly unknown[] {
  if (!isObject(value)) return [];
  const properties = Object.keys(value).filter((name) => name !== EXTENDED && name.endsWith(EXTENDED));
  return [
    ...manyOf(member(value, EXTENDED)),
    ...properties.slice(0, MAX_MESSAGES).flatMap((name) => {
      const about = { RelatedProperties: [name.slice(0, -EXTENDED.length)] };
      return manyOf(member(value, name)).map((info) =>
        textsOf(member(info, 'RelatedProperties')) ? info : { ...(info as object), ...about },
      );
    }),
  ];
}
/**
 * Code and message of an error response, with the messages of its ExtendedInfo (DSP0266 §8.6). Services also send ExtendedInfo as one object,
 * without `error` around it, or beside a property; and `error` as a text.
 */
export function errorWords(body: unknown): { readonly words: string; readonly messageIds: readonly string[] } {
  const error = member(body, 'error');
  const extended = [...extendedOf(error), ...extendedOf(body)].slice(0, MAX_MESSAGES);
  const [code, message] = [
    textOf(member(error, 'code')),
    textOf(member(error, 'message')) ?? textOf(error) ?? textOf(member(body, 'message')),
  ];
  const more = extended
    .map(wordsOf)
    .filter((candidate) => candidate !== undefined && candidate !== message)
    .join(' ');
  const main = [code, message].filter((candidate) => candidate !== undefined).join(': ');
  const words = main === '' ? more || 'unknown error' : `${main}${more === '' ? '' : ` Extended information: ${more}`}`;
  const ids = [code, ...extended.map((info) => textOf(member(info, 'MessageId')))];
  return {
    words: shortened(words, MAX_CHARACTERS),
    messageIds: ids.flatMap((id) => (id === undefined ? [] : [id.slice(0, MAX_CHARACTERS)])),
  };
}
