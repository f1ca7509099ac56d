/**
 * undici 7 ends the process with an AssertionError when a peer closes the connection while nobody reads its response
 * (https://github.com/nodejs/undici/issues/5360). undici 8 has a correction and needs Node 22.19.
 */
import { Socket } from 'node:net';
import { Client } from 'undici';

interface Parser {
  paused: boolean;
  readonly socket: Socket;
  readonly llhttp: { llhttp_resume(parser: number): void };
  readonly ptr: number;
  resume(): void;
  finish: (this: Parser) => Error | null;
}
/** One round passes on what is left of the response, another one its end. */
const ROUNDS = 16;
const patched = new WeakSet<object>();

/** undici does not export the parser's class, so the parser is taken from a connection. */
function parserOf(socket: object): Parser {
  const symbol = Object.getOwnPropertySymbols(socket).find(({ description }) => description === 'parser');
  const parser = symbol && ((socket as Record<symbol, unknown>)[symbol] as Parser | undefined);
  if (!parser || typeof parser.finish !== 'function')
    throw new Error('this version of undici has another parser: wire/http/paused-responses.ts does not fit it');
  return parser;
}

/** Patches undici in this process: responses that nobody reads yet end like others when their connection closes. */
export async function completePausedResponses(): Promise<void> {
  const socket = new Socket();
  socket.on('error', () => {});
  const client = new Client('http://127.0.0.1', { connect: (_, callback) => callback(null, socket) });
  const connected = new Promise<void>((done) => client.once('connect', () => done()));
  const request = client.request({ method: 'GET', path: '/' }).catch(() => {});
  let prototype: Parser;
  try {
    await Promise.race([connected, request]);
    prototype = Object.getPrototypeOf(parserOf(socket)) as Parser;
  } finally {
    await client.destroy();
    await request;
  }
  if (patched.has(prototype)) return;
  patched.add(prototype);
  const { finish } = prototype;
  prototype.finish = function (this: Parser) {
    for (let round = 0; this.paused && !this.socket.destroyed && round < ROUNDS; round++) this.resume();
    if (this.socket.destroyed && this.paused) return null;
    // A body that ends with its connection pauses again.
    if (this.paused) this.llhttp.llhttp_resume(this.ptr);
    this.paused = false;
    return finish.call(this);
  };
}
