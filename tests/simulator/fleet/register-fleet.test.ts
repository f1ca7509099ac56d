/** Registers a fleet at a server. It waits for a server that is starting, and fails at a refusal. */
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findBootUrl, registerFleet } from '../../../commands/register-fleet';
import { startScript } from '../../../boot/ipxe';
import { testClock } from '../../support/clock';
import { runCommand } from '../../support/command';
import { freePort } from '../../support/free-port';

const NODES = [{ node: { name: 'sim-0', driver: 'ipmi' }, ports: [{ address: '52:54:00:b1:00:00' }] }];
const never = new AbortController().signal;

/** A server that answers with these statuses in turn, and then 201. @returns the requests that it received */
function server(...statuses: readonly number[]): { readonly asked: string[]; readonly handle: RequestListener } {
  const [asked, left]: [string[], number[]] = [[], [...statuses]];
  return {
    asked,
    handle: (request, response) => {
      const status = left.shift() ?? 201;
      asked.push(`${request.method} ${request.url}`);
      request.resume().on('end', () => response.writeHead(status).end(status === 201 ? '{"uuid": "one"}' : ''));
    },
  };
}
async function serve(handle: RequestListener, port = 0): Promise<{ readonly url: string; readonly close: () => Promise<void> }> {
  const open = createServer(handle).listen(port, '127.0.0.1');
  await once(open, 'listening');
  const close = async (): Promise<void> => {
    open.closeAllConnections();
    await new Promise((closed) => open.close(closed));
  };
  return { url: `http://127.0.0.1:${(open.address() as AddressInfo).port}`, close };
}

describe('registerFleet', () => {
  it.each([
    ['ready', [200], 1],
    ['not yet ready', [503, 503, 200], 3],
  ])('creates nodes and ports at a server that is %s', async (_, statuses, looks) => {
    const { asked, handle } = server(...statuses);
    const { url, close } = await serve(handle);
    try {
      expect(await registerFleet(url, NODES, testClock(), never)).toEqual({ created: 1, updated: 0 });
      expect(asked).toEqual([...Array<string>(looks).fill('GET /'), 'POST /v1/nodes', 'POST /v1/ports']);
    } finally {
      await close();
    }
  });
  it('waits for a server that does not listen yet', async () => {
    const port = await freePort();
    const { handle } = server(200);
    const clock = testClock();
    let opened: ReturnType<typeof serve> | undefined;
    const sleep: typeof clock.sleep = async (...args) => {
      opened ??= serve(handle, port);
      await opened;
      return clock.sleep(...args);
    };
    expect(await registerFleet(`http://127.0.0.1:${port}`, NODES, { ...clock, sleep }, never)).toEqual({ created: 1, updated: 0 });
    await (await opened)!.close();
  });
  it.each([
    ['does not listen', undefined, /does not answer/],
    ['never becomes ready', Array<number>(1000).fill(503), /node sim-0: .* answers 503/],
    ['rejects the node', [200, 400], /node sim-0: .* answers 400/],
    ['requires credentials', [200, 401], /node sim-0: .* answers 401 \(set OS_TOKEN, or OS_USERNAME and OS_PASSWORD/],
  ])('fails if the server %s', async (_, statuses, reason) => {
    const { handle } = server(...(statuses ?? []));
    const { url, close } = await serve(handle);
    if (!statuses) await close();
    await expect(registerFleet(url, NODES, testClock(), never)).rejects.toThrow(reason);
    if (statuses) await close();
  });
});

describe('existing node with the same name', () => {
  const exchange = async (extra: object) => {
    const received: string[] = [];
    const { url, close } = await serve((request, response) => {
      received.push(request.method!);
      request.resume().on('end', () => {
        if (request.method === 'POST') response.writeHead(409).end('{}');
        else response.end(JSON.stringify({ extra }));
      });
    });
    const result = await registerFleet(url, NODES, testClock(), never).catch((error: unknown) => (error as Error).message);
    await close();
    return { received, result };
  };
  it('gets the new address if a fleet registered it', async () => {
    const { received, result } = await exchange({ registered_by: 'bloomery simulate' });
    expect(result).toEqual({ created: 0, updated: 1 });
    expect(received).toEqual(['GET', 'POST', 'GET', 'PATCH']);
  });
  it.each([{}, { registered_by: 'somebody' }])('is left unchanged with extra %j', async (extra) => {
    const { received, result } = await exchange(extra);
    expect(result).toMatch(/^node sim-0: the server has a node of this name that no fleet registered; it was not changed/);
    expect(received).toEqual(['GET', 'POST', 'GET']);
  });
});

describe('findBootUrl', () => {
  const found = async (script: string | undefined): Promise<string | undefined> => {
    const { url, close } = await serve((request, response) => {
      if (request.url === '/boot.ipxe' && script === undefined) response.writeHead(404);
      response.end(request.url === '/boot.ipxe' ? script : '');
    });
    try {
      return await findBootUrl(url, Number(new URL(url).port), testClock(), never);
    } finally {
      await close();
    }
  };
  it('returns the URL in the script of the boot service', async () => {
    expect(await found(startScript('http://192.0.2.1:8081'))).toBe('http://192.0.2.1:8081');
  });
  it.each([undefined, 'another web server', ' '.repeat(2 ** 20) + startScript('http://192.0.2.1')])(
    'returns undefined for the script %.20j',
    async (text) => {
      expect(await found(text)).toBeUndefined();
    },
  );

  describe('in the command "simulate"', () => {
    const folder = mkdtempSync(join(tmpdir(), 'bloomery-register-'));
    afterAll(() => rmSync(folder, { recursive: true, force: true }));
    /** What the command prints until the server refuses its first node. @param configuration of a port */
    const printed = async (configuration: (port: number) => string, where: 'here' | 'elsewhere' = 'here'): Promise<string> => {
      const { url, close } = await serve((request, response) => {
        if (request.method === 'POST') response.writeHead(400);
        response.end(request.url === '/boot.ipxe' ? startScript('http://192.0.2.1:8081') : '');
      });
      const file = join(folder, 'ironic.conf');
      const [bmcs, nobody] = await Promise.all([freePort(), freePort()]);
      writeFileSync(file, configuration(where === 'here' ? Number(new URL(url).port) : nobody));
      const words = ['simulate', '--register', url, '--config-file', file, '--control', 'no', '--ipmi', `${bmcs}`, '--redfish', `${bmcs}`];
      const { code, errors } = await runCommand(words);
      await close();
      expect({ code, errors }).toMatchObject({ code: 1, errors: expect.stringContaining('node sim-0:') as string });
      return errors;
    };
    it('uses [boot]http_port of the configuration', async () => {
      expect(await printed((port) => `[boot]\nhttp_port = ${port}\n`)).toContain('the machines boot from http://192.0.2.1:8081 ');
    });
    it('uses [deploy]http_url of the configuration', async () => {
      expect(await printed(() => '[deploy]\nhttp_url = http://192.0.2.2\n')).toContain('the machines boot from http://192.0.2.2 ');
    });
    it('warns what to do if no boot service answers', async () => {
      const errors = await printed((port) => `[boot]\nhttp_port = ${port}\n`, 'elsewhere');
      expect(errors).toMatch(
        /warning: no boot service answers on port \d+ of 127\.0\.0\.1, .*set --boot-url .*, or name its --config-file$/m,
      );
    });
  });
});
