/**
 * A BMC with odd behaviours: the simulator's Redfish service, with a layer in front of it that changes requests and answers. A behaviour may
 * answer itself, change an answer, or write the bytes of an answer (broken headers and bodies).
 */
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { obeyPower, testBmc, type TestBmc } from '../../simulator/redfish-bmc';

export interface OddRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: unknown;
  /** The request's place among those of its connection; the first is 1. */
  readonly onConnection: number;
}
export interface OddReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
}
/** What the BMC remembers, and the machine behind it. */
export interface OddMemory {
  readonly bmc: TestBmc;
  /** Counts of what a behaviour counts, by its own names. */
  readonly counts: Map<string, number>;
  /** Adds one and returns the new count. */
  readonly count: (name: string) => number;
}
export interface OddBehaviour {
  /** Answers in place of the service; `dropped`: the connection ends without an answer; undefined: the service answers. */
  readonly instead?: (asked: OddRequest, memory: OddMemory) => OddReply | 'dropped' | undefined;
  /** The service's own path for a path that the behaviour's answers name. */
  readonly path?: (path: string) => string;
  /** Changes the service's answer. */
  readonly answer?: (reply: OddReply, asked: OddRequest, memory: OddMemory) => OddReply;
  /** The bytes of an answer; the connection ends after them. Undefined: well-formed HTTP. */
  readonly bytes?: (reply: OddReply, asked: OddRequest) => string | undefined;
}
interface OddBmc {
  readonly bmc: TestBmc;
  readonly url: string;
  readonly asked: readonly OddRequest[];
  readonly close: () => Promise<void>;
}

const LEFT_OUT = /^(?:connection|content-length|transfer-encoding|keep-alive|date)$/i;
const JSON_TYPE = { 'content-type': 'application/json' };

export async function oddBmc(behaviour: OddBehaviour): Promise<OddBmc> {
  const bmc = await testBmc();
  obeyPower(bmc);
  const counts = new Map<string, number>();
  const memory: OddMemory = {
    bmc,
    counts,
    count: (name) => {
      counts.set(name, (counts.get(name) ?? 0) + 1);
      return counts.get(name)!;
    },
  };
  const asked: OddRequest[] = [];
  const perConnection = new WeakMap<Socket, number>();
  const server = createServer((request, response) => {
    const { socket } = request;
    perConnection.set(socket, (perConnection.get(socket) ?? 0) + 1);
    const answer = async (): Promise<void> => {
      const sent = await text(request);
      const one: OddRequest = {
        method: request.method!,
        path: request.url!,
        headers: request.headers,
        body: sent === '' ? undefined : (JSON.parse(sent) as unknown),
        onConnection: perConnection.get(socket)!,
      };
      asked.push(one);
      const own = behaviour.instead?.(one, memory);
      if (own === 'dropped') {
        socket.destroy();
        return;
      }
      const reply = own ?? (await fromService(one));
      const bytes = behaviour.bytes?.(reply, one);
      if (bytes !== undefined) {
        socket.end(bytes, 'latin1');
        return;
      }
      const content = reply.body === undefined ? '' : JSON.stringify(reply.body);
      response.writeHead(reply.status, { ...reply.headers, 'content-length': Buffer.byteLength(content) }).end(content);
    };
    answer().catch((error: unknown) => response.destroy(error as Error));
  });
  const fromService = async (value: OddRequest): Promise<OddReply> => {
    const passed = Object.entries(value.headers).filter(([name]) => !LEFT_OUT.test(name) && name !== 'host');
    const path = behaviour.path?.(value.path) ?? value.path;
    const answered = await bmc.ask(value.method, path, value.body, Object.fromEntries(passed) as Record<string, string>);
    const headers = Object.fromEntries([...answered.headers].filter(([name]) => !LEFT_OUT.test(name)));
    const empty = answered.status === 204 || Object.keys(answered.body).length === 0;
    const reply: OddReply = { status: answered.status, headers: { ...JSON_TYPE, ...headers }, ...(empty ? {} : { body: answered.body }) };
    return behaviour.answer?.(reply, value, memory) ?? reply;
  };
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return {
    bmc,
    asked,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,

    close: async () => {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
      await bmc.close();
    },
  };
}
