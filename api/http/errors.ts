/** Bodies of error responses. Ironic has several formats. */
import { Fault } from '../../model/errors';

/** An error of the router: unknown path, wrong method, bad identifier in the path, version out of range. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly description = '',
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(description);
  }
}
/** A request whose body is refused: too large, too deep, wrongly encoded, from a page of another origin, or one of too many at once. */
export class Unread extends Error {
  constructor(
    readonly status: number,
    readonly sentence: string,
  ) {
    super(sentence);
  }
}
/** Authentication failed (401), or the credentials could not be parsed (400) or checked (503). */
export class Unauthenticated extends Error {
  constructor(
    readonly status: number,
    readonly sentence: string,
    /** A user of the server whose password was wrong, for the audit log. */
    readonly claimedUser?: string,
    /** Replaces the default response, which is that of http_basic. */
    readonly response?: {
      readonly body: object;
      /** The value of WWW-Authenticate. */
      readonly challenge?: string;
    },
  ) {
    super(sentence);
  }
}
/** The caller does not accept JSON. */
export class Unacceptable extends Error {}

const TITLES: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  404: 'Not Found',
  405: 'Method Not Allowed',
  406: 'Not Acceptable',
};
const wrapped = (inner: object): object => ({ error_message: JSON.stringify(inner) });

/** Status, body and headers of the response to an error. An unexpected error is a 500 without details. */
export function explain(error: unknown): {
  readonly status: number;
  readonly body: object;
  readonly headers: Readonly<Record<string, string>>;
  readonly known: boolean;
} {
  if (error instanceof Refusal) {
    const body = wrapped({ code: error.status, title: TITLES[error.status] ?? '', description: error.description });
    return { status: error.status, body, headers: error.headers, known: true };
  }
  if (error instanceof Unread)
    return { status: error.status, body: { faultcode: 'Client', faultstring: error.sentence }, headers: {}, known: true };
  if (error instanceof Unauthenticated) {
    const {
      status,
      sentence,
      response = { body: { error: { message: sentence, code: status } }, challenge: 'Basic realm="Baremetal API"' },
    } = error;
    const headers: Record<string, string> = status === 401 && response.challenge ? { 'WWW-Authenticate': response.challenge } : {};
    return { status, body: response.body, headers, known: true };
  }
  if (error instanceof Unacceptable) {
    const accept = error.message;
    const sentence = `The resource could not be generated that was acceptable to your browser (content of type ${accept}. \n\n `;
    return { status: 406, body: { error_message: `406 Not Acceptable\n\n${sentence}` }, headers: {}, known: true };
  }
  const known = error instanceof Fault;
  const status = known ? error.status : 500;
  const faultstring = known ? error.message : 'An unexpected error occurred. The log of the server has the details.';
  return { status, body: wrapped({ faultcode: status < 500 ? 'Client' : 'Server', faultstring, debuginfo: null }), headers: {}, known };
}
