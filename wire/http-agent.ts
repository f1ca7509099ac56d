/** HTTP connections to other programs. Each user says how answers are bounded; no other file makes an Agent of undici. */
import { Agent, buildConnector, request as undiciRequest, type Dispatcher } from 'undici';
import { unlessAborted } from './timeout-signal';

/** Milliseconds; undici's own values. The signal of a request usually ends it earlier. */
const SILENCE_MS = 300_000;

interface AgentBounds {
  /** How to connect, and for how long at most; or a function that does it, with a limit of its own. */
  readonly connect: (buildConnector.BuildOptions & { readonly timeout: number }) | buildConnector.connector;
  /** Most bytes of an answer's body. `streamed`: its reader takes it in pieces, and bounds it. */
  readonly bodyBytes: number | 'streamed';
  /** Most connections to one server; further requests wait. Absent: as many as there are requests at a time. */
  readonly connections?: number;
  /** Milliseconds until the head of an answer; 0: the signal of the request bounds them. */
  readonly headersMs?: number;
  /** Milliseconds between two pieces of a body; 0: the signal of the request bounds them. */
  readonly bodyMs?: number;
  /** Milliseconds for which a connection without requests stays open. */
  readonly keepAliveMs?: number;
  /** False: each request has a connection of its own. */
  readonly reuses?: boolean;
}
/** The options of undici for an Agent or a ProxyAgent. */
export const agentOptions = ({
  connect,
  bodyBytes,
  connections,
  headersMs = SILENCE_MS,
  bodyMs = SILENCE_MS,
  keepAliveMs,
  reuses = true,
}: AgentBounds): Agent.Options => ({
  connect,
  headersTimeout: headersMs,
  bodyTimeout: bodyMs,
  ...(bodyBytes === 'streamed' ? {} : { maxResponseSize: bodyBytes }),
  ...(connections === undefined ? {} : { connections }),
  ...(keepAliveMs === undefined ? {} : { keepAliveTimeout: keepAliveMs, keepAliveMaxTimeout: keepAliveMs }),
  ...(reuses ? {} : { pipelining: 0 }),
});
/** The user ends it: `destroy`. */
export const createAgent = (bounds: AgentBounds): Agent => new Agent(agentOptions(bounds));

type Response = Pick<Dispatcher.ResponseData, 'statusCode' | 'headers' | 'body'>;
/** undici notices that a request is aborted only when its connection is made, or cannot be made: a silent TLS server delays that. */
export const request = async (url: string | URL, options: NonNullable<Parameters<typeof undiciRequest>[1]>): Promise<Response> =>
  unlessAborted(undiciRequest(url, options), options.signal as AbortSignal | undefined);
/** As `request`, with the origin and the path apart. */
export const requestOn = async (dispatcher: Dispatcher, options: Dispatcher.RequestOptions): Promise<Response> =>
  unlessAborted(dispatcher.request(options), options.signal as AbortSignal | undefined);

/** A connector whose TLS is in files. They are read for each connection, so that changes count at once. */
export function connectorWithFiles(
  options: buildConnector.BuildOptions,
  read: () => Promise<buildConnector.BuildOptions>,
): buildConnector.connector {
  const plain = buildConnector(options);
  return (target, callback) => {
    if (target.protocol !== 'https:') plain(target, callback);
    else
      read().then(
        (tls) => buildConnector({ ...options, ...tls })(target, callback),
        (error: unknown) => callback(error as Error, null),
      );
  };
}
