/** A listener to server-sent events, as browsers read them (WHATWG HTML §9.2.6). */
interface Heard {
  readonly id: string | undefined;
  readonly event: string;
  readonly data: Readonly<Record<string, unknown>>;
}
export interface Listening {
  readonly status: number;
  readonly headers: Headers;
  /** The last position that the server sent, with or without an event. */
  lastId(): string | undefined;
  /** Resolves when a comment line has come. */
  comment(): Promise<void>;
  /** The next `count` events but `start`; throws when they do not come in time, or the stream ends before. */
  next(count: number): Promise<readonly Heard[]>;
  /** The remaining events, until the server ends the stream. */
  rest(): Promise<readonly Heard[]>;
  stop(): Promise<void>;
}
const PATIENCE_MS = 20_000;

export async function listen(url: string, headers: Readonly<Record<string, string>> = {}): Promise<Listening> {
  const stop = new AbortController();
  const response = await fetch(url, { headers: { accept: 'text/event-stream', ...headers }, signal: stop.signal });
  const heard: Heard[] = [];
  let [lastId, comments, ended] = [undefined as string | undefined, 0, false];
  let wake = (): void => {};
  const take = (block: string): void => {
    const lines = block.split('\n').map((line) => /^([^:]*):? ?(.*)$/s.exec(line)!);
    const last = (name: string): string | undefined => lines.findLast(([, field]) => field === name)?.[2];
    comments += lines.filter(([, field]) => field === '').length;
    const id = last('id');
    lastId = id ?? lastId;
    const data = last('data');
    if (data !== undefined && last('event') !== 'start')
      heard.push({ id, event: last('event') ?? 'message', data: JSON.parse(data) as Heard['data'] });
  };
  const read = async (): Promise<void> => {
    let text = '';
    const decoder = new TextDecoder();
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
      const blocks = (text + decoder.decode(chunk, { stream: true })).split('\n\n');
      text = blocks.pop()!;
      blocks.forEach(take);
      wake();
    }
  };
  const reading = read()
    .catch(() => {})
    .then(() => {
      ended = true;
      wake();
    });
  const until = async (isSo: () => boolean): Promise<void> => {
    let isLate = false;
    const late = setTimeout(() => {
      isLate = true;
      wake();
    }, PATIENCE_MS);
    try {
      while (!isSo()) {
        if (isLate) throw new Error(`the event did not come within ${PATIENCE_MS / 1000} s; so far: ${JSON.stringify(heard)}`);
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    } finally {
      clearTimeout(late);
    }
  };
  return {
    status: response.status,
    headers: response.headers,
    lastId: () => lastId,
    comment: () => until(() => comments > 0 || ended),
    async next(count) {
      await until(() => heard.length >= count || ended);
      if (heard.length < count) throw new Error(`the stream ended; so far: ${JSON.stringify(heard)}`);
      return heard.splice(0, count);
    },
    async rest() {
      await until(() => ended);
      return heard.splice(0);
    },
    async stop() {
      stop.abort();
      await reading;
    },
  };
}
